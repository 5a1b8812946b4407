"""Tables as text (CSV, TSV): every cell is a text; separators, quotes and line ends stay.

Owns where cells are. Python's `csv` says what separates them and what every cell means; a file in
which the places that are found here do not mean that is refused.
"""

import csv
import io
import re
from collections.abc import Iterator

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Escape, TemplateBuilder
from model.errors import DocumentError

_SEPARATORS = ",;\t|"
_SAMPLE = 64 * 1024


def open_csv(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """Cells between commas, semicolons, tabs or bars, as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, or its quotes do not match.
    """
    encoded = decoded("csv", data)
    return _open("csv", data, _separator(encoded.text[:_SAMPLE]), limits)


def open_tsv(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """Cells between tabs, as a document; errors as of `open_csv`."""
    return _open("tsv", data, "\t", limits)


def _open(kind: str, data: bytes, separator: str, limits: DocumentLimits) -> Document:
    encoded = decoded(kind, data)
    builder = TemplateBuilder(kind=kind, limits=limits)
    values: list[str] = []
    done = 0
    for cell in _cells(encoded.text, separator):
        raw = cell[0]
        value = raw[1:-1].replace('""', '"') if raw.startswith('"') else raw
        values += [value] if value else []
        builder.pieces.append(encoded.text[done : cell.start()])
        builder.pieces.append(builder.plain(value, raw, _notation(raw, separator)))
        done = cell.end()
    builder.pieces.append(encoded.text[done:])
    if values != _values(kind, encoded.text, separator):
        raise DocumentError(kind, "has quotes that do not match")
    return document_of(kind, builder.template(), encoded.encoded)


def _separator(sample: str) -> str:
    """What most evenly divides the first lines, the comma if nothing does."""
    lines = re.sub(r'"(?:[^"]|"")*+"', "", sample).splitlines()[:50]
    lines = [line for line in lines if line]
    counts = {one: [line.count(one) for line in lines] for one in _SEPARATORS}
    even = [one for one, found in counts.items() if found and min(found) == max(found) > 0]
    common = max(_SEPARATORS, key=lambda one: sum(counts[one]))
    return even[0] if even else common if any(counts[common]) else ","


def _cells(text: str, separator: str) -> Iterator[re.Match[str]]:
    """Cells that are not empty."""
    quoted, end = r'"(?:[^"]|"")*+"', re.escape(separator)
    return re.finditer(rf"(?:(?<=[{end}\r\n])|\A)(?:{quoted}|[^{end}\r\n\"][^{end}\r\n]*+)", text)


def _values(kind: str, text: str, separator: str) -> list[str]:
    """What the cells that are not empty are by Python's reader."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise DocumentError(kind, f"is no table: {error}") from error
    return [value for row in rows for value in row if value]


def _notation(raw: str, separator: str) -> Escape:
    """How a cell is written: in quotes if it was, or has to be."""

    def written(text: str) -> str:
        needs_quotes = raw.startswith('"') or any(c in text for c in f'"\r\n{separator}')
        return '"' + text.replace('"', '""') + '"' if needs_quotes else text

    return written
