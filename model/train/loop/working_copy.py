"""A network's stacks in bfloat16, computed with in training while the weights stay in float32.

Owns the way of weights to the copies and of gradients back (Micikevicius et al. 2018, section 3.1).
Under autocast only products are in half precision: what lies between them is read and written in
float32 and cast again and again, which takes longer than the products of a small network.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import TypeVar

import torch
from torch import Tensor

from model.nn.transformer import Decoder, Encoder, Transformer
from model.train.loop.objective import Stacks

Stack = TypeVar("Stack", Encoder, Decoder)


class WorkingCopy:
    """Copies of encoder and decoder that losses and gradients are computed with.

    The weights themselves, their gradients, the optimiser's moments and all averages stay as they
    are, and so do embeddings and the output projection, whose rows add up the gradients of many
    tokens. Gradients of several batches are added up in the weights' own type.

    Args:
        transformer: The network whose weights are trained.

    Attributes:
        stacks: The copies; `in_bfloat16` makes of them what training calls.
    """

    def __init__(self, transformer: Transformer) -> None:
        encoder, decoder = _lowered(transformer.encoder), _lowered(transformer.decoder)
        self.stacks = Stacks(encoder=encoder, decoder=decoder)
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
        found = [
            (weight, copy.grad, gradient)
            for weight, copy, gradient in zip(
                self._weights, self._copies, self._gradients, strict=True
            )
            if copy.grad is not None
        ]
        first = [one for one in found if one[0].grad is None]
        if first:
            torch._foreach_copy_([one[2] for one in first], [one[1] for one in first])
        for weight, addend, gradient in found:
            if weight.grad is None:
                weight.grad = gradient
            else:
                weight.grad += addend
        for copy in self._copies:
            copy.grad = None


def in_bfloat16(stacks: Stacks) -> Stacks:
    """A working copy's stacks, plain or compiled, as training calls them: with float32 embeddings.

    They run without autocast, which would take their norms back to float32.
    """
    return Stacks(encoder=_called_low(stacks.encoder), decoder=_called_low(stacks.decoder))


def _lowered(stack: Stack) -> Stack:
    """A copy in bfloat16, but for biases of positions, of which a row is for many of them."""
    copy = deepcopy(stack).to(torch.bfloat16).train()
    if copy.position_bias is not None:
        copy.position_bias.float()
    return copy


def _called_low(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(embeddings: Tensor, *others: Tensor) -> Tensor:
        with torch.autocast(embeddings.device.type, enabled=False):
            return stack(embeddings.to(torch.bfloat16), *others)

    return call
