"""One end of the socket between the owner and a front: messages in and out.

Owns the stream. What is said within one turn of the event loop goes out as one write, so that a
busy process pays for few system calls. Never waits to write: both sides read at all times, and one
that does not is ended by the other.
"""

import asyncio
import socket
from typing import Generic, Self, TypeVar

import msgspec

from service.engine.errors import ProtocolError
from service.engine.messages import FrameReader, encode_frame

MessageT = TypeVar("MessageT")

_READ_BYTES = 256 * 1024


class PeerGoneError(ProtocolError):
    """The other process has closed its end, or has left."""


class Stream(Generic[MessageT]):
    """Stream of messages over a connected socket.

    Args:
        reader: Of the socket.
        writer: Likewise.
        frames: Reads what the other side sends.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        frames: FrameReader[MessageT],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = frames
        self._unsent: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def over(cls, connection: socket.socket, frames: FrameReader[MessageT]) -> Self:
        """A stream over a connected socket, which it closes."""
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        return cls(reader, writer, frames)

    def __repr__(self) -> str:
        return f"<Stream unsent={len(self._unsent)}>"

    def send(self, *messages: msgspec.Struct) -> None:
        """Queue messages; after the other process has ended they are dropped.

        Raises:
            ProtocolError: One is too large for a frame.
        """
        frames = [encode_frame(message) for message in messages]
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += frames

    async def receive(self) -> list[MessageT]:
        """Received messages, at least one.

        Raises:
            PeerGoneError: The other side has closed its end.
            ProtocolError: What came is no message.
        """
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
            except ConnectionError as error:
                raise PeerGoneError("the socket was reset") from error
            if not data:
                raise PeerGoneError("the socket was closed")
            if messages := self._frames.feed(data):
                return messages

    def abort(self) -> None:
        """Close at once."""
        self._unsent.clear()
        self._writer.transport.abort()

    def _flush(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        if data and not self._writer.is_closing():
            self._writer.write(data)
