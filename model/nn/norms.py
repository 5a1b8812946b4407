"""Normalisation of the residual stream.

Both kinds take the biased second moment and add ε inside the root:
LayerNorm (Ba et al. 2016) (x − μ) / √(σ² + ε) · γ + β; RMSNorm (Zhang and Sennrich 2019)
x / √(mean(x²) + ε) · γ. Where they stand is `model.nn.layers`.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig


class LayerNorm(nn.LayerNorm):
    """Torch's, whose gradients by γ and β a CPU sums in float32 at least.

    In bfloat16 torch sums them over all tokens in that type there: some thousand tokens, and most
    of a sum is lost.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's own name
        """(..., D) → (..., D)."""
        if input.device.type != "cpu" or input.dtype != torch.bfloat16:
            return super().forward(input)
        weight, bias = self.weight.float(), self.bias.float()
        wide = F.layer_norm(input.float(), self.normalized_shape, weight, bias, self.eps)
        return wide.to(input.dtype)


Norm = LayerNorm | nn.RMSNorm


def build_norm(config: ModelConfig) -> Norm:
    """The configured norm over the last axis, (..., D) → (..., D)."""
    if config.norm == "rmsnorm":
        return nn.RMSNorm(config.d_model, eps=config.norm_epsilon)
    return LayerNorm(config.d_model, eps=config.norm_epsilon)
