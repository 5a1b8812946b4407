"""Online driver of one checkpoint: prepare → submit → finish, with deadlines and cancellation.

Owns the way of one request's texts through the text thread and the engine, its deadline, and the
cancelling of what is not waited for any more. What it is asked, and what it answers, is
`service.models.requests.translation`; values were checked at the edge (`service.api`). Two
checkpoints one after the other are driven by `service.models.translating.two_hops`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from types import TracebackType
from typing import TypeVar

from msgspec import structs

from model.config import LengthLimits, SearchConfig
from model.request import DecodeRequest, Hypothesis
from model.text.constraints.control import Control
from model.text.drafts.rounds import Draft
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, segment_cap
from service.engine.client.submission import SegmentJob
from service.engine.errors import EngineError
from service.errors import deadline_exceeded
from service.labels import served_by
from service.models.requests.text_work import TextWork, are_short
from service.models.requests.translation import (
    GrowingSentence,
    OnSegment,
    SearchedText,
    SegmentTally,
    TranslatedText,
    TranslationRequest,
)
from service.models.translating.alignment import PieceWidths
from service.models.translating.counting import count_segments
from service.models.translating.parts import DonePart, Parts, parted
from service.models.translating.results import finished, searched
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.segment_search import (
    Engine,
    LookedUp,
    SegmentSearch,
    SegmentsFinished,
)
from service.models.translating.writing import WrittenSentences
from service.priority import Priority, priority_of, work_of

T = TypeVar("T")
U = TypeVar("U")


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
        self._segment_search = SegmentSearch(
            engine,
            cache=cache,
            fingerprint=fingerprint,
            on_finished=on_finished,
            on_looked_up=on_looked_up,
        )
        self._checkpoint = checkpoint
        self._checkpoint_name = checkpoint_name
        self._text_work = TextWork(text_thread, bulk_turn)

    async def translate(
        self, request: TranslationRequest, on_segment: OnSegment | None = None
    ) -> list[TranslatedText]:
        """One result per text, in order; cancelling it cancels its segments.

        Args:
            request: One hop.
            on_segment: Called with each sentence when it is done, and while it is written, if the
                request is watched.

        Raises:
            RequestError: 413 for more segments than there may be, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        (hop,) = request.route.hops
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds) as deadline:
            on_done = None if on_segment is None else _reporting(on_segment)
            texts, priority = await self.search(
                request,
                hop.pair,
                deadline=deadline,
                on_done=on_done,
                on_grown=on_segment if request.is_watched else None,
            )
            return await self._finish(texts, request.in_class(priority))

    async def search(
        self,
        request: TranslationRequest,
        pair: LanguagePair,
        *,
        deadline: float,
        on_done: Callable[[DonePart], None] | None = None,
        on_grown: Callable[[GrowingSentence], None] | None = None,
    ) -> tuple[list[SearchedText], Priority]:
        """What is found for each text of a request, and the class that its segments were in.

        Args:
            request: Of which the texts are in the language that the pair begins with.
            pair: A pair of the checkpoint.
            deadline: Of the request, in the loop's time; further rounds leave a part of it.
            on_done: Called with each sentence when it is done; sentences are then reviewed one by
                one, and not text by text.
            on_grown: Called with each sentence that has grown until then, beside `on_done` alone.

        Raises:
            RequestError: As of `translate`, but for the deadline, which is the caller's.
        """
        drafts = await self._drafts(request, pair)
        jobs = self._jobs(drafts, request, pair)
        priority = jobs[0].priority if jobs else request.priority
        request = request.in_class(priority)
        found = partial(searched, request=request)
        if on_done is not None:
            parts, writing = Parts(await self._map(parted, drafts, request), on_done), None
            if on_grown is not None:
                writing = WrittenSentences(self.pipeline.raw_text, parts.asked, on_grown)
            await self._finish_parts(parts, jobs, request, pair, deadline=deadline, writing=writing)
            whole = await self._map(parts.whole, range(len(drafts)), request)
            return await self._map(found, whole, request), priority
        if jobs:
            drafts = await self._answered(drafts, jobs, request)
        drafts = await self._retried(drafts, request, pair, deadline=deadline)
        return await self._map(found, drafts, request), priority

    async def _finish_parts(
        self,
        parts: Parts,
        jobs: Sequence[SegmentJob],
        request: TranslationRequest,
        pair: LanguagePair,
        *,
        deadline: float,
        writing: WrittenSentences | None,
    ) -> None:
        """Have every sentence translated, each with further rounds of its own."""

        async def finish(number: int, hypotheses: Sequence[Hypothesis]) -> None:
            part = parts.answered(number, hypotheses)
            alone = structs.replace(request, texts=(part.prepared.text,))
            on_again = None if writing is None else partial(writing.withdraw, number)
            [whole] = await self._retried([part], alone, pair, deadline=deadline, on_again=on_again)
            parts.finish(number, whole)

        try:
            async with asyncio.TaskGroup() as group:
                with self._segment_search.one_by_one(jobs, request, writing) as found:
                    group.create_task(parts.report_copied())
                    async for number, hypotheses in found:
                        group.create_task(finish(number, hypotheses))
        except ExceptionGroup as failed:  # whatever failed first has ended the others
            raise failed.exceptions[0] from None

    async def _retried(
        self,
        answered: list[Draft[Hypothesis]],
        request: TranslationRequest,
        pair: LanguagePair,
        *,
        deadline: float,
        on_again: Callable[[], None] | None = None,
    ) -> list[Draft[Hypothesis]]:
        """The texts, reviewed, after as many further rounds as they need and there is room for.

        There is an answer already: a round that fails, or takes half of the time that is left,
        takes nothing from it. `on_again` is called before each round.
        """

        def last(draft: Draft[Hypothesis]) -> Draft[Hypothesis]:
            return self.pipeline.review(draft, is_last=True)

        search = request.search(cap=1)
        review = partial(
            self.pipeline.review,
            can_hold=search.can_hold_phrases,
            is_exhaustive=search.is_exhaustive,
        )
        while request.max_length is None:  # with a cap nothing is whole, nor is it wanted to be
            drafts = await self._map(review, answered, request)
            jobs = self._jobs(drafts, request, pair)
            if not jobs:
                return drafts
            if len(jobs) > self._segment_search.max_request_segments:
                break
            if on_again is not None:
                on_again()
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
        """The texts with hypotheses for all pending segments."""
        found = iter(await self._segment_search.all_of(jobs, request))
        return [draft.answered([next(found) for _ in draft.asked]) for draft in drafts]

    async def _map(
        self, function: Callable[[T], U], items: Sequence[T], request: TranslationRequest
    ) -> list[U]:
        if are_quick(request):
            return [function(item) for item in items]
        return [result async for result in self._each(function, items, request)]

    async def _finish(
        self, texts: Sequence[SearchedText], request: TranslationRequest
    ) -> list[TranslatedText]:
        def finish(text: SearchedText) -> TranslatedText:
            return finished(
                self.pipeline,
                text,
                num_alternatives=request.num_alternatives,
                with_spans=request.with_alignment,
            )

        return await self._map(finish, texts, request)

    async def _drafts(
        self, request: TranslationRequest, pair: LanguagePair
    ) -> list[Draft[Hypothesis]]:
        """The texts as segments; given up as soon as there are more than there may be."""

        def draft(asked: tuple[str, Control]) -> Draft[Hypothesis]:
            text, control = asked
            return self.pipeline.draft(text, pair, control)

        tally = request.tally or SegmentTally()
        asked = list(zip(request.texts, request.controls, strict=True))
        if are_quick(request):
            drafts = [draft(one) for one in asked]
            count_segments(drafts, self._segment_search, tally)
            return drafts
        drafts = []
        async for text in self._each(draft, asked, request):
            drafts.append(text)
            count_segments([text], self._segment_search, tally)
        return drafts

    def _jobs(
        self, drafts: Sequence[Draft[Hypothesis]], request: TranslationRequest, pair: LanguagePair
    ) -> list[SegmentJob]:
        """What the engine is asked for in this round."""
        segments = [segment for draft in drafts for segment in draft.asked]
        if not segments:
            return []
        searches: dict[int, SearchConfig] = {}
        prefix_ids = self.pipeline.prefix_ids(pair)
        lengths = [len(segment.source_ids) for segment in segments]
        work = work_of(lengths, beam_size=request.beam_size) * len(request.route.hops)
        priority = priority_of(work, request.priority)
        served = served_by(pair, self._checkpoint_name)
        jobs = []
        for segment in segments:
            cap = segment_cap(segment, self.limits)
            search = searches.get(cap) or searches.setdefault(cap, request.search(cap))
            jobs.append(
                SegmentJob(
                    request=DecodeRequest(
                        source_ids=segment.source_ids,
                        prefix_ids=prefix_ids,
                        search=segment.searched(search),
                        forced_ids=segment.forced_ids,
                        phrases=segment.required_phrases,
                    ),
                    priority=priority,
                    checkpoint=self._checkpoint,
                    served=served,
                )
            )
        return jobs

    def _each(
        self, function: Callable[[T], U], items: Sequence[T], request: TranslationRequest
    ) -> AsyncIterator[U]:
        """`function` of what belongs to each text of the request, as it is done."""
        sizes, priority = [len(text) for text in request.texts], request.priority
        return self._text_work.map(function, items, sizes, priority, is_quick=request.is_plain)

    def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        sizes: Sequence[int],
        priority: Priority,
    ) -> AsyncIterator[U]:
        """`function` of every item, on the text thread, a few thousand characters at a time."""
        return self._text_work.map(function, items, sizes, priority)


def are_quick(request: TranslationRequest) -> bool:
    """Whether the texts of a request are prepared sooner than handed to a thread."""
    texts = request.texts
    return request.is_plain and are_short(sum(map(len, texts)), len(texts))


class within:  # noqa: N801  # called as `asyncio.timeout` is
    """The deadline of a request, from now, or from so many seconds ago; given in the loop's time.

    Every request has one, so it is no generator's context manager.

    Raises:
        RequestError: A 504 after it.
    """

    def __init__(self, seconds: float, *, spent_seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._end = asyncio.get_running_loop().time() + seconds - spent_seconds
        self._timeout = asyncio.timeout_at(self._end)

    async def __aenter__(self) -> float:
        """Begin."""
        await self._timeout.__aenter__()
        return self._end

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; only the deadline's own timeout is a 504."""
        try:
            await self._timeout.__aexit__(error_type, error, traceback)
        except TimeoutError as late:
            raise deadline_exceeded(seconds=self._seconds) from late
        if isinstance(error, TimeoutError) and self._timeout.expired():
            raise deadline_exceeded(seconds=self._seconds) from error


def _reporting(on_segment: OnSegment) -> Callable[[DonePart], None]:
    def report(done: DonePart) -> None:
        on_segment(done.segment)

    return report
