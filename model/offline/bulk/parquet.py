"""Parquet tables: row groups, of which blocks are ranges of rows.

Owns how they are read, a batch after the other so that a large row group is never in memory whole,
and how a part is written: with every column's type, the table's own metadata and its compression.
A reader goes on where its last block ended, so neighbouring blocks decode a row group once. Needs
pyarrow (extra `bulk`), which is imported by whoever opens the first table.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from model.errors import ConfigError, DataError, shown
from model.offline.bulk.blocks import (
    NULL,
    Block,
    Cell,
    Columns,
    InputFile,
    Sizes,
    Survey,
)
from model.offline.bulk.lines import decoded

_DIGEST_BYTES = 2**20
_BUFFER_BYTES = 2**20
_BATCH_ROWS = 1_000
_WRITTEN_AS = {"uncompressed": "none", "unknown": "lz4"}
"""Codecs by pyarrow's names that it does not write by: it has none for the LZ4 of Hadoop."""


class ParquetFormat:
    """Parquet; a column that is translated is one of strings, or of nothing but nulls."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def headings(self, stream: BinaryIO, name: str) -> list[list[str]]:
        """As of `Format`."""
        return [list(_opened(stream, name).schema_arrow.names)]

    def survey(self, stream: BinaryIO, name: str, columns: Columns, sizes: Sizes) -> Survey:
        """As of `Format`; the schema has to have the columns, as strings or nulls."""
        digest = hashlib.sha256()
        while data := stream.read(_DIGEST_BYTES):
            digest.update(data)
        file = _opened(stream, name)
        _check_schema(file.schema_arrow, name, columns)
        ranges = [
            one
            for group in range(file.metadata.num_row_groups)
            for one in _divided(group, file.metadata.row_group(group), sizes)
        ]
        return Survey(sha256=digest.hexdigest(), ranges=ranges or [(0, 0, 0, 0)])

    def open(self, stream: BinaryIO, file: InputFile, columns: Columns) -> "_ParquetReader":
        """As of `Format`."""
        return _ParquetReader(stream, file, columns)


def _divided(group: int, facts: Any, sizes: Sizes) -> Iterator[tuple[int, int, int, int]]:
    """Blocks of a row group."""
    row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
    size = max(1, min(sizes.max_rows, sizes.max_bytes // row_bytes))
    for start in range(0, facts.num_rows, size):
        end = min(start + size, facts.num_rows)
        yield group, start, end, end - start


def _arrow() -> Any:
    """pyarrow, with its Parquet."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  # an extra, and large
    except ImportError as error:
        raise ConfigError(
            "Parquet needs pyarrow; it comes with the extra: pip install 'dragoman[bulk]'"
        ) from error
    return pyarrow


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """What is wrong with a table, in one line that names it."""
    try:
        yield
    except _arrow().ArrowException as error:
        raise DataError(f"{name}: cannot be read as Parquet: {_line(error)}") from error
    except OSError as error:
        raise DataError(f"{name}: {error.strerror or _line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _opened(stream: BinaryIO, name: str) -> Any:
    arrow = _arrow()
    with _naming(name):
        return arrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER_BYTES)


def _check_schema(schema: Any, name: str, columns: Columns) -> None:
    names = list(schema.names)
    for column in columns.names:
        if column not in names:
            raise DataError(
                f"{name}: has no column {shown(column)}; it has {', '.join(map(shown, names))}"
            )
        if names.count(column) > 1:
            raise DataError(f"{name}: has {names.count(column)} columns {shown(column)}")
        kind = schema.field(column).type
        if not (is_text(kind) or _arrow().types.is_null(kind)):  # null: pandas found no value
            raise DataError(
                f"{name}: column {shown(column)} is of type {kind}; what is translated is a string"
            )
    for column in columns.new:
        if column in names:
            raise DataError(
                f"{name}: has a column {shown(column)} already; choose another --suffix"
            )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of strings."""
    types = _arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


class _ParquetReader:
    """Blocks of row groups, in order wherever they are asked for in order."""

    def __init__(self, stream: BinaryIO, file: InputFile, columns: Columns) -> None:
        self._stream = stream
        self._name = file.name
        self._columns = columns
        self._file = _opened(stream, file.name)
        self._group = -1
        self._row = 0  # of the group, the next that the batches give
        self._batches: Iterator[Any] = iter(())
        self._left: Any = None  # of the last batch, what was not asked for

    def read(self, block: Block) -> "_ParquetRows":
        """As of `Reader`."""
        with _naming(self._name):
            if block.group != self._group or block.start < self._row:
                self._begin(block.group)
            self._pass_over(block.start - self._row)
            batches = self._taken(block.num_rows)
            table = _arrow().Table.from_batches(batches, self._file.schema_arrow)
        if table.num_rows != block.num_rows:
            raise DataError(f"{self._name}: has other rows than when the job began")
        return _ParquetRows(table, self._columns, self._compression())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._stream.close()

    def _begin(self, group: int) -> None:
        groups = [group] if group < self._file.metadata.num_row_groups else []
        self._batches = self._file.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups)
        self._group, self._row, self._left = group, 0, None

    def _pass_over(self, num_rows: int) -> None:
        self._taken(num_rows)

    def _taken(self, num_rows: int) -> list[Any]:
        """The next rows as batches; fewer where the row group ends."""
        found: list[Any] = []
        while num_rows > 0:
            batch = self._left if self._left is not None else next(self._batches, None)
            if batch is None:
                break
            part = batch.slice(0, num_rows)
            self._left = batch.slice(num_rows) if batch.num_rows > num_rows else None
            self._row += part.num_rows
            num_rows -= part.num_rows
            found.append(part)
        return found

    def _compression(self) -> str:
        """The codec of the file, in the words by which pyarrow writes."""
        facts = self._file.metadata
        if not (facts.num_row_groups and facts.num_columns):
            return "snappy"
        codec = str(facts.row_group(0).column(0).compression).lower()
        return _WRITTEN_AS.get(codec, codec)


class _ParquetRows:
    """Rows of a table, in its own types."""

    def __init__(self, table: Any, columns: Columns, compression: str) -> None:
        self._table = table
        self._columns = columns
        self._compression = compression
        found = [cells_of_column(table.column(column)) for column in columns.names]
        self.cells: list[tuple[Cell, ...]] = list(zip(*found, strict=True))

    def write(self, stream: BinaryIO, found: Sequence[Sequence[str | None]]) -> None:
        """As of `Rows`."""
        arrow, table = _arrow(), self._table
        for place, (column, new) in enumerate(
            zip(self._columns.names, self._columns.new, strict=True)
        ):
            is_large = arrow.types.is_large_string(table.schema.field(column).type)
            kind = arrow.large_string() if is_large else arrow.string()
            texts = arrow.array([texts[place] for texts in found], type=kind)
            table = table.append_column(arrow.field(new, kind), texts)
        arrow.parquet.write_table(
            table,
            stream,
            compression=self._compression,
            use_compliant_nested_type=False,  # names inside of lists stay those of the file
        )


def cells_of_column(column: Any) -> list[Cell]:
    """Each value as text, decoded here: pyarrow does not look whether strings are UTF-8."""
    arrow = _arrow()
    found: list[Cell] = []
    for chunk in column.chunks:
        plain = chunk.dictionary_decode() if arrow.types.is_dictionary(chunk.type) else chunk
        values = plain.cast(arrow.large_binary()).to_pylist()
        found += [NULL if value is None else decoded(value) for value in values]
    return found
