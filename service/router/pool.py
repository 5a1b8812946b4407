"""Connections to one address: which is taken, and when a request is sent there once more.

Owns that nothing is done twice: a request is sent again only where no server can have begun it, as
one refused it because it leaves, or where asking twice changes nothing. One connection is one
request at a time. Which address is asked is `service.router.asking`.
"""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from service.router.connection import Asked, Connection, Headers
from service.router.groups import (
    ConnectError,
    LostError,
    RefusedError,
    SilentError,
    reason_of,
)
from service.router.refusals import says_it_leaves, says_nothing_was_begun

CONNECT_SECONDS = 3.0
MAX_IDLE = 64
"""Connections that wait for a request."""
MAX_IDLE_SECONDS = 10.0
"""Less than any server keeps one that nothing comes on (`MIN_IDLE_TIMEOUT_SECONDS`)."""
MAX_AGE_SECONDS = 60.0
"""After this a connection is not taken again, so that servers that were added get their part."""
_PROBES = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,
}
"""Seconds of silence, seconds between two probes, how many without an answer are the end, and the
milliseconds in which what was sent has to be acknowledged."""
_MAX_REFUSAL_BYTES = 64 * 1024

Open = Callable[[str, int, float], Awaitable[Connection]]
"""Address, port and seconds to a connection; a `ConnectError` where there is none."""


async def open_connection(address: str, port: int, seconds: float) -> Connection:
    """A new connection to a server.

    Raises:
        RefusedError: There is none at this address that takes connections.
        ConnectError: It is not there within so many seconds.
    """
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address, port)
    except TimeoutError as error:
        raise ConnectError(f"no connection within {seconds:g} seconds") from error
    except ConnectionRefusedError as error:
        raise RefusedError(reason_of(error)) from error
    except OSError as error:
        raise ConnectError(reason_of(error)) from error
    probe_silence(writer.get_extra_info("socket"))
    return Connection(reader, writer, opened_at=time.monotonic())


def probe_silence(connected: socket.socket) -> None:
    """Have the system break off a connection whose other end has vanished without a word."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        if hasattr(socket, name):  # macOS names the first one otherwise
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Answer:
    """An answer whose head is there.

    Args:
        status: Of the answer.
        headers: Names in small letters.
        beginning: What was read of its body already; all of a 503.
        connection: That the rest comes on; None where that was all.
        give_back: Takes the connection when the answer is over, or nobody wants the rest.
        seconds: Longest silence.

    Attributes:
        status: As it was passed in.
        headers: As they were passed in.
    """

    def __init__(
        self,
        status: int,
        headers: Headers,
        *,
        beginning: bytes = b"",
        connection: Connection | None = None,
        give_back: Callable[[Connection], None] | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.status = status
        self.headers = headers
        self._beginning = beginning
        self._connection = connection
        self._give_back = give_back
        self._seconds = seconds

    @property
    def leaves(self) -> bool:
        """Whether it is the refusal of a server that leaves: nothing was begun."""
        return self.status == 503 and says_it_leaves(self._beginning)

    @property
    def is_refusal(self) -> bool:
        """Whether it is a refusal of any kind that says so."""
        return self.status == 503 and says_nothing_was_begun(self._beginning)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes.

        Raises:
            LostError: The server is gone, or silent.
        """
        if self._beginning:
            yield self._beginning
        if self._connection is not None:
            async for piece in self._connection.pieces(seconds=self._seconds):
                yield piece

    async def read(self, *, max_bytes: int) -> bytes:
        """The whole body, after which the connection is free.

        Raises:
            LostError: As of `pieces`, or it is longer than so many bytes.
        """
        found = bytearray()
        try:
            async for piece in self.pieces():
                found += piece
                if len(found) > max_bytes:
                    raise LostError(f"its answer has more than {max_bytes} bytes")
        finally:
            self.close()
        return bytes(found)

    def close(self) -> None:
        """Give the connection back; it is closed where the answer is not over."""
        if self._connection is not None and self._give_back is not None:
            self._give_back(self._connection)
        self._connection = None


class Pool:
    """Connections to one address.

    Args:
        address: Of a server, or of what leads to some.
        port: Of it.
        seconds: Longest silence of a server, but for what may take long.
        clock: Seconds, monotonic.
        connect: Opens a connection.
    """

    def __init__(
        self,
        address: str,
        port: int,
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        connect: Open = open_connection,
    ) -> None:
        self._address = address
        self._port = port
        self._seconds = seconds
        self._clock = clock
        self._connect = connect
        self._idle: list[Connection] = []
        self._waiting: set[Connection] = set()
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Pool of {self._address}: {len(self._idle)} idle>"

    @property
    def num_waiting(self) -> int:
        """Requests that wait for the head of their answer."""
        return len(self._waiting)

    async def ask(self, asked: Asked, *, connect_seconds: float = CONNECT_SECONDS) -> Answer:
        """Send a request; its answer, once the head of that is there.

        Args:
            asked: The request.
            connect_seconds: That a new connection is waited for.

        Raises:
            ConnectError: No server was reached.
            SilentError: One was, and said nothing for as long as is waited.
            LostError: One was, and gave no answer; what it did is not known.
        """
        connection = self._kept()
        if connection is not None:
            try:
                answer = await self._ask(connection, asked)
            except SilentError:
                raise  # who waited so long does not wait once more
            except LostError:
                if not asked.is_safe:
                    raise
            else:
                if not answer.leaves:
                    return answer
        return await self._anew(asked, connect_seconds)

    def give_up(self, reason: str) -> None:
        """End what waits for the head of an answer: each is a `SilentError`.

        Args:
            reason: What is told then.
        """
        for connection in self._waiting:
            connection.give_up(reason)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it."""
        connection.rests_since = self._clock()
        if connection.is_reusable and not self._is_over and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all that wait, and each other one when its answer is over."""
        self._is_over = True
        while self._idle:
            self._idle.pop().close()

    async def _anew(self, asked: Asked, seconds: float) -> Answer:
        """Ask on a new connection; once more if its server is about to leave."""
        answer = await self._asked_anew(asked, seconds)
        return await self._asked_anew(asked, seconds) if answer.leaves else answer

    async def _asked_anew(self, asked: Asked, seconds: float) -> Answer:
        return await self._ask(await self._connect(self._address, self._port, seconds), asked)

    async def _ask(self, connection: Connection, asked: Asked) -> Answer:
        """The answer on one connection; a refusal with all of its body."""
        self._waiting.add(connection)
        try:
            seconds = None if asked.is_patient else self._seconds
            await connection.ask(asked, seconds=seconds)
        except BaseException:
            connection.close()
            raise
        finally:
            self._waiting.discard(connection)
        answer = Answer(
            connection.status,
            connection.headers,
            connection=connection,
            give_back=self.give_back,
            seconds=self._seconds,
        )
        if answer.status != 503:
            return answer
        body = await answer.read(max_bytes=_MAX_REFUSAL_BYTES)
        return Answer(answer.status, answer.headers, beginning=body)

    def _kept(self) -> Connection | None:
        """The connection that was used last, if it is still good; those that are not are closed."""
        now = self._clock()
        while self._idle:
            connection = self._idle.pop()
            is_fresh = now - connection.rests_since < MAX_IDLE_SECONDS
            if connection.is_open and is_fresh and now - connection.opened_at < MAX_AGE_SECONDS:
                return connection
            connection.close()
        return None
