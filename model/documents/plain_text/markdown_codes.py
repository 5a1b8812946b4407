"""Inline codes of Markdown: what of a line goes through a translation as a character.

Owns which parts of a text (`model.documents.plain_text.markdown_inline`) become which codes.
Emphasis and links are two that belong to each other, code and formulas words; images, and links
without words, stand for themselves. Titles of links and descriptions of images are texts of their
own. A link that says its label only once (`[label]`, `[label][]`) says it twice when its text is
another, so that it still leads to its definition. How a translation is written is
`model.documents.plain_text.markdown_writing`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from model.documents.notation.template import CodeTable, Piece, TemplateBuilder
from model.documents.plain_text.markdown_inline import InlineReader, Part, unescaped
from model.documents.plain_text.markdown_writing import Place, Proof, Sign, Writing
from model.text.marks.inline_codes import ANY_CODE, CodeClass, paired

_UNSEEN = re.compile(r"html_inline <(?!(?:br|img|input)\b)", re.IGNORECASE)
"""A tag of HTML of which nothing is seen, which may stand in a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of a document as the inside of one line.

    Attributes:
        flat: That line.
        raw: How it is written, over several lines maybe, or with escapes of a table.
        places: For every character of `flat`, and its end, where it is in `raw`.
    """

    flat: str
    raw: str
    places: Sequence[int]

    def part(self, start: int, end: int) -> "Stretch":
        """A part of it."""
        return Stretch(flat=self.flat[start:end], raw=self.raw, places=self.places[start : end + 1])

    def written(self, start: int, end: int) -> str:
        """How a part of it is written."""
        return self.raw[self.places[start] : self.places[end]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """Pieces instead of a part of a stretch: places for texts of their own."""

    start: int
    end: int
    pieces: tuple[Piece, ...]


@dataclass(slots=True, kw_only=True)
class _Coded:
    """A text while it is put together, with what its codes are."""

    table: CodeTable = field(default_factory=CodeTable)
    said: list[str] = field(default_factory=list)
    signs: dict[str, Sign] = field(default_factory=dict)
    edits: list[_Edit] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of a document, while it is read.

    Attributes:
        builder: Where they are put.
        reader: What finds their parts.
        proof: What reads again how translations are written.
    """

    builder: TemplateBuilder
    reader: InlineReader
    proof: Proof

    def pieces(self, stretch: Stretch, parts: Sequence[Part], place: Place) -> list[Piece]:
        """Pieces of a stretch: a place for its text, or what it is if it has no words.

        Args:
            stretch: What is to be translated.
            parts: Its parts, none of them an end of a line.
            place: Where it is.
        """
        coded = _Coded()
        if not ANY_CODE.search(stretch.flat):
            self._read(coded, stretch, parts, place)
        text = "".join(coded.said)
        original = list(_pieces(coded.edits, 0, len(stretch.flat), stretch.written))
        if not any(map(str.isalpha, text)):
            return original
        writing = Writing(
            proof=self.proof,
            place=place,
            signs=coded.signs,
            source=tuple(_specials(stretch.flat, parts)),
        )
        slot = self.builder.slot(text, original, coded.table.pieces, str, compose=writing.written)
        return [slot]

    def _read(self, coded: _Coded, stretch: Stretch, parts: Sequence[Part], place: Place) -> None:
        pairs = paired(part.kind for part in parts)
        index = 0
        while index < len(parts):
            part = parts[index]
            kind = part.kind
            if kind == "text" or kind == "break":  # noqa: PLR1714  # so that the rest are codes
                coded.said.append(part.text)
                index += 1
                continue
            element = parts[index : max(index, pairs.get(index, index)) + 1]
            whole = _class_of_link(element)
            own = [part] if whole is None else element
            if whole is None or element[-1].label is None:
                for one in own:
                    coded.edits += self._edits(stretch, one, place)
            is_crossing = kind in ("opening", "closing") and index not in pairs
            self._add(coded, stretch, own, place, whole or ("lone" if is_crossing else kind))
            index += len(own)

    def _add(
        self, coded: _Coded, stretch: Stretch, parts: Sequence[Part], place: Place, kind: CodeClass
    ) -> None:
        """One code for parts."""
        start, end, part = parts[0].start, parts[-1].end, parts[0]

        def flat(first: int, last: int) -> str:
            return place.kept(stretch.flat[first:last])

        pieces = list(_pieces(coded.edits, start, end, flat))
        said = tuple((one.kind, one.said) for one in parts)
        if kind == "closing" and part.label is not None:
            pieces = [place.kept(f"][{part.label}]")]
        if kind == "lone" and len(parts) == 1 and part.kind != kind:
            said = (("text", stretch.flat[start:end]),)  # its partner is in another line
        is_seen = part.kind == "lone" and _UNSEEN.match(part.said) is None
        is_apart = is_seen or len(parts) > 1  # a link around a picture
        code = coded.table.added(kind, pieces, is_apart=is_apart)
        coded.said.append(code)
        coded.signs[code] = Sign(mark=part.mark if kind == part.kind else "", said=said)

    def _edits(self, stretch: Stretch, part: Part, place: Place) -> Iterator[_Edit]:
        """Places for the description of an image, and for a title."""
        if part.alt is not None and part.label is not None:
            yield from self._short_image(stretch, part, place)
            return
        if part.alt is not None and part.alt[0] < part.alt[1]:
            alt = stretch.part(*part.alt)
            inner = self.reader.parts(alt.flat)
            if not any(one.kind == "break" for one in inner):
                pieces = self.pieces(alt, inner, replace(place, is_begin=False, is_label=True))
                yield _Edit(start=part.alt[0], end=part.alt[1], pieces=tuple(pieces))
        if part.title is not None:
            start, end = part.title
            sign = stretch.flat[end]
            piece = self.builder.plain(
                unescaped(stretch.flat[start:end]),
                stretch.written(start, end),
                lambda text: place.kept(_in_title(text, sign)),
            )
            yield _Edit(start=start, end=end, pieces=(piece,))

    def _short_image(self, stretch: Stretch, part: Part, place: Place) -> Iterator[_Edit]:
        """A place for an image whose description is its label, which it has to say then."""
        alt = stretch.part(*(part.alt or (0, 0)))
        inner = self.reader.parts(alt.flat)
        if any(one.kind == "break" for one in inner):
            return
        around = ("![", place.kept(f"][{part.label}]"))
        whole = stretch.part(part.start, part.end)
        inside = replace(place, is_begin=False, is_label=True, around=around)
        shifted = [replace(one.moved(len("![")), alt=None, title=None) for one in inner]
        pieces = self.pieces(whole, shifted, inside)
        yield _Edit(start=part.start, end=part.end, pieces=tuple(pieces))


def _in_title(text: str, sign: str) -> str:
    """A text between the quotes, or the brackets, of a title."""
    text = re.sub(r"\\(?=[!-/:-@\[-`{-~]|\Z)|&(?=#?\w+;)", r"\\\g<0>", text)
    signs = r"[()`<]" if sign == ")" else f"[{sign}`<]"
    return re.sub(signs, r"\\\g<0>", text)


def _class_of_link(element: Sequence[Part]) -> CodeClass | None:
    """What a link is whose text is no language; None of all else."""
    inner = element[1:-1]
    if not element[0].said.startswith("link_open") or len(element) == 1:
        return None
    if element[-1].label is not None:
        return None if any(map(str.isalpha, _words(inner))) else "word"
    if any(map(str.isalnum, _words(inner))):
        return None
    return "word" if any(one.kind == "word" for one in inner) else "lone"


def _words(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts)


def _specials(flat: str, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Characters that are written as escapes or references, and how."""
    for part in parts:
        if part.kind == "text" and part.text != flat[part.start : part.end]:
            yield part.text, flat[part.start : part.end]


def _pieces(
    edits: Sequence[_Edit], start: int, end: int, written: Callable[[int, int], str]
) -> Iterator[Piece]:
    """The notation of a part of a stretch, with what is edited in it."""
    for edit in edits:
        if start <= edit.start and edit.end <= end:
            yield written(start, edit.start)
            yield from edit.pieces
            start = edit.end
    yield written(start, end)
