"""Tables with separated fields (CSV, TSV): rows, quotes, a header with names.

Owns where a row ends (a field in quotes may have line feeds), what a field means, and how fields
are appended: everything that a row had stays byte for byte. Every part has the header, so that
each is a table by itself. Quotes are those of Python's `csv`: special where a field begins, doubled
inside; those of TSV are `tab_rows`'s.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from model.errors import DataError, shown
from model.offline.bulk.blocks import (
    MAX_ROW_BYTES,
    NO_COLUMN,
    RAGGED,
    Block,
    Cell,
    Columns,
    InputFile,
    Sizes,
    Survey,
)
from model.offline.bulk.lines import (
    Ranges,
    body_of,
    bytes_of,
    decoded,
    end_of,
    first_row_of,
    row_of,
)
from model.offline.bulk.tab_rows import fields_with_tabs, rows_with_tabs

_BOM = b"\xef\xbb\xbf"
_SEPARATORS = {"csv": b",;\t|", "tsv": b"\t"}


_SAID = re.compile(rb"(?:\xef\xbb\xbf)?(\"?)sep=([^\w\"\r\n\x80-\xff])\1", re.IGNORECASE)
"""A first line that is no row: it tells Excel what separates fields."""


def _divided(header: bytes) -> tuple[bytes, bytes]:
    """The separator that a header says, if it does, and its row, without a byte order mark."""
    first, end, row = header.partition(b"\n")
    match = _SAID.fullmatch(first.removesuffix(b"\r"))
    return (match[2], row) if match and end else (b"", header.removeprefix(_BOM))


@dataclass(frozen=True, slots=True)
class _Notation:
    """Notation of a table.

    Attributes:
        separator: Of fields.
        is_tsv: Whether quotes are those of TSV.
    """

    separator: bytes
    is_tsv: bool

    def fields(self, body: bytes) -> list[bytes]:
        """What the fields of a row mean."""
        return fields_with_tabs(body) if self.is_tsv else _fields(body, self.separator)

    def names(self, header: bytes) -> list[str]:
        """The names of the columns."""
        row = header.removeprefix(_BOM) if self.is_tsv else _divided(header)[1]
        fields = self.fields(body_of(row))
        return [field.decode(errors="replace") for field in fields]

    def rows(self, stream: BinaryIO, name: str, header: bytes, first: int = 1) -> Iterator[bytes]:
        """Rows from where a stream is, each with its line end; errors as of `_rows`."""
        if self.is_tsv:
            may_span = len(self.names(header)) > 1
            return rows_with_tabs(stream, name, first, may_span=may_span)
        return _rows(stream, name, self.separator, first)


class SeparatedFormat:
    """CSV, whose separator is the first of comma, semicolon, tab and bar that finds the columns.

    Args:
        name: csv, or tsv, where it is the tab.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.endings = (f".{name}",)

    def headings(self, stream: BinaryIO, name: str) -> list[list[str]]:
        """The names by each separator."""
        header = self._header(stream, name)
        return [notation.names(header) for notation in self._notations(header, name)]

    def survey(self, stream: BinaryIO, name: str, columns: Columns, sizes: Sizes) -> Survey:
        """As of `Format`; the header has to have the columns."""
        digest = hashlib.sha256()
        header = self._header(stream, name)
        notation = self._notation(header, name, columns)
        digest.update(header)
        ranges = Ranges(sizes, start=len(header))
        for row in notation.rows(stream, name, header):
            digest.update(row)
            ranges.add(len(row))
        return Survey(
            sha256=digest.hexdigest(),
            header=len(header),
            separator=notation.separator.decode(),
            ranges=ranges.all(),
        )

    def open(self, stream: BinaryIO, file: InputFile, columns: Columns) -> "_SeparatedReader":
        """As of `Format`."""
        notation = _Notation(file.separator.encode(), is_tsv=self.name == "tsv")
        return _SeparatedReader(stream, file, columns, notation)

    def _header(self, stream: BinaryIO, name: str) -> bytes:
        """Everything before the rows; of names with line feeds in them no separator will fit."""
        first = first_row_of(stream, name)
        is_said = self.name == "csv" and _SAID.fullmatch(body_of(first)) is not None
        return first + row_of(stream, name, 2) if is_said else first

    def _notation(self, header: bytes, name: str, columns: Columns) -> _Notation:
        """The first notation by which a header has the columns."""
        found: list[list[str]] = []
        for notation in self._notations(header, name):
            names = notation.names(header)
            if set(columns.names) <= {*names}:
                _check_names(names, name, columns)
                return notation
            found.append(names)
        names = max(found, key=len)
        missing = next(column for column in columns.names if column not in names)
        raise DataError(
            f"{name}: has no column {shown(missing)}; it has {', '.join(map(shown, names))}"
        )

    def _notations(self, header: bytes, name: str) -> Iterator[_Notation]:
        """What may be the notation, the likeliest first."""
        if not header:
            raise DataError(f"{name}: is empty; a table has a header")
        said, row = _divided(header) if self.name == "csv" else (b"", header)
        for number in said or _SEPARATORS[self.name]:
            notation = _Notation(bytes([number]), is_tsv=self.name == "tsv")
            if not notation.is_tsv and _ends_open(row, notation.separator, is_open=False):
                raise DataError(f"{name}:1: a quote is not closed in the header")
            yield notation


def _check_names(names: Sequence[str], name: str, columns: Columns) -> None:
    for column in columns.names:
        if names.count(column) > 1:
            raise DataError(f"{name}: has {names.count(column)} columns {shown(column)}")
    for column in columns.new:
        if column in names:
            raise DataError(
                f"{name}: has a column {shown(column)} already; choose another --suffix"
            )


class _SeparatedReader:
    """Blocks of rows."""

    def __init__(
        self, stream: BinaryIO, file: InputFile, columns: Columns, notation: _Notation
    ) -> None:
        self._stream = stream
        self._file = file
        self._columns = columns
        self._notation = notation
        self._header = bytes_of(stream, file.name, 0, file.header)

    def read(self, block: Block) -> "_SeparatedRows":
        """As of `Reader`."""
        self._stream.seek(block.start)
        rows: list[bytes] = []
        left = block.end - block.start
        name, first = self._file.name, block.first_row
        for row in self._notation.rows(self._stream, name, self._header, first):
            rows.append(row)
            left -= len(row)
            if left <= 0:
                break
        if left or len(rows) != block.num_rows:
            raise DataError(f"{self._file.name}: has other rows than when the job began")
        return _SeparatedRows(self._header, rows, self._notation, self._columns)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class _SeparatedRows:
    """Rows, as they were written."""

    def __init__(
        self, header: bytes, rows: list[bytes], notation: _Notation, columns: Columns
    ) -> None:
        self._header = header
        self._rows = rows
        self._separator = notation.separator
        self._columns = columns
        names = notation.names(header)
        self._num_fields = len(names)
        self._places = [names.index(column) for column in columns.names]
        fields = [[] if self._is_blank(row) else notation.fields(body_of(row)) for row in rows]
        self._missing = [max(0, self._num_fields - len(found)) for found in fields]
        self.cells = [self._cells_of(found) for found in fields]

    def _is_blank(self, row: bytes) -> bool:
        """Whether a line is no row; where there is one column, it is an empty field."""
        return not body_of(row) and self._num_fields > 1

    def _cells_of(self, fields: list[bytes]) -> tuple[Cell, ...]:
        if not fields:  # a blank line, of which nothing is asked
            return ("",) * len(self._places)
        if len(fields) > self._num_fields:
            return (RAGGED,) * len(self._places)
        return tuple(
            decoded(fields[place]) if place < len(fields) else NO_COLUMN for place in self._places
        )

    def write(self, stream: BinaryIO, found: Sequence[Sequence[str | None]]) -> None:
        """As of `Rows`; null is an empty field."""
        names = [self._quoted(new) for new in self._columns.new]
        end = end_of(self._header) or b"\n"
        stream.write(
            body_of(self._header) + b"".join(self._separator + name for name in names) + end
        )
        for row, missing, texts in zip(self._rows, self._missing, found, strict=True):
            if self._is_blank(row):
                stream.write(end_of(row) or end)
                continue
            new = b"".join(self._separator + self._quoted(text or "") for text in texts)
            stream.write(body_of(row) + self._separator * missing + new + (end_of(row) or end))

    def _quoted(self, text: str) -> bytes:
        data = text.encode()
        if any(one in data for one in (self._separator, b'"', b"\n", b"\r")):
            return b'"' + data.replace(b'"', b'""') + b'"'
        return data


def _rows(stream: BinaryIO, name: str, separator: bytes, first: int = 1) -> Iterator[bytes]:
    """Rows from where a stream is, each with its line end.

    Raises:
        DataError: A quote is not closed, or a row is too long to be held in memory.
    """
    number = first
    while row := row_of(stream, f"{name}, row", number):
        is_open = b'"' in row and _ends_open(row, separator, is_open=False)
        lines = [row]
        size = len(row)
        while is_open:
            line = row_of(stream, f"{name}, row", number)
            size += len(line)
            if not line or size > MAX_ROW_BYTES:
                problem = (
                    "a quote is not closed" if not line else f"has more than {MAX_ROW_BYTES} bytes"
                )
                raise DataError(f"{name}, row {number}: {problem}")
            lines.append(line)
            is_open = _ends_open(line, separator, is_open=True)
        yield b"".join(lines)
        number += 1


def _ends_open(line: bytes, separator: bytes, *, is_open: bool) -> bool:
    """Whether a line ends inside of quotes.

    Args:
        line: With its line feed.
        separator: Of fields.
        is_open: Whether it begins inside of quotes.
    """
    whole, rest = _patterns(separator)
    return (rest if is_open else whole).fullmatch(line) is None


def _fields(body: bytes, separator: bytes) -> list[bytes]:
    """What the fields of a row mean."""
    if b'"' not in body:
        return body.split(separator)
    pattern = _field_pattern(separator)
    found: list[bytes] = []
    place = 0
    while True:
        match = pattern.match(body, place)
        assert match is not None  # a row's quotes are closed
        quoted, rest = match.groups()
        found.append(rest if quoted is None else quoted.replace(b'""', b'"') + rest)
        place = match.end() + 1
        if place > len(body):
            return found


@lru_cache(maxsize=8)
def _patterns(separator: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Lines whose quotes are closed: from the beginning, and from inside of quotes."""
    end = re.escape(separator)
    inside = rb'(?:[^"]|"")*+"[^%b]*+' % end
    field = rb'(?:"%b|[^"%b][^%b]*+)?+' % (inside, end, end)
    more = rb"(?:%b%b)*+" % (end, field)
    return re.compile(field + more), re.compile(inside + more)


@lru_cache(maxsize=8)
def _field_pattern(separator: bytes) -> re.Pattern[bytes]:
    end = re.escape(separator)
    return re.compile(rb'(?:"((?:[^"]|"")*+)")?+([^%b]*+)' % end)
