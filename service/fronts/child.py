"""Front process as a child of the owner: how it is spawned, spoken to and put to rest.

Owns the child and its two sockets. What is said is `service.fronts.keeper`; the child itself is
`service.fronts.process`.
"""

import asyncio
import os
import socket
import subprocess
from contextlib import suppress
from typing import Self

from service.child_command import child_command
from service.engine.lifetime import signals_held_back
from service.fronts.messages import FrontMessage, front_messages
from service.fronts.stream import Stream
from service.http import passing

_REAP_SECONDS = 5.0


class FrontChild:
    """A running front process, the stream to it, and the socket that connections come over.

    Attributes:
        stream: Of messages.
        passed: Where connections come that it passes on.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stream: Stream[FrontMessage],
        passed: socket.socket,
    ) -> None:
        self._process = process
        self.stream = stream
        self.passed = passed

    @classmethod
    async def spawn(cls, listener: socket.socket) -> Self:
        """Start a front on a listening socket, in a session of its own.

        To be called on a thread that lives as long as the owner: the front dies with it.

        Raises:
            OSError: The process cannot be started.
        """
        own, other = socket.socketpair()
        sending, receiving = passing.channel()
        with other, sending:
            stream = await Stream.over(own, front_messages())
            try:
                process = _start_process(other, sending, listener)
            except BaseException:
                stream.abort()
                receiving.close()
                raise
        return cls(process, stream, receiving)

    def __repr__(self) -> str:
        return f"<FrontChild pid={self._process.pid} exit={self.exit_status}>"

    @property
    def process_id(self) -> int:
        """The front's process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """How the process ended: its status, minus the signal that killed it, or None."""
        return self._process.poll()

    def kill(self) -> None:
        """End the process; harmless when it has left."""
        self._process.kill()

    async def reap(self) -> None:
        """Wait for the process to end; one that takes too long is killed."""
        self.stream.abort()
        try:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _REAP_SECONDS)
        finally:
            self.kill()
            await asyncio.to_thread(self._process.wait)


def _start_process(
    link: socket.socket, sending: socket.socket, listener: socket.socket
) -> subprocess.Popen[bytes]:
    """Start the front by `subprocess`: uvloop would unblock the signals held back."""
    numbers = [link.fileno(), sending.fileno(), listener.fileno()]
    command = child_command("service.fronts", "--owner", str(os.getpid()))
    for name, number in zip(("link", "passing", "listener"), numbers, strict=True):
        command += [f"--{name}", str(number)]
    with signals_held_back():
        return subprocess.Popen(  # noqa: S603  # a command of our own
            command, pass_fds=numbers, start_new_session=True, stdin=subprocess.DEVNULL
        )
