"""Symmetric int8 quantisation of matrices as arrays: the arithmetic, row by row.

Owns the arithmetic only. w ≈ q · s with q in [-127, 127] and one scale s per row (first
dimension). The scales that are made here have 16 significant bits, so q · s (7 + 16 bits) is exact
in float32; hence quantising a dequantised matrix gives the same bytes again. The error of a weight
is at most s / 2 ≤ max|row| / 253.99. Tensors are `model.checkpoint.tensors.quantisation`. Imports
no torch.
"""

import numpy as np
import numpy.typing as npt

Quanta = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float32]

MAX_QUANTUM = 127
# Below this a row counts as zero; keeps scales and products away from subnormal numbers.
MIN_SCALE = 2.0**-100
# 127 times this is still finite.
MAX_SCALE = 2.0**121
_DROPPED_BITS = np.int32(0xFF)


def int8_rows(rows: Floats) -> tuple[Quanta, Floats]:
    """Quantise a matrix.

    Args:
        rows: (rows, columns), finite; what is made of a row with other numbers means nothing.

    Returns:
        q of the same shape, and s, (rows,).
    """
    with np.errstate(invalid="ignore"):
        scale = _rounded_up(np.abs(rows).max(axis=1, initial=0.0) / np.float32(MAX_QUANTUM))
        scale = np.clip(scale, np.float32(MIN_SCALE), np.float32(MAX_SCALE))
        quanta = rows / scale[:, None]
        np.rint(quanta, out=quanta)
        np.clip(quanta, -MAX_QUANTUM, MAX_QUANTUM, out=quanta)
        return quanta.astype(np.int8), scale


def _rounded_up(scale: Floats) -> Floats:
    """The next float32 whose 8 lowest mantissa bits are zero; (rows,), not negative."""
    # Float bits of non-negative numbers are ordered like the numbers.
    bits = scale.view(np.int32)
    return ((bits + _DROPPED_BITS) & ~_DROPPED_BITS).view(np.float32)
