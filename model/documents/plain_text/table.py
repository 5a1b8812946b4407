"""Tables as text (CSV, TSV): every cell is a text; separators, quotes and line ends stay.

Owns where cells are. Python's `csv` says what separates them and what every cell means; a file in
which the places that are found here do not mean that is refused.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import Encoded, decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Escape, TemplateBuilder
from model.errors import DocumentError

_TAB = "\t"
_CLOSED_INSIDE = re.compile(r'"(?:[^"]|"")*+"(?!\Z)')
"""A text that begins with a quote, and that no reader takes for a whole cell in quotes."""
_SEPARATORS = f",;{_TAB}|"
_LOOSE = re.compile(r"(?<=\d),(?=\d)|[,;|](?= )")
"""What may be a part of a cell as well: a comma of a number, a sign of prose before a space."""
_SAMPLE = 64 * 1024
_SAMPLE_LINES = 50
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_CUT_OFF = re.compile(rf'(?<![^{_SEPARATORS}\r\n])"[^"]*\Z')
"""A cell in quotes that goes on behind the sample."""
_LINE_END = re.compile(r"\r\n?|\n")
_SAID = re.compile(r"(\"?)sep=([^\w\"\r\n])\1(?:\r\n?|\n|\Z)", re.IGNORECASE)
"""A first line that is no row: it tells Excel what separates cells."""


def open_csv(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """Cells between commas, semicolons, tabs or bars, as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, or its quotes do not match.
    """
    encoded = decoded("csv", data)
    said = _SAID.match(encoded.text)
    if said is None:
        return _open("csv", encoded, _separator(encoded.text), limits)
    return _open("csv", encoded, said[2], limits, head=said[0])


def open_tsv(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """Cells between tabs, as a document; errors as of `open_csv`, but for quotes."""
    return _open("tsv", decoded("tsv", data), _TAB, limits)


def _open(
    kind: str, encoded: Encoded, separator: str, limits: DocumentLimits, *, head: str = ""
) -> Document:
    text = encoded.text.removeprefix(head)
    builder = TemplateBuilder(kind=kind, limits=limits)
    builder.pieces.append(head)
    values: list[str] = []
    read: list[str] = []
    done = 0
    for cell in _cells(text, separator):
        raw = cell[0]
        is_quoted = cell.lastgroup == "quoted"
        value = raw[1:-1].replace('""', '"') if is_quoted else raw
        values += [value] if value else []
        between = text[done : cell.start()]
        builder.pieces.append(between)
        escape = _notation(raw, separator, is_quoted=is_quoted)
        builder.pieces.append(builder.plain(value, raw, escape))
        read += [between, _quoted(raw) if raw.startswith('"') and not is_quoted else raw]
        done = cell.end()
    builder.pieces.append(text[done:])
    read.append(text[done:])
    if values != _values(kind, "".join(read), separator):
        raise DocumentError(kind, "has quotes that do not match")
    return document_of(kind, builder.template(), encoded.encoded)


def _separator(text: str) -> str:
    """What most evenly divides the first lines, the comma if nothing does.

    Of several that do, one that may be no part of a cell, and of these another than the comma.
    """
    sample, is_cut = _QUOTED.sub("", text[:_SAMPLE]), len(text) > _SAMPLE
    if is_cut:
        sample = _CUT_OFF.sub("", sample)
    lines = [line for line in _LINE_END.split(sample) if line]
    # Half a line has fewer separators than the others.
    lines = (lines[:-1] if is_cut and len(lines) > 1 else lines)[:_SAMPLE_LINES]
    counts = {one: [line.count(one) for line in lines] for one in _SEPARATORS}
    even = [one for one, found in counts.items() if found and min(found) == max(found) > 0]
    if even:
        num_loose = Counter(one for line in lines for one in _LOOSE.findall(line))
        # False comes first: what is firm, and then what is no comma.
        return min(even, key=lambda one: (num_loose[one] == sum(counts[one]), one == ","))
    common = max(_SEPARATORS, key=lambda one: sum(counts[one]))
    return common if any(counts[common]) else ","


def _cells(text: str, separator: str) -> Iterator[re.Match[str]]:
    """Cells that are not empty; between tabs a quote may begin one that is not in quotes."""
    quoted, end = r'(?P<quoted>"(?:[^"]|"")*+")', re.escape(separator)
    if separator == _TAB:
        bare = rf"(?=[{end}\r\n]|\Z)|[^{end}\r\n]++"
    else:
        bare = rf"|[^{end}\r\n\"][^{end}\r\n]*+"
    return re.finditer(rf"(?:(?<=[{end}\r\n])|\A)(?:{quoted}{bare})", text)


def _values(kind: str, text: str, separator: str) -> list[str]:
    """What the cells that are not empty are by Python's reader."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise DocumentError(kind, f"is no table: {error}") from error
    return [value for row in rows for value in row if value]


def _notation(raw: str, separator: str, *, is_quoted: bool) -> Escape:
    """How a cell is written: in quotes if it was, or has to be.

    Quotes inside of a cell stay as they are where its source has some too, and between tabs.
    """
    may_begin = raw.startswith('"')
    may_have = '"' in raw or separator == _TAB

    def written(text: str) -> str:
        if text.startswith('"'):
            has_others = not may_begin or _CLOSED_INSIDE.match(text) is None
        else:
            has_others = not may_have and '"' in text
        needs_quotes = is_quoted or has_others or any(c in text for c in f"\r\n{separator}")
        return _quoted(text) if needs_quotes else text

    return written


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
