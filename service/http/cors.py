"""Preflight requests of browsers, with refusals in the shape of every other error at their path.

Owns how a refusal looks. Which pages may call the server, and all the rest, is Starlette's.
"""

from collections.abc import Callable, Mapping, Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import Problem

_PREFIX = "Disallowed CORS "


ReplyAt = Callable[[str, Problem, Mapping[str, str]], ASGIApp]
"""Makes the answer to a path of what went wrong, with further headers."""


class Cors(CORSMiddleware):
    """Middleware for CORS; a refusal has the shape of every other error.

    Args:
        app: What answers everything else.
        reply_at: Makes refusals.
        origins: Of the pages that may call the server.
        methods: By which they may.
        headers: That they may send.
        shown: Headers of answers that they may read.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        reply_at: ReplyAt,
        origins: Sequence[str],
        methods: Sequence[str],
        headers: Sequence[str],
        shown: Sequence[str],
    ) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=methods,
            allow_headers=headers,
            allow_credentials=False,
            expose_headers=shown,
        )
        self._reply_at = reply_at

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
