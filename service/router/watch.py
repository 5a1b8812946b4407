"""Watch over the groups: asks each again and again whether it would translate now, and what.

Owns the directory as it is now, when it changes, the connections to each group, and when requests
that a silent group has are given up. A group is up while one of its servers is: each poll asks
another one, and the next where that does not answer or is not ready. What an answer means is
`service.router.directory`.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from service.models.requests.detection import LanguageDetection
from service.models.routes.routing import RoutingTable
from service.router.connection import Asked, BytesBody
from service.router.directory import Directory, GroupState, directory_of, offers_of
from service.router.groups import ConnectError, Group, LostError, SilentError
from service.router.metrics import RouterMetrics
from service.router.pool import Pool
from service.router.refusals import reason_in

_LOGGER = logging.getLogger("dragoman.router")

INTERVAL_SECONDS = 2.0
"""Between two polls of a group: a reload is known everywhere within it."""
_TRY_SECONDS = 2.5
_NUM_TRIES = 2
"""Each on another connection, which may lead to another server."""
_NUM_SILENT_POLLS = 2
"""In a row, after which what the group has of requests is given up: until then it may go on."""
_SILENT = f"silent for {_NUM_TRIES * _TRY_SECONDS:g} seconds"
_GIVEN_UP = "it does not answer any more"
_MAX_BYTES = 32 * 2**20


class Watch:
    """Groups, as they answered last.

    Args:
        groups: In order.
        pools: Of each, by name, for requests; this has connections of its own.
        pivot: Language between two hops, as the groups have it.
        detection: Told which languages there are.
        metrics: Told which groups answer.

    Attributes:
        directory: What is known now.
        pools: As they were passed in.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        pools: dict[str, Pool],
        *,
        pivot: str | None,
        detection: LanguageDetection,
        metrics: RouterMetrics,
    ) -> None:
        self.pools = pools
        self._pivot = pivot
        self._detection = detection
        self._metrics = metrics
        self._known = {group.name: GroupState(name=group.name) for group in groups}
        self._bodies: dict[str, bytes] = {}
        self._num_silent = dict.fromkeys(self._known, 0)
        self._wakes = {group.name: asyncio.Event() for group in groups}
        self._askers = {
            group.name: Pool(group, pools[group.name].members, seconds=_TRY_SECONDS, is_watch=True)
            for group in groups
        }
        self.directory = directory_of(tuple(self._known.values()), pivot=pivot)

    def __repr__(self) -> str:
        return f"<Watch {len(self.directory.up)} of {len(self._known)} groups>"

    async def run(self) -> None:
        """Poll all groups side by side until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for name in self._known:
                    tasks.create_task(self._follow(name), name=f"watch of {name}")
        finally:
            for pool in self._askers.values():
                pool.close()

    def mark_unreachable(self, name: str, reason: str) -> None:
        """Note that a request did not reach a group; a poll, now, says whether that is over."""
        if self._known[name].is_answering:
            self._wakes[name].set()
        self._note_away(name, reason)

    def poll_now(self) -> None:
        """Poll all groups now."""
        for wake in self._wakes.values():
            wake.set()

    async def poll(self, name: str) -> None:
        """Ask one group whether it would translate now, and what."""
        num_silent, self._num_silent[name] = self._num_silent[name] + 1, 0
        try:
            status, body = await self._heard(name, _READY)
            if status == 503:
                self._note_unready(name, reason_in(body) or _says(status))
                return
            status, body = await self._heard(name, _LIST)
            if status == 200:
                await self._take(name, body)
            else:
                self._note_unready(name, _says(status))
        except SilentError:
            self._num_silent[name] = num_silent
            self._note_away(name, _SILENT)
            if num_silent >= _NUM_SILENT_POLLS:
                self.pools[name].give_up(_GIVEN_UP)
        except (ConnectError, LostError, ValueError) as error:
            self._note_away(name, str(error))
        finally:
            self._askers[name].close()  # the next poll is another server's
            self._give_up_silent(self.pools[name])

    @staticmethod
    def _give_up_silent(pool: Pool) -> None:
        """Wait no longer for those servers of a group that are silent while others answer."""
        if pool.members.are_several:
            for address in pool.members.silent:
                pool.give_up(_GIVEN_UP, address=address)

    async def _heard(self, name: str, asked: Asked) -> tuple[int, bytes]:
        """A group's answer: its status and body."""
        for _ in range(_NUM_TRIES - 1):
            with suppress(SilentError):
                return await self._heard_once(name, asked)
        return await self._heard_once(name, asked)

    async def _heard_once(self, name: str, asked: Asked) -> tuple[int, bytes]:
        answer = await self._askers[name].ask(asked)
        return answer.status, await answer.read(max_bytes=_MAX_BYTES)

    async def _follow(self, name: str) -> None:
        while True:
            try:
                await self.poll(name)
            except Exception:
                _LOGGER.exception("poll_failed")
            await self._pause(self._wakes[name])

    async def _pause(self, wake: asyncio.Event) -> None:
        """Wait until the next poll, or until somebody wants one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_SECONDS):
                await wake.wait()
        wake.clear()

    async def _take(self, name: str, body: bytes) -> None:
        """Keep what a group translates; nothing is made anew where it said so before."""
        if body != self._bodies.get(name):
            offers = await asyncio.to_thread(offers_of, body)
            table = await asyncio.to_thread(RoutingTable, offers, pivot=self._pivot)
            self._bodies[name] = body
            known = GroupState(name=name, offers=offers, table=table, has_answered=True)
            fields = {
                "group": name,
                "checkpoints": len(offers),
                "languages": len(table.all.languages),
            }
            _LOGGER.info("group_learnt", extra={"fields": fields})
            await self._note_languages(known)
        else:
            self._note(replace(self._known[name], problem="", is_unready=False))

    async def _note_languages(self, known: GroupState) -> None:
        others = self._known | {known.name: known}
        directory = directory_of(tuple(others.values()), pivot=self._pivot)
        if self._detection.is_on and directory.languages != self.directory.languages:
            await asyncio.to_thread(self._detection.read_statistics, directory.languages)
        self._note(known)

    def _note_unready(self, name: str, problem: str) -> None:
        self._note(replace(self._known[name], problem=problem, is_unready=True))

    def _note_away(self, name: str, problem: str) -> None:
        self._note(replace(self._known[name], problem=problem, is_unready=False))

    def _note(self, known: GroupState) -> None:
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
