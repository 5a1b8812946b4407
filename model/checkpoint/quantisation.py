"""Symmetric int8 quantisation of matrices, row by row.

Owns the arithmetic only. w ≈ q · s with q in [-127, 127] and one scale s per row (first
dimension). A scale has 16 significant bits, so q · s (7 + 16 bits) is exact in float32;
hence quantising a dequantised tensor gives the same bytes again. The error of a weight is at
most s / 2 ≤ max|row| / 253.99.
"""

import torch
from torch import Tensor

MAX_QUANTUM = 127
# Below this a row counts as zero; keeps scales and products away from subnormal numbers.
MIN_SCALE = 2.0**-100
# 127 times this is still finite.
MAX_SCALE = 2.0**121
_DROPPED_BITS = 0xFF


def quantise_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a tensor of two or more dimensions.

    Args:
        weight: (rows, …) of any float type, finite.

    Returns:
        q, int8 of the same shape, and s, float32 (rows,).
    """
    rows = weight.detach().to(torch.float32).flatten(1)
    scale = _rounded_up(rows.abs().amax(dim=1) / MAX_QUANTUM).clamp(MIN_SCALE, MAX_SCALE)
    quanta = torch.round(rows / scale[:, None]).clamp(-MAX_QUANTUM, MAX_QUANTUM)
    return quanta.to(torch.int8).reshape(weight.shape), scale


def dequantise_rows(quanta: Tensor, scale: Tensor) -> Tensor:
    """Widen: q · s in float32, exactly.

    Args:
        quanta: int8 (rows, …).
        scale: float32 (rows,).
    """
    return quanta.to(torch.float32) * scale.reshape(-1, *[1] * (quanta.dim() - 1))


def _rounded_up(scale: Tensor) -> Tensor:
    """The next float32 whose 8 lowest mantissa bits are zero; (rows,), not negative."""
    # Float bits of non-negative numbers are ordered like the numbers.
    bits = scale.contiguous().view(torch.int32)
    return ((bits + _DROPPED_BITS) & ~_DROPPED_BITS).view(torch.float32)
