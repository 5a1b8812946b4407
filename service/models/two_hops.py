"""Driver of two checkpoints, one after the other: texts go through a pivot language.

Owns that both hops are one request: one deadline, one class, one cancellation; and how their
segments become one text. A segment of the first hop is a text of the second, which cuts it by its
own rules; it goes on as soon as it is there, while others are still in the first. One hop is
`service.models.translator`; which two there are is `service.models.pivot`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import msgspec

from model.request import Hypothesis
from model.text.language import LanguagePair
from model.text.pipeline import (
    PreparedText,
    Segment,
    TranslatedSegment,
    Translation,
    hypotheses_at,
    joined,
)
from service.engine.client.submission import SegmentJob, rows_by_tokens
from service.engine.messages import Finished
from service.models.alignment import FirstHop, composed, width
from service.models.searches import Search, SearchedText
from service.models.translator import (
    Between,
    OnlineTranslator,
    TranslatedText,
    TranslationRequest,
    within,
)


class Translator(Protocol):
    """Driver of a route."""

    async def translate(self, request: TranslationRequest) -> list[TranslatedText]:
        """One result per text, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hopped:
    """A segment of a text after both hops.

    Attributes:
        segment: Of the first hop.
        first: Its translation into the pivot.
        hypothesis: What that was made of; None for one that was copied.
        second: That as a text of the second hop; None likewise.
    """

    segment: Segment
    first: TranslatedSegment
    hypothesis: Hypothesis | None = None
    second: SearchedText | None = None


class TwoHops:
    """Driver of a route of two hops, made for one request.

    Args:
        first: Of the first hop's checkpoint.
        second: Of the second's.
    """

    def __init__(self, first: OnlineTranslator, second: OnlineTranslator) -> None:
        self._first = first
        self._second = second

    async def translate(self, request: TranslationRequest) -> list[TranslatedText]:
        """One result per text, in order; cancelling it cancels the segments of either hop.

        Alternatives are those of the second hop, `max_length` is its segments'.

        Raises:
            RequestError: 413 for more segments than may ever wait, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds):
            return await self._translate(request)

    async def _translate(self, request: TranslationRequest) -> list[TranslatedText]:
        into = request.route.hops[0]
        plain = replace(request, num_alternatives=0, max_length=None)
        prepared = await self._first.prepare(plain, into.pair)
        with self._first.submit(prepared, plain, into.pair) as search:
            request = replace(request, priority=search.priority)
            hops = _Hops(self._first, self._second, search, request)
            translated = iter(await hops.run())
        texts = [(text, [next(translated) for _ in text.network_segments]) for text in prepared]

        def finish(text: tuple[PreparedText, list[_Hopped]]) -> TranslatedText:
            return self._finished(*text, request)

        sizes = [len(text) for text in request.texts]
        results = self._second.map(finish, texts, sizes, request.priority)
        return [result async for result in results]

    def _finished(
        self, text: PreparedText, translated: Sequence[_Hopped], request: TranslationRequest
    ) -> TranslatedText:
        """A text, put together once per rank."""
        into, out_of = (hop.pair for hop in request.route.hops)
        remaining = iter(translated)
        segments = [
            _Hopped(segment=one, first=_first_segment(self._first, into, one))
            if one.is_verbatim
            else next(remaining)
            for one in text.segments
        ]
        pair = LanguagePair(source=into.source, target=out_of.target)
        prepared = replace(text, pair=pair)
        hypotheses = [self._hypothesis(segment, request) for segment in segments]
        ranked = [
            joined(prepared, [self._segment(segment, rank=rank) for segment in segments])
            for rank in range(request.num_alternatives + 1)
        ]
        texts = dict.fromkeys(translation.text for translation in ranked)
        return TranslatedText(
            best=_with_scores(ranked[0], hypotheses),
            alternatives=tuple(texts)[1:],
            hypotheses=tuple(hypotheses),
            between=tuple(
                None
                if segment.hypothesis is None
                else Between(text=segment.first.text, hypothesis=segment.hypothesis)
                for segment in segments
            ),
        )

    def _segment(self, hopped: _Hopped, *, rank: int) -> TranslatedSegment:
        """The segment with its translation of a rank; its facts are those of both hops."""
        first, second = hopped.first, hopped.second
        if second is None:
            return first
        end = self._second.pipeline.finish(second.prepared, hypotheses_at(second.found, rank))
        return replace(
            first,
            text=end.text.strip(),
            is_cut=first.is_cut or end.is_cut,
            is_truncated=first.is_truncated or end.is_truncated,
            num_target_tokens=end.num_target_tokens,
        )

    def _hypothesis(self, hopped: _Hopped, request: TranslationRequest) -> Hypothesis | None:
        """What the second hop found for a segment as one, aligned with the first hop's source."""
        if hopped.second is None or hopped.hypothesis is None:
            return None
        found = _one_hypothesis(hopped.second, length_penalty=request.length_penalty)
        if found is None or not request.with_alignment:
            return found
        _, out_of = request.route.hops
        first = FirstHop(
            widths=self._first.target_widths.of(hopped.hypothesis.token_ids),
            alignment=hopped.hypothesis.alignment or (),
            end=len(hopped.segment.source_ids) - 1,
        )
        widths = self._widths(hopped.second.prepared, len(out_of.pair.source_prefix))
        aligned = composed(first, widths, _alignment(hopped.second))
        return msgspec.structs.replace(found, alignment=aligned)

    def _widths(self, prepared: PreparedText, num_tags: int) -> list[int]:
        """Widths of the source tokens of all segments, each followed by what was copied."""
        widths: list[int] = []
        for segment in prepared.segments:
            if segment.is_verbatim:
                widths.append(width(segment.text))
                continue
            own = self._second.source_widths.of(segment.source_ids)
            widths += [0] * num_tags + own[num_tags:]
        return widths


class _Hops:
    """The segments of one request on their way through both hops.

    Args:
        first: Of the first hop's checkpoint.
        second: Of the second's.
        search: The first hop's.
        request: With the class of both.
    """

    def __init__(
        self,
        first: OnlineTranslator,
        second: OnlineTranslator,
        search: Search,
        request: TranslationRequest,
    ) -> None:
        self._first = first
        self._second = second
        self._search = search
        self._request = request
        self._into, self._out_of = (hop.pair for hop in request.route.hops)
        self._segments = [one for text in search.prepared for one in text.network_segments]
        self._whole = second.whole(work=rows_by_tokens(search.jobs))
        self._firsts: dict[int, Finished] = {}
        self._hopped: dict[int, _Hopped] = {}
        self._seconds: dict[int, tuple[Sequence[SegmentJob], Sequence[Finished]]] = {}

    async def run(self) -> list[_Hopped]:
        """The segments that are not copied, after both hops, in order.

        Raises:
            RequestError: As of `TwoHops.translate`, but for the deadline, which is the caller's.
        """
        try:
            async with asyncio.TaskGroup() as group:
                async for come in self._search.as_they_come():
                    self._firsts.update(come)
                    group.create_task(self._go_on(come))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        places = range(len(self._segments))
        self._first.tell_finished(self._search.jobs, [self._firsts[place] for place in places])
        parts = [self._seconds[place] for place in sorted(self._seconds)]
        jobs = [job for part, _ in parts for job in part]
        self._second.tell_finished(jobs, [one for _, answers in parts for one in answers])
        return [self._hopped[place] for place in places]

    async def _go_on(self, come: Sequence[tuple[int, Finished]]) -> None:
        """Take segments through the second hop that have come through the first."""
        items = [(self._segments[place], answer.hypotheses[0]) for place, answer in come]
        sizes = [len(segment.text) for segment, _ in items]
        priority = self._request.priority
        texts = [one async for one in self._second.map(self._between, items, sizes, priority)]
        prepared = [text for _, text in texts]
        with self._second.submit(
            prepared, self._request, self._out_of, whole=self._whole
        ) as search:
            answers = await search.answers()
        self._seconds[come[0][0]] = search.jobs, answers
        found = zip(come, items, texts, search.texts(answers), strict=True)
        for (place, _), (segment, hypothesis), (first, _), second in found:
            self._hopped[place] = _Hopped(
                segment=segment, first=first, hypothesis=hypothesis, second=second
            )

    def _between(self, item: tuple[Segment, Hypothesis]) -> tuple[TranslatedSegment, PreparedText]:
        """A segment in the pivot language, and that as a text of the second hop."""
        segment, hypothesis = item
        first = _first_segment(self._first, self._into, segment, hypothesis)
        return first, self._second.pipeline.prepare(first.text, self._out_of)


def _first_segment(
    translator: OnlineTranslator, pair: LanguagePair, segment: Segment, *found: Hypothesis
) -> TranslatedSegment:
    """A segment with what was found for it; without anything it is copied."""
    alone = PreparedText(pair=pair, segments=(segment,), separators=("", ""))
    [translated] = translator.pipeline.finish(alone, found).segments
    return translated


def _with_scores(text: Translation, hypotheses: Sequence[Hypothesis | None]) -> Translation:
    """The text with the second hop's scores."""
    segments = [
        replace(segment, score=None if found is None else found.score)
        for segment, found in zip(text.segments, hypotheses, strict=True)
    ]
    return replace(text, segments=tuple(segments))


def _one_hypothesis(text: SearchedText, *, length_penalty: float) -> Hypothesis | None:
    """The best hypotheses of a text's segments as one: the same score, over all their tokens."""
    if not text.found:
        return None
    if len(text.found) == 1:
        return text.best[0]
    log_probs = tuple(value for found in text.best for value in found.token_log_probs)
    return Hypothesis(
        token_ids=tuple(token for found in text.best for token in found.token_ids),
        score=sum(log_probs) / len(log_probs) ** length_penalty,
        token_log_probs=log_probs,
        is_truncated=any(found.is_truncated for found in text.best),
    )


def _alignment(text: SearchedText) -> list[int]:
    """Source tokens of all segments of a text, counted through; a copied one counts as one."""
    lengths = [1 if one.is_verbatim else len(one.source_ids) for one in text.prepared.segments]
    begins = [end - length for end, length in zip(accumulate(lengths), lengths, strict=True)]
    seen = [
        begin
        for begin, segment in zip(begins, text.prepared.segments, strict=True)
        if not segment.is_verbatim
    ]
    return [
        begin + token
        for begin, found in zip(seen, text.best, strict=True)
        for token in found.alignment or ()
    ]
