"""Initial values of weights.

Embeddings, learned positions and relative biases are normal(0, d_model^-0.5), so that a token
embedding scaled by √d_model has unit variance; the padding row is zero. Matrices are Xavier
uniform (Glorot and Bengio 2010), biases zero, norms the identity. Where the norm is behind the
sub-layers, deeper layers start with smaller matrices.
"""

from collections.abc import Iterable

import torch
from torch import nn


def initialise(root: nn.Module, d_model: int) -> None:
    """Give every embedding and linear layer below `root` its starting weights, in place.

    On the meta device there is nothing to give: a checkpoint's weights will be assigned.
    """
    for part in root.modules():
        if isinstance(part, nn.Embedding) and not part.weight.is_meta:
            nn.init.normal_(part.weight, std=d_model**-0.5)
            if part.padding_idx is not None:
                nn.init.zeros_(part.weight[part.padding_idx])
        elif isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


@torch.no_grad()
def scale_by_depth(layers: Iterable[nn.Module]) -> None:
    """Divide the matrices of layer l, counted from 1, by √l (Zhang et al. 2019, section 4).

    Behind a norm every sub-layer weighs as much as all before it. Six layers of Xavier's weights
    make nearly one vector of all positions of a sentence, and at a usual learning rate they stay
    so: a decoder then reads a bag of words.
    """
    for depth, layer in enumerate(layers, start=1):
        for part in layer.modules():
            if isinstance(part, nn.Linear) and not part.weight.is_meta:
                part.weight /= depth**0.5
