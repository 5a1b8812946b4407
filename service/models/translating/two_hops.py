"""Driver of two checkpoints, one after the other: texts go through a pivot language.

Owns that both hops are one request: one deadline, one class, one cancellation; and how their
segments become one text. A segment of the first hop is a text of the second, which cuts it by its
own rules. One hop is `service.models.translating.translator`; which two there are is
`service.models.routes.pivot`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Protocol, TypeVar

from msgspec import structs

from model.request import Hypothesis
from model.text.constraints.control import Control
from model.text.constraints.glossary import Glossary, TermUse
from model.text.drafts.segments import PreparedText, TranslatedSegment, Translation, joined
from model.text.languages.tags import LanguagePair
from model.text.pipeline import hypotheses_at
from model.text.subwords.spans import TokenSpans
from service.models.requests.translation import (
    Between,
    OnSegment,
    SearchedText,
    TranslatedText,
    TranslationRequest,
)
from service.models.translating.alignment import FirstHop, composed, width
from service.models.translating.hopped import Hopped, SegmentReports
from service.models.translating.parts import DonePart, WholeTexts
from service.models.translating.translator import OnlineTranslator, within

T = TypeVar("T")
U = TypeVar("U")
_Glossaries = tuple[Glossary | None, Glossary | None]  # of either hop


class Translator(Protocol):
    """Driver of a route."""

    async def translate(
        self, request: TranslationRequest, on_segment: OnSegment | None = None
    ) -> list[TranslatedText]:
        """One result per text, in order; `on_segment` is called with each finished sentence."""


class TwoHops:
    """Driver of a route of two hops, made for one request.

    Args:
        first: Of the first hop's checkpoint.
        second: Of the second's.
    """

    def __init__(self, first: OnlineTranslator, second: OnlineTranslator) -> None:
        self._first = first
        self._second = second

    async def translate(
        self, request: TranslationRequest, on_segment: OnSegment | None = None
    ) -> list[TranslatedText]:
        """One result per text, in order; cancelling it cancels the segments of either hop.

        Alternatives are those of the second hop, `max_length` is its segments'.

        Args:
            request: Two hops.
            on_segment: Called with each sentence when it is done, which none is before all are
                through the first hop.

        Raises:
            RequestError: 413 for more segments than there may be, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds) as deadline:
            request = structs.replace(request, with_attention=False)  # between is no source
            return await self._translate(request, deadline, on_segment)

    async def _translate(
        self, request: TranslationRequest, deadline: float, on_segment: OnSegment | None
    ) -> list[TranslatedText]:
        into, out_of = request.route.hops
        plain = _first_hop(request, glossaries := await self._glossaries(request))
        texts, priority = await self._first.search(plain, into.pair, deadline=deadline)
        request = structs.replace(request, priority=priority, tally=None)  # nothing is pending
        firsts = [text.translation for text in texts]
        pivots = tuple(pivot for text in firsts for pivot in _in_pivot(text))
        between = structs.replace(
            request,
            texts=pivots,
            target_prefixes=await self._prefixes(request, firsts, glossaries[1]),
            glossary=glossaries[1],
        )
        reports = (
            None
            if on_segment is None
            else SegmentReports(texts, on_segment, self._segment, between)
        )
        if reports is not None:
            await reports.begin()
        found, _ = await self._second.search(
            between,
            out_of.pair,
            deadline=deadline,
            on_done=None if reports is None else _told(reports, request),
            on_grown=reports.second_has_grown if reports and request.is_watched else None,
        )
        if reports is not None:
            reports.end(found)
        remaining = iter(found)
        hopped = [
            list(_hopped(text, first, remaining)) for text, first in zip(texts, firsts, strict=True)
        ]
        whole = LanguagePair(source=into.pair.source, target=out_of.pair.target)

        def finish(text: tuple[SearchedText, list[Hopped]]) -> TranslatedText:
            prepared = replace(text[0].prepared, pair=whole)
            return self._finished(prepared, text[1], request)

        return await self._map(finish, list(zip(texts, hopped, strict=True)), request)

    async def _glossaries(self, request: TranslationRequest) -> _Glossaries:
        """Those of both hops, made on the text thread."""
        if request.glossary is None:
            return None, None
        made = self._first.map(Glossary.hops, [request.glossary], [0], request.priority)
        (glossaries,) = [hops async for hops in made]
        return glossaries

    async def _prefixes(
        self, request: TranslationRequest, firsts: Sequence[Translation], glossary: Glossary | None
    ) -> tuple[str, ...]:
        """What the second hop's texts begin with: of each text the first that is translated there.

        What is empty or a number in the pivot is copied, and what it began with would be lost.
        """
        if not any(request.target_prefixes):
            return ()
        pipeline, pair = self._second.pipeline, request.route.hops[1].pair
        control = Control(glossary=glossary)

        def is_translated(pivot: str) -> bool:
            segments = pipeline.prepare(pivot, pair, control).segments
            return any(one.terms or not one.is_verbatim for one in segments)

        def begun(item: tuple[str, Translation]) -> list[str]:
            prefix, first = item
            pivots = _in_pivot(first)
            place = next((n for n, pivot in enumerate(pivots) if is_translated(pivot)), None)
            return [prefix if index == place else "" for index in range(len(pivots))]

        items = list(zip(request.target_prefixes, firsts, strict=True))
        return tuple(prefix for some in await self._map(begun, items, request) for prefix in some)

    async def _map(
        self, function: Callable[[T], U], items: Sequence[T], request: TranslationRequest
    ) -> list[U]:
        """`function` of what belongs to each text of the request, on the text thread."""
        sizes = [len(text) for text in request.texts]
        results = self._second.map(function, items, sizes, request.priority)
        return [result async for result in results]

    def _finished(
        self, prepared: PreparedText, segments: Sequence[Hopped], request: TranslationRequest
    ) -> TranslatedText:
        """A text, put together once per rank."""
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
            spans=self._spans(segments, ranked[0], hypotheses, request),
        )

    def _spans(
        self,
        segments: Sequence[Hopped],
        best: Translation,
        hypotheses: Sequence[Hypothesis | None],
        request: TranslationRequest,
    ) -> tuple[TokenSpans | None, ...] | None:
        """Where the first hop's source tokens and the second's target tokens are."""
        if not request.with_alignment:
            return None
        pair = request.route.hops[0].pair
        return tuple(
            None
            if found is None
            else TokenSpans(
                source=self._first.pipeline.source_spans(hopped.segment, pair),
                target=self._second.pipeline.target_spans(translated.text, found.token_ids),
            )
            for hopped, translated, found in zip(segments, best.segments, hypotheses, strict=True)
        )

    def _segment(self, hopped: Hopped, *, rank: int = 0) -> TranslatedSegment:
        """The segment with its translation of a rank; its facts are those of both hops."""
        first, second = hopped.first, hopped.second
        if second is None:
            return first
        end = second.translation if rank == 0 else self._alternative(second, rank)
        return replace(
            first,
            text=end.text.strip(),
            is_cut=first.is_cut or end.is_cut,
            is_truncated=first.is_truncated or end.is_truncated,
            num_target_tokens=end.num_target_tokens,
            quality=first.quality.combined(segment.quality for segment in end.segments),
            terms=_terms(first, end),
        )

    def _alternative(self, text: SearchedText, rank: int) -> Translation:
        return self._second.pipeline.finish(text.prepared, hypotheses_at(text.found, rank))

    def _hypothesis(self, hopped: Hopped, request: TranslationRequest) -> Hypothesis | None:
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
        return structs.replace(found, alignment=aligned)

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


def _told(reports: SegmentReports, request: TranslationRequest) -> Callable[[DonePart], None]:
    """What hears of the sentences of the second hop."""
    whole = WholeTexts(reports.second_is_done)
    if not request.is_watched:
        return whole

    def report(done: DonePart) -> None:
        reports.part_is_done(done)
        whole(done)

    return report


def _first_hop(request: TranslationRequest, glossaries: _Glossaries) -> TranslationRequest:
    """The request of the first hop, into the pivot: terms are replaced there already."""
    return structs.replace(
        request,
        num_alternatives=0,
        max_length=None,
        target_prefixes=(),
        sampling=None,
        num_groups=1,
        diversity_penalty=0.0,
        glossary=glossaries[0],
    )


def _in_pivot(text: Translation) -> list[str]:
    """The segments of a text that the first hop has translated: each is a text of the second."""
    return [segment.text for segment in text.segments if not segment.is_verbatim]


def _hopped(
    text: SearchedText, first: Translation, second: Iterator[SearchedText]
) -> Iterator[Hopped]:
    """The segments of a text with what the second hop found for each that was not copied."""
    hypotheses = iter(text.best)
    for segment, translated in zip(text.prepared.segments, first.segments, strict=True):
        if segment.is_verbatim:
            yield Hopped(segment=segment, first=translated)
        else:
            yield Hopped(
                segment=segment,
                first=translated,
                hypothesis=next(hypotheses),
                second=next(second),
            )


def _terms(first: TranslatedSegment, end: Translation) -> tuple[TermUse, ...]:
    """The terms of a segment: a hit is one that both hops have kept."""
    missed = Counter(
        use.target for segment in end.segments for use in segment.terms if not use.is_hit
    )
    terms = []
    for use in first.terms:
        is_missed = missed[use.target] > 0
        missed[use.target] -= is_missed
        terms.append(replace(use, is_hit=use.is_hit and not is_missed))
    return tuple(terms)


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
