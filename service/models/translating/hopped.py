"""Segments of a request after two hops, and the report of each as it grows and as it is done.

Owns which segments wait for the second hop, where each stands in its text, and how the sentences
that the second hop makes of one are shown as one while they are written. What both hops make
of a segment is `service.models.translating.two_hops`.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, count

from model.request import Hypothesis
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import (
    PreparedText,
    Segment,
    TranslatedSegment,
    expected_separators,
)
from model.text.languages.scripts import UNSPACED_LANGUAGES
from model.text.languages.tags import LanguagePair, primary_language
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    GrowingSentence,
    OnSegment,
    SearchedText,
    TranslationRequest,
)
from service.models.translating.parts import REPORTS_PER_TURN, DonePart
from service.models.translating.results import searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopped:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Place of a segment: as a `DoneSegment` has it."""

    text_index: int
    index: int
    start: int
    separator: str


@dataclass(slots=True, kw_only=True)
class _Growing:
    """A segment that the second hop writes: its sentences, shown in their order.

    Attributes:
        between: What stands between two of them until all are done.
        sentences: Those that have begun, by place.
        texts: What was taken of each, or it itself, if it is copied.
        done: Which of them are.
        shown: The text that was taken of all.
    """

    between: str
    sentences: dict[int, GrowingSentence] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    shown: str = ""

    def take(self, text_index: int, index: int) -> AddedText | None:
        """What a reader has not seen of the segment at this place; None if there is nothing."""
        whole = self.between.join(self._begun())
        is_restart = not whole.startswith(self.shown)
        added = whole if is_restart else whole[len(self.shown) :]
        self.shown = whole
        if not (added or is_restart):
            return None
        return AddedText(text_index=text_index, index=index, text=added, is_restart=is_restart)

    def _begun(self) -> Iterator[str]:
        """The text of the sentences up to the first one that is not done."""
        for place in count():
            if (sentence := self.sentences.get(place)) is not None:
                added = sentence.added
                if added is not None:
                    before = "" if added.is_restart else self.texts.get(place, "")
                    self.texts[place] = before + added.text
            if self.texts.get(place):
                yield self.texts[place]
            if place not in self.done:
                return


class SegmentReports:
    """Reports of segments, each made when the second hop is through with it.

    Args:
        texts: After the first hop.
        on_segment: Called with each segment.
        join: What both hops make of a segment.
        request: What is asked of the second hop.
    """

    def __init__(
        self,
        texts: Sequence[SearchedText],
        on_segment: OnSegment,
        join: Callable[[Hopped], TranslatedSegment],
        request: TranslationRequest,
    ) -> None:
        self._on_segment = on_segment
        self._join = join
        self._request = request
        target = primary_language(request.route.hops[-1].pair.target)
        self._between = "" if target in UNSPACED_LANGUAGES else " "
        self._waiting: dict[int, tuple[_Place, Hopped]] = {}
        self._growing: dict[int, _Growing] = {}  # of these, if the request is watched
        self._texts = texts

    async def begin(self) -> None:
        """Report what is copied, before anything else; between some segments others run."""
        num_segments = 0
        hops = self._request.route.hops
        whole = LanguagePair(source=hops[0].pair.source, target=hops[-1].pair.target)
        for text_index, text in enumerate(self._texts):
            places = _places(text_index, replace(text.prepared, pair=whole))
            pairs = zip(places, text.prepared.segments, text.translation.segments, strict=True)
            for place, segment, first in pairs:
                hopped = Hopped(segment=segment, first=first)
                if segment.is_verbatim:
                    self._report(place, hopped)
                else:
                    self._waiting[len(self._waiting)] = (place, hopped)
                num_segments += 1
                if num_segments % REPORTS_PER_TURN == 0:
                    await asyncio.sleep(0)

    def second_has_grown(self, grown: GrowingSentence) -> None:
        """Report a segment of which the second hop writes a sentence."""
        growing = self._growing_of(grown.text_index)
        growing.sentences[grown.index] = grown
        self._report_growing(grown.text_index)

    def part_is_done(self, done: DonePart) -> None:
        """Take note of a sentence that the second hop is through with: the next one may be shown.

        Called before `second_is_done`, of requests that are watched.
        """
        growing = self._growing_of(done.text_index)
        growing.done.add(done.index)
        if done.index not in growing.sentences and done.is_copied:
            growing.texts[done.index] = done.part.translation.text
        if growing.sentences:
            self._report_growing(done.text_index)

    def _growing_of(self, number: int) -> _Growing:
        return self._growing.setdefault(number, _Growing(between=self._between))

    def _report_growing(self, number: int) -> None:
        place, _ = self._waiting[number]
        take = partial(self._growing[number].take, place.text_index, place.index)
        self._on_segment(GrowingSentence(text_index=place.text_index, index=place.index, take=take))

    def second_is_done(self, number: int, draft: Draft[Hypothesis]) -> None:
        """Report a segment, by its number among those that the second hop sees."""
        self._end(number, searched(draft, self._request))

    def end(self, found: Sequence[SearchedText]) -> None:
        """Report the rest: segments in which the second hop had nothing to do."""
        for number in list(self._waiting):
            self._end(number, found[number])

    def _end(self, number: int, second: SearchedText) -> None:
        place, hopped = self._waiting.pop(number)
        self._report(place, replace(hopped, second=second))

    def _report(self, place: _Place, hopped: Hopped) -> None:
        translated = self._join(hopped)
        self._on_segment(
            DoneSegment(
                text_index=place.text_index,
                index=place.index,
                start=place.start,
                separator=place.separator,
                source=hopped.segment.text,
                text=translated.text,
                segments=(translated,),
            )
        )


def _places(text_index: int, prepared: PreparedText) -> Iterator[_Place]:
    """The places of the segments of a text."""
    separators = expected_separators(prepared)
    for index, (start, before) in enumerate(zip(_starts(prepared), separators, strict=False)):
        yield _Place(text_index=text_index, index=index, start=start, separator=before)


def _starts(prepared: PreparedText) -> list[int]:
    """Characters of a text before each of its segments."""
    pairs = zip(prepared.separators, ["", *(one.text for one in prepared.segments)], strict=True)
    return list(accumulate(len(before) + len(separator) for separator, before in pairs))[:-1]
