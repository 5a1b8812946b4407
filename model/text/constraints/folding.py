"""Text as glossaries compare it: the same for all spellings of the same words.

Owns which characters are taken for one another (spaces that do not break, typographic apostrophes
and hyphens, wide letters, composed and decomposed accents, soft hyphens), and where what is left
stands in the text.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

_SPACES = (
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
_APOSTROPHES = "\u2019\u02bc"
_HYPHENS = "\u2010\u2011"
_COMMON = {
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _APOSTROPHES), "'"),
    **dict.fromkeys(map(ord, _HYPHENS), "-"),
    **{wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)},
}
"""Characters as the commoner ones that stand for them."""
_UNSEEN = "\u00ad\u2060\ufeff"
"""What shows nothing within a word: soft hyphens, and what forbids a line break."""
_JAMO = frozenset(map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]))
"""Vowels and final consonants, which are one syllable with the consonant before them."""
_PLAIN = re.compile(r"(?:[\x00-\x1f!-\x7f]| (?! ))+(?![^\x00-\x7f])")
"""Characters that stay what they are, and none of which has an accent behind it."""
_MOVED = re.compile(f"[{_UNSEEN}]| {{2,}}")


class Folded:
    """A text as it is compared, and where each of its characters stands in the text itself.

    Args:
        text: Any text.

    Attributes:
        text: In its casing.
        small: In small letters, as long.
    """

    __slots__ = ("_ends", "_starts", "small", "text")

    def __init__(self, text: str) -> None:
        self._starts: Sequence[int] | None = None
        self._ends: Sequence[int] | None = None
        is_irregular = "  " in text
        if not text.isascii():
            text = text.translate(_COMMON)
            is_moved = _MOVED.search(text) is not None
            is_irregular = is_moved or not unicodedata.is_normalized("NFC", text)
        if is_irregular:
            text, self._starts, self._ends = _shortened(text)
        self.text = text
        self.small = _small(text)

    def __repr__(self) -> str:
        return f"<Folded {self.text!r}>"

    def first(self, place: int) -> int:
        """The first character that begins at a place of the text itself, or behind it."""
        return place if self._starts is None else bisect_left(self._starts, place)

    def behind(self, place: int) -> int:
        """What comes behind the last character that ends at a place of the text, or before it."""
        return place if self._ends is None else bisect_right(self._ends, place)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch begins and ends in the text itself; it has one character at least."""
        if self._starts is None or self._ends is None:
            return start, end
        return self._starts[start], self._ends[end - 1]


def _shortened(text: str) -> tuple[str, list[int], list[int]]:
    """A text with one space for several, composed letters and nothing unseen, with its places."""
    places = [place for place, one in enumerate(text) if one not in _UNSEEN]
    seen = "".join(text[place] for place in places)
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    while done < len(seen):
        plain = _PLAIN.match(seen, done)
        if plain is not None:
            begin, done = plain.span()
            parts.append(plain[0])
            starts += places[begin:done]
            ends += [place + 1 for place in places[begin:done]]
            continue
        begin, done = done, _unit_end(seen, done)
        part = " " if seen[begin] == " " else unicodedata.normalize("NFC", seen[begin:done])
        parts.append(part)
        starts += [places[begin]] * len(part)
        ends += [places[done - 1] + 1] * len(part)
    return "".join(parts), starts, ends


def _unit_end(text: str, start: int) -> int:
    """Where what belongs to the character at a place ends: its accents, or spaces beside it."""
    end, is_space = start + 1, text[start] == " "
    while end < len(text) and (text[end] == " " if is_space else _is_added(text[end])):
        end += 1
    return end


def _is_added(character: str) -> bool:
    return unicodedata.combining(character) != 0 or character in _JAMO


def _small(text: str) -> str:
    """A text in small letters, as long as it is."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
