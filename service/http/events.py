"""Server-sent events as an answer: their bytes, when it begins, and how it ends.

Owns the format (WHATWG HTML, section 9.2: an `event` and a `data` line, then an empty one) and that
nothing is sent before the first event: what is raised until then is answered like any other error,
and what is raised later is an event. What the events say is a contract's.
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
_LINE_ENDS = {number: f"\\u{number:04x}" for number in (0x85, 0x2028, 0x2029)}


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
        data = data.translate(_LINE_ENDS)
        return f"event: {self.name}\ndata: {data}\n\n".encode("utf-8", "replace")


class EventStream(StreamingResponse):
    """Answer of events.

    Args:
        events: Closed in any case. What it raises after the first event is the last event, named
            "error".
        pause_seconds: As `PAUSE_SECONDS`.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[Event, None], *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        # Proxies that collect answers, such as nginx, are to pass every event on at once.
        super().__init__((), headers={"x-accel-buffering": "no"})
        self._events = events
        self._pause_seconds = pause_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # starlette's
        """Send all events; a client that has gone is noticed where they are made."""
        async with aclosing(self._events) as events:
            first = await anext(events)
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            await _send(send, first.encoded)
            try:
                await self._send_all(events, send)
            except ClientGoneError as error:
                note_late_problem(context_in(scope), error)
                return
            except Exception as error:
                problem = note_late_problem(context_in(scope), error)
                data = {"status": problem.status} | error_content(problem)
                await _send(send, Event(name="error", data=data).encoded)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, events: AsyncGenerator[Event, None], send: Send) -> None:
        """Send the events, and a comment wherever none came for long."""
        while True:
            following = asyncio.ensure_future(anext(events, None))
            try:
                while not (await asyncio.wait({following}, timeout=self._pause_seconds))[0]:
                    await _send(send, _PAUSE)
                event = following.result()
            finally:
                following.cancel()
                with suppress(BaseException):
                    await following
            if event is None:
                return
            await _send(send, event.encoded)


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
