"""Passing of connections from one process to another that answers on the same port.

Owns both ends: a connection goes as its descriptor, and with it what was read and not answered, in
a file in memory. Which request is whose is the caller's; how a connection comes to a request that
is not its process's is `service.http.protocol`.

The client notices nothing: the socket is the same, and so is its address. What one process has read
is what the other one reads first.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from service.errors import RETRY_AFTER_SECONDS, Problem

MAX_WAITING = 32
"""Connections that wait for room in the channel; some 280 are in it by then, on Linux."""
_MARK = b"+"


class PassOn(Protocol):
    """Taker of connections whose next request is another process's."""

    def keeps(self, method: bytes, url: bytes) -> bool:
        """Whether a request is this process's own."""

    def take(self, connection: socket.socket, data: bytes) -> bool:
        """Pass a connection on; False where there is no room for it, and nothing has happened.

        The caller closes its own descriptor of it.

        Args:
            connection: Of which nothing more is read or written here, once it is taken.
            data: What was read of it and not answered.
        """


class Sender:
    """Sender of connections to another process, over a socket of messages.

    Args:
        channel: A SOCK_SEQPACKET pair's end; not blocking.
        loop: That runs when there is room again.
        max_waiting: Connections that may wait for room. Each has two files, which are among those
            that a process has to spare (`service.listening`).
    """

    def __init__(
        self,
        channel: socket.socket,
        loop: asyncio.AbstractEventLoop,
        *,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._channel = channel
        self._loop = loop
        self._max_waiting = max_waiting
        self._waiting: deque[tuple[int, int]] = deque()
        self._is_watching = False

    def __repr__(self) -> str:
        return f"<Sender waiting={len(self._waiting)}>"

    def send(self, connection: socket.socket, data: bytes) -> bool:
        """Send a connection; never waits. False: too many do, or this process may open no more."""
        if len(self._waiting) >= self._max_waiting:
            return False
        try:
            self._waiting.append(_descriptors_of(connection, data))
        except OSError:
            return False
        if not self._is_watching:
            self._send_waiting()
        return True

    def close(self) -> None:
        """Drop what waits, and send nothing more."""
        self._watch(is_wanted=False)
        while self._waiting:
            _close(self._waiting.popleft())
        self._channel.close()

    def _send_waiting(self) -> None:
        while self._waiting:
            try:
                socket.send_fds(self._channel, [_MARK], self._waiting[0])
            except BlockingIOError:
                self._watch(is_wanted=True)
                return
            except OSError:  # the other process is gone, and this one is about to go
                pass
            _close(self._waiting.popleft())
        self._watch(is_wanted=False)

    def _watch(self, *, is_wanted: bool) -> None:
        if is_wanted and not self._is_watching:
            self._loop.add_writer(self._channel, self._send_waiting)
        elif self._is_watching and not is_wanted:
            self._loop.remove_writer(self._channel)
        self._is_watching = is_wanted


class Receiver:
    """Receiver of connections from another process.

    Args:
        channel: The other end of a sender's; not blocking.
        loop: That runs when one comes.
        on_connection: Called with each, and with what was read of it.
    """

    def __init__(
        self,
        channel: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_connection: Callable[[socket.socket, bytes], None],
    ) -> None:
        self._channel = channel
        self._loop = loop
        self._on_connection = on_connection
        loop.add_reader(channel, self._receive)

    def close(self) -> None:
        """Take what was sent already, and no more."""
        while self._receive():
            pass
        self._loop.remove_reader(self._channel)
        self._channel.close()

    def _receive(self) -> bool:
        """Take a connection; whether there was one."""
        try:
            mark, descriptors, _, _ = socket.recv_fds(self._channel, len(_MARK), 2)
        except BlockingIOError:
            return False
        except OSError:
            mark, descriptors = b"", []
        for number in descriptors:  # the kernel has any child of this process inherit them
            os.set_inheritable(number, False)
        if not mark:  # the sender is gone; whoever watches its process closes this
            self._loop.remove_reader(self._channel)
            return False
        if len(descriptors) != 2:  # this process may open no more
            for number in descriptors:
                os.close(number)
            return True
        number, file = descriptors
        connection = socket.socket(fileno=number)
        connection.setblocking(False)
        with os.fdopen(file, "rb") as reader:
            reader.seek(0)
            data = reader.read()
        self._on_connection(connection, data)
        return True


def not_taken() -> Problem:
    """A 503: a connection could not be passed on to whoever answers its request."""
    return Problem(
        status=503,
        code="too_many_connections",
        message="the process that answers this request has too many connections to take already",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )


def channel() -> tuple[socket.socket, socket.socket]:
    """Two ends of a new channel: of the one that sends, and of the one that receives."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setblocking(False)
    return ends


def _descriptors_of(connection: socket.socket, data: bytes) -> tuple[int, int]:
    """A descriptor of the connection, and one of a file in memory with what was read of it.

    Raises:
        OSError: There can be none; neither is left open.
    """
    file = os.memfd_create("received", os.MFD_CLOEXEC)
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(data)
        return os.dup(connection.fileno()), file
    except BaseException:
        os.close(file)
        raise


def _close(descriptors: tuple[int, int]) -> None:
    for number in descriptors:
        with suppress(OSError):
            os.close(number)
