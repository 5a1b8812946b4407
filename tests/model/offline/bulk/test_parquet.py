"""Parquet: types, metadata and order are kept, and row groups are decoded once."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.errors import DataError
from model.offline.bulk.blocks import NOT_UTF8, NULL, Columns, InputFile, Rows, Sizes, numbered
from model.offline.bulk.parquet import ParquetFormat
from support.bulk_tables import read_all, surveyed, written

COLUMNS = Columns(names=("text",), new=("text_de",))
NUM_ROWS = 25


def _table() -> Any:
    texts = [f"text {number}" if number % 5 else None for number in range(NUM_ROWS)]
    return pa.table(
        {
            "n": pa.array(range(NUM_ROWS), pa.int16()),
            "text": pa.array(texts, pa.large_string()),
            "when": pa.array(
                [datetime(2026, 1, 2, tzinfo=UTC)] * NUM_ROWS, pa.timestamp("ns", "UTC")
            ),
            "price": pa.array([Decimal("1.10")] * NUM_ROWS, pa.decimal128(9, 2)),
            "kind": pa.array(["x", "y", "x", None, "y"] * 5).dictionary_encode(),
            "nested": pa.array([{"a": [1, None]}] * NUM_ROWS),
        }
    ).replace_schema_metadata({"of": "us"})


def _file(table: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def _texts(rows: Rows) -> list[list[str | None]]:
    return [[f"{cell}!" if isinstance(cell, str) else None] for (cell,) in rows.cells]


@pytest.mark.parametrize("group_rows", [4, 10, 100])
def test_every_column_keeps_its_type_and_its_values_in_order(group_rows: int) -> None:
    table = _table()
    is_standard = group_rows == 10  # whether items of lists are called as the standard has it
    data = _file(
        table,
        row_group_size=group_rows,
        compression="zstd",
        use_compliant_nested_type=is_standard,
    )
    found = read_all(ParquetFormat(), data, COLUMNS, Sizes(max_rows=3))
    assert max(block.num_rows for block, _ in found) == 3
    parts = [pq.read_table(io.BytesIO(written(rows, _texts(rows)))) for _, rows in found]
    whole = pa.concat_tables(parts)
    source = pq.read_table(io.BytesIO(data))
    assert whole.drop_columns(["text_de"]).equals(source, check_metadata=True)
    assert whole.schema.field("text_de").type == pa.large_string()
    expected = [None if text is None else f"{text}!" for text in table["text"].to_pylist()]
    assert whole["text_de"].to_pylist() == expected
    part = pq.ParquetFile(io.BytesIO(written(found[0][1], _texts(found[0][1]))))
    assert part.metadata.row_group(0).column(0).compression == "ZSTD"


def test_lz4_of_hadoop_is_read_and_becomes_the_lz4_of_today() -> None:
    """Spark and Hive pack so; Arrow has a codec for it, and no word."""
    data = _file(pa.table({"text": ["a", None, "ä"]}), compression="lz4")
    raw, hadoop = b"\x15\x0e\x16", b"\x15\x0a\x16"  # of a column's metadata, its codec: 7 or 5
    assert data.count(raw) == 1
    data = data.replace(raw, hadoop)
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).compression == "UNKNOWN"
    ((_, rows),) = read_all(ParquetFormat(), data, COLUMNS, Sizes(9))
    part = pq.ParquetFile(io.BytesIO(written(rows, _texts(rows))))
    assert part.read()["text_de"].to_pylist() == ["a!", None, "ä!"]
    assert part.metadata.row_group(0).column(0).compression == "LZ4"


def test_blocks_are_read_in_any_order() -> None:
    data = _file(_table(), row_group_size=10)
    survey = surveyed(ParquetFormat(), data, COLUMNS, Sizes(max_rows=3))
    file = InputFile(name="x", size=len(data), stamp="", sha256=survey.sha256)
    reader = ParquetFormat().open(io.BytesIO(data), file, COLUMNS)
    blocks = list(numbered([survey]))
    expected = {block.number: list(reader.read(block).cells) for block in blocks}
    for block in [*reversed(blocks), blocks[4], blocks[1], blocks[1]]:
        assert list(reader.read(block).cells) == expected[block.number]
    reader.close()


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_strings_of_every_type_are_texts(kind: Any) -> None:
    texts = pa.array(["a", None, "ä"]).cast(kind)
    ((_, rows),) = read_all(ParquetFormat(), _file(pa.table({"text": texts})), COLUMNS, Sizes(9))
    assert [cell for (cell,) in rows.cells] == ["a", NULL, "ä"]
    written(rows, _texts(rows))


def test_a_column_without_any_value_is_one_of_nulls() -> None:
    """pandas and pyarrow write a partition without a value so."""
    data = _file(pa.table({"text": pa.nulls(3), "n": [1, 2, 3]}))
    ((_, rows),) = read_all(ParquetFormat(), data, COLUMNS, Sizes(9))
    assert [cell for (cell,) in rows.cells] == [NULL] * 3
    part = pq.read_table(io.BytesIO(written(rows, _texts(rows))))
    assert part["text_de"].to_pylist() == [None] * 3
    assert part.schema.field("text_de").type == pa.string()
    assert part.schema.field("text").type == pa.null()


def test_bytes_that_are_no_text_are_a_bad_cell() -> None:
    texts = pa.array([b"a", b"\xff\xfe"]).view(pa.string())
    ((_, rows),) = read_all(ParquetFormat(), _file(pa.table({"text": texts})), COLUMNS, Sizes(9))
    assert [cell for (cell,) in rows.cells] == ["a", NOT_UTF8]


def test_wide_rows_make_small_blocks() -> None:
    table = pa.table({"text": [f"{number}" * 3_000 for number in range(10, 60)]})
    data = _file(table, compression="none", use_dictionary=False)
    survey = surveyed(ParquetFormat(), data, COLUMNS, Sizes(max_rows=99, max_bytes=30_000))
    assert max(num_rows for *_, num_rows in survey.ranges) in (4, 5)


def test_a_table_without_rows_keeps_its_columns() -> None:
    ((block, rows),) = read_all(ParquetFormat(), _file(_table().slice(0, 0)), COLUMNS, Sizes(9))
    assert block.num_rows == 0
    part = pq.read_table(io.BytesIO(written(rows, [])))
    assert part.column_names == [*_table().column_names, "text_de"]


@pytest.mark.parametrize(
    ("names", "new", "problem"),
    [
        (["title"], ["title_de"], "x: has no column 'title'; it has 'n', 'text', 'when'"),
        (["n"], ["n_de"], "x: column 'n' is of type int16; what is translated is a string"),
        (["text"], ["n"], "x: has a column 'n' already; choose another --suffix"),
    ],
)
def test_a_schema_without_the_columns_is_refused(
    names: Sequence[str], new: Sequence[str], problem: str
) -> None:
    columns = Columns(names=tuple(names), new=tuple(new))
    with pytest.raises(DataError, match=problem):
        surveyed(ParquetFormat(), _file(_table()), columns, Sizes(9))


def test_what_is_no_parquet_is_one_error() -> None:
    with pytest.raises(DataError, match=r"^x: cannot be read as Parquet: [^\n]*$"):
        surveyed(ParquetFormat(), b"PAR1 and so on", COLUMNS, Sizes(9))
    data = bytearray(_file(_table(), compression="zstd"))
    data[40:400] = bytes(360)
    with pytest.raises(DataError, match=r"^x: "):
        read_all(ParquetFormat(), bytes(data), COLUMNS, Sizes(9))
