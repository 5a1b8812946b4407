"""The order in which the kernels want rows of matrices: whole vectors a head, pairs in a panel.

Owns padding and interleaving of int8 rows and of what belongs to them (scales, biases). Which
tensor goes where is `model.native.network`; panels themselves are cut in `src/gemm.cpp`.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Quanta = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float32]

VECTOR = 16
"""Numbers of a vector; every head begins a new one."""
PAIR = 32
"""Outputs of either matrix in a panel of two (`kPair` in `src/gemm.h`)."""

RowsT = TypeVar("RowsT", Quanta, Floats)


def padded(width: int, step: int = VECTOR) -> int:
    """The next multiple of `step`."""
    return -(-width // step) * step


def pad_heads(rows: RowsT, width: int) -> RowsT:
    """(H · width, …) → (H · padded width, …), zeros after each head."""
    missing = padded(width) - width
    if not missing:
        return rows
    heads = rows.reshape(-1, width, *rows.shape[1:])
    widths = [(0, 0), (0, missing), *[(0, 0)] * (rows.ndim - 1)]
    return np.pad(heads, widths).reshape(-1, *rows.shape[1:])


def pair(first: RowsT, second: RowsT) -> RowsT:
    """Rows of two matrices of one shape, 32 of the first and the same 32 of the second in turn.

    (O, …) each → (2 · O padded to a multiple of 32, …); the padding is zero.
    """
    missing = padded(len(first), PAIR) - len(first)
    widths = [(0, missing), *[(0, 0)] * (first.ndim - 1)]
    parts = [np.pad(rows, widths).reshape(-1, PAIR, *rows.shape[1:]) for rows in (first, second)]
    return np.stack(parts, axis=1).reshape(-1, *first.shape[1:])
