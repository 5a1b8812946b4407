"""Pages of other origins that may call the server, or a router, and what these may send and read.

Owns the methods and headers, how a refused preflight request looks, in the shape of every other
error at its path, and that an answer says once who may read it. All the rest is Starlette's.
"""

from collections.abc import Callable, Mapping, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Problem

_PREFIX = "Disallowed CORS "
_OWN = "access-control-"
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
_SENT = ("authorization", "content-type", "x-request-id", "x-trace-id")
_SHOWN = ("retry-after", "x-request-id", "x-trace-id")

ReplyAt = Callable[[str, Problem, Mapping[str, str]], ASGIApp]
"""Makes the answer to a path of what went wrong, with further headers."""


class Cors(CORSMiddleware):
    """Middleware for CORS, without credentials: there are no cookies.

    An answer that another server has marked, as a router passes it on, is marked anew: who may read
    it here is said here.

    Args:
        app: What answers everything else.
        reply_at: Makes refusals.
        origins: Of the pages that may call the server.
    """

    def __init__(self, app: ASGIApp, *, reply_at: ReplyAt, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_SENT,
            allow_credentials=False,
            expose_headers=_SHOWN,
        )
        self._reply_at = reply_at

    async def send(self, message: Message, send: Send, request_headers: Headers) -> None:
        """Starlette's, in the place of what another server has said of these things."""
        if message["type"] == "http.response.start":
            message.setdefault("headers", [])
            _unmark(MutableHeaders(scope=message))
        await super().send(message, send, request_headers)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Starlette's answer, or ours with its headers if it is a refusal."""
        reply = super().preflight_response(request_headers)
        if reply.status_code < 400:
            return reply
        refused = bytes(reply.body).decode().removeprefix(_PREFIX)
        headers = {
            name: value for name, value in reply.headers.items() if not name.startswith("content-")
        }
        problem = Problem(
            status=400,
            code="cors_refused",
            message=f"a page may not call this server so: {refused} not allowed",
            value=refused,
        )
        return _Refusal(problem, headers, self._reply_at)


class _Refusal(Response):
    """Refusal of a preflight request, whose shape its path says."""

    def __init__(self, problem: Problem, headers: Mapping[str, str], reply_at: ReplyAt) -> None:
        super().__init__(status_code=problem.status)
        self._problem = problem
        self._further = headers
        self._reply_at = reply_at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        reply = self._reply_at(scope["path"], self._problem, self._further)
        await reply(scope, receive, send)


def _unmark(headers: MutableHeaders) -> None:
    """Leave out what an answer says of the pages that may read it."""
    for name in {name for name in headers if name.startswith(_OWN)}:
        del headers[name]
    varying = [one.strip() for value in headers.getlist("vary") for one in value.split(",")]
    if varying:
        del headers["vary"]
    if others := [one for one in varying if one.lower() != "origin"]:
        headers["vary"] = ", ".join(others)
