"""Outermost middleware: request id, log line, metrics and the last resort for errors.

Owns the request id, the log line, the request metrics, that every answer has the headers of
`service.http.headers`, that a HEAD is a GET whose body the server leaves out, and the last resort:
an unexpected exception is a plain 500, of which a line says why, and what the server's leaving
cuts off is a 503. Which shape these have at a path is the application's to say. A pure ASGI
middleware, so that `receive` stays the server's own and a disconnect is seen.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.errors import SegmentFailedError
from service.errors import Problem, cut_off
from service.headers import header_of
from service.http.headers import SECURITY_HEADERS
from service.http.problems import problem_of
from service.http.replies import error_reply
from service.labels import Served
from service.priority import Priority
from service.telemetry.request_context import (
    NO_ANSWER,
    PROBES,
    RequestContext,
    attach_context,
    trace_id_in,
)
from service.telemetry.route_names import RouteNames

_LOGGER = logging.getLogger("dragoman.request")
_REQUEST_ID = re.compile("[A-Za-z0-9._-]{1,64}")
_SECURITY_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_SECURITY_NAMES = frozenset(name for name, _ in _SECURITY_HEADERS)


class RequestMetrics(Protocol):
    """Where requests are counted."""

    def request_started(self) -> None:
        """A request has arrived."""

    def request_ended(
        self,
        *,
        route: str,
        status: int,
        seconds: float,
        priority: Priority | None = None,
        served: Served | None = None,
    ) -> None:
        """A request was answered, or its client left."""


class Edge:
    """Middleware around the application; see the module's own words.

    Args:
        app: What answers.
        metrics: Where requests are counted.
        routes: The paths there are; any other is "unmatched" in metrics and logs.
        clock: Seconds, monotonic.
        new_request_id: Makes an id for a request that brings none.
        is_leaving: Whether the server leaves: then every answer is its connection's last.
        is_last: Whether the answer to a request, by its method and path, is its connection's last.
        reply_at: Makes the answer to a path of what went wrong.
        is_traced: Whether answers to a path have X-Trace-ID: the request's own, else its id. There
            a request without X-Request-ID is known by its X-Trace-ID.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: RequestMetrics,
        routes: Collection[str],
        clock: Callable[[], float],
        new_request_id: Callable[[], str],
        is_leaving: Callable[[], bool] = lambda: False,
        is_last: Callable[[str, str], bool] = lambda _method, _path: False,
        reply_at: Callable[[str, Problem], ASGIApp] = lambda _path, problem: error_reply(problem),
        is_traced: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        self._app = app
        self._is_traced = is_traced
        self._reply_at = reply_at
        self._is_last = is_last
        self._metrics = metrics
        self._routes = RouteNames(routes)
        self._clock = clock
        self._new_request_id = new_request_id
        self._is_leaving = is_leaving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = self._clock()
        is_head = scope["method"] == "HEAD"
        request_id, own_headers = self._identified(scope)
        context = RequestContext(
            request_id=request_id, is_head=is_head, trace_id=trace_id_in(scope)
        )
        attach_context(scope, context)
        is_last = self._is_last(scope["method"], scope["path"])
        asked = {**scope, "method": "GET"} if is_head else scope
        answer = _Answer(
            send,
            own_headers=own_headers,
            is_leaving=(lambda: True) if is_last else self._is_leaving,
        )
        self._metrics.request_started()
        try:
            await self._answer(asked, receive, answer, context)
        finally:
            self._note_end(scope, context, answer.status, self._clock() - started)

    async def _answer(
        self, scope: Scope, receive: Receive, answer: "_Answer", context: RequestContext
    ) -> None:
        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:  # it outlived the time that the server has to close
            if answer.has_started or not self._is_leaving():
                raise
            problem = cut_off().problem
            context.code = problem.code
            await self._reply_at(scope["path"], problem)(scope, receive, answer)
        except Exception as error:
            problem = problem_of(error)
            context.code = problem.code
            log_failure(context, error)
            if not answer.has_started:
                await self._reply_at(scope["path"], problem)(scope, receive, answer)

    def _identified(self, scope: Scope) -> tuple[str, list[tuple[bytes, bytes]]]:
        """The id of a request, and the headers that its answer says it by."""
        request_id = _id_in(scope, b"x-request-id")
        if not self._is_traced(scope["path"]):
            request_id = request_id or self._new_request_id()
            return request_id, [(b"x-request-id", request_id.encode("ascii"))]
        trace_id = _id_in(scope, b"x-trace-id")
        request_id = request_id or trace_id or self._new_request_id()
        return request_id, [
            (b"x-request-id", request_id.encode("ascii")),
            (b"x-trace-id", (trace_id or request_id).encode("ascii")),
        ]

    def _note_end(self, scope: Scope, context: RequestContext, status: int, seconds: float) -> None:
        route = self._routes.of(scope["path"])
        status = context.late_status or status
        self._metrics.request_ended(
            route=route,
            status=status,
            seconds=seconds,
            priority=context.priority,
            served=context.served,
        )
        fields: dict[str, object] = {
            **_ids(context),
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
        }
        served = context.served
        counts = (
            ("code", context.code),
            ("num_texts", context.num_texts),
            ("num_characters", context.num_characters),
            ("num_segments", context.num_segments),
            ("pair", served and served.pair),
            ("checkpoint", served and served.checkpoint),
            ("key", context.key_name),
        )
        fields |= {name: value for name, value in counts if value is not None}
        _LOGGER.log(_level(route, status), "request", extra={"fields": fields})


class _Answer:
    """Answer to one request as it is sent, with the headers that every answer has.

    Args:
        send: The server's.
        own_headers: Those that it has whatever the application says.
        is_leaving: Whether the answer is its connection's last.

    Attributes:
        status: As it was sent; `NO_ANSWER` before.
        has_started: Whether anything was sent.
    """

    def __init__(
        self,
        send: Send,
        *,
        own_headers: list[tuple[bytes, bytes]],
        is_leaving: Callable[[], bool],
    ) -> None:
        self._send = send
        self._own_headers = own_headers
        self._is_leaving = is_leaving
        self.status = NO_ANSWER
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        """Send a message of the answer."""
        self.has_started = True
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._completed(message.get("headers", ()))
        await self._send(message)

    def _completed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Headers of an answer, names in small letters, with those that it lacks."""
        own = self._own_headers
        if self._is_leaving():
            own = [*own, (b"connection", b"close")]
        replaced = {name for name, _ in own}
        given = [header for header in headers if header[0] not in replaced]
        names = {name for name, _ in given}
        if names.isdisjoint(_SECURITY_NAMES):
            return [*given, *own, *_SECURITY_HEADERS]
        return [*given, *own, *(one for one in _SECURITY_HEADERS if one[0] not in names)]


def _id_in(scope: Scope, name: bytes) -> str | None:
    """The id that a header gives, if no log is harmed by it."""
    given = header_of(scope, name)
    return given if _REQUEST_ID.fullmatch(given) else None


def _ids(context: RequestContext) -> dict[str, str]:
    """Ids that a request's log lines and its trace have in common."""
    ids = {"request_id": context.request_id}
    if context.trace_id is not None:
        ids["trace_id"] = context.trace_id
    return ids


def note_problem(context: RequestContext, error: Exception) -> Problem:
    """What an error is answered with, once its code and the reason of a 500 are noted."""
    problem = problem_of(error)
    context.code = problem.code
    if problem.status == 500:
        log_failure(context, error)
    return problem


def note_late_problem(context: RequestContext, error: Exception) -> Problem:
    """The same of an error after the answer has begun; metrics and log have its status."""
    problem = note_problem(context, error)
    context.late_status = problem.status
    return problem


def log_failure(context: RequestContext, error: Exception) -> None:
    """Write why a request is answered with a 500.

    The message of an exception may quote a text and is left out; what the engine says of a segment
    is made of constants and numbers.
    """
    fields = _ids(context)
    if isinstance(error, SegmentFailedError):
        _LOGGER.error("translation_failed", extra={"fields": fields | {"reason": str(error)}})
    else:
        _LOGGER.error("unexpected_error", exc_info=error, extra={"fields": fields})


def _level(route: str, status: int) -> int:
    """Log level of a request's line; a successful probe is only worth debugging."""
    if status == 500:
        return logging.ERROR
    return logging.DEBUG if route in PROBES and status == 200 else logging.INFO
