"""Lines of Markdown: which are prose, found by a CommonMark parser; all others stay as they are.

Owns the way from the parser's blocks to texts. A paragraph over several lines is one text, written
back as one line, because its sentences go across lines; tables are texts cell by cell. Code, HTML,
display math and definitions of links are no text. Which blocks there are is
`model.documents.plain_text.markdown_blocks`; what is inside of a line,
`model.documents.plain_text.markdown_inline`; what of it becomes codes,
`model.documents.plain_text.markdown_codes`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from markdown_it.token import Token

from model.documents.notation.template import Piece, TemplateBuilder
from model.documents.plain_text.markdown_blocks import BlockReader
from model.documents.plain_text.markdown_codes import Stretch, Texts
from model.documents.plain_text.markdown_inline import InlineReader, Part
from model.documents.plain_text.markdown_writing import Place, Proof

_HARD_BREAK = re.compile(r"(?: {2,}|\\)\Z")
_CELL = re.compile(r"(?:\\.|[^|\\])+")
_BOX = re.compile(r"\[[ xX]\][ \t]++")
"""Of a task, whatever labels there are."""
_DIVIDER = re.compile(r"[ \t|:-]*")


def add_lines(builder: TemplateBuilder, lines: list[str]) -> None:
    """Lines, with places for their texts, as pieces of a template."""
    blocks = BlockReader()
    tokens, references = blocks.blocks("".join(lines))
    texts = Texts(
        builder=builder,
        reader=InlineReader(references, is_lenient=True),
        proof=Proof(blocks=blocks, reader=InlineReader(references)),
    )
    done = 0
    for first, last, token, is_begin in _with_lines(tokens):
        if first < done:
            continue
        builder.pieces.extend(lines[done:first])
        block = lines[first:last]
        if token.type == "table_open":
            builder.pieces.extend(_table(texts, block))
        else:
            place = Place(is_begin=is_begin)
            builder.pieces.extend(_paragraph(texts, block, token.content, place))
        done = last
    builder.pieces.extend(lines[done:])


def _with_lines(tokens: Iterable[Token]) -> Iterator[tuple[int, int, Token, bool]]:
    """Tables, and what has sentences, with the lines that they are on.

    The last value says whether a sign at the beginning might make another block of it.
    """
    is_begin = False
    for token in tokens:
        if token.map is not None and token.type in ("inline", "table_open"):
            yield token.map[0], token.map[1], token, is_begin
        is_setext = token.type == "heading_open" and not token.markup.startswith("#")
        is_begin = token.type == "paragraph_open" or is_setext


def _paragraph(texts: Texts, lines: list[str], content: str, place: Place) -> Iterator[Piece]:
    """Prose with what stands before it in its lines: quotes, bullets, the signs of headings."""
    inner = [part.strip() for part in content.split("\n")]
    places = [line.rfind(part) for line, part in zip(lines, inner, strict=False)]
    if len(inner) > len(lines) or -1 in places:
        yield from lines
        return
    breaks = frozenset(
        index
        for index, line in enumerate(lines[: len(inner) - 1])
        if _HARD_BREAK.search(line.rstrip("\r\n"))
    )
    stretch = _joined(lines[: len(inner)], inner, places, breaks)
    parts = texts.reader.parts(stretch.flat)
    kept = _kept(stretch.flat, parts, breaks)
    if kept != breaks:
        stretch = _joined(lines[: len(inner)], inner, places, kept)
        parts = texts.reader.parts(stretch.flat)
    done = 0
    for start, end, own in _sentences(stretch.flat, parts):
        if start < end:
            yield stretch.raw[done : stretch.places[start]]
            yield from texts.pieces(stretch.part(start, end), own, place)
            done = stretch.places[end]
    yield stretch.raw[done:]
    yield from lines[len(inner) :]


def _joined(
    lines: list[str], inner: list[str], places: list[int], breaks: frozenset[int]
) -> Stretch:
    """Lines as one, but for ends that are kept."""
    flat: list[str] = []
    found: list[int] = []
    begin = 0
    for index, (line, part, place) in enumerate(zip(lines, inner, places, strict=True)):
        start = begin + place
        is_last = index == len(lines) - 1
        end = "" if is_last else "  \n" if index in breaks and not part.endswith("\\") else " "
        end = "\n" if index in breaks and part.endswith("\\") else end
        flat.append(part + end)
        found += [*range(start, start + len(part)), *[start + len(part)] * len(end)]
        begin += len(line)
        last = start + len(part)
    stretch = Stretch(flat="".join(flat), raw="".join(lines), places=[*found, last])
    box = _BOX.match(stretch.flat)
    return stretch.part(box.end() if box else 0, len(stretch.flat))


def _kept(flat: str, parts: list[Part], breaks: frozenset[int]) -> frozenset[int]:
    """Lines whose end is kept, of those that might be such: without ends inside of code."""
    ends = {part.end for part in parts if part.kind == "break"}
    found = [place + 1 in ends for place, one in enumerate(flat) if one == "\n"]
    return frozenset(line for line, is_kept in zip(sorted(breaks), found, strict=True) if is_kept)


def _sentences(flat: str, parts: list[Part]) -> Iterator[tuple[int, int, list[Part]]]:
    """What is between two ends of lines that are kept: where it is, and its parts."""
    own: list[Part] = []
    for part in [*parts, None]:
        if part is not None and part.kind != "break":
            own.append(part)
        elif own:
            start, end = own[0].start, own[-1].end
            last = own[-1]
            if last.kind == "text" and last.text == flat[last.start : last.end]:
                bare = _HARD_BREAK.sub("", last.text.rstrip())
                end = last.start + len(bare)
                own[-1] = replace(last, end=end, text=bare, said=bare)
            if not flat[start:end].strip():
                own = []
                continue
            yield start, end, [one.moved(-start) for one in own if one.start < one.end]
            own = []


def _table(texts: Texts, lines: list[str]) -> Iterator[Piece]:
    for line in lines:
        done = 0
        if _DIVIDER.fullmatch(line.strip()):
            yield line
            continue
        for cell in _CELL.finditer(line):
            bare = cell[0].strip()
            start = cell.start() + cell[0].index(bare)
            yield line[done:start]
            walls = [found.start() for found in re.finditer(r"\\\|", bare)]
            stays = frozenset(walls)
            places = [index for index in range(len(bare) + 1) if index not in stays]
            flat = bare.replace(r"\|", "|")
            stretch = Stretch(flat=flat, raw=bare, places=places)
            yield from texts.pieces(stretch, texts.reader.parts(flat), Place(is_cell=True))
            done = start + len(bare)
        yield line[done:]
