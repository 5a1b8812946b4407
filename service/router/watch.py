"""Watch over the groups: asks each server again and again whether it would translate now, and what.

Owns the directory as it is now, when it changes, and when requests that a silent server has are
given up. What an answer means, and what the servers' answers mean for a group, is
`service.router.directory`; which servers there are is `service.router.members`.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from service.models.requests.detection import LanguageDetection
from service.models.routes.routing import Offer, RoutingTable
from service.router.connection import Asked, BytesBody
from service.router.directory import (
    Directory,
    GroupState,
    ServerState,
    directory_of,
    joint_state,
    offers_of,
)
from service.router.groups import ConnectError, LostError, SilentError
from service.router.members import TRY_SECONDS, Member, Members
from service.router.metrics import RouterMetrics
from service.router.refusals import reason_in

_LOGGER = logging.getLogger("dragoman.router")

INTERVAL_SECONDS = 2.0
"""Between two polls of a server: a reload is known everywhere within it."""
_NUM_TRIES = 2
"""Each on another connection, which may lead to another server behind one address."""
_NUM_SILENT_POLLS = 2
"""In a row, after which what the server has of requests is given up: until then it may go on."""
_SILENT = f"silent for {_NUM_TRIES * TRY_SECONDS:g} seconds"
_MAX_BYTES = 32 * 2**20


class Watch:
    """Groups, as they answered last.

    Args:
        members: The servers of each, by name, in order.
        pivot: Language between two hops, as the groups have it.
        detection: Told which languages there are.
        metrics: Told which groups answer.

    Attributes:
        directory: What is known now.
        members: As they were passed in.
    """

    def __init__(
        self,
        members: Mapping[str, Members],
        *,
        pivot: str | None,
        detection: LanguageDetection,
        metrics: RouterMetrics,
    ) -> None:
        self.members = members
        self._pivot = pivot
        self._detection = detection
        self._metrics = metrics
        self._known = {name: GroupState(name=name) for name in members}
        self._wakes = {name: asyncio.Event() for name in members}
        self._learning = {name: asyncio.Lock() for name in members}
        self.directory = directory_of(tuple(self._known.values()), pivot=pivot)

    def __repr__(self) -> str:
        return f"<Watch {len(self.directory.up)} of {len(self._known)} groups>"

    async def run(self) -> None:
        """Poll all servers side by side until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name in self._known:
                tasks.create_task(self._follow(name), name=f"watch of {name}")

    def note_unreached(self, member: Member, error: ConnectError) -> None:
        """Note that a request did not reach a server; a poll, now, says whether that is over."""
        if member.state.is_answering:
            self._wakes[member.group].set()
        self.members[member.group].note_unreached(member, error)
        self._note(self._known[member.group])

    def poll_now(self) -> None:
        """Poll all servers now."""
        for wake in self._wakes.values():
            wake.set()

    async def poll(self, name: str) -> None:
        """Ask each server of a group whether it would translate now, and what.

        One that is still being asked, as it is silent, is left to that.
        """
        members = self.members[name]
        await members.look()
        members.forget_old()
        if not members.named:
            self._note(self._known[name])
        waiting = [one for one in members.all if not one.is_polled]
        for one in waiting:
            one.is_polled = True
        await asyncio.gather(*(self._poll(members, one) for one in waiting))

    async def _poll(self, members: Members, member: Member) -> None:
        try:
            await self._take(members, member, await self._asked(members, member))
        except ConnectError as error:
            members.note_unreached(member, error)
            await self._take(members, member, member.state)
        finally:
            member.is_polled = False

    async def _asked(self, members: Members, member: Member) -> ServerState:
        """The state of a server, by what it answers now.

        Raises:
            ConnectError: It is not reached.
        """
        num_silent, member.num_silent = member.num_silent + 1, 0
        try:
            status, body = await self._heard(member, _READY)
            if status == 503:
                return ServerState(problem=reason_in(body) or _says(status), is_unready=True)
            status, body = await self._heard(member, _LIST)
            if status != 200:
                return ServerState(problem=_says(status), is_unready=True)
            return ServerState(problem="", offers=await self._offers(members, member, body))
        except SilentError:
            member.num_silent = num_silent
            if num_silent >= _NUM_SILENT_POLLS:
                member.pool.give_up("it does not answer any more")
            return ServerState(problem=_SILENT, is_mute=True)
        except (LostError, ValueError) as error:
            return ServerState(problem=str(error))

    async def _heard(self, member: Member, asked: Asked) -> tuple[int, bytes]:
        """A server's answer: its status and body."""
        for _ in range(_NUM_TRIES - 1):
            with suppress(SilentError):
                return await self._heard_once(member, asked)
        return await self._heard_once(member, asked)

    async def _heard_once(self, member: Member, asked: Asked) -> tuple[int, bytes]:
        answer = await member.asker.ask(asked)
        return answer.status, await answer.read(max_bytes=_MAX_BYTES)

    async def _offers(self, members: Members, member: Member, body: bytes) -> tuple[Offer, ...]:
        """What a server translates; nothing is made anew where it or another one said so before."""
        if body != member.body:
            async with self._learning[member.group]:
                known = [self._known[member.group].offers, *(one.offers for one in members.all)]
                member.offers = await asyncio.to_thread(offers_of, body, known)
                member.body = body
        return member.offers

    async def _follow(self, name: str) -> None:
        async with asyncio.TaskGroup() as polls:
            while True:
                polls.create_task(self._poll_surely(name), name=f"poll of {name}")
                await self._pause(self._wakes[name])

    async def _poll_surely(self, name: str) -> None:
        try:
            await self.poll(name)
        except Exception:
            _LOGGER.exception("poll_failed")

    async def _pause(self, wake: asyncio.Event) -> None:
        """Wait until the next poll, or until somebody wants one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_SECONDS):
                await wake.wait()
        wake.clear()

    async def _take(self, members: Members, member: Member, state: ServerState) -> None:
        """Keep how a server answered, and what its group translates then."""
        async with self._learning[member.group]:
            group = self._known[member.group]
            servers = members.states_with(member, state)
            found = joint_state(servers, group.offers) if servers else state
            if found.standing == 0 and found.offers is not group.offers:
                group = await self._learnt(replace(group, offers=found.offers))
            members.note(member, state)
            self._note(group)

    async def _learnt(self, group: GroupState) -> GroupState:
        """A group with the table of what it translates now, whose languages can be told."""
        table = await asyncio.to_thread(RoutingTable, group.offers, pivot=self._pivot)
        group = replace(group, table=table)
        fields = {
            "group": group.name,
            "checkpoints": len(group.offers),
            "languages": len(table.all.languages),
        }
        _LOGGER.info("group_learnt", extra={"fields": fields})
        others = self._known | {group.name: group}
        directory = directory_of(tuple(others.values()), pivot=self._pivot)
        if self._detection.is_on and directory.languages != self.directory.languages:
            await asyncio.to_thread(self._detection.read_statistics, directory.languages)
        return group

    def _note(self, group: GroupState) -> None:
        """Keep a group's state as its servers are now.

        Args:
            group: What it translates.
        """
        members = self.members[group.name]
        servers = [one.state for one in members.named] or [ServerState(problem=members.problem)]
        state = joint_state(servers, group.offers)
        known = replace(
            group,
            problem=state.problem,
            is_unready=state.is_unready,
            has_answered=group.has_answered or state.standing == 0,
        )
        before = self._known[known.name]
        self._known[known.name] = known
        self._metrics.group_is(known.name, is_up=known.is_up)
        if before == known:
            return
        if before.is_up and not known.is_up:
            fields = {"group": known.name, "reason": known.problem}
            _LOGGER.warning("group_unreachable", extra={"fields": fields})
        elif known.is_up and not before.is_up:
            _LOGGER.info("group_reached", extra={"fields": {"group": known.name}})
        groups = tuple(self._known.values())
        if before.offers == known.offers:
            self.directory = Directory(groups=groups, table=self.directory.table)
        else:
            self.directory = directory_of(groups, pivot=self._pivot)


def _says(status: int) -> str:
    return f"it answers with status {status}"


def _asked(target: bytes) -> Asked:
    headers = ((b"host", b"router"), (b"x-request-id", b"router-watch"))
    return Asked(method=b"GET", target=target, headers=headers, body=BytesBody())


_READY = _asked(b"/readyz")
_LIST = _asked(b"/v1/models")
