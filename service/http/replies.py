"""Replies: JSON that can always be encoded, and the shape of every error.

Owns how a `Problem` is written, and how it and a value in a path are described in the OpenAPI
document.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.errors import IDENTITY, Problem
from service.http.whole import WHOLE, takes_whole


class ErrorReply(BaseModel):
    """Every error of this server."""

    error: str = Field(description="One sentence with the value and the limit.")
    code: str = Field(description="A stable name for programs.")
    value: str | int | float | bool | None = Field(
        description="What was wrong; for a text its length, never the text."
    )
    limit: str | int | float | bool | None = Field(description="What would have been accepted.")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_CONTENT_TYPE = (b"content-type", b"application/json")


class JsonReply(Response):
    """Compact UTF-8 JSON; an unpaired surrogate, which UTF-8 has no bytes for, becomes "?".

    Nothing that it is sent by fails for what it says: once it is made, it is an answer.
    """

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The bytes of `content`."""
        return _ENCODER.encode(content).encode("utf-8", "replace")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; as one message where the server takes it so."""
        if not takes_whole(scope):
            await super().__call__(scope, receive, send)
            return
        message = {"type": "http.response.start", "status": self.status_code}
        await send({**message, "headers": self.raw_headers, WHOLE: bytes(self.body)})

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Headers of a reply that always has a body; most have none but its length and kind."""
        if headers:
            super().init_headers(headers)
        else:
            length = str(len(self.body)).encode("ascii")
            self.raw_headers = [(b"content-length", length), _CONTENT_TYPE]


def error_reply(problem: Problem, headers: Mapping[str, str] | None = None) -> JsonReply:
    """`problem` as a response, with the headers that its status wants."""
    all_headers = dict(headers or {}) | problem_headers(problem)
    if problem.status == 401:
        all_headers["www-authenticate"] = "Bearer"
    return JsonReply(error_content(problem), problem.status, all_headers)


def error_content(problem: Problem) -> dict[str, object]:
    """An `ErrorReply` as plain values."""
    return {
        "error": problem.message,
        "code": problem.code,
        "value": _finite(problem.value),
        "limit": _finite(problem.limit),
    }


def problem_headers(problem: Problem) -> dict[str, str]:
    """Retry-After, where coming back helps; and how a body may be encoded, where that was wrong."""
    if problem.status == 415:
        return {"accept-encoding": IDENTITY}
    if problem.retry_after_seconds is None:
        return {}
    return {"retry-after": str(math.ceil(problem.retry_after_seconds))}


def path_parameter(name: str, description: str = "") -> dict[str, Any]:
    """`openapi_extra` of a route with a value in its path.

    As a parameter of the function it would be documented with FastAPI's own 422.
    """
    parameter: dict[str, Any] = {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }
    return {"parameters": [parameter | ({"description": description} if description else {})]}


def _finite(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


_DESCRIPTIONS = {
    400: "The request is invalid.",
    401: "An API key is required.",
    403: "The API key is wrong.",
    404: "There is nothing here.",
    405: "The route does not have this method.",
    408: "The body did not arrive in time.",
    409: "Another one is running, it is so already, or the new checkpoints cannot be served;"
    " the old ones still are.",
    413: "The request is too long.",
    415: "The body is compressed.",
    416: "The file has no such range.",
    429: "Too much is waiting, or too much was asked for; Retry-After says when to come back.",
    431: "The request line and the headers are too long.",
    503: "Booting, shutting down or without an engine; Retry-After says when to come back.",
    504: "Not finished within the deadline; the work was dropped.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that answers with these errors."""
    return {status: error_response(_DESCRIPTIONS[status]) for status in statuses}


def error_response(description: str) -> dict[str, Any]:
    """One of `responses`, of an error that a route has words of its own for."""
    return {"model": ErrorReply, "description": description}
