"""One connection to a server of a group: a request out, its answer back, piece by piece.

Owns HTTP/1.1 as a client speaks it to servers of ours: answers have a length or come in chunks.
Which connection is taken, and what is tried again, is `service.router.pool`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import httptools

from service.router.groups import LostError, SilentError, reason_of
from service.timeouts import expire

Headers = Sequence[tuple[bytes, bytes]]

_READ_BYTES = 64 * 1024
_SMALL_BYTES = 64 * 1024
"""A body that is written at once; a larger one is sent while the answer may come already."""


class Body(Protocol):
    """Body of a request, which can be sent more than once."""

    @property
    def num_bytes(self) -> int:
        """Bytes of all of it."""

    def pieces(self) -> AsyncIterator[bytes]:
        """All of it, from the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesBody:
    """Body that is in memory.

    Attributes:
        data: All of it.
    """

    data: bytes = b""

    @property
    def num_bytes(self) -> int:
        """Bytes of all of it."""
        return len(self.data)

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it."""
        if self.data:
            yield self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it is sent.

    Attributes:
        method: GET, POST and so on.
        target: Path and query.
        headers: Those that are passed; the body's length is added.
        body: What follows.
        is_patient: The answer begins when the work is done, however long that takes.
    """

    method: bytes
    target: bytes
    headers: Headers
    body: Body
    is_patient: bool = False

    @property
    def is_safe(self) -> bool:
        """Whether asking twice does nothing twice."""
        return self.method in (b"GET", b"HEAD", b"OPTIONS")

    def head(self) -> bytes:
        """Request line and headers."""
        lines = [self.method + b" " + self.target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers]
        if self.body.num_bytes or not self.is_safe:
            lines.append(b"content-length: %d" % self.body.num_bytes)
        return b"\r\n".join([*lines, b"", b""])


class _Parsed:
    """What a parser has found of one answer: it calls this object's methods."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: deque[bytes] = deque()
        self.parser = httptools.HttpResponseParser(self)
        self.has_head = False
        self.keeps_alive = False
        self.is_over = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is left out."""
        if not self.has_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is there; only now the parser knows whether another answer may follow."""
        self.has_head = True
        self.keeps_alive = self.parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        """All is there."""
        self.is_over = True


class Connection:
    """Connection to one server.

    Args:
        reader: Of its stream.
        writer: Likewise.
        opened_at: Seconds, monotonic.

    Attributes:
        opened_at: As it was passed in.
        rests_since: When its last answer was over.
        status: Of the answer that is being read.
        headers: Likewise, names in small letters.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, opened_at: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.opened_at = self.rests_since = opened_at
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._parsed = _Parsed()
        self._has_no_body = False
        self._is_sound = True
        self._wait: asyncio.Timeout | None = None
        self._given_up = ""

    def __repr__(self) -> str:
        return f"<Connection status={self.status}>"

    @property
    def is_open(self) -> bool:
        """Whether the server had not closed it by now."""
        return self._is_sound and not (self._reader.at_eof() or self._writer.is_closing())

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow, as the last answer is over."""
        is_over = self._parsed.is_over and not self._has_no_body
        return self.is_open and is_over and self._parsed.keeps_alive

    async def ask(self, asked: Asked, *, seconds: float | None) -> None:
        """Send a request, and read its answer's head.

        Args:
            asked: The request.
            seconds: Time for both; None is no limit.

        Raises:
            SilentError: The server said nothing in time, or before it was given up.
            LostError: It is gone, or says what is no HTTP.
        """
        self._parsed, self._has_no_body = _Parsed(), asked.method == b"HEAD"
        self._given_up = ""
        self._wait = asyncio.timeout(seconds)
        try:
            async with self._wait:
                if asked.body.num_bytes <= _SMALL_BYTES:
                    await self._send(asked)
                    await self._read_head()
                else:
                    await self._send_and_read(asked)
        except TimeoutError as error:  # ours, or the system's, whose probes nobody answers
            how_long = "too long" if seconds is None else f"{seconds:g} seconds"
            raise SilentError(self._given_up or f"silent for {how_long}") from error
        except OSError as error:
            raise LostError(reason_of(error)) from error
        finally:
            self._wait = None

    def give_up(self, reason: str) -> None:
        """Wait no longer for the head of an answer, if one is waited for.

        Args:
            reason: What is told then.
        """
        if self._wait is not None:
            self._given_up = reason
            expire(self._wait)

    async def pieces(self, *, seconds: float) -> AsyncIterator[bytes]:
        """The answer's body as it comes.

        Args:
            seconds: Longest silence.

        Raises:
            LostError: As of `ask`.
        """
        parsed = self._parsed
        while not self._has_no_body:
            while parsed.pieces:
                yield parsed.pieces.popleft()
            if parsed.is_over:
                return
            try:
                async with asyncio.timeout(seconds):
                    await self._feed()
            except TimeoutError as error:
                raise SilentError(f"silent for {seconds:g} seconds") from error
            except OSError as error:
                raise LostError(reason_of(error)) from error

    def close(self) -> None:
        """Close it; the server drops what it does for it."""
        self._is_sound = False
        self._writer.close()

    async def _send(self, asked: Asked) -> None:
        self._writer.write(asked.head())
        async for piece in asked.body.pieces():
            self._writer.write(piece)
            await self._writer.drain()

    async def _send_and_read(self, asked: Asked) -> None:
        """Send a large body; an answer that comes before all of it is sent is the answer."""
        sending = asyncio.create_task(self._send(asked), name="body")
        try:
            await self._read_head()
        finally:
            if not sending.done():
                self._is_sound = False  # the rest of the body would be taken for a request
            sending.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await sending

    async def _read_head(self) -> None:
        while not self._parsed.has_head:
            await self._feed()
        self.headers = self._parsed.headers
        self.status = self._parsed.parser.get_status_code()

    async def _feed(self) -> None:
        data = await self._reader.read(_READ_BYTES)
        if not data:
            self._is_sound = False
            raise LostError("it closed the connection")
        try:
            self._parsed.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._is_sound = False
            raise LostError("it sent what is no HTTP") from error
