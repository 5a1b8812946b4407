"""Carrying of marks through a network that never saw such marks.

Owns what a network reads instead of a text with marks, and how the marks come back into what it
writes. Two ways, side by side in one sentence:

- A mark that stands for a word (`{name}`, a URL) is replaced by a stand-in, a short word or number
  that networks copy. It comes back where its stand-in is.
- A loose mark (a tag, emoji) is left out. It comes back where the alignment puts the words around
  it (`model.text.marks.placing`).

Which marks there are is `model.text.marks.finding`; what is tried after one way failed
`model.text.drafts.tries`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from model.text.languages.scripts import is_one_word
from model.text.marks.casing import Casing, lowered, raised
from model.text.marks.finding import LOOSE_KINDS, Mark
from model.text.marks.inline_codes import (
    LOOSE_CODES,
    OPENING_CODES,
    is_closing,
    is_loose,
    partners,
)
from model.text.marks.patterns import Kind
from model.text.marks.placing import placed_marks

_ORDERED = re.compile(r"%[#0+-]{0,3}\d{0,3}(?:\.\d{1,3})?[A-Za-z@]{1,3}|\{\}")
# Placeholders that a number is filled into, around which a sentence has plurals.
_COUNTED = re.compile(r"%(?:\d\$)?\d?l{0,2}[diu]|\{(?:n|count|total|num\w*)\}")
_OPENING = re.compile(rf"<[^/][^>]*[^/]>|<\w>|!?\[(?![/^])|{OPENING_CODES}")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>]*+>")
# Tags of elements that have nothing inside.
_VOID = re.compile(r"<(?:br|hr|img|input|wbr)\b[^<>]*+>", re.IGNORECASE)
_PAIRED = frozenset(("*", "**", "***", "_", "__", "~~"))
_TAG_OR_MARKUP = re.compile(rf"[<&*_~!\[\]{{']|{LOOSE_CODES}")
_ENDS = ("</", "](", "][", "[/", "{% end")
_MAX_LOOSE = 32
_JOINERS = frozenset("/:-=&,.|x@")
_CLOSING = ".,;:!?)]}»”’。，、；：！？）】」』"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """Stand-in that the network reads instead of a mark.

    Attributes:
        name: The stand-in.
        mark: The mark, or several that touch each other.
    """

    name: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A mark that is left out.

    Attributes:
        mark: Its text.
        place: Characters before it in what the network reads.
        has_space_before: There is space, or nothing, before it in the source.
        has_space_after: The same behind it, or a sign that ends a clause.
    """

    mark: str
    place: int
    has_space_before: bool
    has_space_after: bool

    @property
    def is_opening(self) -> bool:
        """Whether it belongs to the word behind it."""
        if self.has_space_before == self.has_space_after:
            return not self.is_free and _OPENING.match(self.mark) is not None
        return self.has_space_before

    @property
    def is_free(self) -> bool:
        """Whether it belongs to neither word: it has space around, or stands for itself."""
        is_alike = self.has_space_before == self.has_space_after
        return is_alike and (self.has_space_before or _TAG_OR_MARKUP.match(self.mark) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Text that the network reads, with stand-ins for marks.

    Attributes:
        shown: That.
        stand_ins: In the order of the text.
        loose: Marks that are left out, likewise.
        marks: Texts of all marks that something else does not stand for.
        casing: Casing that was taken off; None if none was.
    """

    shown: str
    stand_ins: tuple[StandIn, ...] = ()
    loose: tuple[Loose, ...] = ()
    marks: tuple[str, ...] = ()
    casing: Casing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A translation with its marks.

    Attributes:
        text: All marks of the source are in it, whatever the network wrote.
        is_lost: The network lost or doubled a stand-in, or changed the order of marks whose order
            is their meaning, and these marks stand anywhere; or nothing is left between two marks
            that were around words.
    """

    text: str
    is_lost: bool


def carry(
    text: str,
    marks: Sequence[Mark],
    names: Sequence[str],
    numbers: Sequence[str] = (),
    *,
    casing: Casing | None = None,
    language: str = "",
) -> Carried | None:
    """What a network reads instead of a text.

    Args:
        text: A sentence.
        marks: Its marks, in order.
        names: Stand-ins, the best first; those that the text has are passed over.
        numbers: Stand-ins for numbers and for what numbers are filled into, likewise.
        casing: Casing to take off.
        language: BCP-47 tag of the text.

    Returns:
        None if there are not enough names, or too many loose marks to be placed.
    """
    words = text if casing is None else lowered(text, language)
    folded = text.lower()
    free = [(name for name in some if name.lower() not in folded) for some in (names, numbers)]
    shown, done = "", 0
    stand_ins: list[StandIn] = []
    loose: list[Loose] = []
    for start, end, kind in _grouped(text, marks):
        shown += words[done:start]
        mark, done = _written(text, start, end, marks), end
        if kind in LOOSE_KINDS:
            if len(loose) == _MAX_LOOSE:
                return None
            loose.append(_loose(mark, shown, text[end : end + 1]))
            # Of two spaces, one before it and one behind it, one is left; two words stay two.
            done += not shown[-1:].strip() and text[end : end + 1].isspace()
            shown += " " if is_one_word(shown[-1:], text[end : end + 1]) else ""
            continue
        is_number = kind == "number" or _COUNTED.fullmatch(mark) is not None
        name = next(free[is_number], None) or next(free[False], None)
        if name is None:
            return None
        stand_ins.append(StandIn(name=name, mark=mark))
        shown += name
    return Carried(
        shown=shown + words[done:],
        stand_ins=tuple(stand_ins),
        loose=tuple(loose),
        marks=tuple(text[mark.start : mark.end] for mark in marks if mark.replacement is None),
        casing=casing,
    )


def restore(
    carried: Carried,
    text: str,
    *,
    ends: Sequence[int] = (),
    sources: Sequence[int] = (),
    alignment: Sequence[int] = (),
    language: str = "",
) -> Restored:
    """A translation with its marks put back.

    Args:
        carried: What the network read.
        text: What it wrote.
        ends: For every target token the characters of `text` up to its end; needed, with the two
            that follow, where marks were left out.
        sources: For every loose mark the number of source tokens before it.
        alignment: For every target token a source token.
        language: BCP-47 tag of the translation.
    """
    found = [_found(stand_in.name, text) for stand_in in carried.stand_ins]
    placed = [
        _Placed(start=span[0], end=span[1], mark=stand_in.mark)
        for span, stand_in in zip(found, carried.stand_ins, strict=True)
        if span is not None
    ]
    marks = [one.mark for one in carried.loose]
    found_marks = placed_marks(marks, sources, alignment)
    cuts = [(one.index, [0, *ends][one.num_tokens]) for one in found_marks]
    insertions = _insertions(carried, cuts, text, placed)
    parts = list(_parts(text, sorted([*placed, *insertions], key=lambda one: (one.start, one.end))))
    if carried.casing is not None:
        casing = carried.casing
        parts = [
            (part if is_mark else raised(part, casing, language), is_mark)
            for part, is_mark in parts
        ]
    lost = [s.mark for s, span in zip(carried.stand_ins, found, strict=True) if span is None]
    joined = "".join(part for part, _ in parts)
    return Restored(
        text=" ".join([joined, *lost]).strip() if lost else joined,
        is_lost=bool(lost)
        or not _is_in_order(placed)
        or _is_emptied(carried, [one.index for one in found_marks], insertions, text, placed),
    )


def hidden(carried: Carried, text: str) -> str:
    """What a network that reads this would write of a text that has marks already."""
    for stand_in in carried.stand_ins:
        text = text.replace(stand_in.mark, stand_in.name, 1)
    for one in carried.loose:
        text = text.replace(one.mark, "", 1)
    return text


def without_marks_of(carried: Carried, text: str) -> Carried:
    """What is left to be put back where a text stands before it and has some of the marks."""
    stand_ins, loose = [], []
    for stand_in in carried.stand_ins:
        if stand_in.mark in text:
            text = text.replace(stand_in.mark, "", 1)
        else:
            stand_ins.append(stand_in)
    for one in carried.loose:
        if one.mark in text:
            text = text.replace(one.mark, "", 1)
        else:
            loose.append(one)
    return replace(carried, stand_ins=tuple(stand_ins), loose=tuple(loose))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A mark instead of a stretch of the translation, which may be empty."""

    start: int
    end: int
    mark: str


def _grouped(text: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int, Kind]]:
    """Marks as (start, end, kind); words that touch, or have one sign between them, are one.

    Inline codes stay apart, because each of them has a place of its own.
    """
    groups: list[tuple[int, int, Kind]] = []
    for mark in marks:
        start, end, kind = groups[-1] if groups else (0, -1, mark.kind)
        is_alike = (kind in LOOSE_KINDS) == (mark.kind in LOOSE_KINDS)
        between = text[end : mark.start]
        is_near = not between or (kind not in LOOSE_KINDS and between in _JOINERS)
        is_apart = end > 0 and (is_loose(text[end - 1]) or is_loose(text[mark.start]))
        if groups and is_alike and is_near and not is_apart:
            is_same = kind == mark.kind or kind in LOOSE_KINDS
            groups[-1] = (start, mark.end, kind if is_same else "word")
        else:
            groups.append((mark.start, mark.end, mark.kind))
    return iter(groups)


def _written(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """A stretch that marks take, with what stands for them."""
    own = [mark for mark in marks if start <= mark.start < end and mark.replacement is not None]
    parts, done = [], start
    for mark in own:
        parts += [text[done : mark.start], mark.replacement or ""]
        done = mark.end
    return "".join([*parts, text[done:end]])


def _loose(mark: str, shown: str, after: str) -> Loose:
    return Loose(
        mark=mark,
        place=len(shown),
        has_space_before=not shown[-1:].strip(),
        has_space_after=not after.strip() or after in _CLOSING,
    )


def _found(name: str, text: str) -> tuple[int, int] | None:
    """Where a stand-in is, if it is there just once."""
    pattern = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
    spans = [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
    return spans[0] if len(spans) == 1 else None


def _is_in_order(placed: Sequence[_Placed]) -> bool:
    """Whether marks that are filled in by their order (%s, {}) have kept it."""
    starts = [one.start for one in placed if _ORDERED.search(one.mark)]
    return starts == sorted(starts)


def _is_emptied(
    carried: Carried,
    order: Sequence[int],
    insertions: Sequence[_Placed],
    text: str,
    placed: Sequence[_Placed],
) -> bool:
    """Whether a tag's words went elsewhere, so that it stands around nothing.

    One half of a tag may be outside of the sentence: then the sentence's edge stands for it.
    """
    starts = dict(zip(order, (one.start for one in insertions), strict=True))
    edges = [0, *(starts[index] for index in range(len(carried.loose))), len(text)]
    places = [0, *(one.place for one in carried.loose), len(carried.shown)]
    marks = [None, *carried.loose, None]
    for index, (one, other) in enumerate(pairwise(marks)):
        had_words = carried.shown[places[index] : places[index + 1]].strip() != ""
        if had_words and _is_element(one, other):
            start, end = edges[index], edges[index + 1]
            has_mark = any(start <= span.start and span.end <= end for span in placed)
            if not text[start:end].strip() and not has_mark:
                return True
    return False


def _is_element(one: Loose | None, other: Loose | None) -> bool:
    """Whether the words between two marks, or a mark and the sentence's edge, are in a tag."""
    if one is not None and other is not None and _are_around(one.mark, other.mark):
        return True
    if any(mark is not None and is_loose(mark.mark[0]) for mark in (one, other)):
        return False  # both halves of a document's inline codes are in the sentence
    is_begun = one is None or _is_half(one, is_opening=True)
    is_ended = other is None or _is_half(other, is_opening=False)
    return is_begun and is_ended and (one is not None or other is not None)


def _is_half(one: Loose, *, is_opening: bool) -> bool:
    """Whether it is, of marks that touch each other, one that begins or ends an element here."""
    tags = _TAG.findall(_VOID.sub("", one.mark))
    if tags:
        tag = tags[-1] if is_opening else tags[0]
        return _OPENING.fullmatch(tag) is not None if is_opening else tag.startswith("</")
    is_beside = one.has_space_before, one.has_space_after
    return one.mark in _PAIRED and is_beside == (is_opening, not is_opening)


def _are_around(opening: str, closing: str) -> bool:
    """Whether two marks are a tag's, or markup's, around what is between them."""
    if opening == closing:
        return _TAG_OR_MARKUP.match(opening) is not None
    is_end = closing.startswith(_ENDS) or is_closing(closing[0])
    return is_end and _OPENING.match(opening) is not None


def _insertions(
    carried: Carried, cuts: Sequence[tuple[int, int]], text: str, placed: Sequence[_Placed]
) -> list[_Placed]:
    """Loose marks between the words around their cuts, in order."""
    insertions: list[_Placed] = []
    low = 0
    pairs = partners([one.mark for one in carried.loose])
    for index, cut in cuts:
        one = carried.loose[index]
        is_last = index not in pairs and not any(map(str.isalnum, carried.shown[one.place :]))
        place = len(text.rstrip(_CLOSING)) if is_last else min(cut, len(text))
        place = _beside_words(one, text, place, placed)
        if pairs.get(index, index) < index and not _ends_closing(carried.shown[: one.place]):
            place = len(text[:place].rstrip(_CLOSING))
        place = max(low, place)
        mark = one.mark
        if one.is_free:
            mark = (" " if text[:place].strip() else "") + mark
            mark += " " if text[place:].strip() and text[place] not in f" {_CLOSING}" else ""
        insertions.append(_Placed(start=place, end=place, mark=mark))
        low = place
    return insertions


def _ends_closing(text: str) -> bool:
    return text[-1:] in _CLOSING


def _beside_words(one: Loose, text: str, place: int, placed: Sequence[_Placed]) -> int:
    """The place nearest to a cut that is inside no word and no stand-in, on the mark's side."""
    is_opening = one.is_opening
    inside = next((span for span in placed if span.start < place < span.end), None)
    if inside is not None:
        place = inside.start if is_opening else inside.end
    step = -1 if is_opening else 1
    while 0 < place < len(text) and is_one_word(text[place - 1], text[place]):
        place += step
    if is_opening:
        return place + len(text[place:]) - len(text[place:].lstrip(" "))
    return len(text[:place].rstrip(" "))


def _parts(text: str, placed: Sequence[_Placed]) -> Iterator[tuple[str, bool]]:
    """The translation with marks in their places, each part with whether it is a mark."""
    done = 0
    for one in placed:
        yield text[done : one.start], False
        yield one.mark, True
        done = one.end
    yield text[done:], False
