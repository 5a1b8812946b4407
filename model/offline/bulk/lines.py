"""Tables with a row a line: plain text, and JSON objects (JSON Lines).

Owns where their rows are, and how a translation gets into one: a JSON object gets further members
before its last brace, so that everything else of it stays byte for byte. A line feed ends a line,
nothing else does.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from io import SEEK_SET
from typing import BinaryIO

from model.errors import DataError, shown
from model.file_heads import other_than_utf8
from model.offline.bulk.blocks import (
    HAS_COLUMN,
    MAX_ROW_BYTES,
    NO_COLUMN,
    NO_RECORD,
    NOT_TEXT,
    NOT_UTF8,
    NULL,
    Block,
    Cell,
    Columns,
    InputFile,
    Rows,
    Sizes,
    Survey,
)

_BOM = b"\xef\xbb\xbf"


class Ranges:
    """Blocks of a file that is read row by row.

    Args:
        sizes: How large blocks are.
        start: Where rows begin.
    """

    def __init__(self, sizes: Sizes, start: int = 0) -> None:
        self._sizes = sizes
        self._start = self._end = start
        self._num_rows = 0
        self.found: list[tuple[int, int, int, int]] = []

    def add(self, num_bytes: int) -> None:
        """Count a row; it begins a new block if the last one is full."""
        is_full = self._num_rows == self._sizes.max_rows or (
            self._num_rows and self._end + num_bytes - self._start > self._sizes.max_bytes
        )
        if is_full:
            self._close()
        self._num_rows += 1
        self._end += num_bytes

    def all(self) -> list[tuple[int, int, int, int]]:
        """The blocks; one without rows, if there are no rows."""
        if self._num_rows or not self.found:
            self._close()
        return self.found

    def _close(self) -> None:
        self.found.append((0, self._start, self._end, self._num_rows))
        self._start, self._num_rows = self._end, 0


def row_of(stream: BinaryIO, name: str, number: int) -> bytes:
    """The next line, with its end; empty behind the last one.

    Raises:
        DataError: It is too long to be held in memory.
    """
    line = stream.readline(MAX_ROW_BYTES + 1)
    if len(line) > MAX_ROW_BYTES:
        raise DataError(f"{name}:{number}: has more than {MAX_ROW_BYTES} bytes, which a row may")
    return line


def end_of(row: bytes) -> bytes:
    """How a row ends: CR LF, LF, or nothing at the end of a file."""
    if row.endswith(b"\r\n"):
        return b"\r\n"
    return b"\n" if row.endswith(b"\n") else b""


def body_of(row: bytes) -> bytes:
    """A row without its line end."""
    return row.removesuffix(end_of(row)) if end_of(row) else row


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()


def first_row_of(stream: BinaryIO, name: str) -> bytes:
    """The first line of a file, with its end; empty of an empty file.

    Raises:
        DataError: It begins as what is packed or in UTF-16 does, or is too long.
    """
    line = row_of(stream, name, 1)
    what = other_than_utf8(line)
    if what is not None:
        raise DataError(f"{name}: is {what}; a bulk job reads text in UTF-8 that is not packed")
    return line


def bytes_of(stream: BinaryIO, name: str, start: int, end: int) -> bytes:
    """A range of a file.

    Raises:
        DataError: The file is shorter than it was.
    """
    stream.seek(start, SEEK_SET)
    data = stream.read(end - start)
    if len(data) != end - start:
        raise DataError(f"{name}: has become shorter since the job began: no byte {end}")
    return data


def _survey(
    stream: BinaryIO, name: str, sizes: Sizes, look: Callable[[bytes, int], None]
) -> Survey:
    """Divide a file of lines; `look` is shown the first one that is not blank, and its number."""
    digest, ranges = hashlib.sha256(), Ranges(sizes)
    number = 1
    is_seen = False
    line = first_row_of(stream, name)
    while line:
        if not (is_seen or _is_blank(line)):
            look(line, number)
            is_seen = True
        digest.update(line)
        ranges.add(len(line))
        number += 1
        line = row_of(stream, name, number)
    return Survey(sha256=digest.hexdigest(), ranges=ranges.all())


class _LineReader:
    """Blocks of a file of lines.

    Args:
        stream: The file.
        file: What it is.
        rows: Makes rows of lines without their line feeds.
    """

    def __init__(
        self, stream: BinaryIO, file: InputFile, rows: Callable[[list[bytes]], Rows]
    ) -> None:
        self._stream = stream
        self._file = file
        self._rows = rows

    def read(self, block: Block) -> Rows:
        """The rows of a block; errors as of `Reader`."""
        data = bytes_of(self._stream, self._file.name, block.start, block.end)
        return self._rows(_lines(data))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _lines(data: bytes) -> list[bytes]:
    """Lines without their line feeds."""
    return data.removesuffix(b"\n").split(b"\n") if data else []


class TextFormat:
    """Plain text: each line is a text, as `dragoman translate FILE` has it."""

    name = "txt"
    endings = (".txt",)

    def headings(self, stream: BinaryIO, name: str) -> list[list[str]]:
        """None: a line is a text."""
        del stream, name
        return []

    def survey(self, stream: BinaryIO, name: str, columns: Columns, sizes: Sizes) -> Survey:
        """As of `Format`."""
        del columns  # a line is one
        return _survey(stream, name, sizes, lambda *_: None)

    def open(self, stream: BinaryIO, file: InputFile, columns: Columns) -> _LineReader:
        """As of `Format`."""
        del columns
        return _LineReader(stream, file, _TextRows)


class _TextRows:
    """Lines; one that has no translation becomes an empty one."""

    def __init__(self, lines: list[bytes]) -> None:
        self.cells: list[tuple[Cell]] = [(decoded(line),) for line in lines]

    def write(self, stream: BinaryIO, found: Sequence[Sequence[str | None]]) -> None:
        """As of `Rows`."""
        stream.writelines(f"{text or ''}\n".encode() for (text,) in found)


def decoded(data: bytes) -> Cell:
    """Bytes as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return NOT_UTF8


class JsonLinesFormat:
    """JSON Lines: each line is an object, a column is a member of it."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson")

    def headings(self, stream: BinaryIO, name: str) -> list[list[str]]:
        """The members of the first row; none if it is no object."""
        number = 1
        line = first_row_of(stream, name)
        while line and _is_blank(line):
            number += 1
            line = row_of(stream, name, number)
        row = _parsed(line.removeprefix(_BOM))
        return [] if row is None else [list(row)]

    def survey(self, stream: BinaryIO, name: str, columns: Columns, sizes: Sizes) -> Survey:
        """As of `Format`; the first row has to be an object with the columns."""

        def look(line: bytes, number: int) -> None:
            row = _parsed(line.removeprefix(_BOM))
            if row is None:
                raise DataError(
                    f"{name}:{number}: is no JSON object, as every line of JSON Lines is"
                )
            for column in columns.names:
                if column not in row:
                    raise DataError(
                        f"{name}: has no column {shown(column)}; row {number} has {_names(row)}"
                    )
            for column in columns.new:
                if column in row:
                    raise DataError(
                        f"{name}: has a column {shown(column)} already; choose another --suffix"
                    )

        return _survey(stream, name, sizes, look)

    def open(self, stream: BinaryIO, file: InputFile, columns: Columns) -> _LineReader:
        """As of `Format`."""
        return _LineReader(stream, file, lambda lines: _JsonRows(lines, columns))


class _JsonRows:
    """Objects, as they were written; a blank line has no cells, and stays blank."""

    def __init__(self, lines: list[bytes], columns: Columns) -> None:
        self._columns = columns
        self._names = [json.dumps(new, ensure_ascii=False) for new in columns.new]
        self._lines = lines
        parsed = [_parsed(line.removeprefix(_BOM)) for line in lines]
        self._sizes = [None if row is None else len(row) for row in parsed]
        nothing = ("",) * len(columns.names)  # of a blank line nothing is asked
        self.cells: list[tuple[Cell, ...]] = [
            nothing if _is_blank(line) else self._cells_of(row)
            for line, row in zip(lines, parsed, strict=True)
        ]

    def _cells_of(self, row: dict[str, object] | None) -> tuple[Cell, ...]:
        if row is None:
            return (NO_RECORD,) * len(self._columns.names)
        return tuple(
            HAS_COLUMN if new in row else _cell(row, column)
            for column, new in zip(self._columns.names, self._columns.new, strict=True)
        )

    def write(self, stream: BinaryIO, found: Sequence[Sequence[str | None]]) -> None:
        """As of `Rows`; what is no object becomes one with nulls; members that are there stay."""
        rows = zip(self._lines, self._sizes, self.cells, found, strict=True)
        for line, size, cells, texts in rows:
            if _is_blank(line):
                stream.write(line + b"\n")
                continue
            members = self._members(cells, texts)
            if size is None:
                stream.write(b"{" + members + b"}\n")
                continue
            end = line.rindex(b"}")
            comma = b", " if size and members else b""
            stream.write(line[:end] + comma + members + line[end:] + b"\n")

    def _members(self, cells: Sequence[Cell], texts: Sequence[str | None]) -> bytes:
        """The new members of a row, but for those that it has."""
        return ", ".join(
            f"{name}: {json.dumps(text, ensure_ascii=False)}"
            for name, cell, text in zip(self._names, cells, texts, strict=True)
            if cell != HAS_COLUMN
        ).encode()


def _parsed(line: bytes) -> dict[str, object] | None:
    """The object of a line; bytes that are not UTF-8 are lone surrogates in it.

    Of integers there is only that they are some: Python refuses those of 4,300 digits.
    """
    try:
        row = json.loads(line.decode(errors="surrogateescape"), parse_int=_no_text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _no_text(digits: str) -> int:
    return len(digits)


def _cell(row: dict[str, object], column: str) -> Cell:
    if column not in row:
        return NO_COLUMN
    value = row[column]
    if value is None:
        return NULL
    if not isinstance(value, str):
        return NOT_TEXT
    return value if _is_utf8(value) else NOT_UTF8


def _is_utf8(value: str) -> bool:
    """Whether no byte of a string was kept as a surrogate; escaped ones are the text path's."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return not any("\udc80" <= character <= "\udcff" for character in value)
    return True


def _names(row: dict[str, object]) -> str:
    names = list(row)
    listed = ", ".join(map(shown, names[:20]))
    return f"{listed} and {len(names) - 20} more" if len(names) > 20 else listed or "none"
