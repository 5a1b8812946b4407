"""Normalisation of the residual stream.

Both kinds take the biased second moment and add ε inside the root:
LayerNorm (Ba et al. 2016) (x − μ) / √(σ² + ε) · γ + β; RMSNorm (Zhang and Sennrich 2019)
x / √(mean(x²) + ε) · γ. Where they stand is `model.nn.layers`.
"""

from torch import nn

from model.config import ModelConfig

Norm = nn.LayerNorm | nn.RMSNorm


def build_norm(config: ModelConfig) -> Norm:
    """The configured norm over the last axis, (..., D) → (..., D)."""
    if config.norm == "rmsnorm":
        return nn.RMSNorm(config.d_model, eps=config.norm_epsilon)
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon)
