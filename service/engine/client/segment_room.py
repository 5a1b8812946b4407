"""Room for the segments of one deployment: how many may be pending, in all of its engines together.

Owns the limit, who is refused, and when to come back. Clients of replicas share one, so that it
holds over their sum. Which segments are pending where is `service.engine.client.pending`, how
classes and checkpoints share places `service.engine.client.room`.
"""

import time
from collections.abc import Callable, Sequence

from model.errors import InputError
from service.engine.client.room import Excess, Room
from service.engine.client.submission import SegmentJob
from service.engine.client.throughput import Throughput
from service.engine.errors import QueueFullError
from service.priority import Priority

_OPEN_SHARE = 0.95
"""Of the queue, what may be taken when a request is let in whose segments are not known yet."""


class SegmentRoom:
    """Places for segments that are accepted and not answered.

    Args:
        limit: How many there may be.
        reserved_share: Of them, those that each class leaves to the other, and each checkpoint to
            the others.
        num_checkpoints: How many there are.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        limit: int,
        *,
        reserved_share: float = 0.0,
        num_checkpoints: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = Room(limit, reserved_share=reserved_share)
        self._is_shared = num_checkpoints > 1
        self._clock = clock
        self._throughput = Throughput()

    def __repr__(self) -> str:
        return f"<SegmentRoom {self.num_taken} of {self.limit}>"

    @property
    def num_taken(self) -> int:
        """Segments that are accepted and not answered."""
        return self._room.num

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

    def check(self, jobs: Sequence[SegmentJob]) -> None:
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

    def take(self, job: SegmentJob) -> None:
        """Take a place; the caller has checked that there is room."""
        if not self._room.num:
            self._throughput.begin()
        self._room.take(1, job.priority, owner=self._owner(job))

    def leave(self, job: SegmentJob) -> None:
        """Give a place back."""
        self._room.leave(1, job.priority, owner=self._owner(job))

    def answered(self) -> None:
        """Note that an engine has answered a segment; by their pace others are told to wait."""
        self._throughput.answered(self._clock())

    def _owner(self, job: SegmentJob) -> int | None:
        return job.checkpoint if self._is_shared else None

    def _queue_full(self, excess: Excess) -> QueueFullError:
        wait = self._throughput.wait_seconds(excess.value - excess.limit, now=self._clock())
        return QueueFullError(value=excess.value, limit=excess.limit, retry_after_seconds=wait)
