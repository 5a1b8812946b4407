"""Online driver of one checkpoint: prepare → submit → finish, with deadlines and cancellation.

Owns the way of one request's texts through the text thread and the engine, its deadline, and
the cancelling of what is not waited for any more. Values were checked at the edge (`service.api`).
Two checkpoints one after the other are driven by `service.models.two_hops`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from model.config import LengthLimits, SearchConfig, StoppingRule
from model.request import DecodeRequest, Hypothesis
from model.text.detection import Detection
from model.text.language import LanguagePair
from model.text.pipeline import PreparedText, TextPipeline, Translation, hypotheses_at, target_cap
from service.engine.client.submission import SegmentBatch, SegmentJob, Whole
from service.engine.messages import Finished
from service.errors import deadline_exceeded, too_long
from service.labels import served_by
from service.models.alignment import PieceWidths
from service.models.routing import Route
from service.models.searches import Search, SearchedText
from service.models.text_work import TextWork
from service.priority import Priority, priority_of, work_of

SegmentsFinished = Callable[[Sequence[SegmentJob], Sequence[Finished]], None]

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationRequest:
    """One request, checked.

    Attributes:
        texts: What to translate.
        route: From where to where, and by which checkpoints.
        beam_size: Hypotheses kept at every step.
        length_penalty: Exponent of the score.
        num_alternatives: Further translations per text; below `beam_size`.
        max_length: Target tokens of a segment with EOS; None leaves it to the source's length,
            which caps it in any case.
        with_alignment: Also say which source token each target token attended to most.
        timeout_seconds: The deadline, from now.
        priority: The class it is in by what is known of it; its segments wait in that one, or as
            bulk if they turn out to be more work than an interactive request may be.
        stopping: When the search of a segment ends.
        client: Whose it is, as a number that says nothing of them.
        by_source: Where the source is to be detected, the route from each language that a text may
            be in; `route` is then that of a text that says nothing of its language.
        spent_seconds: Of the deadline's, those that are over.
    """

    texts: tuple[str, ...]
    route: Route
    beam_size: int
    length_penalty: float
    num_alternatives: int
    max_length: int | None
    with_alignment: bool
    timeout_seconds: float
    priority: Priority = "interactive"
    stopping: StoppingRule = "exact"
    client: int = 0
    by_source: Mapping[str, Route] | None = None
    spent_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a text came from.

    Attributes:
        route: From its language to the target.
        detected: What its language was found to be; None where the request names it.
    """

    route: Route
    detected: Detection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """What a segment was in the pivot language, between two hops.

    Attributes:
        text: Its translation there.
        hypothesis: What that was made of.
    """

    text: str
    hypothesis: Hypothesis


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedText:
    """One text's translations.

    Attributes:
        best: The translation.
        alternatives: Further ones that differ from it and from each other, best first.
        hypotheses: For every segment of `best` the hypothesis it was made of; None for a
            segment that the network has not seen.
        between: For every segment what it was between two hops; None for one that was copied, and
            where there was one hop.
        origin: Where it came from and by which way; None until the request is answered.
    """

    best: Translation
    alternatives: tuple[str, ...]
    hypotheses: tuple[Hypothesis | None, ...]
    between: tuple[Between | None, ...] | None = None
    origin: Origin | None = None


class Engine(Protocol):
    """Engine as far as the translator needs it: an `EngineClient`, or its supervisor."""

    @property
    def max_request_segments(self) -> int:
        """Segments of one request that may be accepted and not answered."""

    def whole(self, *, work: int) -> Whole:
        """A request of so much work, whose segments will be handed over in parts."""

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, whole: Whole | None = None
    ) -> SegmentBatch:
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
        on_finished: Called with a request's segments and their answers, in the request's task.

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

    async def translate(self, request: TranslationRequest) -> list[TranslatedText]:
        """One result per text, in order; cancelling it cancels its segments.

        Raises:
            RequestError: 413 for more segments than may ever wait, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        (hop,) = request.route.hops
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds):
            prepared = await self.prepare(request, hop.pair)
            with self.submit(prepared, request, hop.pair) as search:
                answers = await search.answers()
            self.tell_finished(search.jobs, answers)
            return await self._finish(search.texts(answers), request)

    def submit(
        self,
        prepared: Sequence[PreparedText],
        request: TranslationRequest,
        pair: LanguagePair,
        *,
        whole: Whole | None = None,
    ) -> Search:
        """Hand the segments of some texts to the engine.

        Args:
            prepared: The texts, in the language that the pair begins with.
            request: That they belong to.
            pair: A pair of the checkpoint.
            whole: Of the engine, where the texts are a part of it.

        Raises:
            QueueFullError: As of `translate`.
            EngineUnavailableError: Likewise.
        """
        jobs = self._jobs(prepared, request, pair)
        batch = self._engine.submit(jobs, client=request.client, whole=whole)
        priority = jobs[0].priority if jobs else request.priority
        return Search(prepared, jobs, batch, priority=priority)

    def whole(self, *, work: int) -> Whole:
        """A request of so much work, whose texts will be handed over in parts."""
        return self._engine.whole(work=work)

    def tell_finished(self, jobs: Sequence[SegmentJob], answers: Sequence[Finished]) -> None:
        """Tell whoever wants to know of a request's segments, once, in the request's task."""
        if self._on_finished is not None:
            self._on_finished(jobs, answers)

    async def _finish(
        self, texts: Sequence[SearchedText], request: TranslationRequest
    ) -> list[TranslatedText]:
        def finish(text: SearchedText) -> TranslatedText:
            return _finished(self.pipeline, text, num_alternatives=request.num_alternatives)

        sizes = [len(text) for text in request.texts]
        return [result async for result in self.map(finish, texts, sizes, request.priority)]

    async def prepare(self, request: TranslationRequest, pair: LanguagePair) -> list[PreparedText]:
        """The texts as segments; given up as soon as there are more than may ever be accepted.

        Raises:
            RequestError: A 413: there are.
        """

        def prepare(text: str) -> PreparedText:
            return self.pipeline.prepare(text, pair)

        limit = self._engine.max_request_segments
        prepared: list[PreparedText] = []
        num_segments = 0
        sizes = [len(text) for text in request.texts]
        async for text in self.map(prepare, request.texts, sizes, request.priority):
            prepared.append(text)
            num_segments += len(text.network_segments)
            if num_segments > limit:
                raise too_long(
                    f"the request has at least {num_segments} segments; the limit is {limit}",
                    value=num_segments,
                    limit=limit,
                )
        return prepared

    def _jobs(
        self, texts: Sequence[PreparedText], request: TranslationRequest, pair: LanguagePair
    ) -> list[SegmentJob]:
        searches: dict[int, SearchConfig] = {}
        prefix_ids = self.pipeline.prefix_ids(pair)
        segments = [segment for text in texts for segment in text.network_segments]
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
                        source_ids=segment.source_ids, prefix_ids=prefix_ids, search=search
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
async def within(seconds: float, *, spent_seconds: float = 0.0) -> AsyncIterator[None]:
    """The deadline of a request, from now, or from so many seconds ago.

    Raises:
        RequestError: A 504 after it.
    """
    try:
        async with asyncio.timeout(seconds - spent_seconds) as deadline:
            yield
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


def _finished(
    pipeline: TextPipeline, text: SearchedText, *, num_alternatives: int
) -> TranslatedText:
    """Put a text together once per rank; a segment with fewer hypotheses repeats its last."""
    prepared = text.prepared
    best = pipeline.finish(prepared, text.best)
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
