"""Servers of a group: which there are, whose turn it is, and how each answered last.

Owns the look at the group's name, whose addresses are one for each server, or one for several (a
load balancer's); and how long a server that left its name is still one that is asked for what it
has. Who asks them how they are is `service.router.watch`; whom a request goes to is
`service.router.asking`.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address

from service.models.routes.routing import Offer
from service.router.directory import ServerState
from service.router.groups import ConnectError, Group, RefusedError, reason_of
from service.router.pool import CONNECT_SECONDS, Pool

_LOGGER = logging.getLogger("dragoman.router")

TRY_SECONDS = 2.5
"""That the watch waits for an answer."""
FRESH_SECONDS = 1.0
"""That what a name was looked up to holds without another look."""
LOOKUP_SECONDS = 1.0
"""From its beginning, that a look at a name is waited for; it goes on, for those who come later."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Name of a host and port to its addresses; an `OSError` or `UnicodeError` where it has none."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, each once, as the system finds them; the loop goes on meanwhile."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Member:
    """One server of a group.

    Args:
        group: Whose.
        address: Of it.
        seconds: As of `Members`.

    Attributes:
        group: The group's name.
        address: As it was passed in.
        pool: Connections for requests.
        asker: Those of the watch.
        state: How it answered last.
        left_at: Seconds, since when its name does not have it; None: it does.
        is_polled: The watch asks it now.
        num_silent: Polls in a row in which it said nothing.
        body: What it last listed, as it said it.
        offers: What that means.
    """

    def __init__(self, group: Group, address: str, *, seconds: float) -> None:
        self.group = group.name
        self.address = address
        self.pool = Pool(address, group.port, seconds=seconds)
        self.asker = Pool(address, group.port, seconds=TRY_SECONDS)
        self.state = ServerState()
        self.left_at: float | None = None
        self.is_polled = False
        self.num_silent = 0
        self.body: bytes | None = None
        self.offers: tuple[Offer, ...] = ()

    def __repr__(self) -> str:
        return f"<Member {self.address} of {self.group}: {self.state.problem or 'up'}>"

    @property
    def has_left(self) -> bool:
        """Whether its name does not have it any more."""
        return self.left_at is not None

    def close(self) -> None:
        """Close its connections; what has begun on one of them goes on."""
        self.pool.close()
        self.asker.close()


class Members:
    """Servers of one group.

    Where a name has addresses of both families, those of one are the servers, and the others are
    the same once more: the first family that has one which answers, IPv4 before IPv6.

    Args:
        group: Whose.
        seconds: Longest silence of a server in a request, but for what may take long.
        keep_seconds: That a server keeps what a client comes back for.
        resolve: Looks up the group's name.
        clock: Seconds, monotonic.

    Attributes:
        problem: Why the name has no address, as far as is known.
    """

    def __init__(
        self,
        group: Group,
        *,
        seconds: float,
        keep_seconds: float,
        resolve: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._seconds = seconds
        self._keep_seconds = keep_seconds
        self._resolve = resolve
        self._clock = clock
        self._members: dict[str, Member] = {}
        self._is_address = _is_address(group.host)
        self._looking: asyncio.Task[None] | None = None
        self._began_at = 0.0
        self._looked_at: float | None = None
        self._num_turns = self._num_searches = 0
        self.problem = f"no address of {group.host} within {LOOKUP_SECONDS:g} seconds"
        if self._is_address:
            self._take([group.host])

    def __repr__(self) -> str:
        return f"<Members of {self._group.name}: {', '.join(self._members) or 'none'}>"

    @property
    def named(self) -> list[Member]:
        """Those that the name has, by addresses of one family."""
        return list(self._named({one: one.state for one in self._members.values()}))

    def states_with(self, member: Member, state: ServerState) -> list[ServerState]:
        """States of those that the name has when a server is as it has answered now.

        The family of their addresses may be another one then.
        """
        states = {one: one.state for one in self._members.values()}
        return list(self._named(states | {member: state}).values())

    @property
    def all(self) -> list[Member]:
        """Every address that is known, those that have left too."""
        return list(self._members.values())

    @property
    def connect_seconds(self) -> float:
        """That one server is waited for: less where there is another one to go to."""
        return CONNECT_SECONDS / min(2, max(1, len(self.named)))

    def in_turn(self) -> list[Member]:
        """Those that a request may be asked of, another one first each time.

        Those that are up come before those that say they are not; where none answers it is all.
        """
        self._num_turns += 1
        named = self.named
        tiers = [[one for one in named if one.state.standing == rank] for rank in (0, 1)]
        found = [one for tier in tiers for one in _turned(tier, self._num_turns)]
        return found or _turned(named, self._num_turns)

    def that_may_have(self) -> list[Member]:
        """Those that may have what has an id, another one first each time; those that left last."""
        self._num_searches += 1
        left = [one for one in self._members.values() if one.has_left]
        return [*_turned(self.named, self._num_searches), *left]

    def note(self, member: Member, state: ServerState) -> None:
        """Keep how a server answered.

        One that has left its name and breaks off is no more; a silent one may go on.
        """
        if member.has_left and state.is_away and not (state.is_mute or member.pool.num_waiting):
            self._forget(member)
        named = self.named
        before, member.state = member.state, state
        if len(named) < 2 or member not in named:  # the watch says it of the group
            return
        fields = {"group": self._group.name, "address": member.address}
        if state.is_away and not before.is_away:
            fields["reason"] = state.problem
            _LOGGER.warning("member_unreachable", extra={"fields": fields})
        elif before.is_away and not state.is_away:
            _LOGGER.info("member_reached", extra={"fields": fields})

    def note_unreached(self, member: Member, error: ConnectError) -> None:
        """A server was not reached: one that has left its name is no more."""
        if member.has_left:
            self._forget(member)
        else:
            is_mute = not isinstance(error, RefusedError)
            self.note(member, ServerState(problem=str(error), is_mute=is_mute))

    def forget_old(self) -> None:
        """Forget those that left so long ago that they have nothing any more."""
        before = self._clock() - self._keep_seconds
        for member in self.all:
            is_old = member.left_at is not None and member.left_at <= before
            if is_old and not member.pool.num_waiting:
                self._forget(member)

    async def look(self) -> None:
        """Look the name up, unless that was done just now.

        A look is waited for, but not again where it hangs: the addresses that are known hold.
        """
        now = self._clock()
        is_fresh = self._looked_at is not None and now - self._looked_at < FRESH_SECONDS
        if self._looking is None and not (self._is_address or is_fresh):
            name = f"look at {self._group.host}"
            self._looking, self._began_at = asyncio.create_task(self._look_up(), name=name), now
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=self._began_at + LOOKUP_SECONDS - now)

    def close(self) -> None:
        """Close all connections that rest."""
        for member in self._members.values():
            member.close()

    async def _look_up(self) -> None:
        """Keep the addresses that the name has; those of before where it cannot be looked up."""
        try:
            found = await self._resolve(self._group.host, self._group.port)
        except OSError as error:
            self.problem = reason_of(error)
        except UnicodeError:
            self.problem = f"{self._group.host!r} is no name of a host"
        else:
            if found:
                self._take(found)
        finally:
            self._looked_at = self._clock()
            self._looking = None

    def _take(self, found: Sequence[str]) -> None:
        for address in sorted(set(found) - self._members.keys()):
            self._members[address] = Member(self._group, address, seconds=self._seconds)
        for member in self._members.values():
            if member.address in found:
                member.left_at = None
            elif member.left_at is None:
                member.left_at = self._clock()

    def _named(self, states: Mapping[Member, ServerState]) -> dict[Member, ServerState]:
        """Of all that are known those that the name has, by addresses of one family."""
        found = {one: state for one, state in states.items() if not one.has_left}
        plain = {one: state for one, state in found.items() if ":" not in one.address}
        others = {one: state for one, state in found.items() if ":" in one.address}
        families = [family for family in (plain, others) if family]
        answering = [one for one in families if any(each.is_answering for each in one.values())]
        return (answering or families or [{}])[0]

    def _forget(self, member: Member) -> None:
        if self._members.get(member.address) is member:
            del self._members[member.address]
        member.close()


def _turned(members: Sequence[Member], number: int) -> list[Member]:
    """All of some servers, of which another one comes first with each number."""
    place = number % len(members) if members else 0
    return [*members[place:], *members[:place]]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
