"""Positions as the kernels want them: sinusoids that are added to embeddings, T5's buckets.

Owns the same numbers as `model.nn.positions`, bit for bit, made by NumPy: nothing of a packed
network needs torch, which takes seconds to load.
"""

import math

import numpy as np
import numpy.typing as npt

from model.config import PositionKind
from model.native.layout import Floats

_NUM_BUCKETS = 32
_MAX_DISTANCE = 128


def sinusoidal_rows(kind: PositionKind, first: int, length: int, d_model: int) -> Floats:
    """Sinusoidal encodings of positions from `first` on, (length, d_model).

    The formulas stand in `model.nn.positions.sinusoidal_table`; angles are float64 there and here.
    """
    half = d_model // 2
    divisor = half - 1 if kind == "sinusoidal-m2m100" else half
    periods = np.array([math.pow(10000.0, index / divisor) for index in range(half)])
    angles = np.arange(first, first + length, dtype=np.float64)[:, None] / periods
    rows = np.empty((length, d_model), dtype=np.float32)
    if kind == "sinusoidal-interleaved":
        sines, cosines = rows[:, 0::2], rows[:, 1::2]
    else:
        sines, cosines = rows[:, :half], rows[:, half:]
    sines[:], cosines[:] = np.sin(angles), np.cos(angles)
    return rows


def relative_buckets(
    distances: npt.NDArray[np.int64], *, is_bidirectional: bool
) -> npt.NDArray[np.int64]:
    """T5's 32 buckets of key − query distances, as `model.nn.positions.relative_buckets` has them.

    Args:
        distances: Of any shape.
        is_bidirectional: Whether keys ahead of the query have buckets of their own.

    Returns:
        Numbers below 32, of the same shape.
    """
    num_buckets = _NUM_BUCKETS // 2 if is_bidirectional else _NUM_BUCKETS
    first = np.where((distances > 0) & is_bidirectional, num_buckets, 0)
    distances = np.abs(distances) if is_bidirectional else np.maximum(-distances, 0)
    num_exact = num_buckets // 2
    growth = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(num_exact))
    growth = growth / np.float32(math.log(_MAX_DISTANCE / num_exact))
    growth = growth * np.float32(num_buckets - num_exact)
    far = np.minimum(num_exact + growth.astype(np.int64), num_buckets - 1)
    return first + np.where(distances < num_exact, distances, far)
