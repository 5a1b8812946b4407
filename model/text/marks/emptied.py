"""Elements that a translation left empty, because their words went elsewhere.

Owns which two marks are around words, and whether words are left between them: a comma alone is
none. Where marks stand in a translation is `model.text.marks.carrying`.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from model.text.marks.carried import OPENING, TAG_OR_MARKUP, Carried, Loose, Placed
from model.text.marks.inline_codes import is_closing, is_loose

_TAG = re.compile(r"</?[A-Za-z0-9][^<>]*+>")
# Tags of elements that have nothing inside.
_VOID = re.compile(r"<(?:br|hr|img|input|wbr)\b[^<>]*+>", re.IGNORECASE)
_PAIRED = frozenset(("*", "**", "***", "_", "__", "~~"))
# Signs that are no words where they stand alone, as %, & and + are.
_PUNCTUATION = " \u00a0\u202f\u3000.,;:!?…·()[]\"'«»“”„‘’-–—、，。；：！？（）【】「」『』《》"
_ENDS = ("</", "](", "][", "[/", "{% end")


def is_emptied(
    carried: Carried,
    order: Sequence[int],
    insertions: Sequence[Placed],
    text: str,
    placed: Sequence[Placed],
) -> bool:
    """Whether a tag's words went elsewhere, so that it stands around nothing.

    One half of a tag may be outside of the sentence: then the sentence's edge stands for it.
    """
    starts = dict(zip(order, (one.start for one in insertions), strict=True))
    edges = [0, *(starts[index] for index in range(len(carried.loose))), len(text)]
    places = [0, *(one.place for one in carried.loose), len(carried.shown)]
    marks = [None, *carried.loose, None]
    for index, (one, other) in enumerate(pairwise(marks)):
        had = _content(carried.shown[places[index] : places[index + 1]])
        start, end = edges[index], edges[index + 1]
        if _content(text[start:end]) < had and _is_element(one, other):
            has_mark = any(start <= span.start and span.end <= end for span in placed)
            if not has_mark:
                return True
    return False


def _content(text: str) -> int:
    """What is between two marks: 0 is nothing, 1 punctuation alone, 2 words."""
    return bool(text.strip()) + bool(text.strip(_PUNCTUATION))


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
        return OPENING.fullmatch(tag) is not None if is_opening else tag.startswith("</")
    is_beside = one.has_space_before, one.has_space_after
    return one.mark in _PAIRED and is_beside == (is_opening, not is_opening)


def _are_around(opening: str, closing: str) -> bool:
    """Whether two marks are a tag's, or markup's, around what is between them."""
    if opening == closing:
        return TAG_OR_MARKUP.match(opening) is not None
    is_end = closing.startswith(_ENDS) or is_closing(closing[0])
    return is_end and OPENING.match(opening) is not None
