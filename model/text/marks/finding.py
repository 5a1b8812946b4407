"""Marks: what stands in a text and is not language, found by one pass of rules in linear time.

Owns where marks are: among the patterns of `model.text.marks.patterns`, which of those that are
found are marks at all, and in which order they come; likewise numbers, with codes that are made of
capitals and digits. It answers with spans and changes nothing. How a mark comes through a network
is `model.text.marks.carrying`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from model.text.marks.inline_codes import ANY_CODE, is_loose
from model.text.marks.leads import find_leads
from model.text.marks.patterns import (
    CELL,
    CODE,
    FENCE,
    HINT,
    MARK,
    NUMBER,
    PATTERNS,
    TABLE_LINE,
    Kind,
)

LOOSE_KINDS: frozenset[Kind] = frozenset({"tag", "markup", "emoji"})
"""Kinds that stand beside words and are no word of the sentence."""
EDGE_KINDS: frozenset[Kind] = frozenset({"lead", "cell"})
"""Kinds that no sentence goes across."""

_DOMAINS = frozenset(
    """
    com org net edu gov int info io dev app de at ch cn uk eu fr es it jp ru us co me tv ai nl
    se
    """.split()  # noqa: SIM905  # one list a line
)
_EXTENSIONS = frozenset(
    """
    py js ts jsx tsx json yaml yml xml html htm css md rst txt csv tsv log ini cfg conf toml env
    sh bat exe dll so jar war zip gz tgz bz2 xz 7z rar tar iso pdf doc docx xls xlsx ppt pptx
    odt ods odp epub png jpg jpeg gif svg webp bmp ico mp3 mp4 wav ogg avi mkv mov srt vtt po
    pot mo c h cc cpp hpp cs go rs rb php java kt swift sql db sqlite bin dat bak tmp lock pem
    crt key spm safetensors ipynb
    """.split()  # noqa: SIM905  # one list a line
)
_AFTER_ADDRESS = ".,;:!?'\"*_~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A stretch of a text that has to come through as it is.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        kind: What it is.
        replacement: What stands for it in a translation; None: itself.
    """

    start: int
    end: int
    kind: Kind
    replacement: str | None = None


def find_marks(text: str) -> list[Mark]:
    """The marks of a text, in order, without overlap; numbers are not among them.

    A fenced block of code, with its fences, is one mark over several lines; one that does not end
    goes on to the end of the text. Everything else is within a line.
    """
    if HINT.search(text) is None:
        return []
    return _beside_codes(text, list(_all_marks(text)))


def find_inner_marks(text: str) -> list[Mark]:
    """The marks of a stretch of a line: nothing in it is a beginning or a wall of a table."""
    return [mark for mark in find_marks(text) if mark.kind not in EDGE_KINDS]


def find_numbers(text: str) -> list[Mark]:
    """The numbers of a text: digits, with what stands between them in 1,000.50, 10:30 or 1/2.

    Digits of a code are not among them: all of it is (`find_codes`).
    """
    numbers: list[Mark] = []
    done = 0
    for code in find_codes(text):
        numbers += _numbers_between(text, done, code.start)
        numbers.append(code)
        done = code.end
    return [*numbers, *_numbers_between(text, done, len(text))]


def find_codes(text: str) -> list[Mark]:
    """Names of things made of capitals and two digits or more, or of a hash: A-99812-XZ."""
    return [Mark(start=m.start(), end=m.end(), kind="number") for m in CODE.finditer(text)]


def _numbers_between(text: str, start: int, end: int) -> Iterator[Mark]:
    for number in NUMBER.finditer(text, start, end):
        yield Mark(start=number.start(), end=number.end(), kind="number")


def masked(text: str, marks: Sequence[Mark]) -> str:
    """The text, as long as it is, with nothing in its marks that could end a sentence."""
    parts: list[str] = []
    done = 0
    for mark in marks:
        inside = text[mark.start : mark.end]
        parts += [text[done : mark.start], "".join(c if c.isalnum() else "_" for c in inside)]
        done = mark.end
    return "".join([*parts, text[done:]])


def _beside_codes(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks, without those that an inline code divides; the codes stay, and so their order."""
    if ANY_CODE.search(text) is None:
        return list(marks)
    apart: list[Mark] = []
    for mark in marks:
        codes = list(ANY_CODE.finditer(text, mark.start, mark.end))
        if mark.end - mark.start == 1 or not any(is_loose(code[0]) for code in codes):
            apart.append(mark)
            continue
        apart += [
            Mark(start=found.start(), end=found.end(), kind="tag" if is_loose(found[0]) else "code")
            for found in codes
        ]
    return apart


def _all_marks(text: str) -> Iterator[Mark]:
    """Marks as the patterns find them, in order."""
    done = 0
    for edge in sorted(_edges(text), key=lambda mark: mark.start):
        if edge.start >= done:
            yield from _marks_between(text, done, edge.start)
            yield edge
            done = edge.end
    yield from _marks_between(text, done, len(text))


def _edges(text: str) -> Iterator[Mark]:
    """Blocks of code, what lines outside of them begin with, and what divides those of tables."""
    blocks = [Mark(start=start, end=end, kind="code") for start, end in _blocks(text)]
    yield from blocks
    text = masked(text, blocks)
    for first, last in find_leads(text):
        yield Mark(start=first, end=last, kind="lead")
    for line in TABLE_LINE.finditer(text):
        for cell in CELL.finditer(text, line.start(), line.end()):
            yield Mark(start=cell.start(), end=cell.end(), kind="cell")


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Blocks between two fences of the same kind, or behind one that none follows.

    No bullet and no number is before the fence that ends a block, and nothing behind it.
    """
    opened: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif (
            fence["fence"].startswith(opened["fence"])
            and not fence["info"].strip()
            and not fence["lead"].strip("> \t")
        ):
            yield opened.start("fence"), fence.end()
            opened = None
    if opened is not None:
        yield opened.start("fence"), len(text.rstrip())


def _marks_between(text: str, start: int, end: int) -> Iterator[Mark]:
    for match in MARK.finditer(text, start, end):
        kind, last = PATTERNS[(match.lastindex or 1) - 1][0], match.end()
        if kind == "path" and not _is_path(match[0]):
            kind = "url"
            if not _is_domain(match[0]):
                continue
        first = match.start()
        if kind in ("url", "path", "email"):
            last = first + len(match[0].rstrip(_AFTER_ADDRESS))
        if (
            kind in ("url", "email")
            and first > start
            and text[first - 1] + text[last : last + 1] == "<>"
        ):
            first, last = first - 1, last + 1
        yield Mark(start=first, end=last, kind=kind)


def _is_path(found: str) -> bool:
    """Whether names that are joined by stops and slashes are a path or a name of a file."""
    if "\\" in found or found.startswith(("/", "~/", "./", "../")):
        return True
    last = found.rstrip("/").rpartition("/")[2]
    return last.rpartition(".")[2].lower() in _EXTENSIONS and "." in last


def _is_domain(found: str) -> bool:
    """Whether they are the name of a host."""
    host = found.partition("/")[0]
    name, _, top = host.rpartition(".")
    return top.islower() and top in _DOMAINS and any(map(str.isalpha, name))
