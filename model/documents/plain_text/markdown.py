"""Markdown: which lines are prose, found by a CommonMark parser; all others stay as they are.

Owns the way from the parser's blocks to texts. A paragraph over several lines is one text, written
back as one line, because its sentences go across lines; tables are texts cell by cell. Links,
emphasis and code inside a line are marks, which the text path finds and carries by itself. Code,
HTML, definitions of links and the front matter are no text.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.lines import lines_of
from model.documents.notation.template import Piece, TemplateBuilder
from model.errors import DocumentError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"---[ \t]*+\r?\n(?:[^\n]*+\n)*?(?:---|\.\.\.)[ \t]*+(?:\r?\n|\Z)"  # one way for every line
)
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\Z")
_CELL = re.compile(r"(?:\\.|[^|\\])+")
_DIVIDER = re.compile(r"[ \t|:-]*")


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
    done = 0
    for first, last, token in _blocks("".join(lines)):
        if first < done:
            continue
        builder.pieces.extend(lines[done:first])
        block = lines[first:last]
        if token.type == "table_open":
            builder.pieces.extend(_table(builder, block))
        else:
            builder.pieces.extend(_paragraph(builder, block, token.content))
        done = last
    builder.pieces.extend(lines[done:])
    return document_of("md", builder.template(), encoded.encoded)


def _blocks(text: str) -> Iterator[tuple[int, int, "Token"]]:
    """Tables, and what has sentences, with the lines that they are on."""
    parser = _parser()
    for token in parser.parse(text):
        if token.map is not None and token.type in ("inline", "table_open"):
            yield token.map[0], token.map[1], token


def _parser() -> "MarkdownIt":
    """A parser of blocks, which leaves lines as they are."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # only Markdown waits for it

    parser = MarkdownIt("commonmark", {"maxNesting": 50}).enable("table")
    return parser.disable(["inline", "text_join"])


def _paragraph(builder: TemplateBuilder, lines: list[str], content: str) -> Iterator[Piece]:
    """Prose with what stands before it in its lines: quotes, bullets, the signs of headings."""
    inner = content.split("\n")
    places = [line.find(part.strip()) for line, part in zip(lines, inner, strict=False)]
    if len(inner) > len(lines) or -1 in places:
        yield from lines
        return
    start = 0
    for end in range(1, len(inner) + 1):
        is_last = end == len(inner)
        if not is_last and not _HARD_BREAK.search(lines[end - 1].rstrip("\r\n")):
            continue
        yield from _prose(builder, lines[start:end], inner[start:end], places[start])
        start = end
    yield from lines[len(inner) :]


def _prose(
    builder: TemplateBuilder, lines: list[str], inner: list[str], place: int
) -> Iterator[Piece]:
    """Lines that are one text."""
    parts = [part.strip() for part in inner]
    parts[-1] = _HARD_BREAK.sub("", parts[-1])
    raw = "".join(lines)
    if not parts[-1]:
        yield raw
        return
    end = raw.rindex(parts[-1]) + len(parts[-1])
    yield raw[:place]
    yield builder.plain(" ".join(parts), raw[place:end], str)
    yield raw[end:]


def _table(builder: TemplateBuilder, lines: list[str]) -> Iterator[Piece]:
    for line in lines:
        done = 0
        if _DIVIDER.fullmatch(line.strip()):
            yield line
            continue
        for cell in _CELL.finditer(line):
            bare = cell[0].strip()
            start = cell.start() + cell[0].index(bare)
            yield line[done:start]
            yield builder.plain(bare, bare, _in_cell)
            done = start + len(bare)
        yield line[done:]


def _in_cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
