"""Initial values of weights.

Embeddings, learned positions and relative biases are normal(0, d_model^-0.5), so that a token
embedding scaled by √d_model has unit variance; the padding row is zero. Matrices are Xavier
uniform (Glorot and Bengio 2010), biases zero, norms the identity.
"""

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
