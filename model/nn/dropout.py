"""Dropout (Srivastava et al. 2014): what is kept is scaled up, so that the mean stays.

Owns the two ways to draw what is dropped: torch's own, and one for CPUs that takes sixteen random
bits an element, not a number of torch's generator: that takes longer there than the products of a
small feed-forward network.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

_NUM_LEVELS = 2**16
_LEVELS_A_DRAW = 4  # in 64 bits


def drop(x: Tensor, probability: float) -> Tensor:
    """Zero elements at random and scale up the others.

    On a CPU the probability is rounded to a multiple of 2⁻¹⁶ (and what is kept is scaled by just
    that, in the type of `x`); elsewhere, and under `torch.compile`, this is
    `torch.nn.functional.dropout`.

    Args:
        x: Any shape.
        probability: Of being zeroed, in [0, 1).

    Returns:
        As `x`; `x` itself if nothing is to be dropped.
    """
    if not probability:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, probability)
    return x * _scaled_mask(x, probability)


class Dropout(nn.Module):
    """`drop` in training, nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """(...) → (...)."""
        return drop(x, self.probability) if self.training else x

    def extra_repr(self) -> str:
        """What `print` says of it."""
        return f"probability={self.probability}"


@torch.no_grad()
def _scaled_mask(x: Tensor, probability: float) -> Tensor:
    """Zeros, and the reciprocal of their share where `x` is kept, in its shape and type."""
    num_dropped = min(round(probability * _NUM_LEVELS), _NUM_LEVELS - 1)
    drawn = torch.empty(-(-x.numel() // _LEVELS_A_DRAW), dtype=torch.int64)
    levels = drawn.random_(-(2**63), None).view(torch.int16)[: x.numel()].view(x.shape)
    # `out` has the type of x: to convert a mask of bools takes several times as long.
    mask = torch.ge(levels, num_dropped - _NUM_LEVELS // 2, out=torch.empty_like(x))
    return mask.mul_(_NUM_LEVELS / (_NUM_LEVELS - num_dropped))
