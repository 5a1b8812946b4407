"""The simpler simple recurrent unit as a decoder cell, whose state is one running average.

Owns the cell (Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural
Machine Translation", section 3.2): f = σ(W_f x + b_f), c = f ⊙ c₋₁ + (1 − f) ⊙ W x, c₋₁ = 0 at the
first position, and the output ReLU(c). The layer adds its input and normalises. What is summed over
positions is summed in float32 at least, whatever the network's precision.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.cells import StateShape
from model.config import ModelConfig
from model.nn.cells import Cell, Past


def _widened(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _scan(gates: Tensor, inputs: Tensor) -> Tensor:
    """Solve c_t = gates_t · c_{t−1} + inputs_t with c_{−1} = 0; (B, T, D) → (B, T, D).

    In ⌈log₂ T⌉ passes: each joins what a position has summed with what stands just before that
    (Hillis and Steele 1986). Gates are at most 1, so their products only shrink; the order of sums
    depends on the position alone, never on the length.
    """
    reach = 1
    while reach < inputs.shape[1]:
        before = F.pad(inputs, (0, 0, reach, 0))[:, : inputs.shape[1]]
        inputs = inputs + gates * before
        gates = gates * F.pad(gates, (0, 0, reach, 0))[:, : gates.shape[1]]
        reach *= 2
    return inputs


class SSRU(Cell):
    """Simpler simple recurrent unit: a gate mixes every position into a running average."""

    name = "ssru"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.candidate_proj = nn.Linear(config.d_model, config.d_model, bias=False)
        self.forget_proj = nn.Linear(config.d_model, config.d_model)

    def state_shapes(self) -> tuple[StateShape, ...]:
        """The running average, c."""
        return (StateShape(num_heads=1, width=self.forget_proj.out_features, grows=False),)

    def over_sequence(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,  # noqa: ARG002  # of cells that attend
        maps: list[Tensor] | None = None,  # noqa: ARG002  # this cell has no weights to tell
    ) -> Tensor:
        """See `Cell.over_sequence`; `mask` hides positions from all others, (B, 1, 1, T)."""
        gates = torch.sigmoid(_widened(self.forget_proj(x)))
        inputs = (1 - gates) * _widened(self.candidate_proj(x))
        if mask is not None:
            is_hidden = ~mask.expand(len(x), 1, 1, x.shape[1])[:, 0, 0, :, None]
            gates = gates.masked_fill(is_hidden, 1.0)
            inputs = inputs.masked_fill(is_hidden, 0.0)
        return _scan(gates, inputs).relu().to(x.dtype)

    def fuse(self) -> "FusedSSRU":
        """See `Cell.fuse`."""
        return FusedSSRU(self)


class FusedSSRU:
    """Steps of an SSRU: candidate and gate of a row are one product."""

    def __init__(self, cell: SSRU) -> None:
        bias = cell.forget_proj.bias
        self._weight = torch.cat((cell.candidate_proj.weight, cell.forget_proj.weight))
        self._bias = torch.cat((torch.zeros_like(bias), bias))

    def __call__(self, layer: int, hidden: Tensor, past: Past) -> Tensor:
        """See `CellStep`."""
        projected = _widened(F.linear(hidden, self._weight, self._bias))
        candidates, gates = projected.chunk(2, dim=-1)
        (before,) = past.last(layer)  # (R, 1, D)
        state = torch.lerp(candidates, before.squeeze(1), gates.sigmoid())
        past.replace(layer, (state.unsqueeze(1),))
        return state.relu().to(hidden.dtype)
