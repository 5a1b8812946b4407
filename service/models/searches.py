"""Search of a request's texts: what was handed to an engine, and what has been found.

Owns how the answers to segments become those of texts. Handing over is
`service.models.translator`'s, the engine's side `service.engine.client.submission`'s.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from model.request import Hypothesis
from model.text.pipeline import PreparedText
from service.engine.client.submission import SegmentBatch, SegmentJob
from service.engine.messages import Finished
from service.priority import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedText:
    """A text and what was found for it.

    Attributes:
        prepared: Its segments.
        found: For each one that the network has seen the hypotheses, best first.
    """

    prepared: PreparedText
    found: tuple[tuple[Hypothesis, ...], ...]

    @property
    def best(self) -> list[Hypothesis]:
        """The best of each."""
        return [ranked[0] for ranked in self.found]


class Search:
    """Texts of a request whose segments an engine has accepted.

    A context manager: leaving it cancels what is unfinished.

    Args:
        prepared: The texts.
        jobs: Their segments that the network has to see, in order.
        batch: These, as they were accepted.
        priority: The class that they wait in.

    Attributes:
        prepared: The texts.
        jobs: Their segments that the network has to see, in order.
        priority: The class that they wait in.
    """

    def __init__(
        self,
        prepared: Sequence[PreparedText],
        jobs: Sequence[SegmentJob],
        batch: SegmentBatch,
        *,
        priority: Priority,
    ) -> None:
        self.prepared = prepared
        self.jobs = jobs
        self.priority = priority
        self._batch = batch

    def __enter__(self) -> Self:
        """The search itself."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel what is unfinished."""
        self._batch.cancel()

    def __repr__(self) -> str:
        return f"<Search of {len(self.prepared)} texts: {self._batch!r}>"

    async def answers(self) -> list[Finished]:
        """The answers to the jobs, in their order; errors as of `SegmentBatch.results`."""
        return await self._batch.results()

    def as_they_come(self) -> AsyncIterator[list[tuple[int, Finished]]]:
        """Places of jobs and their answers; see `SegmentBatch.as_they_come`."""
        return self._batch.as_they_come()

    def texts(self, answers: Sequence[Finished]) -> list[SearchedText]:
        """The texts, with the answers to all jobs."""
        remaining = iter(answers)
        return [
            SearchedText(
                prepared=text,
                found=tuple(next(remaining).hypotheses for _ in text.network_segments),
            )
            for text in self.prepared
        ]
