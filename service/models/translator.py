"""Online driver of one checkpoint: prepare → submit → finish, with deadlines and cancellation.

Owns the way of one request's texts through the text thread and the engine, its deadline, and
the cancelling of what is not waited for any more. What it is asked, and what it answers, is
`service.models.translation`; values were checked at the edge (`service.api`). Two checkpoints
one after the other are driven by `service.models.two_hops`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol, TypeVar

from model.config import LengthLimits, SearchConfig
from model.request import DecodeRequest, Hypothesis
from model.text.language import LanguagePair
from model.text.pipeline import TextPipeline, hypotheses_at, target_cap
from model.text.rounds import Draft
from service.engine.client.submission import SegmentBatch, SegmentJob
from service.engine.errors import EngineError
from service.engine.messages import Finished
from service.errors import deadline_exceeded, too_long
from service.labels import served_by
from service.models.alignment import PieceWidths
from service.models.segment_cache import SegmentCache
from service.models.text_work import TextWork
from service.models.translation import SearchedText, TranslatedText, TranslationRequest
from service.priority import Priority, priority_of, work_of

SegmentsFinished = Callable[[Sequence[SegmentJob], Sequence[Finished]], None]
LookedUp = Callable[[int, int], None]

T = TypeVar("T")
U = TypeVar("U")


class Engine(Protocol):
    """Engine as far as the translator needs it: an `EngineClient`, or its supervisor."""

    @property
    def max_request_segments(self) -> int:
        """Segments of one request that may be accepted and not answered."""

    def submit(self, jobs: Sequence[SegmentJob], *, client: int = 0) -> SegmentBatch:
        """Accept all of a client's `jobs`, or none; never waits."""


class OnlineTranslator:
    """Driver of one checkpoint of an engine, for many requests at once.

    Args:
        pipeline: Text ↔ segments.
        limits: Lengths the checkpoint was trained for.
        engine: Where segments are translated.
        checkpoint: Which of the engine's checkpoints it is.
        checkpoint_name: What it is called.
        text_thread: Where the pipeline runs.
        bulk_turn: Held while bulk hands it a piece of text: with one at a time, an interactive
            request never waits there for more than one.
        on_finished: Called with the segments of a request that the engine had, and their answers,
            in the request's task.
        cache: Segments that were translated before; None where none are kept.
        fingerprint: Names exactly the checkpoint's files.
        on_looked_up: Called with how many of a request's segments were in the cache, and were not.

    Attributes:
        pipeline: Text ↔ segments.
        limits: Lengths the checkpoint was trained for.
        source_widths: Of the checkpoint's source tokens, for alignments through two hops.
        target_widths: Of its target tokens.
    """

    def __init__(
        self,
        *,
        pipeline: TextPipeline,
        limits: LengthLimits,
        engine: Engine,
        text_thread: Executor,
        bulk_turn: asyncio.Semaphore,
        checkpoint: int = 0,
        checkpoint_name: str = "",
        on_finished: SegmentsFinished | None = None,
        cache: SegmentCache | None = None,
        fingerprint: str = "",
        on_looked_up: LookedUp = lambda _hits, _misses: None,
    ) -> None:
        self.pipeline = pipeline
        self.source_widths = PieceWidths(pipeline.source_pieces)
        self.target_widths = PieceWidths(pipeline.target_pieces)
        self.limits = limits
        self._engine = engine
        self._checkpoint = checkpoint
        self._checkpoint_name = checkpoint_name
        self._text_work = TextWork(text_thread, bulk_turn)
        self._on_finished = on_finished
        self._cache = cache
        self._fingerprint = fingerprint
        self._on_looked_up = on_looked_up

    async def translate(self, request: TranslationRequest) -> list[TranslatedText]:
        """One result per text, in order; cancelling it cancels its segments.

        Raises:
            RequestError: 413 for more segments than may ever wait, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        (hop,) = request.route.hops
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds) as deadline:
            searched, priority = await self.search(request, hop.pair, deadline=deadline)
            return await self._finish(searched, replace(request, priority=priority))

    async def search(
        self, request: TranslationRequest, pair: LanguagePair, *, deadline: float
    ) -> tuple[list[SearchedText], Priority]:
        """What is found for each text of a request, and the class that its segments were in.

        Args:
            request: Of which the texts are in the language that the pair begins with.
            pair: A pair of the checkpoint.
            deadline: Of the request, in the loop's time; further rounds leave a part of it.

        Raises:
            RequestError: As of `translate`, but for the deadline, which is the caller's.
        """
        drafts = await self._drafts(request, pair)
        jobs = self._jobs(drafts, request, pair)
        priority = jobs[0].priority if jobs else request.priority
        request = replace(request, priority=priority)
        if jobs:
            drafts = await self._answered(drafts, jobs, request)
        drafts = await self._retried(drafts, request, pair, deadline=deadline)
        return await self._map(_searched, drafts, request), priority

    async def _retried(
        self,
        answered: list[Draft[Hypothesis]],
        request: TranslationRequest,
        pair: LanguagePair,
        *,
        deadline: float,
    ) -> list[Draft[Hypothesis]]:
        """The texts, judged, after as many further rounds as they ask for and there is room for.

        There is an answer already: a round that fails, or takes half of the time that is left,
        takes nothing from it.
        """

        def last(draft: Draft[Hypothesis]) -> Draft[Hypothesis]:
            return self.pipeline.review(draft, is_last=True)

        while request.max_length is None:  # with a cap nothing is whole, nor is it wanted to be
            drafts = await self._map(self.pipeline.review, answered, request)
            jobs = self._jobs(drafts, request, pair)
            if not jobs:
                return drafts
            if len(jobs) > self._engine.max_request_segments:
                break
            try:
                async with asyncio.timeout_at((asyncio.get_running_loop().time() + deadline) / 2):
                    answered = await self._answered(drafts, jobs, request)
            except (TimeoutError, EngineError):
                break
        return await self._map(last, answered, request)

    async def _answered(
        self,
        drafts: Sequence[Draft[Hypothesis]],
        jobs: Sequence[SegmentJob],
        request: TranslationRequest,
    ) -> list[Draft[Hypothesis]]:
        """The texts with what was found for all that they asked for."""
        found = iter(await self._found(jobs, request))
        return [draft.answered([next(found) for _ in draft.asked]) for draft in drafts]

    async def _found(
        self, jobs: Sequence[SegmentJob], request: TranslationRequest
    ) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of every segment, from the cache where it has them."""
        cache = self._cache
        if cache is None:
            return await self._translated(jobs, request)
        name, scope = self._fingerprint, request.cache_scope
        keys = [cache.key(job.request, checkpoint=name, scope=scope) for job in jobs]
        known = [cache.find(key) for key in keys]
        missing = [place for place, hypotheses in enumerate(known) if hypotheses is None]
        self._on_looked_up(len(jobs) - len(missing), len(missing))
        new = await self._translated([jobs[place] for place in missing], request)
        by_place = dict(zip(missing, new, strict=True))
        for place, hypotheses in by_place.items():
            cache.keep(keys[place], hypotheses)
        return [
            by_place[place] if hypotheses is None else hypotheses
            for place, hypotheses in enumerate(known)
        ]

    async def _translated(
        self, jobs: Sequence[SegmentJob], request: TranslationRequest
    ) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of every segment, from the engine."""
        with self._engine.submit(jobs, client=request.client) as batch:
            answers = await batch.results()
        if self._on_finished is not None:
            self._on_finished(jobs, answers)
        return [answer.hypotheses for answer in answers]

    async def _map(
        self, function: Callable[[T], U], items: Sequence[T], request: TranslationRequest
    ) -> list[U]:
        """`function` of what belongs to each text of the request, on the text thread."""
        sizes = [len(text) for text in request.texts]
        return [result async for result in self.map(function, items, sizes, request.priority)]

    async def _finish(
        self, texts: Sequence[SearchedText], request: TranslationRequest
    ) -> list[TranslatedText]:
        def finish(text: SearchedText) -> TranslatedText:
            return _finished(self.pipeline, text, num_alternatives=request.num_alternatives)

        return await self._map(finish, texts, request)

    async def _drafts(
        self, request: TranslationRequest, pair: LanguagePair
    ) -> list[Draft[Hypothesis]]:
        """The texts as segments; given up as soon as there are more than may ever be accepted."""

        def draft(text: str) -> Draft[Hypothesis]:
            return self.pipeline.draft(text, pair)

        limit = self._engine.max_request_segments
        drafts: list[Draft[Hypothesis]] = []
        num_segments = 0
        sizes = [len(text) for text in request.texts]
        async for text in self.map(draft, request.texts, sizes, request.priority):
            drafts.append(text)
            num_segments += len(text.asked)
            if num_segments > limit:
                raise too_long(
                    f"the request has at least {num_segments} segments; the limit is {limit}",
                    value=num_segments,
                    limit=limit,
                )
        return drafts

    def _jobs(
        self, drafts: Sequence[Draft[Hypothesis]], request: TranslationRequest, pair: LanguagePair
    ) -> list[SegmentJob]:
        """What the engine is asked for in this round."""
        searches: dict[int, SearchConfig] = {}
        prefix_ids = self.pipeline.prefix_ids(pair)
        segments = [segment for draft in drafts for segment in draft.asked]
        lengths = [len(segment.source_ids) for segment in segments]
        work = work_of(lengths, beam_size=request.beam_size) * len(request.route.hops)
        priority = priority_of(work, request.priority)
        served = served_by(pair, self._checkpoint_name)
        jobs = []
        for segment in segments:
            cap = target_cap(len(segment.source_ids), self.limits)
            search = searches.get(cap) or searches.setdefault(cap, _search(request, cap))
            jobs.append(
                SegmentJob(
                    request=DecodeRequest(
                        source_ids=segment.source_ids,
                        prefix_ids=prefix_ids,
                        search=segment.searched(search),
                    ),
                    priority=priority,
                    checkpoint=self._checkpoint,
                    served=served,
                )
            )
        return jobs

    def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        sizes: Sequence[int],
        priority: Priority,
    ) -> AsyncIterator[U]:
        """`function` of every item, on the text thread, a few thousand characters at a time."""
        return self._text_work.map(function, items, sizes, priority)


@asynccontextmanager
async def within(seconds: float, *, spent_seconds: float = 0.0) -> AsyncIterator[float]:
    """The deadline of a request, from now, or from so many seconds ago; given in the loop's time.

    Raises:
        RequestError: A 504 after it.
    """
    end = asyncio.get_running_loop().time() + seconds - spent_seconds
    try:
        async with asyncio.timeout_at(end) as deadline:
            yield end
    except TimeoutError as error:
        if deadline.expired():
            raise deadline_exceeded(seconds=seconds) from error
        raise


def _search(request: TranslationRequest, cap: int) -> SearchConfig:
    return SearchConfig(
        beam_size=request.beam_size,
        length_penalty=request.length_penalty,
        stopping=request.stopping,
        num_hypotheses=request.num_alternatives + 1,
        max_length=min(cap, request.max_length or cap),
        with_alignment=request.with_alignment,
    )


def _searched(draft: Draft[Hypothesis]) -> SearchedText:
    return SearchedText(
        prepared=draft.prepared, found=tuple(draft.found), translation=draft.translation
    )


def _finished(
    pipeline: TextPipeline, text: SearchedText, *, num_alternatives: int
) -> TranslatedText:
    """Put a text together once per rank; a segment with fewer hypotheses repeats its last."""
    prepared = text.prepared
    best = text.translation
    texts = {best.text: None}
    for rank in range(1, num_alternatives + 1):
        texts[pipeline.finish(prepared, hypotheses_at(text.found, rank)).text] = None
    hypotheses = iter(text.best)
    return TranslatedText(
        best=best,
        alternatives=tuple(texts)[1:],
        hypotheses=tuple(
            None if segment.is_verbatim else next(hypotheses) for segment in prepared.segments
        ),
    )
