"""HTTP/1.1 protocol of one connection, bounded before there is a request.

Owns what a connection may cost before a request of it has arrived: how many there are, how
large a request's head may be, how long it may take, and when it is parsed. What is refused here has
our own shape of error. Which heads are wrong is `service.http.heads`, how much may be sent ahead
`service.http.backlog`, how a connection ends `service.http.endings`. Parsing, and the request from
its head on, are uvicorn's; bodies are `service.http.body`.

On every connection one of these is always running: the time for a head (from the first moment
on, and again whenever bytes come between two requests), a request's own limits, uvicorn's
keep-alive, or the time to leave.

When all connections are taken, a new one takes the place of one that has its last answer (its body
still comes, or its client does not leave), else of the one that has waited longest for a request: a
client that opens a thousand and sends nothing shuts no other out, health checks least of all. Only
where every connection has a request is a new one refused.

Where several processes answer on one port, a connection whose next request is not this one's is
passed on as it is (`service.http.passing`): the socket, that request's head, and what came behind.

A client that offers another protocol (`Upgrade: h2c`, as Java's does with every first request) is
answered in HTTP/1.1.

pyproject.toml bounds uvicorn from above, because this file and `service.http.endings` stand on what
it does not document. They override `_start_asgi_task`, the callbacks of its parser,
`send_400_response`, `timeout_keep_alive_handler`, `eof_received`, `shutdown` and `connection_made`,
and call `_unset_keepalive_if_required`. They put their own objects in the place of its `flow` and
`parser` and of its cycle's `transport` and `send` (`service.http.whole`, which also reads its
`flow`, `default_headers` and `on_response`, sets its `chunked_encoding` and
`expected_content_length`, and has the checks of headers). They read and set `cycle`,
`pipeline`, `url` and `headers`, and of a `RequestResponseCycle` the `keep_alive`, `disconnected`,
`message_event`, `response_started`, `response_complete` and `waiting_for_100_continue`. The bound
moves up when tests/service/http and tests/e2e pass with the next version.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from service.errors import RETRY_AFTER_SECONDS, Problem
from service.http import heads
from service.http.arrivals import note_arrived
from service.http.backlog import MAX_BACKLOG_BYTES, MAX_PIECES, MAX_QUEUED
from service.http.disconnect import attach_hangup
from service.http.endings import AnswerTransport, EndingProtocol, WireLimits
from service.http.passing import PassOn, not_taken
from service.http.whole import WholeAnswers
from service.telemetry.metrics import Refusal

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["MAX_HEADERS", "BoundedProtocol", "WireLimits", "protocol_factory"]

MAX_HEADERS = 100
_OVERHEAD_BYTES = 4  # of a header: colon, space, CR, LF


class BoundedProtocol(EndingProtocol):
    """Protocol of one connection, with bounds on its head.

    Args:
        limits: Of all connections; the rest is uvicorn's.
        on_refused: Told why, once for each that is refused.
        pass_on: Takes connections whose next request is another process's; None: all are ours.
    """

    def __init__(
        self,
        limits: WireLimits,
        on_refused: Callable[[Refusal], None],
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pass_on: PassOn | None = None,
    ) -> None:
        super().__init__(limits, config, server_state, app_state, _loop)
        self._on_refused = on_refused
        self._pass_on = pass_on
        self._passed_head: bytes | None = None
        self._received_before = b""
        self._turn: asyncio.Handle | None = None
        self._problem: Problem | None = None
        self._num_headers = 0
        self._num_head_bytes = 0
        self._num_buffered_bytes = 0
        self._num_of_body = 0
        self._waits_since = self.loop.time()

    def connection_made(  # type: ignore[override]  # uvicorn narrows it too
        self, transport: asyncio.Transport
    ) -> None:
        """Take the connection; when there are too many, one of them has to go."""
        super().connection_made(transport)
        if len(self.connections) <= self._limits.max_connections or self._displace():
            self._expect_head()
            if self._received_before:
                self.data_received(self._received_before)
            return
        self._on_refused("too_many_connections")
        self._write_problem(self._too_many())
        self._close()

    def received_before(self, data: bytes) -> Self:
        """The same connection, of which another process has read this and parsed none of it."""
        self._received_before = data
        return self

    def connection_lost(self, exc: Exception | None) -> None:
        """Parse no more."""
        if self._turn is not None:
            self._turn.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, unless the connection is being left."""
        if self._is_leaving:
            self._has_rest = True
            return
        self._backlog.add(data)
        self._parse_on()

    def on_message_begin(self) -> None:
        """A request line begins."""
        super().on_message_begin()
        self._num_headers = self._num_head_bytes = self._num_of_body = 0

    def on_url(self, url: bytes) -> None:
        """A part of the request line."""
        self._count_head_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header is complete; or a trailer, which counts and never passes for a header."""
        self._num_headers += 1
        if self._num_headers > MAX_HEADERS:
            self._stop_parsing(heads.too_many(MAX_HEADERS))
        self._count_head_bytes(len(name) + len(value) + _OVERHEAD_BYTES)
        if self._awaits_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there; from here the request has limits of its own."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("no proxy")  # uvicorn answers with `send_400_response`
            return  # the head comes again, without its offer
        version = self.parser.get_http_version()
        if problem := heads.problem_with(version, self.headers):
            self._stop_parsing(problem)
        method = self.parser.get_method()
        if self._pass_on is not None and not self._pass_on.keeps(method, self.url):
            self._head_timer.stop()
            self._passed_head = heads.written_again(method, self.url, version, self.headers)
            return
        super().on_headers_complete()  # it fails where the path is no path
        answer = AnswerTransport(self, has_body=self.scope["method"] != "HEAD")
        self.cycle.transport = answer  # type: ignore[assignment]  # what it needs
        whole = WholeAnswers(self.cycle, self.transport)
        self.cycle.send = whole  # type: ignore[method-assign,assignment]  # what it needs
        attach_hangup(cast("Scope", self.scope))
        if version == "1.0":
            self.cycle.waiting_for_100_continue = False  # it has no interim answers
        if self.pipeline:
            self.flow.resume_reading()  # uvicorn pauses; but a client that leaves is to be noticed
        self._awaits_head = False
        self._num_of_body = heads.content_length(self.headers)
        self._num_buffered_bytes = 0
        self._head_timer.stop()

    def on_body(self, body: bytes) -> None:
        """A part of the body went on to the application."""
        if self._passed_head is not None:  # a head ends its piece, so that nothing comes behind it
            raise ValueError("a body behind a head that is passed on")
        self._num_buffered_bytes = 0
        self._num_of_body = max(0, self._num_of_body - len(body))  # 0 before, of a body in chunks
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there; what comes now is another's head."""
        if self.parser.should_upgrade() or self._passed_head is not None:
            return
        self._awaits_head = True
        self._num_buffered_bytes = 0
        note_arrived(cast("Scope", self.scope))
        if not self._is_leaving:
            self._leave_timer.stop()  # it may have been answered already; its end is in time
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, but not for ever for the rest of this one."""
        self._waits_since = self.loop.time()
        if self._is_lingering:
            self.server_state.total_requests += 1
            return
        has_next = bool(self.pipeline)
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif not self._awaits_head and not has_next:
            self._unset_keepalive_if_required()
            self._leave_timer.start(self._limits.leave_seconds, self._close)
        if self._passed_head is not None:
            self._pass()
        elif self._backlog:
            self._parse_on()
        elif self._num_buffered_bytes and not self._is_answering and not self._is_leaving:
            # The beginning of a head, which came before this answer was there.
            self._unset_keepalive_if_required()
            self._expect_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed, or what a callback of the parser refused."""
        problem = self._problem or Problem(status=400, code="invalid_http", message=msg)
        self._refuse("headers_too_large" if problem.status == 431 else "invalid_http", problem)

    def _parse_on(self) -> None:
        """Parse what came, until enough waits for an answer or it is others' turn."""
        self._turn = None
        num_pieces = 0
        while self._backlog and not self._is_leaving and num_pieces < MAX_PIECES:
            if len(self.pipeline) >= MAX_QUEUED or self._passed_head is not None:
                break
            piece = self._backlog.take(self._num_of_body)
            num_pieces += 1
            self._num_buffered_bytes += len(piece)
            self._parse(piece)
            self._bound_what_comes()
        if self._passed_head is not None:
            self._pass()
        if self._is_leaving:
            self._backlog.clear()
        elif num_pieces == MAX_PIECES and self._backlog:
            self._turn = self.loop.call_soon(self._parse_on)
        if len(self._backlog) > MAX_BACKLOG_BYTES:
            self.flow.hold()
            self._watch()
        else:
            self.flow.release()
        if self._has_eof and not self._backlog and not self._is_worth_keeping():
            self._close()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps it
        """Take note that the client sends no more; a request that is passed on is still due."""
        is_kept = super().eof_received() if self._passed_head is None else True
        self._has_eof = True
        return is_kept

    def resume_writing(self) -> None:
        """Write on; or pass the connection on, once nothing of ours is left to be written."""
        super().resume_writing()
        if self._passed_head is not None:
            self._pass()

    def _pass(self) -> None:
        """Pass the connection on, unless something of it is still to be answered or written.

        Where there is no room for it, its request is refused.
        """
        assert self._pass_on is not None
        assert self._passed_head is not None
        is_busy = self._is_answering or bool(self.pipeline)
        if is_busy or self._is_leaving or self.transport.is_closing():
            return
        self.transport.set_write_buffer_limits(high=0)  # `resume_writing` tells when it is empty
        if self.transport.get_write_buffer_size():
            return
        self._unset_keepalive_if_required()
        connection = self.transport.get_extra_info("socket")
        if not self._pass_on.take(connection, self._passed_head + self._backlog.rest):
            self._passed_head = None
            self._refuse("too_many_connections", not_taken())
            return
        self.transport.pause_reading()
        self._is_leaving = True
        self.transport.abort()  # of the process's own descriptor: the connection stays open

    def _parse(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._is_leaving:
            self._unset_keepalive_if_required()
            try:
                num_parsed = self._feed(rest)
            except httptools.HttpParserError as error:
                if str(error) == "Content-Length overflow":
                    self._problem = heads.length_overflow()
                self.send_400_response("Invalid HTTP request received.")
                return
            rest = rest[num_parsed:]

    def _feed(self, data: memoryview) -> int:
        """Parse up to the end, or up to where a request offers another protocol; how far it came.

        An offer may be ignored (RFC 9110, section 7.8), but httptools takes what follows such a
        head, its body too, for that protocol. So a new parser gets the head without it.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            method, version = self.parser.get_method(), self.parser.get_http_version()
            head = heads.without_offer(method, self.url, version, self.headers)
            self.parser = _new_parser(self)
            self.parser.feed_data(head)
            return int(offer.args[0])
        return len(data)

    def _displace(self) -> bool:
        """End the connection that is needed least; False where every other one is answered.

        That is one whose last answer is written, while its client sends on or does not leave; else
        the one that has waited longest for a request.
        """
        others = [
            connection
            for connection in self.connections
            if isinstance(connection, BoundedProtocol)
            and connection is not self
            and connection._may_go  # noqa: SLF001  # another of the same class
        ]
        if not others:
            return False
        least = min(others, key=lambda one: (not one._has_last_answer, one._waits_since))  # noqa: SLF001
        least._make_room(self._too_many())  # noqa: SLF001
        return True

    def _make_room(self, problem: Problem) -> None:
        """End the connection for a newer one."""
        if self._has_last_answer:
            self.transport.abort()
            return
        self._on_refused("displaced")
        if self._num_buffered_bytes:
            self._write_problem(problem)
        self._close()

    def _too_many(self) -> Problem:
        limit = self._limits.max_connections
        return Problem(
            status=503,
            code="too_many_connections",
            message=f"the server has {limit} connections, which is its limit",
            limit=limit,
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )

    def _bound_what_comes(self) -> None:
        """Bound what the parser keeps (half a header, half a trailer), and its time."""
        if self._is_leaving or self._passed_head is not None:
            return
        if self._num_buffered_bytes > self._limits.max_header_bytes:
            self._refuse("headers_too_large", heads.too_large(self._limits.max_header_bytes))
        elif self._awaits_head and not self._head_timer and not self._is_answering:
            # The beginning of a head, or the end of a request that had been answered before.
            self._expect_head()

    def _expect_head(self) -> None:
        self._head_timer.start(self._limits.header_timeout_seconds, self._give_up_head)

    def _give_up_head(self) -> None:
        """A head did not arrive in time; a client that sent nothing is not told."""
        if not self._num_buffered_bytes:
            self._close()
            return
        self._refuse("header_timeout", heads.too_slow(self._limits.header_timeout_seconds))

    def _count_head_bytes(self, number: int) -> None:
        self._num_head_bytes += number
        if self._num_head_bytes > self._limits.max_header_bytes:
            self._stop_parsing(heads.too_large(self._limits.max_header_bytes))

    def _stop_parsing(self, problem: Problem) -> NoReturn:
        """Uvicorn asks for `send_400_response` when a callback of the parser fails."""
        self._problem = problem
        raise ValueError(problem.code)

    def _refuse(self, reason: Refusal, problem: Problem) -> None:
        """Read no more; say why, if an answer is due now; close when the client has."""
        if self._is_leaving:
            return
        self._is_leaving = self._has_rest = True
        self._head_timer.stop()
        self._on_refused(reason)
        if self._awaits_head and self._is_answering:
            # The fault is in the next request: this one's answer goes first and is the last.
            self.cycle.keep_alive = False
            return
        if self.transport.is_closing() or self.pipeline:
            # Uvicorn closed it after a fault of the application; or another's answer is due first.
            self._close()
            return
        if self._awaits_head or not self.cycle.response_started:
            self._write_problem(problem)
        if self.cycle is not None:
            self._disconnect(self.cycle)
        self._linger()


def protocol_factory(
    limits: WireLimits, on_refused: Callable[[Refusal], None], pass_on: PassOn | None = None
) -> type[BoundedProtocol]:
    """The class that uvicorn makes one of for each connection."""

    class Protocol(BoundedProtocol):
        def __init__(
            self,
            config: Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(
                limits, on_refused, config, server_state, app_state, _loop, pass_on=pass_on
            )

    return Protocol


def _new_parser(protocol: BoundedProtocol) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
    return parser
