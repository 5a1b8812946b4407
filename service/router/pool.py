"""Connections to one group: which is taken, and when a request is sent once more.

Owns that nothing is done twice: a request is sent again only where no server can have begun it, as
none was reached or one refused it because it leaves or starts, or where asking twice changes
nothing. One connection is one request at a time. Which servers there are is
`service.router.members`.
"""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from service.router.connection import Asked, Connection, Headers
from service.router.groups import ConnectError, Group, LostError, SilentError, reason_of
from service.router.members import Members
from service.router.refusals import says_it_leaves, says_nothing_was_begun

CONNECT_SECONDS = 3.0
"""Over all servers of a group that are tried, each of which has its part."""
_LEAST_SECONDS = 1.0
"""Of one, where there is so much."""
MAX_IDLE = 64
"""Connections of a group that wait for a request."""
MAX_IDLE_SECONDS = 10.0
"""Less than a server keeps one that nothing comes on (30)."""
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
        ConnectError: It is not there within so many seconds.
    """
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address, port)
    except TimeoutError as error:
        raise ConnectError(f"no connection within {seconds:.2g} seconds") from error
    except OSError as error:
        raise ConnectError(reason_of(error)) from error
    probe_silence(writer.get_extra_info("socket"))
    return Connection(reader, writer, opened_at=time.monotonic(), address=address)


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
    """Connections to the servers of one group.

    Args:
        group: Whose.
        members: Its servers.
        seconds: Longest silence of a server, but for what may take long.
        is_watch: These are the watch's: a server that is silent has failed, and is tried again.
        clock: Seconds, monotonic.
        connect: Opens a connection.

    Attributes:
        group: As it was passed in.
        members: Likewise.
    """

    def __init__(
        self,
        group: Group,
        members: Members,
        *,
        seconds: float,
        is_watch: bool = False,
        clock: Callable[[], float] = time.monotonic,
        connect: Open = open_connection,
    ) -> None:
        self.group = group
        self.members = members
        self._seconds = seconds
        self._is_watch = is_watch
        self._clock = clock
        self._connect = connect
        self._idle: list[Connection] = []
        self._waiting: set[Connection] = set()

    def __repr__(self) -> str:
        return f"<Pool of {self.group.name}: {len(self._idle)} idle>"

    async def ask(self, asked: Asked, *, address: str | None = None) -> Answer:
        """Send a request; its answer, once the head of that is there.

        Args:
            asked: The request.
            address: The one server that is asked; any of the group where there is none.

        Raises:
            ConnectError: No server was reached.
            SilentError: One was, and said nothing for as long as is waited.
            LostError: One was, and gave no answer; what it did is not known.
        """
        connection = self._kept(address)
        if connection is not None:
            try:
                answer = await self._ask(connection, asked)
            except SilentError:
                raise  # who waited so long does not wait once more
            except LostError:
                if not asked.is_safe:
                    raise
            else:
                if not self._may_go_on(answer, address):
                    return answer
        return await self._anew(asked, address)

    async def ask_briefly(
        self, asked: Asked, *, seconds: float, address: str | None = None
    ) -> Answer:
        """The same within so many seconds, the connection's among them.

        Raises:
            ConnectError: As of `ask`.
            LostError: Likewise.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self.ask(asked, address=address)
        except TimeoutError as error:
            raise SilentError(f"silent for {seconds:g} seconds") from error

    def give_up(self, reason: str, *, address: str | None = None) -> None:
        """End what waits for the head of an answer: each is a `SilentError`.

        Args:
            reason: What is told then.
            address: Of the server that has it; any of the group where there is none.
        """
        for connection in self._waiting:
            if address is None or connection.address == address:
                connection.give_up(reason)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it."""
        connection.rests_since = self._clock()
        if connection.is_reusable and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all that wait."""
        while self._idle:
            self._idle.pop().close()

    async def _anew(self, asked: Asked, address: str | None) -> Answer:
        """Ask on new connections, one server after another as long as they begin nothing.

        One address may lead to several servers: where the first leaves it is asked once more.
        """
        if address is None:
            left = await self.members.in_turn(retries=self._is_watch)
        else:
            left = [address]
        again = left.copy() if len(left) == 1 else []
        answer = await self._ask(await self._reached(left), asked)
        left += again
        while left and self._may_go_on(answer, address):
            try:
                connection = await self._reached(left)
            except ConnectError:
                break
            answer = await self._ask(connection, asked)
        return answer

    def _may_go_on(self, answer: Answer, address: str | None) -> bool:
        """Whether a request may be asked once more, as this refusal says that it was not begun."""
        has_others = address is None and self.members.are_several
        return answer.is_refusal if has_others else answer.leaves

    async def _reached(self, left: list[str]) -> Connection:
        """A connection to the first of some servers that can be reached; those tried are taken out.

        Raises:
            ConnectError: None can.
        """
        until = self._clock() + CONNECT_SECONDS
        while True:
            address, rest = left.pop(0), until - self._clock()
            seconds = min(rest, max(rest / (1 + len(left)), _LEAST_SECONDS))
            try:
                return await self._connect(address, self.group.port, seconds)
            except ConnectError:
                self.members.note_lost(address)
                if not left or self._clock() >= until:
                    raise

    async def _ask(self, connection: Connection, asked: Asked) -> Answer:
        """The answer on one connection; a refusal with all of its body."""
        self._waiting.add(connection)
        try:
            seconds = None if asked.is_patient else self._seconds
            await connection.ask(asked, seconds=seconds)
        except BaseException as error:
            connection.close()
            if self._is_watch and isinstance(error, SilentError):
                self.members.note_silent(connection.address)
            raise
        finally:
            self._waiting.discard(connection)
        self.members.note_well(connection.address)
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

    def _kept(self, address: str | None) -> Connection | None:
        """The connection that was used last, if it is still good; those that are not are closed.

        Args:
            address: Of its server; of any that answers where there is none.
        """
        now = self._clock()
        for connection in reversed(self._idle.copy()):
            is_fresh = now - connection.rests_since < MAX_IDLE_SECONDS
            is_young = now - connection.opened_at < MAX_AGE_SECONDS
            if not (connection.is_open and is_fresh and is_young):
                self._idle.remove(connection)
                connection.close()
            elif self._is_of(connection, address):
                self._idle.remove(connection)
                return connection
        return None

    def _is_of(self, connection: Connection, address: str | None) -> bool:
        """Whether a connection is one to a server that is asked for."""
        if address is None:
            return self.members.is_well(connection.address)
        return connection.address == address
