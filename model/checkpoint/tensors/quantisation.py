"""Symmetric int8 quantisation of tensors, row by row.

Owns tensors of any float type and any device, some rows at a time. The arithmetic is
`model.checkpoint.tensors.int8_rows`, on the CPU.

Scales of other programs may have all 24 bits, and rows that do not reach 127 (Marian has one scale
for a whole matrix). Such rows are dequantised with one rounding, as those programs do it; quantised
again they are other rows, so where they have to be exact they are taken as they are stored.
"""

import torch
from torch import Tensor

from model.checkpoint.tensors.int8_rows import int8_rows

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
        found = int8_rows(rows[block].to("cpu", torch.float32).numpy())
        quanta[block], scale[block] = map(torch.from_numpy, found)
    return quanta.reshape(weight.shape), scale


def dequantise_rows(quanta: Tensor, scale: Tensor) -> Tensor:
    """Widen: q · s in float32; exact if the scales have 16 significant bits, else rounded once.

    Args:
        quanta: int8 (rows, …).
        scale: float32 (rows,).
    """
    return quanta.to(torch.float32).mul_(scale.reshape(-1, *[1] * (quanta.dim() - 1)))
