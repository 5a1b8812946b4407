"""Segments of a request after two hops, and the report of each as soon as it is done.

Owns which segments wait for the second hop, and where each stands in its text. What both hops make
of a segment is `service.models.translating.two_hops`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from model.request import Hypothesis
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import PreparedText, Segment, TranslatedSegment
from service.models.requests.translation import (
    DoneSegment,
    OnSegment,
    SearchedText,
    TranslationRequest,
)
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
        self._waiting: dict[int, tuple[int, int, int, Hopped]] = {}
        number = 0
        for text_index, text in enumerate(texts):
            segments = text.prepared.segments
            pairs = zip(segments, text.translation.segments, _starts(text.prepared), strict=True)
            for index, (segment, first, start) in enumerate(pairs):
                one = (text_index, index, start, Hopped(segment=segment, first=first))
                if segment.is_verbatim:
                    self._report(*one)
                else:
                    self._waiting[number] = one
                    number += 1

    def second_is_done(self, number: int, draft: Draft[Hypothesis]) -> None:
        """Report a segment, by its number among those that the second hop sees."""
        self._end(number, searched(draft, self._request))

    def end(self, found: Sequence[SearchedText]) -> None:
        """Report the rest: segments in which the second hop had nothing to do."""
        for number in list(self._waiting):
            self._end(number, found[number])

    def _end(self, number: int, second: SearchedText) -> None:
        text_index, index, start, hopped = self._waiting.pop(number)
        self._report(text_index, index, start, replace(hopped, second=second))

    def _report(self, text_index: int, index: int, start: int, hopped: Hopped) -> None:
        translated = self._join(hopped)
        self._on_segment(
            DoneSegment(
                text_index=text_index,
                index=index,
                start=start,
                source=hopped.segment.text,
                text=translated.text,
                segments=(translated,),
            )
        )


def _starts(prepared: PreparedText) -> list[int]:
    """Characters of a text before each of its segments."""
    pairs = zip(prepared.separators, ["", *(one.text for one in prepared.segments)], strict=True)
    return list(accumulate(len(before) + len(separator) for separator, before in pairs))[:-1]
