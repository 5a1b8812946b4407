"""The front's end of the socket pair, and the engine process at the other one.

Owns the child: how it is spawned, spoken to and put to rest. Imports no torch. What is said
is `service.engine.client`.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from service.engine.errors import (
    EngineError,
    EngineStartError,
    EngineUnavailableError,
    ProtocolError,
)
from service.engine.messages import (
    PROTOCOL_VERSION,
    Configure,
    EngineMessage,
    FrontMessage,
    Ready,
    StartFailed,
    encode_frame,
    engine_messages,
)

_READ_BYTES = 256 * 1024
_REAP_SECONDS = 5.0


def engine_environment(base: Mapping[str, str], *, num_threads: int) -> dict[str, str]:
    """`base` with OpenMP told to sleep when it waits, before torch loads and reads it.

    A spinning team that shares its cores with the front slows both down many times over.
    """
    return {
        **base,
        "OMP_NUM_THREADS": str(num_threads),
        "OMP_WAIT_POLICY": "passive",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
    }


class EngineLink:
    """A running engine process and the stream to it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._frames = engine_messages()

    @classmethod
    async def spawn(cls, *, num_threads: int) -> Self:
        """Start an engine, in a session of its own so that Ctrl-C is the front's alone.

        Raises:
            OSError: The process cannot be started.
        """
        front_socket, engine_socket = socket.socketpair()
        with engine_socket:
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "service.engine.process",
                    "--fd",
                    str(engine_socket.fileno()),
                    pass_fds=(engine_socket.fileno(),),
                    start_new_session=True,
                    stdin=asyncio.subprocess.DEVNULL,
                    env=engine_environment(os.environ, num_threads=num_threads),
                )
            except BaseException:
                front_socket.close()
                raise
        reader, writer = await asyncio.open_unix_connection(sock=front_socket)
        return cls(process, reader, writer)

    def __repr__(self) -> str:
        return f"<EngineLink pid={self._process.pid} exit={self._process.returncode}>"

    @property
    def process_id(self) -> int:
        """The engine's process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """How the process ended: its status, minus the signal that killed it, or None."""
        return self._process.returncode

    def send(self, message: FrontMessage) -> None:
        """Queue a message for the engine; never waits.

        Raises:
            EngineUnavailableError: The stream is closed: a write has failed.
            ProtocolError: The message is too large for a frame.
        """
        if self._writer.is_closing():
            raise EngineUnavailableError("the engine has closed the socket")
        self._writer.write(encode_frame(message))

    async def receive(self) -> list[EngineMessage]:
        """Messages that have come, at least one.

        Raises:
            EngineUnavailableError: The engine has closed its end.
            ProtocolError: What came is no message.
        """
        while True:
            try:
                data = await self._reader.read(_READ_BYTES)
            except ConnectionError as error:
                raise EngineUnavailableError("the engine has reset the socket") from error
            if not data:
                raise EngineUnavailableError("the engine has closed the socket")
            if messages := self._frames.feed(data):
                return messages

    def terminate(self) -> None:
        """Ask the process to leave; harmless when it has left."""
        if self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """End the process; harmless when it has left."""
        if self._process.returncode is None:
            self._process.kill()

    async def reap(self) -> None:
        """Close the stream and see the process out; one that lingers is killed."""
        try:
            self._writer.transport.abort()
            with suppress(OSError):
                await self._writer.wait_closed()
            async with asyncio.timeout(_REAP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        except BaseException:
            self.kill()
            raise


async def start_engine(configure: Configure, *, timeout_seconds: float) -> tuple[EngineLink, Ready]:
    """Spawn an engine and wait until it is warm.

    Raises:
        EngineStartError: It did not become ready; no process is left behind.
    """
    try:
        link = await EngineLink.spawn(num_threads=configure.num_threads)
    except OSError as error:
        raise EngineStartError(f"the engine process cannot be started: {error}") from error
    try:
        async with asyncio.timeout(timeout_seconds):
            return link, await _introduce(link, configure)
    except TimeoutError as error:
        await _put_down(link)
        raise EngineStartError(
            f"the engine was not ready after {timeout_seconds:g} seconds"
        ) from error
    except EngineUnavailableError as error:
        await link.reap()
        raise EngineStartError(
            f"the engine left with status {link.exit_status} before it was ready"
        ) from error
    except EngineError as error:
        await _put_down(link)
        raise EngineStartError(str(error)) from error
    except BaseException:
        await _put_down(link)
        raise


async def _introduce(link: EngineLink, configure: Configure) -> Ready:
    link.send(configure)
    messages = await link.receive()
    match messages[0]:
        case Ready(protocol_version=version) if version != PROTOCOL_VERSION:
            raise EngineStartError(
                f"the engine speaks protocol {version}; the front speaks {PROTOCOL_VERSION}"
            )
        case Ready() as ready:
            return ready
        case StartFailed(message=message):
            raise EngineStartError(message)
        case other:
            raise ProtocolError(f"the engine's first word was {type(other).__name__}")


async def _put_down(link: EngineLink) -> None:
    link.kill()
    await link.reap()
