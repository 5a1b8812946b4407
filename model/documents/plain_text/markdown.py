"""Markdown: which lines are prose, found by a CommonMark parser; all others stay as they are.

Owns the way from the parser's blocks to texts. A paragraph over several lines is one text, written
back as one line, because its sentences go across lines; tables are texts cell by cell. Links with
addresses, emphasis and code inside a line are marks, which the text path finds and carries by
itself; links to definitions are inline codes (`model.documents.plain_text.markdown_codes`). Code,
HTML, display math, definitions of links and the front matter are no text. Which blocks there are is
`model.documents.plain_text.markdown_blocks`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.lines import lines_of
from model.documents.notation.template import CodeTable, Escape, Piece, TemplateBuilder
from model.documents.plain_text.markdown_codes import IsDefined, coded
from model.errors import DocumentError
from model.text.marks.inline_codes import ANY_CODE

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"(?:---[ \t]*+\r?\n(?:[^\n]*+\n)*?(?:---|\.\.\.)"  # one way for every line
    r"|\+\+\+[ \t]*+\r?\n(?:[^\n]*+\n)*?\+\+\+)[ \t]*+(?:\r?\n|\Z)"
)
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\Z")
_CELL = re.compile(r"(?:\\.|[^|\\])+")
_DIVIDER = re.compile(r"[ \t|:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The texts of a document, while it is read.

    Attributes:
        builder: Where they are put.
        is_defined: Whether there is a definition of a label.
    """

    builder: TemplateBuilder
    is_defined: IsDefined

    def place(self, text: str, original: str, escape: Escape) -> Piece:
        """A place for a text, whose links to definitions are inline codes."""
        table = CodeTable()
        if not ANY_CODE.search(text):
            text = coded(text, self.is_defined, table)
        if table.pieces and any(map(str.isalpha, text)):
            return self.builder.slot(text, (original,), table.pieces, escape)
        return self.builder.plain(text, original, escape)


def open_markdown(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file of Markdown as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, or has too many lines.
    """
    encoded = decoded("md", data)
    builder = TemplateBuilder(kind="md", limits=limits)
    front = _FRONT_MATTER.match(encoded.text)
    begin = front.end() if front else 0
    lines = lines_of(encoded.text[begin:])
    if len(lines) > limits.max_texts:
        raise DocumentError("md", f"has {len(lines)} lines; at most {limits.max_texts} are read")
    builder.pieces.append(encoded.text[:begin])
    tokens, is_defined = _blocks("".join(lines))
    texts = _Texts(builder=builder, is_defined=is_defined)
    done = 0
    for first, last, token in _with_lines(tokens):
        if first < done:
            continue
        builder.pieces.extend(lines[done:first])
        block = lines[first:last]
        if token.type == "table_open":
            builder.pieces.extend(_table(texts, block))
        else:
            builder.pieces.extend(_paragraph(texts, block, token.content))
        done = last
    builder.pieces.extend(lines[done:])
    return document_of("md", builder.template(), encoded.encoded)


def _blocks(text: str) -> tuple[list["Token"], IsDefined]:
    from model.documents.plain_text.markdown_blocks import (  # noqa: PLC0415  # only Markdown waits for its parser
        blocks_of,
    )

    return blocks_of(text)


def _with_lines(tokens: Iterable["Token"]) -> Iterator[tuple[int, int, "Token"]]:
    """Tables, and what has sentences, with the lines that they are on."""
    for token in tokens:
        if token.map is not None and token.type in ("inline", "table_open"):
            yield token.map[0], token.map[1], token


def _paragraph(texts: _Texts, lines: list[str], content: str) -> Iterator[Piece]:
    """Prose with what stands before it in its lines: quotes, bullets, the signs of headings."""
    inner = content.split("\n")
    places = [line.rfind(part.strip()) for line, part in zip(lines, inner, strict=False)]
    if len(inner) > len(lines) or -1 in places:
        yield from lines
        return
    start = 0
    for end in range(1, len(inner) + 1):
        is_last = end == len(inner)
        if not is_last and not _HARD_BREAK.search(lines[end - 1].rstrip("\r\n")):
            continue
        yield from _prose(texts, lines[start:end], inner[start:end], places[start])
        start = end
    yield from lines[len(inner) :]


def _prose(texts: _Texts, lines: list[str], inner: list[str], place: int) -> Iterator[Piece]:
    """Lines that are one text."""
    parts = [part.strip() for part in inner]
    parts[-1] = _HARD_BREAK.sub("", parts[-1])
    raw = "".join(lines)
    if not parts[-1]:
        yield raw
        return
    end = raw.rindex(parts[-1]) + len(parts[-1])
    yield raw[:place]
    yield texts.place(" ".join(parts), raw[place:end], str)
    yield raw[end:]


def _table(texts: _Texts, lines: list[str]) -> Iterator[Piece]:
    for line in lines:
        done = 0
        if _DIVIDER.fullmatch(line.strip()):
            yield line
            continue
        for cell in _CELL.finditer(line):
            bare = cell[0].strip()
            start = cell.start() + cell[0].index(bare)
            yield line[done:start]
            yield texts.place(bare, bare, _in_cell)
            done = start + len(bare)
        yield line[done:]


def _in_cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
