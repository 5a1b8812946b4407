"""Causal self-attention as a decoder cell: its state are the keys and values of every position.

Owns the cell, and its step with the three projections of the input made in one product. Attention
itself is `model.nn.attention`.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.cells import StateShape
from model.nn.attention import MultiHeadAttention
from model.nn.cells import Cell, Past


class SelfAttention(MultiHeadAttention, Cell):
    """Self-attention of the decoder: every position attends to itself and to those before it."""

    name = "self_attention"

    def state_shapes(self) -> tuple[StateShape, ...]:
        """Keys and values."""
        return (
            StateShape(num_heads=self.num_heads, width=self.query_width, grows=True),
            StateShape(num_heads=self.num_heads, width=self.value_width, grows=True),
        )

    def over_sequence(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        """See `Cell.over_sequence`."""
        output: Tensor = self(x, x, mask=mask, is_causal=True, bias=bias, maps=maps)
        return output

    def fuse(self) -> "FusedSelfAttention":
        """See `Cell.fuse`; positions inside attention are not in a step."""
        return FusedSelfAttention(self)


class FusedSelfAttention:
    """Steps of self-attention: queries, keys and values of a row are one product."""

    def __init__(self, cell: SelfAttention) -> None:
        self._num_heads = cell.num_heads
        self._widths = [cell.num_heads * cell.query_width] * 2
        self._widths.append(cell.num_heads * cell.value_width)
        projections = (cell.q_proj, cell.k_proj, cell.v_proj)
        self._weight = torch.cat([projection.weight for projection in projections])
        biases: list[Tensor] = [p.bias for p in projections if p.bias is not None]
        self._bias = torch.cat(biases) if biases else None
        self._out_proj = cell.out_proj

    def __call__(self, layer: int, hidden: Tensor, past: Past) -> Tensor:
        """See `CellStep`."""
        projected = F.linear(hidden, self._weight, self._bias)
        queries, keys, values = (
            part.view(len(hidden), self._num_heads, -1)
            for part in torch.split_with_sizes(projected, self._widths, -1)
        )
        output: Tensor = self._out_proj(past.attend(layer, queries, keys, values))
        return output
