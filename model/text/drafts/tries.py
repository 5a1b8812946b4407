"""Ways of translating a sentence, one after another: the first one, and what follows a failure.

Owns what becomes of one stretch of text before the network sees it: a segment, several, or a copy;
and which way is tried next after a check has failed. The last way with marks is to split around
them: what stands between two marks is translated alone, and the marks are copied, so they are right
whatever the network does. It does not judge (`model.text.drafts.checks`) and does not count rounds
(`model.text.drafts.rounds`).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from model.config import LengthLimits
from model.text.drafts.checks import CheckName
from model.text.drafts.rare import RareText
from model.text.drafts.segments import Segment
from model.text.languages.tags import LanguagePair
from model.text.marks.carrying import carry
from model.text.marks.casing import Casing, casing_of
from model.text.marks.clocks import find_halves
from model.text.marks.finding import LOOSE_KINDS, Mark, find_inner_marks, masked
from model.text.marks.inside import SOFT_HYPHEN
from model.text.marks.seams import replaced
from model.text.marks.units import find_measures
from model.text.sentences.segmenter import Span, cut_spans
from model.text.subwords.tokenizer import Tokenizer

Placed = tuple[Segment, Span]
"""A segment, and where it stands in its stretch."""

MAX_TRIES = 2
"""Tries of a stretch after the first one; searches that are held to phrases, or say nothing twice,
aside."""

STAND_INS = ("X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8", "X9")
"""Codes that networks copy in most languages, and that a sentence treats like names."""
# Words that are written alike in most languages.
_OTHER_STAND_INS = ("API", "PDF", "Python", "Google", "NASA", "IBM", "HTML", "Linux")
# Numbers of two digits for those that a network loses.
_NUMBERS = ("47", "58", "63", "72", "85", "94", "36", "29")
_CLOCKS = ("14:30", "16:20", "19:40", "10:15")
_SOFT: frozenset[CheckName] = frozenset({"length", "loop", "end", "copy", "characters"})
_MIN_CUT = 16  # source tokens; a shorter sentence is neither cut nor searched anew
# What a stretch between two marks does not begin with.
_NO_BEGINNING = " \u00a0,.;:!?)]}、，。；：！？）」』"


class Tries:
    """Ways of one checkpoint; holds no state between calls.

    Args:
        tokenizer: Of the checkpoint.
        limits: Stretches with more source tokens are cut.
    """

    def __init__(self, tokenizer: Tokenizer, limits: LengthLimits) -> None:
        self._tokenizer = tokenizer
        self._rare = RareText(tokenizer)
        self._max_length = limits.max_source_length

    def first(
        self, text: str, marks: Sequence[Mark], pair: LanguagePair, *, num_tries: int = 0
    ) -> Iterator[Placed]:
        """A stretch of text as one segment, or as several if it has to be cut.

        Args:
            text: A sentence, not empty, without space at its ends.
            marks: Its marks, in order.
            pair: A pair of the checkpoint.
            num_tries: How often it was tried before.
        """
        casing, marks = _casing_beside(text, marks, pair.source)
        if marks or casing == "upper":
            upper: Casing | None = "upper" if casing == "upper" else None
            yield from self._carried(text, marks, pair, casing=upper, num_tries=num_tries)
            return
        whole = self._segment(text, pair, num_tries=num_tries)
        if len(whole.source_ids) > self._max_length:
            yield from self._cut(text, pair, self._max_length, num_tries=num_tries)
        else:
            yield from self._plain(whole, pair)

    def readable(self, text: str, pair: LanguagePair) -> str:
        """What the network reads of a text, character by character."""
        return self._rare.readable(text, pair)

    def next(
        self,
        segment: Segment,
        marks: Sequence[Mark],
        failed: Sequence[CheckName],
        pair: LanguagePair,
        *,
        can_hold: bool = False,
    ) -> list[Placed]:
        """What is tried after a segment has failed checks; nothing if there is no other way.

        A sentence that lost a mark or a number comes again with other stand-ins, and with one for
        every number with its unit and every time with its half of the day, and of all that the
        search finds the best that is sound stands. A term that is still missing is asked of the
        search itself, which is a try beside the others; then the sentence is split around its
        marks. One that loops or ends too soon is cut; a loop that is still there, or beside marks,
        is searched without n-grams that come again. A short sentence without marks is left as it
        is.

        Args:
            segment: It.
            marks: The marks of its text.
            failed: What it failed.
            pair: A pair of the checkpoint.
            can_hold: The search can be held to phrases.
        """
        num_tries = segment.num_tries + 1
        if segment.is_held or segment.was_held:
            # What else a search that was held has failed may come of its terms.
            failed = (*failed, "terms") if segment.is_held else failed
            return [
                (replace(other, was_held=True, num_tries=num_tries), span)
                for other, span in self._next(segment, marks, failed, pair, num_tries - 1)
            ]
        if can_hold and num_tries == MAX_TRIES and not {"marks", "terms"}.isdisjoint(failed):
            held = self._held(segment, marks, pair, num_tries=num_tries)
            if held is not None:
                return [(held, (0, len(segment.text)))]
        return self._next(segment, marks, failed, pair, num_tries)

    def _held(
        self, segment: Segment, marks: Sequence[Mark], pair: LanguagePair, *, num_tries: int
    ) -> Segment | None:
        """A segment whose terms the network reads, and its search has to write; None without."""
        if not segment.phrases:
            return None
        others = [mark for mark in marks if mark.kind != "term"]
        placed = list(self.first(segment.text, others, pair, num_tries=num_tries))
        if len(placed) != 1 or not placed[0][0].source_ids:
            return None
        return replace(placed[0][0], phrases=segment.phrases, is_held=True)

    def _next(
        self,
        segment: Segment,
        marks: Sequence[Mark],
        failed: Sequence[CheckName],
        pair: LanguagePair,
        num_tries: int,
    ) -> list[Placed]:
        """The way with so many before it, not counting a search that was held to phrases."""
        if num_tries == 1 and not _is_hopeless(failed):
            placed = self._otherwise(segment, marks, failed, pair)
            return [(replace(one, is_unrepeating="loop" in failed), span) for one, span in placed]
        if num_tries <= MAX_TRIES and not {"marks", "terms"}.isdisjoint(failed):
            every = merged(marks, self._rare.marks(without(segment.text, marks), pair))
            if every:
                return list(self._split(segment.text, every, pair, num_tries=num_tries))
        can_cut = not marks and len(segment.source_ids) >= _MIN_CUT
        if num_tries <= MAX_TRIES and can_cut and not _SOFT.isdisjoint(failed):
            length = max(2 * len(segment.source_ids) // 3, 2)
            return list(self._cut(segment.text, pair, length, num_tries=num_tries))
        is_short = num_tries == 1 and not marks and len(segment.source_ids) < _MIN_CUT
        if "loop" in failed and not segment.is_unrepeating and not is_short:
            again = replace(segment, num_tries=num_tries, is_unrepeating=True)
            return [(again, (0, len(segment.text)))]
        return []

    def _otherwise(
        self,
        segment: Segment,
        marks: Sequence[Mark],
        failed: Sequence[CheckName],
        pair: LanguagePair,
    ) -> Iterator[Placed]:
        text = segment.text
        casing, marks = _casing_beside(text, marks, pair.source)
        casing = None if casing == "title" and "copy" not in failed else casing
        if "numbers" in failed:
            marks = merged(merged(marks, find_halves(text, pair)), find_measures(text))
        if not marks and casing is None:
            yield replace(segment, num_tries=1), (0, len(text))
            return
        yield from self._carried(text, marks, pair, casing=casing, num_tries=1)

    def _plain(self, segment: Segment, pair: LanguagePair) -> Iterator[Placed]:
        """A stretch without marks that is short enough: as it is, if its vocabulary has it all."""
        text, num_tries = segment.text, segment.num_tries
        if rare := self._rare.marks(text, pair, segment.source_ids):
            yield from self._carried(text, rare, pair, num_tries=num_tries)
        else:
            yield segment, (0, len(text))

    def _carried(
        self,
        text: str,
        marks: Sequence[Mark],
        pair: LanguagePair,
        *,
        casing: Casing | None = None,
        num_tries: int = 0,
    ) -> Iterator[Placed]:
        """A stretch whose marks are carried; split around them if that cannot be."""
        if not any(map(str.isalpha, without(text, marks))):
            yield _copy(text, marks, pair), (0, len(text))
            return
        segment = self._disguised(text, marks, pair, casing=casing, num_tries=num_tries)
        if segment is not None and (
            rare := self._rare.marks(without(text, marks), pair, segment.source_ids)
        ):
            marks = merged(marks, rare)
            if not any(map(str.isalpha, without(text, marks))):
                yield _copy(text, marks, pair), (0, len(text))
                return
            segment = self._disguised(text, marks, pair, casing=casing, num_tries=num_tries)
        if segment is not None and 0 < len(segment.source_ids) <= self._max_length:
            yield segment, (0, len(text))
        else:
            yield from self._halved(text, marks, pair, num_tries=num_tries)

    def _halved(
        self, text: str, marks: Sequence[Mark], pair: LanguagePair, *, num_tries: int
    ) -> Iterator[Placed]:
        """A stretch with too much in it in two or three pieces, or split where no mark is whole."""
        spans = cut_spans(masked(text, marks), len, len(text) // 2 + 1)
        own = [_inside(marks, start, end) for start, end in spans]
        if len(spans) < 2 or sum(map(len, own)) < len(marks):
            yield from self._split(text, marks, pair, num_tries=num_tries)
            return
        for (start, end), inside in zip(spans, own, strict=True):
            for segment, (low, high) in self.first(
                text[start:end], inside, pair, num_tries=num_tries
            ):
                yield replace(segment, is_cut=True), (start + low, start + high)

    def _disguised(
        self,
        text: str,
        marks: Sequence[Mark],
        pair: LanguagePair,
        *,
        casing: Casing | None,
        num_tries: int,
    ) -> Segment | None:
        names = _OTHER_STAND_INS if num_tries else STAND_INS
        carried = carry(
            text, marks, names, _NUMBERS, clocks=_CLOCKS, casing=casing, language=pair.source
        )
        if carried is None:
            return None
        return replace(
            self._segment(carried.shown, pair, num_tries=num_tries), text=text, carried=carried
        )

    def _split(
        self, text: str, marks: Sequence[Mark], pair: LanguagePair, *, num_tries: int
    ) -> Iterator[Placed]:
        """What stands between marks, each stretch alone, and marks that are words as copies."""
        edges = [0, *(place for mark in marks for place in (mark.start, mark.end)), len(text)]
        for index, (start, end) in enumerate(pairwise(edges)):
            if index % 2 and marks[index // 2].kind not in LOOSE_KINDS:
                mark = replace(marks[index // 2], start=0, end=end - start)
                yield replace(_copy(text[start:end], [mark], pair), is_cut=True), (start, end)
            if index % 2 or not any(map(str.isalpha, text[start:end])):
                continue
            begin = start + len(text[start:end]) - len(text[start:end].lstrip(_NO_BEGINNING))
            stretch = text[begin:end].rstrip()
            own = find_inner_marks(stretch)
            for segment, (low, high) in self.first(stretch, own, pair, num_tries=num_tries):
                yield replace(segment, is_cut=True), (begin + low, begin + high)

    def _cut(
        self, text: str, pair: LanguagePair, max_length: int, *, num_tries: int
    ) -> Iterator[Placed]:
        """A sentence in pieces of so many tokens."""
        spans = cut_spans(text, lambda piece: len(self._tokenizer.encode(piece, pair)), max_length)
        for start, end in spans:
            piece = self._segment(text[start:end], pair, num_tries=num_tries)
            if len(piece.source_ids) > self._max_length:
                # One character can be more tokens than fit (﷽); it cannot be cut: it is copied.
                yield replace(piece, source_ids=(), is_cut=True), (start, end)
                continue
            for segment, (low, high) in self._plain(piece, pair):
                yield replace(segment, is_cut=True), (start + low, start + high)

    def _segment(self, text: str, pair: LanguagePair, *, num_tries: int = 0) -> Segment:
        source_ids: tuple[int, ...] = ()
        if any(map(str.isalpha, text)):
            read = self.readable(text.replace(SOFT_HYPHEN, ""), pair)
            source_ids = tuple(self._tokenizer.encode(read, pair))
        if len(source_ids) == self._tokenizer.num_source_extras(pair):
            source_ids = ()
        return Segment(text=text, source_ids=source_ids, num_tries=num_tries)


def without(text: str, marks: Sequence[Mark]) -> str:
    """The text with spaces instead of its marks, so that places stay."""
    if not marks:
        return text
    parts: list[str] = []
    done = 0
    for mark in marks:
        parts += [text[done : mark.start], " " * (mark.end - mark.start)]
        done = mark.end
    return "".join([*parts, text[done:]])


def _casing_beside(
    text: str, marks: Sequence[Mark], language: str
) -> tuple[Casing | None, Sequence[Mark]]:
    """The casing of a text beside its marks, which units in small letters (500 kg) may join.

    They do where everything else is in capitals: they are not raised with it.
    """
    words = without(text, marks)
    casing = casing_of(words, language)
    if casing is None and sum(map(str.isupper, words)) > sum(map(str.islower, words)):
        small = [one for one in find_measures(words) if _has_small(words[one.start : one.end])]
        if small and casing_of(without(words, small), language) == "upper":
            return "upper", merged(marks, small)
    return casing, marks


def _has_small(text: str) -> bool:
    return any(map(str.islower, text))


def _inside(marks: Sequence[Mark], start: int, end: int) -> list[Mark]:
    """The marks of a stretch, with places counted from its beginning."""
    low, high = (bisect_left(marks, place, key=lambda mark: mark.start) for place in (start, end))
    return [
        replace(mark, start=mark.start - start, end=mark.end - start)
        for mark in marks[low:high]
        if mark.end <= end
    ]


def _is_hopeless(failed: Sequence[CheckName]) -> bool:
    """Whether only a cut can help."""
    return {"marks", "numbers", "copy", "terms"}.isdisjoint(failed)


def merged(marks: Sequence[Mark], others: Sequence[Mark]) -> list[Mark]:
    """Marks of two kinds in order, without those of the second that overlap with the first."""
    taken = [False] * (max([0, *(mark.end for mark in (*marks, *others))]) + 1)
    for mark in marks:
        taken[mark.start : mark.end] = [True] * (mark.end - mark.start)
    free = [mark for mark in others if not any(taken[mark.start : mark.end])]
    return sorted([*marks, *free], key=lambda mark: mark.start)


def _copy(text: str, marks: Sequence[Mark], pair: LanguagePair) -> Segment:
    """A segment that the network does not see, with what stands for its terms."""
    copy = replaced(text, marks, pair)
    return Segment(text=text, source_ids=(), copy=None if copy == text else copy)
