"""Front's end of the socket to one engine: frames become messages as soon as their bytes are there.

Owns how the stream is read, and how its end is told. What the messages mean is
`service.engine.client.client`. Every answer of an engine comes through here, so nobody is woken for
bytes: once somebody listens, messages are handed over where they are read.
"""

import asyncio
from collections.abc import Callable

from service.engine.errors import EngineUnavailableError
from service.engine.messages import EngineMessage, engine_messages

OnMessages = Callable[[list[EngineMessage]], None]


class EngineStream(asyncio.Protocol):
    """Messages of one engine, in order.

    They are kept until somebody takes them, or listens.
    """

    def __init__(self) -> None:
        self._frames = engine_messages()
        self._kept: list[EngineMessage] = []
        self._has_come = asyncio.Event()
        self._on_messages: OnMessages | None = None
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end.add_done_callback(_retrieve_error)
        self.closed = asyncio.Event()

    def __repr__(self) -> str:
        return f"<EngineStream {'ended' if self._end.done() else 'open'}>"

    def data_received(self, data: bytes) -> None:
        """Read what came; what is no message ends the stream."""
        if self._end.done():
            return
        try:
            messages = self._frames.feed(data)
            if self._on_messages is not None and messages:
                self._on_messages(messages)
                return
        except Exception as error:  # whoever listens is told, in its own task
            self._finish(error)
            return
        if messages:
            self._kept += messages
            self._has_come.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the stream."""
        self._finish(
            EngineUnavailableError(
                f"the engine has {'closed' if exc is None else 'reset'} the socket"
            )
        )
        self.closed.set()

    async def receive(self) -> list[EngineMessage]:
        """Received messages, at least one.

        Raises:
            EngineUnavailableError: The engine has closed its end.
            ProtocolError: What came is no message.
        """
        await self._has_come.wait()
        if not self._kept:
            self._end.result()
        messages, self._kept = self._kept, []
        if not self._end.done():
            self._has_come.clear()
        return messages

    async def listen(self, on_messages: OnMessages) -> None:
        """Hand over all messages, those first that have been received, until the stream ends.

        Raises:
            EngineUnavailableError: The engine has closed its end.
            ProtocolError: What came is no message.
            Exception: What `on_messages` has raised, which ends the stream.
        """
        kept, self._kept = self._kept, []
        if kept:
            on_messages(kept)
        self._on_messages = on_messages
        await asyncio.shield(self._end)

    def _finish(self, error: Exception) -> None:
        if not self._end.done():
            self._end.set_exception(error)
        self._has_come.set()


def _retrieve_error(end: asyncio.Future[None]) -> None:
    """Retrieve the error of a stream, so that asyncio does not report one without a waiter."""
    if not end.cancelled():
        end.exception()
