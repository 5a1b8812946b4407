"""Server-sent events as an answer: their bytes, when it begins, and how it ends.

Owns the format (WHATWG HTML, section 9.2: an `event` and a `data` line, then an empty one) and when
an answer begins: with its first event, or with a comment where that is long in coming. What is
raised until then is answered like any other error, and what is raised later is an event. What the
events say is a contract's.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.errors import ClientGoneError
from service.http.middleware import note_late_problem
from service.http.replies import error_content
from service.telemetry.request_context import context_in

PAUSE_SECONDS = 15.0
"""Silence, at most: proxies close what is silent, and a client that has gone is to be noticed."""

_PAUSE = b":\n\n"
_LINE_ENDS = tuple((chr(number), f"\\u{number:04x}") for number in (0x85, 0x2028, 0x2029))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        name: Its type, a word.
        data: Plain values for JSON.
    """

    name: str
    data: object

    @property
    def encoded(self) -> bytes:
        """Its bytes; JSON on one line, whatever a client takes for the end of one."""
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        for line_end, written in _LINE_ENDS:
            data = data.replace(line_end, written)
        return f"event: {self.name}\ndata: {data}\n\n".encode("utf-8", "replace")


class EventStream(StreamingResponse):
    """Answer of events.

    Args:
        blocks: One or more encoded events each, which go out together. Closed in any case. What it
            raises once the answer has begun is the last event, named "error".
        pause_seconds: As `PAUSE_SECONDS`.
    """

    media_type = "text/event-stream"

    def __init__(
        self, blocks: AsyncGenerator[bytes, None], *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        # Proxies that collect answers, such as nginx, are to pass every event on at once.
        super().__init__((), headers={"x-accel-buffering": "no"})
        self._blocks = blocks
        self._pause_seconds = pause_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # starlette's
        """Send all events; a client that has gone is noticed where they are made."""
        async with aclosing(self._blocks) as blocks, aclosing(self._with_pauses(blocks)) as parts:
            first = await anext(parts)
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            await _send(send, first)
            try:
                async for part in parts:
                    await _send(send, part)
            except ClientGoneError as error:
                note_late_problem(context_in(scope), error)
                return
            except Exception as error:
                problem = note_late_problem(context_in(scope), error)
                data = {"status": problem.status} | error_content(problem)
                await _send(send, Event(name="error", data=data).encoded)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_pauses(
        self, blocks: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """The blocks, and a comment wherever none came for long."""
        while True:
            following = asyncio.ensure_future(anext(blocks, None))
            try:
                while not (await asyncio.wait({following}, timeout=self._pause_seconds))[0]:
                    yield _PAUSE
                block = following.result()
            finally:
                following.cancel()
                with suppress(BaseException):
                    await following
            if block is None:
                return
            yield block


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
