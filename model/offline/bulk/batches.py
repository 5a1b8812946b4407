"""Batches of a data pipeline: the texts of their columns, and translations in columns beside them.

Owns the two forms that pipelines hand over and take back, Arrow tables and NumPy arrays by the
names of their columns. What has no text is a bad cell with its reason, as in a table of a job. A
batch that does not have the columns at all is an error, for so is every other batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from model.errors import DataError, shown
from model.offline.bulk.blocks import NOT_TEXT, NULL, Cell, Columns
from model.offline.bulk.parquet import cells_of_column, is_text

BatchT = TypeVar("BatchT")

_PYTHON_OBJECTS = "ray.data.arrow_pickled_object"
"""Ray's type of columns whose values are of several types."""
_MAX_NAMES = 20


def cells_of_batch(batch: object, columns: Columns, others: Sequence[str] = ()) -> list[list[Cell]]:
    """Of each column that is translated, its cells.

    Args:
        batch: An Arrow table, or arrays by name.
        columns: Those that are translated, and those that translations go to.
        others: Further columns that are added.

    Raises:
        DataError: The batch is neither, has not the columns or has the new ones already, or one
            of them holds no texts.
    """
    if isinstance(batch, Mapping):
        _check_names(list(batch), columns, others)
        return [_cells_of_array(np.asarray(batch[name]), name) for name in columns.names]
    if not hasattr(batch, "schema") or not hasattr(batch, "append_column"):
        raise DataError(
            f"a batch is of type {type(batch).__name__}; what is translated is an Arrow table or"
            " NumPy arrays: batch_format='pyarrow' or 'numpy'"
        )
    _check_names(list(batch.schema.names), columns, others)
    table: Any = batch
    return [_cells_of_arrow(table.column(name), name) for name in columns.names]


def with_columns(batch: BatchT, new: Mapping[str, Sequence[str | None]]) -> BatchT:
    """The batch with further columns of strings; of the same form."""
    if isinstance(batch, Mapping):
        arrays = {name: np.array(texts, dtype=object) for name, texts in new.items()}
        found: Any = {**batch, **arrays}
        return found  # type: ignore[no-any-return]  # a mapping's like
    import pyarrow as pa  # noqa: PLC0415  # whoever has such a batch has it

    table: Any = batch
    for name, texts in new.items():
        field = pa.field(name, pa.string())
        table = table.append_column(field, pa.array(texts, type=pa.string()))
    return table  # type: ignore[no-any-return]  # a table


def _check_names(names: Sequence[str], columns: Columns, others: Sequence[str]) -> None:
    for column in columns.names:
        if column not in names:
            listed = ", ".join(map(shown, names[:_MAX_NAMES])) or "none"
            more = len(names) - _MAX_NAMES
            listed += f" and {more} more" if more > 0 else ""
            raise DataError(f"the data has no column {shown(column)}; it has {listed}")
    for column in (*columns.new, *others):
        if column in names:
            raise DataError(
                f"the data has a column {shown(column)} already; choose another suffix or"
                " reason_column"
            )


def _cells_of_arrow(column: Any, name: str) -> list[Cell]:
    kind = column.type
    if getattr(kind, "extension_name", None) == _PYTHON_OBJECTS:
        return [_cell(value) for value in column.to_pylist()]
    if not is_text(kind) and str(kind) != "null":
        raise _no_text(name, kind)
    return cells_of_column(column)


def _cells_of_array(array: "np.ndarray[Any, Any]", name: str) -> list[Cell]:
    is_nothing = array.dtype.kind == "f" and bool(np.isnan(array).all())
    if array.ndim != 1 or not (array.dtype.kind in "OUT" or is_nothing):
        shape = "" if array.ndim == 1 else f" and shape {array.shape}"
        raise _no_text(name, f"{array.dtype}{shape}")
    return [_cell(value) for value in array]


def _cell(value: object) -> Cell:
    """A value as text; a NaN is what pandas and NumPy have for null."""
    if isinstance(value, str):
        return str(value)
    is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return NULL if value is None or is_nan else NOT_TEXT


def _no_text(name: str, kind: object) -> DataError:
    return DataError(
        f"column {shown(name)} of the data is of type {kind}; what is translated is a string"
    )
