"""Engine process as a child of the front, and the front's end of their socket pair.

Owns the child: how it is spawned, spoken to and put to rest. Imports no torch. What is said
is `service.engine.client.client`.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Mapping
from typing import Self

from service.child_command import child_command
from service.engine.client.stream import EngineStream, OnMessages
from service.engine.errors import (
    EngineStartError,
    EngineUnavailableError,
    ProtocolError,
    Shortage,
)
from service.engine.lifetime import ended_first, killed_hint, signals_held_back
from service.engine.messages import (
    PROTOCOL_VERSION,
    Configure,
    EngineMessage,
    FrontMessage,
    Ready,
    StartFailed,
    encode_frame,
)

_REAP_SECONDS = 5.0


def engine_environment(
    base: Mapping[str, str], *, num_threads: int, visible_device: str | None = None
) -> dict[str, str]:
    """`base` with OpenMP told to sleep when it waits, before torch loads and reads it.

    A spinning team that shares its cores with the front slows both down many times over.

    Args:
        base: The front's.
        num_threads: Threads of the network.
        visible_device: The one device that the engine sees; None leaves it all of them.
    """
    device = {} if visible_device is None else {"CUDA_VISIBLE_DEVICES": visible_device}
    return {
        **base,
        **device,
        "OMP_NUM_THREADS": str(num_threads),
        "OMP_WAIT_POLICY": "passive",
        "GOMP_SPINCOUNT": "0",
        "KMP_BLOCKTIME": "0",
    }


def _start_process(
    file_number: int, num_threads: int, visible_device: str | None
) -> subprocess.Popen[bytes]:
    """Start the engine's process by `subprocess`: uvloop would unblock the signals held back."""
    command = child_command("service.engine.worker", "--fd", str(file_number))
    with signals_held_back():
        return subprocess.Popen(  # noqa: S603  # a command of our own
            [*command, "--front", str(os.getpid())],
            pass_fds=(file_number,),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            env=engine_environment(
                os.environ, num_threads=num_threads, visible_device=visible_device
            ),
        )


class EngineLink:
    """A running engine process and the stream to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        transport: asyncio.WriteTransport,
        stream: EngineStream,
    ) -> None:
        self._process = process
        self._transport = transport
        self._stream = stream

    @classmethod
    async def spawn(cls, *, num_threads: int, visible_device: str | None = None) -> Self:
        """Start an engine, in a session of its own: the terminal's signals are the front's alone.

        To be called on a thread that lives as long as the front: the engine dies with it.

        Raises:
            OSError: The process cannot be started.
        """
        front_socket, engine_socket = socket.socketpair()
        with engine_socket:
            loop = asyncio.get_running_loop()
            transport, stream = await loop.create_unix_connection(EngineStream, sock=front_socket)
            try:
                process = _start_process(engine_socket.fileno(), num_threads, visible_device)
            except BaseException:
                transport.abort()
                raise
        return cls(process, transport, stream)

    def __repr__(self) -> str:
        return f"<EngineLink pid={self._process.pid} exit={self.exit_status}>"

    @property
    def process_id(self) -> int:
        """The engine's process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """How the process ended: its status, minus the signal that killed it, or None."""
        return self._process.poll()

    def send(self, message: FrontMessage) -> None:
        """Queue a message for the engine; never waits.

        Raises:
            EngineUnavailableError: The stream is closed: a write has failed.
            ProtocolError: The message is too large for a frame.
        """
        if self._transport.is_closing():
            raise EngineUnavailableError("the engine has closed the socket")
        self._transport.write(encode_frame(message))

    async def receive(self) -> list[EngineMessage]:
        """Messages that have come, at least one.

        Raises:
            EngineUnavailableError: The engine has closed its end.
            ProtocolError: What came is no message.
        """
        return await self._stream.receive()

    async def listen(self, on_messages: OnMessages) -> None:
        """Have all further messages handed over as they come, until the stream ends.

        Raises:
            EngineUnavailableError: The engine has closed its end.
            ProtocolError: What came is no message.
            Exception: What `on_messages` has raised.
        """
        await self._stream.listen(on_messages)

    def kill(self) -> None:
        """End the process; harmless when it has left."""
        self._process.kill()

    async def reap(self) -> None:
        """Close the stream and wait for the process to end; one that takes too long is killed."""
        try:
            self._transport.abort()
            await self._stream.closed.wait()
            await asyncio.to_thread(self._process.wait, _REAP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            await asyncio.to_thread(self._process.wait)
        except BaseException:
            self.kill()
            await asyncio.to_thread(self._process.wait)
            raise


async def start_engine(configure: Configure, *, timeout_seconds: float) -> tuple[EngineLink, Ready]:
    """Spawn an engine and wait until it is warm.

    Raises:
        EngineStartError: It did not become ready; no process is left behind.
    """
    try:
        link = await EngineLink.spawn(
            num_threads=configure.num_threads, visible_device=configure.visible_device
        )
    except OSError as error:
        raise EngineStartError(f"the engine process cannot be started: {error}") from error
    try:
        async with asyncio.timeout(timeout_seconds):
            with ended_first(link.process_id):
                return link, await _configure(link, configure)
    except TimeoutError as error:
        await _end(link)
        raise EngineStartError(
            f"the engine was not ready after {timeout_seconds:g} seconds"
        ) from error
    except EngineUnavailableError as error:
        await link.reap()
        status = link.exit_status
        raise EngineStartError(
            f"the engine left with status {status} before it was ready{killed_hint(status)}"
        ) from error
    except ProtocolError as error:
        await _end(link)
        raise EngineStartError(str(error)) from error
    except BaseException:
        await _end(link)
        raise


async def _configure(link: EngineLink, configure: Configure) -> Ready:
    link.send(configure)
    messages = await link.receive()
    match messages[0]:
        case Ready(protocol_version=version) if version != PROTOCOL_VERSION:
            raise EngineStartError(
                f"the engine speaks protocol {version}; the front speaks {PROTOCOL_VERSION}"
            )
        case Ready() as ready:
            return ready
        case StartFailed(message=message, at_fault=at_fault, shortages=shortages):
            raise EngineStartError(
                message,
                at_fault=dict(at_fault),
                shortages={
                    place: Shortage(needed_bytes=needed, free_bytes=free)
                    for place, needed, free in shortages
                },
            )
        case other:
            raise ProtocolError(f"the engine's first message was {type(other).__name__}")


async def _end(link: EngineLink) -> None:
    link.kill()
    await link.reap()
