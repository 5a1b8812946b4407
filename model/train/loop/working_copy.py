"""A network's copy in bfloat16 that a GPU computes with, for weights that are kept in float32.

Owns the way of weights to the copy and of gradients back (Micikevicius et al. 2018, section 3.1).
Under autocast only products are in half precision: what lies between them is read and written in
float32 and cast again and again, which on a GPU takes longer than the products of a small network.
"""

from copy import deepcopy

import torch
from torch import Tensor

from model.nn.transformer import Transformer


class WorkingCopy:
    """A copy that losses and gradients are computed with.

    The weights themselves, their gradients, the optimiser's moments and all averages stay as they
    are. Gradients of several batches are added up in the weights' own type.

    Args:
        transformer: The network whose weights are trained.

    Attributes:
        network: The copy.
    """

    def __init__(self, transformer: Transformer) -> None:
        self.network = deepcopy(transformer).to(torch.bfloat16)
        self._weights: list[Tensor] = list(transformer.parameters())
        self._copies: list[Tensor] = list(self.network.parameters())
        self._gradients = [torch.empty_like(weight) for weight in self._weights]

    @torch.no_grad()
    def refresh(self) -> None:
        """Round the weights as they are now."""
        torch._foreach_copy_(self._copies, self._weights)

    @torch.no_grad()
    def hand_over(self) -> None:
        """Add the copy's gradients to the weights', and forget them there."""
        found = [copy.grad for copy in self._copies if copy.grad is not None]
        assert len(found) == len(self._copies)  # every weight has a part in the loss
        if self._weights[0].grad is None:
            torch._foreach_copy_(self._gradients, found)
            for weight, gradient in zip(self._weights, self._gradients, strict=True):
                weight.grad = gradient
        else:
            for weight, gradient in zip(self._weights, found, strict=True):
                assert weight.grad is not None
                weight.grad += gradient
        for copy in self._copies:
            copy.grad = None
