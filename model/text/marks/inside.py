"""Marks inside of words, as a tag around half of one, and signs that join two (20°C).

Owns which inline codes leave a word one word, at which edge of it they count, and where they stand
in a translation that has the word as it was. Everything else about marks in what a network reads
and writes is `model.text.marks.carrying`.
"""

import re
from collections.abc import Collection

from model.text.languages.scripts import is_one_word
from model.text.marks.carried import Carried
from model.text.marks.inline_codes import is_apart, is_closing, is_loose, is_opening

SOFT_HYPHEN = "\xad"
"""Where a word of the source may be divided, which no network reads."""


def is_within_word(text: str, end: int, edges: Collection[int]) -> bool:
    """Whether the loose marks that end at a place are inline codes in a word, and it is one.

    A word is divided by what is seen in it, as a picture is, and where one element ends and another
    begins. So are a small letter and a capital with an element's edge between them, as in a label
    with a text behind it (`New</b>Feature`).

    Args:
        text: A sentence.
        end: Characters of it up to the end of the marks.
        edges: Where marks begin and end that something else is read for.
    """
    start = end
    while start > 0 and (is_loose(text[start - 1]) or text[start - 1] == SOFT_HYPHEN):
        start -= 1
    before, after = text[start - 1 : start], text[end : end + 1]
    if start == end or not is_one_word(before, after) or start in edges or end in edges:
        return False
    codes = text[start:end].replace(SOFT_HYPHEN, "")
    closing = next((place for place, one in enumerate(codes) if is_closing(one)), len(codes))
    if any(map(is_apart, codes)) or any(map(is_opening, codes[closing:])):
        return False
    is_edge = any(is_opening(one) or is_closing(one) for one in codes)
    return not (is_edge and before.islower() and after.isupper())


def places_beside_words(carried: Carried) -> list[int]:
    """For every loose mark characters before it, of a mark in a word those up to an edge of it.

    What begins in a word begins before it, and what ends in it, or stands there, behind it.
    """
    found: list[int] = []
    for one in carried.loose:
        start, end = _word_around(carried.shown, one.place) if one.is_inside else (one.place,) * 2
        found.append(max([*found[-1:], start if one.is_opening else end]))
    return found


def copied_places(carried: Carried, text: str) -> dict[int, int]:
    """Places of marks in words that a translation has as they were, as often; by their indices.

    So are those of marks that join two words, where it has these one behind the other.
    """
    found: dict[int, int] = {}
    for index, one in enumerate(carried.loose):
        if not (one.is_inside or one.is_tight):
            continue
        around = _word_around if one.is_inside else _words_around
        start, end = around(carried.shown, one.place)
        word = carried.shown[start:end]
        own, other = _occurrences(word, carried.shown), _occurrences(word, text)
        if len(own) == len(other) and start in own:
            found[index] = other[own.index(start)] + one.place - start
    return found


def _word_around(text: str, place: int) -> tuple[int, int]:
    """Where the word begins and ends that a place is in."""
    start = end = place
    while _is_in_word(text, start):
        start -= 1
    while _is_in_word(text, end):
        end += 1
    return start, end


def _words_around(text: str, place: int) -> tuple[int, int]:
    """Where the word begins that ends at a space, and the one ends that begins behind it."""
    return _word_around(text, place - 1)[0], _word_around(text, place + 2)[1]


def _is_in_word(text: str, place: int) -> bool:
    return place > 0 and is_one_word(text[place - 1 : place], text[place : place + 1])


def _occurrences(words: str, text: str) -> list[int]:
    """Where words are in a text, and are no part of others; they may overlap (`a a` in `a a a`)."""
    return [
        start
        for start in (found.start() for found in re.finditer(f"(?={re.escape(words)})", text))
        if not _is_in_word(text, start) and not _is_in_word(text, start + len(words))
    ]
