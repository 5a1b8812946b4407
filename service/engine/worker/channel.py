"""Engine's end of the socket pair: messages in and out, in blocking code.

Owns the socket. A send may block: then the front does not read, and an engine that runs
ahead of its front would only fill memory. The front's own writes never block, so the two
cannot wait for each other.
"""

import select
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from service.engine.errors import FrontGoneError
from service.engine.messages import EngineMessage, FrontMessage, encode_frame, front_messages

_READ_BYTES = 256 * 1024


class EngineChannel:
    """Channel of typed messages over the engine's socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = front_messages()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    def __enter__(self) -> Self:
        """The channel itself; leaving closes the socket."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the socket."""
        self._socket.close()

    def receive(self, *, wait_seconds: float | None) -> list[FrontMessage]:
        """Received messages.

        Args:
            wait_seconds: How long to wait for the first one when there is none; with None until
                it is there.

        Raises:
            FrontGoneError: The front has closed its end.
            ProtocolError: What came is no message.
        """
        while True:
            if wait_seconds != 0.0:
                self._poll.poll(None if wait_seconds is None else wait_seconds * 1000)
            messages = self._reader.feed(self._read())
            if messages or wait_seconds is not None:
                return messages

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except ConnectionError as error:
            raise FrontGoneError("the front has reset the socket") from error
        if not data:
            raise FrontGoneError("the front has closed the socket")
        return data

    def send(self, messages: Sequence[EngineMessage]) -> None:
        """Send in order.

        Raises:
            FrontGoneError: The front has closed its end.
            ProtocolError: A message is too large for a frame.
        """
        if not messages:
            return
        data = b"".join(encode_frame(message) for message in messages)
        try:
            self._socket.sendall(data)
        except ConnectionError as error:
            raise FrontGoneError("the front reads no more") from error
