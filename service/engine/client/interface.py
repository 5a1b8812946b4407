"""Interface of what accepts segments: one engine process, one that is kept running, or a pool.

Owns what these have in common: segments are submitted, all of them or none, and leaving a block
closes. Does not own how many may be pending, which is `service.engine.client.segment_room`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob


class Engine(ABC):
    """Engine that accepts segments; an async context manager that closes on leaving."""

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether segments are accepted."""

    @property
    @abstractmethod
    def num_pending(self) -> int:
        """Segments accepted that are not answered for good."""

    @abstractmethod
    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """Accept all of a client's `jobs`, or none; never waits.

        Args:
            jobs: The segments of one request, all of one class, one checkpoint and one beam.
            client: Whose they are, as a number that says nothing of them.
            on_written: Called on the event loop with the tokens that each segment gets, before its
                answer; of jobs with one beam. None: nobody is told, and the engine tells nothing.

        Raises:
            EngineUnavailableError: There is no engine now, or it is closed.
            InputError: A job could never run, or there are more than may ever be pending.
            QueueFullError: Too much is pending now.
        """

    @abstractmethod
    async def close(self) -> None:
        """End every process; pending segments fail. A second call is harmless."""

    async def __aenter__(self) -> Self:
        """The engine itself."""
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
