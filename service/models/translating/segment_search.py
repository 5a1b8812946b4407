"""Search of segments: in what is kept of earlier ones first, and of the others in the engine.

Owns that order, and what is counted of it. Which segments there are is
`service.models.translating.translator`; what is kept is `service.models.translating.segment_cache`.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from model.request import Hypothesis
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.messages import Finished
from service.models.requests.translation import SegmentTally, TranslationRequest
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.writing import WrittenSentences

Hypotheses = tuple[Hypothesis, ...]
SegmentsFinished = Callable[[Sequence[SegmentJob], Sequence[Finished]], None]
LookedUp = Callable[[int, int], None]


class Engine(Protocol):
    """Engine as far as a search needs it: the pool of a deployment, or the client of one engine."""

    @property
    def max_request_segments(self) -> int:
        """Segments of one request that may be accepted and not answered."""

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """Accept all of a client's `jobs`, or none; never waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """Earlier results of some segments.

    Attributes:
        keys: Of every segment; empty where none are kept.
        known: The hypotheses of those that were found, by place.
        missing: The places of the others.
    """

    keys: tuple[bytes, ...]
    known: dict[int, Hypotheses]
    missing: list[int]


class SegmentSearch:
    """Search of one checkpoint's segments.

    Args:
        engine: Where segments are translated.
        cache: Segments that were translated before; None where none are kept.
        fingerprint: Names exactly the checkpoint's files.
        on_finished: Called with the segments of a request that the engine had, and their answers,
            in the request's task.
        on_looked_up: Called with how many of a request's segments were in the cache, and were not.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        cache: SegmentCache | None = None,
        fingerprint: str = "",
        on_finished: SegmentsFinished | None = None,
        on_looked_up: LookedUp = lambda _hits, _misses: None,
    ) -> None:
        self._engine = engine
        self._cache = cache
        self._fingerprint = fingerprint
        self._on_finished = on_finished
        self._on_looked_up = on_looked_up

    def counted(self, number: int, tally: SegmentTally) -> int:
        """Segments of a request for this engine, with so many that were just found."""
        return tally.add(self._engine, number)

    @property
    def max_request_segments(self) -> int:
        """Segments of one request that may be accepted and not answered."""
        return self._engine.max_request_segments

    async def all_of(
        self, jobs: Sequence[SegmentJob], request: TranslationRequest
    ) -> list[Hypotheses]:
        """The hypotheses of every segment, in order, once all are there.

        Raises:
            EngineError: The engine accepted them not, or did not translate one of them.
        """
        lookup = self._looked_up(jobs, request)
        found = lookup.known
        asked = [jobs[place] for place in lookup.missing]
        with self._engine.submit(asked, client=request.client) as batch:
            answers = await batch.results()
        for place, answer in zip(lookup.missing, answers, strict=True):
            found[place] = answer.hypotheses
            self._keep(lookup, place, answer)
        if self._on_finished is not None:
            self._on_finished(asked, answers)
        return [found[place] for place in range(len(jobs))]

    @contextmanager
    def one_by_one(
        self,
        jobs: Sequence[SegmentJob],
        request: TranslationRequest,
        writing: WrittenSentences | None = None,
    ) -> Iterator[AsyncIterator[tuple[int, Hypotheses]]]:
        """The hypotheses of each segment as they come, with its place; accepted on entering.

        Leaving drops what was not found until then.

        Args:
            jobs: The segments.
            request: Which they are of.
            writing: Told the tokens of those that the engine has, by place, before each comes.

        Raises:
            EngineError: As of `all_of`; what becomes of a segment is raised by the iterator.
        """
        lookup = self._looked_up(jobs, request)
        asked = [jobs[place] for place in lookup.missing]
        on_written = None if writing is None else _by_place(lookup, writing)
        with self._engine.submit(asked, client=request.client, on_written=on_written) as batch:
            yield self._each(lookup, asked, batch, writing)

    async def _each(
        self,
        lookup: _Lookup,
        asked: Sequence[SegmentJob],
        batch: SegmentBatch,
        writing: WrittenSentences | None,
    ) -> AsyncIterator[tuple[int, Hypotheses]]:
        for place, hypotheses in lookup.known.items():
            yield place, hypotheses
        answers: dict[int, Finished] = {}
        async for number, answer in batch.as_answered():
            answers[number] = answer
            if writing is not None:
                writing.end(lookup.missing[number], answer.hypotheses[0].token_ids)
            self._keep(lookup, lookup.missing[number], answer)
            yield lookup.missing[number], answer.hypotheses
        if self._on_finished is not None:
            self._on_finished(asked, [answers[number] for number in range(len(asked))])

    def _looked_up(self, jobs: Sequence[SegmentJob], request: TranslationRequest) -> _Lookup:
        cache = self._cache
        if cache is None:
            return _Lookup(keys=(), known={}, missing=list(range(len(jobs))))
        name, scope = self._fingerprint, request.cache_scope
        keys = tuple(cache.key(job.request, checkpoint=name, scope=scope) for job in jobs)
        kept = [cache.find(key) for key in keys]
        known = {place: one for place, one in enumerate(kept) if one is not None}
        missing = [place for place, one in enumerate(kept) if one is None]
        self._on_looked_up(len(known), len(missing))
        return _Lookup(keys=keys, known=known, missing=missing)

    def _keep(self, lookup: _Lookup, place: int, answer: Finished) -> None:
        if self._cache is not None:
            self._cache.keep(lookup.keys[place], answer.hypotheses)


def _by_place(lookup: _Lookup, writing: WrittenSentences) -> OnWritten:
    """What hears of tokens by the place of a job among those that the engine was asked for."""

    def report(number: int, start: int, token_ids: tuple[int, ...]) -> None:
        writing.add(lookup.missing[number], start, token_ids)

    return report
