"""Replies that are a file: whole or in ranges, with refusals in the shape of every other error.

Owns how a `Range` that cannot be answered is refused, and that it is told when all of a file was
sent. Reading and sending it are Starlette's.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from service.errors import Problem, scalar
from service.http.replies import JsonReply, error_reply
from service.telemetry.request_context import context_in

_UNIT = "bytes"
_FORM = "bytes=FIRST-LAST"


class FileReply(FileResponse):
    """A file, to be saved.

    A range in a unit that is not known here counts as none (RFC 9110, section 14.2).

    Args:
        path: Of the file.
        found: What the system says of it.
        media_type: Of its content.
        name: What it is to be saved as.
        on_sent: Called once all of it was sent to a client that was there to the end.
    """

    def __init__(
        self,
        path: Path,
        found: os.stat_result,
        *,
        media_type: str,
        name: str,
        on_sent: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(path, stat_result=found, media_type=media_type, filename=name)
        self._num_bytes = found.st_size
        self._on_sent = on_sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, or why there is no such part of it."""
        asked = Headers(scope=scope).get("range")
        if asked is not None and asked.partition("=")[0].strip().lower() != _UNIT:
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            asked, scope = None, {**scope, "headers": headers}
        refused_with, is_whole, is_sent = None, False, False

        async def send_or_refuse(message: Message) -> None:
            nonlocal refused_with, is_whole, is_sent
            if message["type"] == "http.response.start" and message["status"] >= 400:
                refused_with = message["status"]
            if refused_with is not None:
                return
            await send(message)
            if message["type"] == "http.response.start":
                is_whole = message["status"] == 200
            elif not message.get("more_body", False):
                is_sent = is_whole

        await super().__call__(scope, receive, send_or_refuse)
        if refused_with is not None:
            await self._refusal(refused_with, asked, scope)(scope, receive, send)
        elif is_sent and self._on_sent is not None and not context_in(scope).is_head:
            await self._on_sent()

    def _refusal(self, status: int, asked: str | None, scope: Scope) -> JsonReply:
        """The answer to a range that Starlette refuses."""
        if status == 416:
            problem = Problem(
                status=416,
                code="range_not_satisfiable",
                message=f"the file has {self._num_bytes} bytes; the range begins behind them",
                value=scalar(asked),
                limit=self._num_bytes,
            )
            headers = {"content-range": f"{_UNIT} */{self._num_bytes}"}
        else:
            problem = Problem(
                status=400,
                code="invalid_request",
                message=f"the Range of the request is none; it must be {_FORM}",
                value=scalar(asked),
                limit=_FORM,
            )
            headers = {}
        context_in(scope).code = problem.code
        return error_reply(problem, headers)
