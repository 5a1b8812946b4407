"""Symmetric int8 quantisation of matrices, row by row.

Owns the arithmetic only. w ≈ q · s with q in [-127, 127] and one scale s per row (first
dimension). The scales that are made here have 16 significant bits, so q · s (7 + 16 bits) is exact
in float32; hence quantising a dequantised tensor gives the same bytes again. The error of a weight
is at most s / 2 ≤ max|row| / 253.99.

Scales of other programs may have all 24 bits, and rows that do not reach 127 (Marian has one scale
for a whole matrix). Such rows are dequantised with one rounding, as those programs do it; quantised
again they are other rows, so whoever wants them exactly takes them as they are stored.
"""

import torch
from torch import Tensor

MAX_QUANTUM = 127
# Below this a row counts as zero; keeps scales and products away from subnormal numbers.
MIN_SCALE = 2.0**-100
# 127 times this is still finite.
MAX_SCALE = 2.0**121
_DROPPED_BITS = 0xFF
_BLOCK = 2**22
"""Numbers that are widened together: a table of 256,000 rows is never in memory as floats."""


def quantise_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a tensor of two or more dimensions.

    Args:
        weight: (rows, …) of any float type, finite.

    Returns:
        q, int8 of the same shape, and s, float32 (rows,).
    """
    rows = weight.detach().flatten(1)
    quanta = torch.empty(rows.shape, dtype=torch.int8, device=rows.device)
    scale = torch.empty(len(rows), device=rows.device)
    size = max(1, _BLOCK // max(1, rows.shape[1]))
    for begin in range(0, len(rows), size):
        block = slice(begin, begin + size)
        quanta[block], scale[block] = _quantise_block(rows[block].to(torch.float32))
    return quanta.reshape(weight.shape), scale


def dequantise_rows(quanta: Tensor, scale: Tensor) -> Tensor:
    """Widen: q · s in float32; exact if the scales have 16 significant bits, else rounded once.

    Args:
        quanta: int8 (rows, …).
        scale: float32 (rows,).
    """
    return quanta.to(torch.float32).mul_(scale.reshape(-1, *[1] * (quanta.dim() - 1)))


def _quantise_block(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Some rows, (rows, columns) float32."""
    scale = _rounded_up(rows.abs().amax(dim=1) / MAX_QUANTUM).clamp(MIN_SCALE, MAX_SCALE)
    quanta = torch.round(rows / scale[:, None]).clamp_(-MAX_QUANTUM, MAX_QUANTUM)
    return quanta.to(torch.int8), scale


def _rounded_up(scale: Tensor) -> Tensor:
    """The next float32 whose 8 lowest mantissa bits are zero; (rows,), not negative."""
    # Float bits of non-negative numbers are ordered like the numbers.
    bits = scale.contiguous().view(torch.int32)
    return ((bits + _DROPPED_BITS) & ~_DROPPED_BITS).view(torch.float32)
