"""Pool of replicas: many engines with the same checkpoints behind the interface of one.

Owns who gets a segment (by `service.engine.client.pool.choice`), and what becomes of those that a
lost engine had: another one translates them. An engine that is lost is replaced by the supervisor
of its replica. Runs on the event loop and never blocks it.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Self

from service.engine.client.interface import Engine
from service.engine.client.pending import Pending, fail_all
from service.engine.client.pool.choice import Load, assign, candidates
from service.engine.client.pool.replica import Keeping, Replica
from service.engine.client.pool.siblings import Siblings, StartEngine
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import (
    OnTokens,
    OnWritten,
    SegmentBatch,
    SegmentJob,
    Watch,
    check_fits,
    row_steps_of,
)
from service.engine.counters import summed
from service.engine.errors import EngineClosedError, EngineUnavailableError
from service.engine.messages import EngineCounters, Ready
from service.priority import Priority

_LOGGER = logging.getLogger(__name__)

MAX_MOVES = 1
"""How often a segment goes on in another engine: it may be what its engines are lost by."""

_GONE = "the engine is gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Rules by which replicas share segments.

    Attributes:
        fill_rows: Rows up to which one replica is filled before the next gets any.
        silent_seconds: Time without a word after which a replica gets nothing new.
        on_moved: Called with the number of segments that go on in another engine.
    """

    fill_rows: int = 0
    silent_seconds: float = 3.0
    on_moved: Callable[[int], None] = lambda _: None


class Pool(Engine):
    """Replicas of one deployment.

    Made by `start`. Work is accepted while one of them is warm.

    Args:
        starts: What starts an engine in each place.
        room: Places of segments, those of all replicas together.
        keeping: How engines are kept running.
        sharing: How they share segments.
        on_given_up: Called when the last one is lost and no other one will be started.

    Attributes:
        replicas: By their places.
    """

    def __init__(
        self,
        starts: Sequence[StartEngine],
        *,
        room: SegmentRoom,
        keeping: Keeping,
        sharing: Sharing,
        on_given_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._room = room
        self._sharing = sharing
        self._on_given_up = on_given_up
        self._numbers = count(1)
        self._on_outdated = keeping.on_outdated
        self._replacing = asyncio.Lock()
        self._is_replaced = self._is_closing = False
        self._filling: list[asyncio.Task[None]] = []
        if self._on_outdated is not None:
            keeping = replace(keeping, on_outdated=self._replaced_once)
        siblings = Siblings(room=room, numbers=self._numbers, on_orphaned=self._adopt)
        self.replicas = tuple(
            Replica(
                place,
                start_engine=partial(start, siblings),
                keeping=keeping,
                on_given_up=self._one_given_up,
            )
            for place, start in enumerate(starts)
        )

    @classmethod
    async def start(
        cls,
        starts: Sequence[StartEngine],
        *,
        room: SegmentRoom,
        keeping: Keeping,
        sharing: Sharing,
        on_given_up: Callable[[], None] = lambda: None,
    ) -> Self:
        """Start the first engine; `fill` or `fill_one_by_one` starts the others.

        Raises:
            EngineStartError: It did not become ready; no process is left behind.
        """
        pool = cls(starts, room=room, keeping=keeping, sharing=sharing, on_given_up=on_given_up)
        await pool.replicas[0].start()
        return pool

    def fill(self) -> None:
        """Start the other engines, all at once and in the background."""
        self._filling = [
            asyncio.create_task(replica.start_patiently(), name="replica-start")
            for replica in self.replicas[1:]
        ]

    async def fill_one_by_one(self) -> None:
        """Start the other engines, each once the one before it is warm.

        Raises:
            EngineStartError: One did not become ready; those that did are there.
        """
        for replica in self.replicas[1:]:
            await replica.start()

    def __repr__(self) -> str:
        return f"<Pool {self.num_ready} of {len(self.replicas)} {self._room!r}>"

    @property
    def num_ready(self) -> int:
        """Replicas that accept segments."""
        return sum(replica.is_ready for replica in self.replicas)

    @property
    def is_ready(self) -> bool:
        """As of `Engine`."""
        return self.replicas[0].is_ready or any(replica.is_ready for replica in self.replicas)

    @property
    def is_exhausted(self) -> bool:
        """Whether all engines are lost and no other one will be started."""
        return all(replica.is_given_up for replica in self.replicas)

    @property
    def ready(self) -> Ready:
        """The Ready message of the latest engine in the first place; the others say the same."""
        return self.replicas[0].supervisor.ready

    @property
    def num_pending(self) -> int:
        """As of `Engine`, by all of them together."""
        return self._room.num_taken

    @property
    def counters(self) -> EngineCounters:
        """The totals of all engines so far, and the gauges of those that are there."""
        return summed([replica.counters for replica in self.replicas])

    @property
    def max_request_segments(self) -> int:
        """How many segments may be of one class, and so of one request."""
        return self._room.class_limit

    def check_open(
        self, priority: Priority | None = None, *, checkpoint: int | None = None
    ) -> None:
        """Return if there is room for a request whose segments are not known yet.

        Raises:
            QueueFullError: Too much is pending now, of all, of their class or of their checkpoint.
        """
        self._room.check_open(priority, checkpoint=checkpoint)

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """As of `Engine`, by as few of them as have room."""
        if len(self.replicas) == 1:
            only = self.replicas[0].supervisor
            return only.submit(jobs, client=client, on_written=on_written)
        loads = self._loads()
        if not candidates(loads):
            raise EngineClosedError if self._is_closing else EngineUnavailableError(_GONE)
        for job in jobs:
            check_fits(job, self.ready)
        self._room.check(jobs)
        numbered = {next(self._numbers): job for job in jobs}
        watch = Watch(on_written)
        watched = watch.of_segments(numbered)
        found = {}
        for place, part in self._parts(numbered, loads).items():
            engine = self.replicas[place].supervisor.engine
            found.update(engine.accept(part, client=client, watched=_of(part, watched)))
        answers = {number: found[number] for number in numbered}
        return SegmentBatch(answers, cancel=self._cancel, watch=watch)

    def retire(self) -> None:
        """Finish what is pending, and start no further engine."""
        for task in self._filling:
            task.cancel()
        for replica in self.replicas:
            replica.retire()

    async def close(self) -> None:
        """As of `Engine`."""
        self._is_closing = True
        self.retire()
        if self._filling:
            await asyncio.wait(self._filling)
        await asyncio.gather(*(replica.close() for replica in self.replicas))

    def _loads(self) -> list[Load]:
        silent_seconds = self._sharing.silent_seconds
        return [replica.load(silent_seconds=silent_seconds) for replica in self.replicas]

    def _parts(
        self, jobs: Mapping[int, SegmentJob], loads: Sequence[Load]
    ) -> dict[int, dict[int, SegmentJob]]:
        """Jobs of one beam, by the places of the replicas that get them."""
        if not jobs:
            return {}
        parts: dict[int, dict[int, SegmentJob]] = defaultdict(dict)
        places = assign(
            loads,
            [row_steps_of(job) for job in jobs.values()],
            num_rows=next(iter(jobs.values())).request.search.beam_size,
            fill_rows=self._sharing.fill_rows,
        )
        for (number, job), place in zip(jobs.items(), places, strict=True):
            parts[place][number] = job
        return parts

    def _cancel(self, segment_ids: Sequence[int]) -> None:
        """Cancel segments, in whichever replicas they are now."""
        for replica in self.replicas:
            if (engine := replica.engine) is not None:
                engine.cancel(segment_ids)

    def _adopt(self, orphans: Mapping[int, Pending]) -> None:
        """Have others translate what a lost engine had; what was moved before fails."""
        wanted = {number: one for number, one in orphans.items() if not one.answer.done()}
        is_possible = bool(candidates(self._loads()))
        moved = {
            number: one._replace(num_moves=one.num_moves + 1)
            for number, one in wanted.items()
            if is_possible and one.num_moves < MAX_MOVES
        }
        failed = (one for number, one in wanted.items() if number not in moved)
        fail_all(failed, partial(EngineUnavailableError, _GONE))
        by_beam: dict[int, dict[int, SegmentJob]] = defaultdict(dict)
        for number, one in moved.items():
            by_beam[one.job.request.search.beam_size][number] = one.job
        for jobs in by_beam.values():
            for place, part in self._parts(jobs, self._loads()).items():
                engine = self.replicas[place].supervisor.engine
                engine.take_over({number: moved[number] for number in part})
        if moved:
            self._sharing.on_moved(len(moved))
            fields = {"num_moved": len(moved), "num_failed": len(wanted) - len(moved)}
            _LOGGER.warning("segments_moved", extra={"fields": fields})

    def _one_given_up(self) -> None:
        if self.is_exhausted:
            self._on_given_up()

    async def _replaced_once(self) -> bool:
        """Whether something else has taken the place of this pool, which is tried until it has."""
        assert self._on_outdated is not None
        async with self._replacing:
            if not self._is_replaced:
                self._is_replaced = await self._on_outdated()
            return self._is_replaced


def _of(part: Mapping[int, SegmentJob], watched: Mapping[int, OnTokens]) -> Mapping[int, OnTokens]:
    """What is called for the segments of a part."""
    return {number: watched[number] for number in part} if watched else watched
