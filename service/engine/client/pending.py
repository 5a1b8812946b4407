"""Pending segments: accepted by the front, and not yet answered by the engine.

Owns how many there may be, the future that each is awaited by, and when there is room again. A
cancelled segment stays pending until the engine has answered it for good, so the limit bounds
what either side holds. What is sent and received is `service.engine.client.client`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from model.errors import InputError
from service.engine.client.room import Excess, Room
from service.engine.client.submission import SegmentJob, SegmentObserver
from service.engine.client.throughput import Throughput
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    QueueFullError,
    SegmentFailedError,
)
from service.engine.messages import Cancelled, Failed, Finished
from service.priority import Priority

_OPEN_SHARE = 0.95
"""Of the queue, what may be taken when a request is let in whose segments are not known yet."""

LastWord = Finished | Failed | Cancelled


class _Pending(NamedTuple):
    """An accepted segment: the future of its answer, and what was asked for."""

    answer: asyncio.Future[Finished]
    job: SegmentJob


class PendingSegments:
    """The pending segments of one engine, under a limit that classes and checkpoints share.

    Args:
        limit: How many there may be.
        reserved_share: Of them, those that each class leaves to the other, and each checkpoint to
            the others.
        num_checkpoints: How many there are.
        observer: Hears of every segment.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        limit: int,
        *,
        reserved_share: float,
        observer: SegmentObserver | None,
        clock: Callable[[], float],
        num_checkpoints: int = 1,
    ) -> None:
        self._observer = observer
        self._is_shared = num_checkpoints > 1
        self._clock = clock
        self._by_id: dict[int, _Pending] = {}
        self._room = Room(limit, reserved_share=reserved_share)
        self._throughput = Throughput()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, segment_id: int) -> bool:
        return segment_id in self._by_id

    def __repr__(self) -> str:
        return f"<PendingSegments {len(self)} of {self.limit}>"

    @property
    def limit(self) -> int:
        """How many there may be."""
        return self._room.limit

    @property
    def class_limit(self) -> int:
        """How many of them may be of one class, and so of one request."""
        return self._room.class_limit

    def check_open(
        self, priority: Priority | None = None, *, checkpoint: int | None = None
    ) -> None:
        """Return if there is room for a request whose segments are not known yet.

        The last part of the queue is for requests that have passed and whose segments are being
        made: one that is let in is hardly ever refused, and one that is refused has cost nothing.

        Args:
            priority: Its class, once it is known.
            checkpoint: Which one is asked for, by its place, once it is known.

        Raises:
            QueueFullError: Too much is pending now, of all, of its class or of its checkpoint.
        """
        owner = checkpoint if self._is_shared else None
        excess = self._room.excess(1, priority, owner=owner, share=_OPEN_SHARE)
        if excess is not None:
            raise self._queue_full(excess)

    def check_room(self, jobs: Sequence[SegmentJob]) -> None:
        """Return if there is room for the segments of one request, all of one class.

        They are all of one checkpoint too.

        Raises:
            InputError: There are more than may ever be pending.
            QueueFullError: Too much is pending now.
        """
        if len(jobs) > self.class_limit:
            raise InputError(
                f"there are {len(jobs)} segments; the limit is {self.class_limit}",
                value=len(jobs),
                limit=self.class_limit,
            )
        if not jobs:
            return
        excess = self._room.excess(len(jobs), jobs[0].priority, owner=self._owner(jobs[0]))
        if excess is not None:
            raise self._queue_full(excess)

    def add(self, jobs: Mapping[int, SegmentJob]) -> dict[int, asyncio.Future[Finished]]:
        """Take numbered segments that have been sent; the futures of their answers."""
        loop = asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Finished]] = {
            segment_id: loop.create_future() for segment_id in jobs
        }
        for segment_id, job in jobs.items():
            self._by_id[segment_id] = _Pending(answers[segment_id], job)
            self._room.take(1, job.priority, owner=self._owner(job))
            if self._observer is not None:
                self._observer.segment_received(job)
        if answers:
            self._is_empty.clear()
        return answers

    def settle(self, word: LastWord) -> None:
        """Take a segment off the list, by the engine's final answer, and answer its future."""
        self._observe(word)
        pending = self._by_id.pop(word.segment_id, None)
        self._throughput.record(self._clock())
        if not self._by_id:
            self._is_empty.set()
        if pending is None:
            return
        self._room.leave(1, pending.job.priority, owner=self._owner(pending.job))
        if pending.answer.done():  # its request has gone
            return
        if isinstance(word, Finished):
            pending.answer.set_result(word)
        elif isinstance(word, Failed):
            _fail(pending.answer, SegmentFailedError(code=word.code, message=word.message))

    def fail_all(self, reason: str) -> None:
        """Answer every segment with an `EngineUnavailableError`."""
        all_pending = list(self._by_id.values())
        self._by_id.clear()
        self._is_empty.set()
        for answer, job in all_pending:
            self._room.leave(1, job.priority, owner=self._owner(job))
            if not answer.done():
                _fail(answer, EngineUnavailableError(reason))

    async def wait_empty(self) -> None:
        """Return once nothing is pending."""
        await self._is_empty.wait()

    def _owner(self, job: SegmentJob) -> int | None:
        return job.checkpoint if self._is_shared else None

    def _observe(self, word: LastWord) -> None:
        pending = self._by_id.get(word.segment_id)
        if pending is None or self._observer is None:
            return
        match word:
            case Finished():
                self._observer.segment_finished(pending.job, word)
            case Failed():
                self._observer.segment_failed(pending.job)
            case Cancelled():
                self._observer.segment_cancelled(pending.job)

    def _queue_full(self, excess: Excess) -> QueueFullError:
        wait = self._throughput.wait_seconds(excess.value - excess.limit, now=self._clock())
        return QueueFullError(value=excess.value, limit=excess.limit, retry_after_seconds=wait)


def _fail(answer: asyncio.Future[Finished], error: EngineError) -> None:
    """Set the error and mark it as seen: a caller that has gone is no fault to report."""
    answer.set_exception(error)
    answer.exception()
