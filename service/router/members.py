"""Members of a group: the addresses of its servers, as its name has them now.

Owns when a name is looked up, in which order its servers are asked, and which of them are passed
over for a while. A name may have one address for all (a load balancer's) or one for each server; an
address is a member itself. Connections are `service.router.pool`.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from service.router.groups import ConnectError, Group, reason_of

_LOGGER = logging.getLogger("dragoman.router")

KEPT_SECONDS = 2.0
"""That what a name was looked up to is taken without a look at the name."""
LOOKUP_SECONDS = 1.0
"""That a look at a name is waited for; it goes on, for those who come later."""
RETRY_SECONDS = 5.0
"""After which the watch asks a server that did not answer once more."""
LEFT_SECONDS = 30.0
"""That a server which its name has no more is still asked for what it may have."""

_NUM_SILENT = 3
"""Times in a row: the first is followed by another after `RETRY_SECONDS`, and so on."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Name of a host and port to its addresses; an `OSError` or `UnicodeError` where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One server of a group.

    Attributes:
        address: Of it.
        is_named: The group's name has it now.
        is_doubtful: It has left the name, or did not answer when it was last asked.
    """

    address: str
    is_named: bool = True
    is_doubtful: bool = False


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, each once, as the system finds them; the loop goes on meanwhile."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Members:
    """Servers of one group.

    Where a name has addresses of both families, those of one are the servers, and the others are
    the same once more: the first family that has one which answers, IPv4 before IPv6.

    Args:
        group: Whose.
        resolve: Looks up its name.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        group: Group,
        *,
        resolve: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._resolve = resolve
        self._clock = clock
        self._is_address = _is_address(group.host)
        self._known: tuple[str, ...] = (group.host,) if self._is_address else ()
        self._problem = f"no address of {group.host} within {LOOKUP_SECONDS:g} seconds"
        self._looked_at: float | None = None
        self._looking: asyncio.Task[None] | None = None
        self._failed: dict[str, float] = {}
        self._num_silent: dict[str, int] = {}
        self._left: dict[str, float] = {}
        self._turn = 0

    def __repr__(self) -> str:
        return f"<Members of {self._group.name}: {', '.join(self._named) or 'none'}>"

    @property
    def are_several(self) -> bool:
        """Whether there is another one to ask."""
        return len(self._known) > 1

    def is_well(self, address: str) -> bool:
        """Whether a server is one of the group now, and answers as far as is known."""
        return address in self._known and address not in self._failed

    @property
    def silent(self) -> list[str]:
        """Those that were silent so often that what they have is waited for no longer."""
        return [one for one, num in self._num_silent.items() if num >= _NUM_SILENT]

    def note_well(self, address: str) -> None:
        """A server has answered."""
        self._num_silent.pop(address, None)
        if self._failed.pop(address, None) is not None:
            self._log(logging.INFO, "member_reached", address)

    def note_lost(self, address: str) -> None:
        """A server was not reached."""
        self._left.pop(address, None)
        self._note_failed(address)

    def note_silent(self, address: str) -> None:
        """A server took a connection, and said nothing for as long as the watch waits."""
        if address in self._known:
            self._num_silent[address] = self._num_silent.get(address, 0) + 1
        self._note_failed(address)

    async def in_turn(self, *, retries: bool = False) -> list[str]:
        """All addresses: another one first each time, and last those that did not answer.

        Args:
            retries: One that did not answer a while ago comes first.

        Raises:
            ConnectError: The name has no address.
        """
        await self._look(max_age=KEPT_SECONDS)
        named = self._named
        place, self._turn = self._turn % len(named), self._turn + 1
        turned = [*named[place:], *named[:place], *(one for one in self._known if one not in named)]
        well = [one for one in turned if one not in self._failed]
        failed = [one for one in turned if one in self._failed]
        before = self._clock() - RETRY_SECONDS
        due = [one for one in failed if retries and self._failed[one] <= before]
        return [*due, *well, *(one for one in failed if one not in due)]

    async def all(self) -> list[Member]:
        """All servers, by a look at the name now; those that are doubtful come last.

        Raises:
            ConnectError: The name has no address.
        """
        await self._look(max_age=0.0)
        named = [Member(address=one, is_doubtful=one in self._failed) for one in self._named]
        since = self._clock() - LEFT_SECONDS
        self._left = {one: when for one, when in self._left.items() if when > since}
        left = [Member(address=one, is_named=False, is_doubtful=True) for one in self._left]
        return [*sorted(named, key=lambda one: one.is_doubtful), *left]

    @property
    def _named(self) -> tuple[str, ...]:
        """Addresses of one family, one for each server."""
        plain = tuple(one for one in self._known if ":" not in one)
        others = tuple(one for one in self._known if ":" in one)
        found = [family for family in (plain, others) if family]
        return next((one for one in found if not self._failed.keys() >= {*one}), (*found, ())[0])

    def _note_failed(self, address: str) -> None:
        if address in self._known:
            if address not in self._failed:
                self._log(logging.WARNING, "member_unreachable", address)
            self._failed[address] = self._clock()

    def _log(self, level: int, event: str, address: str) -> None:
        if self.are_several:  # else the watch says it of the group
            fields = {"group": self._group.name, "address": address}
            _LOGGER.log(level, event, extra={"fields": fields})

    async def _look(self, *, max_age: float) -> None:
        """Look the name up where that was not done for so many seconds.

        It is waited for where nothing is known, or anything older would not do.

        Raises:
            ConnectError: Nothing is known.
        """
        if self._is_address:
            return
        age = None if self._looked_at is None else self._clock() - self._looked_at
        if self._looking is None and (age is None or age >= max_age):
            self._looking = asyncio.create_task(self._look_up(), name=f"look at {self._group.host}")
        if self._looking is not None and (not self._known or max_age == 0):
            await asyncio.wait({self._looking}, timeout=LOOKUP_SECONDS)
        if not self._known:
            raise ConnectError(self._problem)

    async def _look_up(self) -> None:
        """Keep the addresses that the name has; those of before where it cannot be looked up."""
        try:
            found = tuple(sorted(await self._resolve(self._group.host, self._group.port)))
        except OSError as error:
            self._problem = reason_of(error)
        except UnicodeError:
            self._problem = f"{self._group.host!r} is no name of a host"
        else:
            self._take(found or self._known)
        finally:
            self._looked_at = self._clock()
            self._looking = None

    def _take(self, found: tuple[str, ...]) -> None:
        left = self._left | dict.fromkeys(self._known, self._clock())
        self._left = {one: when for one, when in left.items() if one not in found}
        self._failed = {one: when for one, when in self._failed.items() if one in found}
        self._num_silent = {one: num for one, num in self._num_silent.items() if one in found}
        self._known = found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
