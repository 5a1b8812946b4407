"""Answers that are whole at once: head and body as one message, and one write.

Owns that a reply which is there when its head is sent goes out in one piece where the server takes
it so, which ours does: two messages would pass through every middleware, and uvicorn looks at each
header of an answer twice. Whatever is not plain (a connection that ends, HEAD, a client that does
not read) goes uvicorn's way; in HTTP/1.0, which has no chunks (RFC 9112, section 6.1), an answer
without a length ends with its connection. What such a reply says is `service.http.replies`.
"""

from typing import TYPE_CHECKING

from starlette.types import Message, Scope
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    import asyncio

WHOLE = "dragoman.body"
"""The name in `http.response.start` of the body that follows, where `takes_whole` says so."""

_KEY = "dragoman.takes_whole"
_NOT_PLAIN = frozenset({b"connection", b"transfer-encoding"})
_WITHOUT_BODY = frozenset({204, 304})


def takes_whole(scope: Scope) -> bool:
    """Whether the answer to a request may be one message."""
    return _KEY in scope


class WholeAnswers:
    """`send` of one request, which takes an answer in one message too.

    Args:
        cycle: Uvicorn's, whose `send` it stands for.
        transport: Of the connection.
    """

    __slots__ = ("_cycle", "_has_chunks", "_send", "_transport", "_until_end")

    def __init__(self, cycle: RequestResponseCycle, transport: "asyncio.Transport") -> None:
        self._cycle = cycle
        self._send = cycle.send
        self._transport = transport
        self._has_chunks = cycle.scope["http_version"] != "1.0"
        self._until_end = False
        cycle.scope[_KEY] = True  # type: ignore[literal-required]  # a name of our own

    async def __call__(self, message: Message) -> None:
        """Send a message of the answer."""
        body = message.pop(WHOLE, None)
        if body is None:
            if not self._has_chunks:
                self._leave_unframed(message)
            await self._send(message)  # type: ignore[arg-type]  # Starlette's name of the same
            return
        if (data := self._plain(message, body)) is None:
            await self._send(message)  # type: ignore[arg-type]  # likewise
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
            return
        cycle = self._cycle
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self._transport.write(data)
        cycle.message_event.set()
        cycle.on_response()

    def _leave_unframed(self, message: Message) -> None:
        """Have uvicorn write what has no length as it is; of HTTP/1.0 it keeps no connection."""
        if message["type"] == "http.response.start":
            self._until_end = all(name != b"content-length" for name, _ in message["headers"])
            if self._until_end:
                self._cycle.chunked_encoding = False
        elif self._until_end:
            self._cycle.expected_content_length = len(message.get("body", b""))

    def _plain(self, message: Message, body: bytes) -> bytes | None:
        """All bytes of an answer after which its connection goes on; None where it is another."""
        cycle, status = self._cycle, message["status"]
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive:
            return None
        if cycle.flow.write_paused or self._transport.is_closing() or status in _WITHOUT_BODY:
            return None
        headers = [*cycle.default_headers, *message["headers"]]
        names = [name for name, _ in headers]
        is_long = (b"content-length", b"%d" % len(body)) in headers
        if not is_long or cycle.scope["method"] == "HEAD" or not _NOT_PLAIN.isdisjoint(names):
            return None
        if HEADER_RE.search(b"".join(names)):
            return None  # uvicorn says what is wrong with it
        values = [value for _, value in headers]
        if HEADER_VALUE_RE.search(b"".join(values)):
            return None
        lines = [b"%s: %s\r\n" % header for header in headers]
        return b"".join([STATUS_LINE[status], *lines, b"\r\n", body])
