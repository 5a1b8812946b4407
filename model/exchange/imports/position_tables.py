"""Stored position tables that are sines and cosines of a form we compute ourselves.

Owns the recognition alone: a network that computes its positions has neither a longest sentence
nor a table to quantise.
"""

import torch
from torch import Tensor

from model.config import PositionKind
from model.nn.positions import sinusoidal_table

_KINDS: tuple[PositionKind, ...] = (
    "sinusoidal-interleaved",
    "sinusoidal-marian",
    "sinusoidal-m2m100",
)
_MAX_OFFSET = 2
_TOLERANCE = 5e-3
"""Above what 16-bit types and float32 angles of some thousand positions round; forms differ by
far more."""
_FIRST_ROWS = 16


def recognised_table(table: Tensor) -> tuple[PositionKind, int] | None:
    """The form of a table and the position of its first row; None if it is another table.

    Args:
        table: (positions, D) of any float type.
    """
    width = table.shape[1]
    if width % 2 or width < 4:
        return None
    for kind in _KINDS:
        for offset in range(_MAX_OFFSET + 1):
            first = table[:_FIRST_ROWS]
            if _is_near(first, kind, offset) and _is_near(table, kind, offset):
                return kind, offset
    return None


def _is_near(table: Tensor, kind: PositionKind, offset: int) -> bool:
    positions = torch.arange(offset, offset + len(table))
    expected = sinusoidal_table(kind, positions, table.shape[1])
    return bool((table.float() - expected).abs().max() < _TOLERANCE)
