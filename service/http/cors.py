"""Preflight requests of browsers, with refusals in the shape of every other error.

Owns how a refusal looks. Which pages may call the server, and all the rest, is Starlette's.
"""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from service.errors import Problem
from service.http.replies import error_reply

_PREFIX = "Disallowed CORS "


class Cors(CORSMiddleware):
    """Middleware for CORS; a refusal has the shape of every other error."""

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
        return error_reply(problem, headers)
