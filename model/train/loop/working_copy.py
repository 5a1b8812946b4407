"""A network's stacks in bfloat16, computed with in training while the weights stay in float32.

Owns the way of weights to the copies and of gradients back (Micikevicius et al. 2018, section 3.1).
Under autocast only products are in half precision: what lies between them is read and written in
float32 and cast again and again, which takes longer than the products of a small network.
"""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor

from model.nn.transformer import Transformer
from model.train.loop.objective import Stacks


class WorkingCopy:
    """Copies of encoder and decoder that losses and gradients are computed with.

    The weights themselves, their gradients, the optimiser's moments and all averages stay as they
    are, and so do embeddings and the output projection, whose rows add up the gradients of many
    tokens. Gradients of several batches are added up in the weights' own type.

    Args:
        transformer: The network whose weights are trained.

    Attributes:
        stacks: The copies, as training calls them: they take embeddings in float32.
    """

    def __init__(self, transformer: Transformer) -> None:
        encoder = deepcopy(transformer.encoder).to(torch.bfloat16).train()
        decoder = deepcopy(transformer.decoder).to(torch.bfloat16).train()
        self.stacks = Stacks(encoder=_in_bfloat16(encoder), decoder=_in_bfloat16(decoder))
        self._weights: list[Tensor] = [
            *transformer.encoder.parameters(),
            *transformer.decoder.parameters(),
        ]
        self._copies: list[Tensor] = [*encoder.parameters(), *decoder.parameters()]
        self._gradients = [torch.empty_like(weight) for weight in self._weights]

    @torch.no_grad()
    def refresh(self) -> None:
        """Round the weights as they are now."""
        torch._foreach_copy_(self._copies, self._weights)

    @torch.no_grad()
    def hand_over(self) -> None:
        """Add the copies' gradients to the weights', and forget them there."""
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


def _in_bfloat16(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The stack without autocast, which would take its norms and softmax back to float32."""

    def call(embeddings: Tensor, *others: Tensor) -> Tensor:
        with torch.autocast(embeddings.device.type, enabled=False):
            return stack(embeddings.to(torch.bfloat16), *others)

    return call
