"""Cross-attention of a finished hypothesis, by a forced pass through a network in PyTorch."""

from collections.abc import Sequence

import numpy as np
import torch

from model.decode.attention import FloatArray, fed_tokens
from model.nn.transformer import Transformer
from model.request import DecodeRequest


def forced_attention(
    transformer: Transformer, request: DecodeRequest, token_ids: Sequence[int]
) -> FloatArray:
    """Weights (T, S) of the last layer, on the average of heads; see `Attention`.

    Args:
        transformer: In evaluation mode.
        request: The sentence.
        token_ids: At least one.
    """
    device = transformer.target_embedding.weight.device
    source = torch.tensor([request.source_ids], device=device)
    target = torch.tensor([fed_tokens(request, token_ids)], device=device)
    maps = transformer.attention_maps(source, target).cross
    if not maps:
        return np.zeros((len(token_ids), len(request.source_ids)), dtype=np.float32)
    weights: FloatArray = maps[-1][0].float().mean(dim=0).cpu().numpy()
    return weights[-len(token_ids) :]
