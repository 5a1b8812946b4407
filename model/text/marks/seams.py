"""Seams: what stands between two pieces of a translation that were not written together.

Owns the rule for terms that are copied, for marks that come back where stand-ins were, and for a
sentence that was split. What stands there depends on the scripts on both sides. Scripts without
spaces between words (Chinese, Japanese, Thai …) have none there in a source, which then says
nothing of a target that has them; and a space that a source or a network has between two pieces in
such scripts is none in a language that is written so. Signs between copied pieces are the target's
(。 and .). Where a term's target ends with the stop that follows it, one of them stands. What is
beside no such piece is left as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from model.text.languages.scripts import UNSPACED_LANGUAGES, UNSPACED_LETTERS
from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.carried import OPENING
from model.text.marks.finding import EDGE_KINDS, LOOSE_KINDS, Mark, find_inner_marks, find_marks

# Signs of Chinese and Japanese: they have the space beside them in themselves.
_WIDE_SIGNS = "\u3001-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_WIDE_SIGN = re.compile(f"[{_WIDE_SIGNS}]")
_UNSPACED = re.compile(
    f"[{_WIDE_SIGNS}{UNSPACED_LETTERS}\u3005-\u3007\u3041-\u312f\u31a0-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\U00020000-\U0003ffff]"
)
# Words of Korean have spaces between them, but compounds have none.
_SILENT = re.compile(f"{_UNSPACED.pattern}|[\uac00-\ud7a3]")
_NARROW = MappingProxyType(dict(zip("。，、：；！？（）", ".,,:;!?()", strict=True)))
_WIDE = MappingProxyType(dict(zip(".,:;!?", "。，：；！？", strict=True)))
_CHINESE_SIGNS = frozenset({"zh", "yue", "wuu", "lzh", "ja"})
_TOKEN = re.compile(r"\s+|[。，、：；！？（）.,:;!?]|[^\s。，、：；！？（）.,:;!?]+")
_ANY_LETTER = "文"
_SPACES = (" ", "\u00a0")
_STOPS = frozenset(".!?")
_WIDE_STOPS = frozenset("。！？")  # a space between sentences stays
_ENDS = frozenset("\"'”’»)")
_CLOSING = frozenset(".,:;!?)]}»”’…%")
_OPENING = frozenset("([{«„“‘¿¡")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a translation.

    Attributes:
        text: It.
        source: What it stands for; empty if that is not known.
        is_loose: A tag or the like: words on both sides of it are neighbours.
        is_word: It is carried as a word, whatever it begins and ends with.
        is_term: It ends with what stands for a term.
    """

    text: str
    source: str = ""
    is_loose: bool = False
    is_word: bool = False
    is_term: bool = False


def needs_spaces(pair: LanguagePair) -> bool:
    """Whether the target has spaces between words, and the source has none."""
    return not _is_unspaced_language(pair.target) and _is_unspaced_language(pair.source)


def seam(before: str, between: str, after: str, language: str, *, is_open: bool = False) -> str:
    """What stands between two pieces instead of what stood there.

    Args:
        before: The piece before.
        between: What stands there.
        after: The piece behind.
        language: BCP-47 tag of both.
        is_open: Nothing between their sources says nothing of them.
    """
    if not before or not after:
        return between
    if between in _SPACES and _is_unspaced_language(language) and before[-1] not in _WIDE_STOPS:
        is_alike = _is_unspaced(before[-1]) and _is_unspaced(after[0])
        is_wide = _WIDE_SIGN.match(before[-1]) or _WIDE_SIGN.match(after[0])
        return "" if is_alike or is_wide else between
    if not between and is_open:
        return "" if _is_unspaced(before[-1]) or _is_unspaced(after[0]) else " "
    return between


def doubles_stop(before: str, after: str) -> bool:
    """Whether a text begins with the stop that a term's target before it ends with."""
    return (
        before[-1:] in _STOPS
        and after[:1] == before[-1:] != before[-2:-1]
        and (not after[1:] or after[1].isspace() or after[1] in _ENDS)
    )


def replaced(text: str, marks: Sequence[Mark], pair: LanguagePair | None = None) -> str:
    """A stretch of text with what stands for its terms in their places.

    Args:
        text: It.
        marks: Its marks and terms, in order. Without a term it stays as it is.
        pair: Its languages; None: its signs and its spaces stay.
    """
    if all(mark.replacement is None for mark in marks):
        return text
    return _joined(list(_pieces(text, marks)), pair)


def separator_between(before: Piece, separator: str, after: Piece, pair: LanguagePair) -> str:
    """What stands between two parts of a sentence that was split.

    Args:
        before: The part before; empty if there is none.
        separator: What stands there in the source.
        after: The part behind, likewise.
        pair: The languages.
    """
    is_within = before.text and separator.splitlines() in ([], [separator])
    marks = find_inner_marks(separator) if is_within else _marks_of_lines(separator)
    pieces = list(_pieces(separator, marks))
    whole = _joined([before, *pieces, after], pair)
    return whole[len(before.text) : len(whole) - len(after.text)]


def rejoined(pieces: Sequence[Piece], language: str) -> str:
    """A translation of the words that a network wrote and of the marks that it did not read.

    Of the words it drops the space beside a mark, and the stop, that the seam has no place for.

    Args:
        pieces: In order.
        language: BCP-47 tag of the translation.
    """
    visible = "".join(piece.text for piece in pieces if not piece.is_loose)
    dropped: set[int] = set()
    end = 0
    for piece in pieces:
        start, end = end, end + len(piece.text) * (not piece.is_loose)
        if not piece.is_word or start == end:
            continue
        for place in (start - 1, end):
            before, after = visible[max(0, place - 1) : place], visible[place + 1 : place + 2]
            if visible[place : place + 1] == " " and not seam(before, " ", after, language):
                dropped.add(place)
        if piece.is_term and doubles_stop(visible[start:end], visible[end : end + 2]):
            dropped.add(end)
    if not dropped:
        return "".join(piece.text for piece in pieces)
    return "".join(_without(pieces, dropped))


def _marks_of_lines(separator: str) -> list[Mark]:
    """The marks of a separator, with what the line behind it begins with (2、)."""
    return [mark for mark in find_marks(separator + _ANY_LETTER) if mark.end <= len(separator)]


def _pieces(text: str, marks: Sequence[Mark]) -> Iterator[Piece]:
    """Marks with what stands for them, and what is between them: words, spaces, sign by sign."""
    done = 0
    for mark in marks:
        yield from _between(text[done : mark.start])
        own = text[mark.start : mark.end]
        is_loose = mark.kind in LOOSE_KINDS | EDGE_KINDS
        yield Piece(
            text=own if mark.replacement is None else mark.replacement,
            source=own,
            is_loose=is_loose,
            is_word=not is_loose,
            is_term=mark.replacement is not None,
        )
        done = mark.end
    yield from _between(text[done:])


def _between(text: str) -> Iterator[Piece]:
    return (Piece(text=token, source=token) for token in _TOKEN.findall(text))


def _joined(pieces: Sequence[Piece], pair: LanguagePair | None) -> str:
    """Pieces as one text; a space that is added stands before the tags of what is behind it."""
    signs, language = _signs(pair), "" if pair is None else pair.target
    parts: list[str] = []
    before, between = Piece(text=""), ""
    at = space_at = 0
    for piece, following in zip(pieces, [*pieces[1:], Piece(text="")], strict=True):
        if piece.is_loose:
            at += at == len(parts) and OPENING.match(piece.text) is None
        elif piece.text.isspace():
            between, space_at = between + piece.text, len(parts)
        elif piece.text:
            shown = _in_signs(piece, before, following, signs)
            ahead = shown.text + following.text[:1]
            if before.is_term and not shown.is_word and doubles_stop(before.text, ahead):
                continue
            is_open = _is_open(before, shown)
            found = seam(before.text, between, shown.text, language, is_open=is_open)
            if between and not found:
                parts[space_at] = ""
            elif found != between:
                parts.insert(at, found)
            before, between, at = shown, "", len(parts) + 1
            parts.append(shown.text)
            continue
        parts.append(piece.text)
    return "".join(parts)


def _signs(pair: LanguagePair | None) -> dict[str, str]:
    """What signs between copied pieces become."""
    if pair is None:
        return {}
    if needs_spaces(pair):
        return dict(_NARROW)
    target = primary_language(pair.target)
    if target not in _CHINESE_SIGNS or _is_unspaced_language(pair.source):
        return {}
    return {**_WIDE, ",": "、"} if target == "ja" else dict(_WIDE)


def _in_signs(piece: Piece, before: Piece, following: Piece, signs: dict[str, str]) -> Piece:
    """A sign as the target has it: a wide one behind a letter that is wide, where a clause ends."""
    sign = signs.get(piece.text)
    is_ending = not following.text or following.is_loose or following.text.isspace()
    if sign is None or piece.is_word:
        return piece
    if _WIDE_SIGN.match(sign) and not (_is_unspaced(before.text[-1:]) and is_ending):
        return piece
    return replace(piece, text=sign)


def _is_open(before: Piece, after: Piece) -> bool:
    """Whether two words stand side by side whose sources say nothing of a space."""
    is_silent = _SILENT.match(before.source[-1:]) or _SILENT.match(after.source[:1])
    if is_silent is None or not before.text:
        return False
    last, first = before.text[-1], after.text[0]
    is_end = before.is_word or last.isalnum() or last in _CLOSING
    return is_end and (after.is_word or first.isalnum() or first in _OPENING)


def _without(pieces: Sequence[Piece], dropped: set[int]) -> Iterator[str]:
    """Texts of pieces; of words, places counted without what is loose, some are left out."""
    done = 0
    for piece in pieces:
        if piece.is_word or piece.is_loose:
            yield piece.text
        else:
            places = enumerate(piece.text, done)
            yield "".join(character for place, character in places if place not in dropped)
        done += len(piece.text) * (not piece.is_loose)


def _is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def _is_unspaced_language(tag: str) -> bool:
    return primary_language(tag) in UNSPACED_LANGUAGES
