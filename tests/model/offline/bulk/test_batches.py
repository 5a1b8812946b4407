"""Batches of both forms: their texts, what is bad in them, and columns beside the others."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from model.errors import DataError
from model.offline.bulk.batches import cells_of_batch, with_columns
from model.offline.bulk.blocks import NOT_TEXT, NOT_UTF8, NULL, Columns

TITLE = Columns(names=("title",), new=("title_de",))


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_a_column_of_strings_of_any_type_is_texts_and_nulls(kind: Any) -> None:
    plain = pa.chunked_array([pa.array(["a", None]), pa.array(["b"])])
    table = pa.table({"n": [1, 2, 3], "title": plain.cast(kind)})
    assert cells_of_batch(table, TITLE) == [["a", NULL, "b"]]


def test_arrays_are_texts_nulls_and_what_is_no_text() -> None:
    values: list[object] = ["a", None, float("nan"), 5, b"b", np.str_("c")]
    (cells,) = cells_of_batch({"title": np.array(values, dtype=object)}, TITLE)
    assert cells == ["a", NULL, NULL, NOT_TEXT, NOT_TEXT, "c"]
    assert cells_of_batch({"title": np.array(["a", "bc"])}, TITLE) == [["a", "bc"]]


def test_cells_that_are_lists_are_no_text() -> None:
    ragged = np.empty(3, dtype=object)
    ragged[:] = ["one", np.array(["a", "b"]), np.array([1.5])]
    assert cells_of_batch({"title": ragged}, TITLE) == [["one", NOT_TEXT, NOT_TEXT]]


def test_a_column_of_nothing_is_nulls() -> None:
    assert cells_of_batch(pa.table({"title": pa.nulls(2)}), TITLE) == [[NULL, NULL]]
    assert cells_of_batch({"title": np.array([np.nan, np.nan])}, TITLE) == [[NULL, NULL]]


def test_bytes_that_are_not_utf_8_are_a_bad_cell() -> None:
    raw = pa.array([b"a", b"\xff"], type=pa.binary())
    strings = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    assert cells_of_batch(pa.table({"title": strings}), TITLE) == [["a", NOT_UTF8]]


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        (pa.table({"text": ["a"]}), "the data has no column 'title'; it has 'text'"),
        ({"text": np.array(["a"])}, "the data has no column 'title'; it has 'text'"),
        ({}, "the data has no column 'title'; it has none"),
        (
            {f"c{number}": np.array(["a"]) for number in range(30)},
            f"it has {', '.join(repr(f'c{number}') for number in range(20))} and 10 more",
        ),
        (
            pa.table({"title": ["a"], "title_de": ["b"]}),
            "the data has a column 'title_de' already; choose another suffix or reason_column",
        ),
        ({"title": np.array(["a"]), "why": np.array(["b"])}, "has a column 'why' already"),
        (pa.table({"title": [1]}), "column 'title' of the data is of type int64; what is"),
        ({"title": np.array([1.5])}, "column 'title' of the data is of type float64; what is"),
        ({"title": np.array([["a"]])}, "is of type <U1 and shape (1, 1); what is translated"),
        (["a"], "a batch is of type list; what is translated is an Arrow table or NumPy arrays"),
    ],
)
def test_a_batch_that_no_row_of_can_be_translated_is_one_error(batch: object, told: str) -> None:
    with pytest.raises(DataError) as raised:
        cells_of_batch(batch, TITLE, ["why"])
    assert told in str(raised.value)


def test_new_columns_stand_behind_the_others_as_strings() -> None:
    new = {"title_de": ["x", None], "why": [None, None]}
    table = with_columns(pa.table({"title": ["a", None], "n": [1, 2]}), new)
    assert table.schema.names == ["title", "n", "title_de", "why"]
    assert table.schema.field("why").type == pa.string()
    assert table.column("title_de").to_pylist() == ["x", None]
    title, number = np.array(["a", None], dtype=object), np.array([1, 2])
    arrays = with_columns({"title": title, "n": number}, new)
    assert list(arrays) == ["title", "n", "title_de", "why"]
    assert arrays["n"] is number
    assert arrays["title_de"].tolist() == ["x", None]
