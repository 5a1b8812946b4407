"""Sinusoidal positions as the kernels want them: a table that is added to embeddings.

Owns the same numbers as `model.nn.positions`, bit for bit, made by NumPy: torch's library is ten
megabytes in memory once it is called, and nothing else of a packed network needs it.
"""

import math

import numpy as np

from model.config import PositionKind
from model.native.layout import Floats


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
