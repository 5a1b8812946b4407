"""Carrying of marks through a network that never saw such marks.

Owns what a network reads instead of a text with marks, and how the marks come back into what it
writes. Two ways, side by side in one sentence:

- A mark that stands for a word (`{name}`, a URL) is replaced by a stand-in, a short word or number
  that networks copy. It comes back where its stand-in is.
- A loose mark (a tag, emoji) is left out. It comes back where the alignment puts the words around
  it (`model.text.marks.placing`). Inline codes in a word leave it one, and come back in it where it
  was copied, else at its edges (`model.text.marks.inside`).

Which marks there are is `model.text.marks.finding`; what stands between a mark and the words beside
it `model.text.marks.seams`; whether words are left between two of them
`model.text.marks.emptied`; what is tried after one way failed `model.text.drafts.tries`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from model.text.languages.scripts import is_one_word
from model.text.marks.carried import Carried, Loose, Placed, Restored, StandIn
from model.text.marks.casing import Casing, lowered, raised
from model.text.marks.emptied import is_emptied
from model.text.marks.finding import LOOSE_KINDS, Mark
from model.text.marks.inline_codes import is_loose, partners
from model.text.marks.inside import SOFT_HYPHEN, copied_places, is_within_word
from model.text.marks.patterns import Kind
from model.text.marks.placing import placed_marks
from model.text.marks.seams import Piece, rejoined, replaced

_ORDERED = re.compile(r"%[#0+-]{0,3}\d{0,3}(?:\.\d{1,3})?[A-Za-z@]{1,3}|\{\}")
# Placeholders that a number is filled into, around which a sentence has plurals, and 100%%.
_COUNTED = re.compile(r"%(?:\d\$)?\d?l{0,2}[diu]|\{(?:n|count|total|num\w*)\}|\d[\d.,]*+\s?%%")
_MAX_LOOSE = 32
_JOINERS = frozenset("/:-=&,.|x@")
_CLOSING = ".,;:!?)]}»”’。，、；：！？）】」』"


def carry(
    text: str,
    marks: Sequence[Mark],
    names: Sequence[str],
    numbers: Sequence[str] = (),
    *,
    clocks: Sequence[str] = (),
    casing: Casing | None = None,
    language: str = "",
) -> Carried | None:
    """What a network reads instead of a text.

    Args:
        text: A sentence.
        marks: Its marks, in order.
        names: Stand-ins, the best first; those that the text has are passed over.
        numbers: Stand-ins for numbers and for what numbers are filled into, likewise.
        clocks: Stand-ins for times of day, likewise.
        casing: Casing to take off.
        language: BCP-47 tag of the text.

    Returns:
        None if there are not enough names, or too many loose marks to be placed.
    """
    max_groups = _MAX_LOOSE + len(names) + len(numbers) + len(clocks)
    groups = list(islice(_grouped(text, marks), max_groups + 1))
    if len(groups) > max_groups:
        return None
    words = text if casing is None else lowered(text, language)
    folded = text.lower()
    edges = {place for own, kind in groups if kind not in LOOSE_KINDS for place in _span(own)}
    free = [
        (name for name in some if name.lower() not in folded) for some in (names, numbers, clocks)
    ]
    shown, done = "", 0
    inside, tight = set[int](), set[int]()
    each: list[StandIn | Loose | None] = []
    for own, kind in groups:
        start, end = _span(own)
        shown += words[done:start].replace(SOFT_HYPHEN, "")
        mark, after, done = _written(text, own), text[end : end + 1], end
        if kind in LOOSE_KINDS:
            each.append(_loose(mark, shown, after))
            # Of two spaces, one before it and one behind it, one is left; two words stay two.
            done += not shown[-1:].strip() and after.isspace()
            if is_within_word(text, end, edges):
                inside.add(len(shown))
            elif is_one_word(shown[-1:], after):
                tight.add(len(shown))
                shown += " "
        else:
            stand_in = _stand_in(mark, kind, *free, is_term=own[-1].replacement is not None)
            each.append(stand_in)
            shown += stand_in.name if stand_in else ""
    loose = tuple(
        replace(one, is_inside=one.place in inside, is_tight=one.place in tight)
        for one in each
        if isinstance(one, Loose)
    )
    if None in each or len(loose) > _MAX_LOOSE:
        return None
    return Carried(
        shown=shown + words[done:].replace(SOFT_HYPHEN, ""),
        stand_ins=tuple(one for one in each if isinstance(one, StandIn)),
        loose=loose,
        marks=tuple(
            one.mark
            for one, (own, _) in zip(each, groups, strict=True)
            if one is not None and any(mark.replacement is None for mark in own)
        ),
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
        Placed(start=span[0], end=span[1], mark=stand_in.mark, stand_in=stand_in)
        for span, stand_in in zip(found, carried.stand_ins, strict=True)
        if span is not None
    ]
    marks = [one.mark for one in carried.loose]
    found_marks = placed_marks(marks, sources, alignment)
    cuts = [(one.index, [0, *ends][one.num_tokens]) for one in found_marks]
    insertions = _insertions(carried, cuts, text, placed)
    in_order = sorted([*placed, *insertions], key=lambda one: (one.start, one.end))
    joined = rejoined(list(_pieces(text, in_order, carried.casing, language)), language)
    lost = [s.mark for s, span in zip(carried.stand_ins, found, strict=True) if span is None]
    return Restored(
        text=" ".join([joined, *lost]).strip() if lost else joined,
        is_lost=bool(lost)
        or not _is_in_order(placed)
        or is_emptied(carried, [one.index for one in found_marks], insertions, text, placed),
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


def _grouped(text: str, marks: Sequence[Mark]) -> Iterator[tuple[list[Mark], Kind]]:
    """Marks with what they are; words that touch, or have one sign between them, are one.

    Inline codes stay apart, because each of them has a place of its own.
    """
    own: list[Mark] = []
    kind: Kind = "word"
    for mark in marks:
        if own and _is_beside(text, own[-1], mark):
            is_same = kind == mark.kind or kind in LOOSE_KINDS
            kind = kind if is_same else "word"
        else:
            if own:
                yield own, kind
            own, kind = [], mark.kind
        own.append(mark)
    if own:
        yield own, kind


def _is_beside(text: str, one: Mark, other: Mark) -> bool:
    """Whether two marks, one behind the other, are carried as one."""
    is_loose_kind = one.kind in LOOSE_KINDS
    between = text[one.end : other.start]
    is_near = not between or (not is_loose_kind and between in _JOINERS)
    is_apart = is_loose(text[one.end - 1]) or is_loose(text[other.start])
    return is_near and not is_apart and is_loose_kind == (other.kind in LOOSE_KINDS)


def _span(own: Sequence[Mark]) -> tuple[int, int]:
    return own[0].start, own[-1].end


def _written(text: str, own: Sequence[Mark]) -> str:
    """A stretch that marks take, with what stands for them."""
    first, last = _span(own)
    if all(mark.replacement is None for mark in own):
        return text[first:last]
    placed = [replace(mark, start=mark.start - first, end=mark.end - first) for mark in own]
    return replaced(text[first:last], placed)


def _stand_in(
    mark: str,
    kind: Kind,
    names: Iterator[str],
    numbers: Iterator[str],
    clocks: Iterator[str],
    *,
    is_term: bool,
) -> StandIn | None:
    """The next stand-in that is left, or none."""
    is_number = kind == "number" or _COUNTED.fullmatch(mark) is not None
    own = next(clocks, None) if kind == "clock" else next(numbers, None) if is_number else None
    name = own or next(names, None)
    return None if name is None else StandIn(name=name, mark=mark, is_term=is_term)


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


def _is_in_order(placed: Sequence[Placed]) -> bool:
    """Whether marks that are filled in by their order (%s, {}) have kept it."""
    starts = [one.start for one in placed if _ORDERED.search(one.mark)]
    return starts == sorted(starts)


def _insertions(
    carried: Carried, cuts: Sequence[tuple[int, int]], text: str, placed: Sequence[Placed]
) -> list[Placed]:
    """Loose marks between the words around their cuts, in order."""
    insertions: list[Placed] = []
    low = 0
    pairs = partners([one.mark for one in carried.loose])
    copied = copied_places(carried, text)
    for index, cut in cuts:
        one = carried.loose[index]
        is_last = index not in pairs and not any(map(str.isalnum, carried.shown[one.place :]))
        place = len(text.rstrip(_CLOSING)) if is_last else min(cut, len(text))
        place = _beside_words(one, text, place, placed)
        if pairs.get(index, index) < index and not _ends_closing(carried.shown[: one.place]):
            place = len(text[:place].rstrip(_CLOSING))
        place = max(low, copied.get(index, place))
        while index not in copied and is_one_word(text[place - 1 : place], text[place : place + 1]):
            place += 1
        mark, end = one.mark, place
        gap = place - (one.is_opening and low < place and text[place - 1] == " ")
        if one.is_tight and _joins(one, carried.shown, text, gap):
            place, end = gap, gap + 1
        elif one.is_free:
            mark = (" " if text[:place].strip() else "") + mark
            mark += " " if text[place:].strip() and text[place] not in f" {_CLOSING}" else ""
        insertions.append(Placed(start=place, end=end, mark=mark))
        low = end
    return insertions


def _joins(one: Loose, shown: str, text: str, place: int) -> bool:
    """Whether at a place is a space between two words that a mark joins.

    A tag or markup, which says what is of which word, joins only what it joined before.
    """
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if text[place : place + 1] != " " or not is_one_word(before, after):
        return False
    return one.is_sign or before + after == shown[one.place - 1] + shown[one.place + 1 :][:1]


def _ends_closing(text: str) -> bool:
    return text[-1:] in _CLOSING


def _beside_words(one: Loose, text: str, place: int, placed: Sequence[Placed]) -> int:
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


def _pieces(
    text: str, placed: Sequence[Placed], casing: Casing | None, language: str
) -> Iterator[Piece]:
    """The translation with marks in their places; the words between them have the casing."""
    done = 0
    for one in placed:
        yield _words(text[done : one.start], casing, language)
        stand_in = one.stand_in
        yield Piece(
            text=one.mark,
            is_loose=stand_in is None,
            is_word=stand_in is not None,
            is_term=stand_in is not None and stand_in.is_term,
        )
        done = one.end
    yield _words(text[done:], casing, language)


def _words(text: str, casing: Casing | None, language: str) -> Piece:
    return Piece(text=text if casing is None else raised(text, casing, language))
