"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2).

Three paths give one result: `fused_attention` goes through torch's kernels; `cpu_attention` is
what trains fastest on a CPU; `plain_attention` is the formula itself, returns the weights, takes
biases, and is the oracle of the others. A query that may attend to nothing gets exact zeros, in
its output and in every gradient.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig
from model.nn.dropout import drop
from model.nn.masks import causal_mask
from model.nn.positions import RotaryPositions

_VECTOR = 16
"""Keys that a CPU's softmax takes together; torch takes fewer than that one by one."""

_LONG = 256
"""Keys from which `cpu_attention` would hold too much: its weights grow with the square."""


def _open_empty_rows(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Let queries without any key see all of them, and say which queries have keys.

    A softmax over nothing is NaN, and so is its gradient; over anything it is finite, and the
    caller replaces its result by zeros. (..., Q, K) → (..., Q, K) and (..., Q, 1).
    """
    has_keys = mask.any(dim=-1, keepdim=True)
    return mask | ~has_keys, has_keys


def _suits_cpu_attention(keys: Tensor, dropout: float) -> bool:
    """Whether the context is for training on a CPU, and torch's kernel would hold as much.

    It holds no weights, unless it drops some of them.
    """
    is_training = keys.device.type == "cpu" and keys.requires_grad
    return is_training and (keys.shape[-2] < _LONG or dropout > 0.0)


def _with_causal(mask: Tensor | None, queries: Tensor) -> Tensor:
    causal = causal_mask(queries.shape[-2], queries.device)
    return causal if mask is None else mask & causal


def plain_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Softmax(Q Kᵀ · scale + bias) V, written out.

    Args:
        queries: (B, H, Q, d_k).
        keys: (B, H, K, d_k).
        values: (B, H, K, d_v).
        mask: Bool, broadcast to (B, H, Q, K); True = may attend.
        is_causal: Query i may attend to keys j ≤ i only (Q = K).
        bias: Added to the scores, broadcast to (B, H, Q, K).
        scale: Of the scores; None means 1/√d_k.
        dropout: Probability that a weight is dropped.

    Returns:
        The context (B, H, Q, d_v) and the weights before dropout (B, H, Q, K).
    """
    scores = queries @ keys.mT * (queries.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if is_causal:
        mask = _with_causal(mask, queries)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        mask, has_keys = _open_empty_rows(mask)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        weights = weights.masked_fill(~has_keys, 0.0)
    return drop(weights, dropout) @ values, weights


def fused_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """The context of `plain_attention`, (B, H, Q, d_v), by torch's fused kernels."""
    if mask is None:
        return F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=dropout, is_causal=is_causal, scale=scale
        )
    if is_causal:
        mask = _with_causal(mask, queries)
    mask, has_keys = _open_empty_rows(mask)
    context = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=scale
    )
    return context.masked_fill(~has_keys, 0.0)


def cpu_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """The context of `plain_attention`, (B, H, Q, d_v), for training on a CPU.

    Products in the inputs' type, softmax in float32 at least, over never fewer keys than a vector
    holds, masks added. Short sentences cost torch's kernels two to four times as much there,
    forwards and backwards together; long ones would cost this one the memory of their weights.
    """
    scores = queries * (queries.shape[-1] ** -0.5 if scale is None else scale) @ keys.mT
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    has_keys = None
    if is_causal:
        mask = _with_causal(mask, queries)
    if mask is not None:
        mask, has_keys = _open_empty_rows(mask)
        scores = scores + scores.new_zeros(mask.shape).masked_fill_(~mask, -torch.inf)
    num_keys = keys.shape[-2]
    if num_keys < _VECTOR:
        scores = F.pad(scores, (0, _VECTOR - num_keys), value=-torch.inf)
    weights = scores.softmax(dim=-1)[..., :num_keys].to(values.dtype)
    context = drop(weights, dropout) @ values
    return context if has_keys is None else context.masked_fill(~has_keys, 0.0)


class MultiHeadAttention(nn.Module):
    """H heads attend side by side; their contexts are joined and projected back to D.

    Queries and keys are d_k wide per head, values d_v. `rotary`, if any, turns queries and keys
    by their positions; it makes sense only when both come from one sequence.
    """

    def __init__(self, config: ModelConfig, *, rotary: RotaryPositions | None = None) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.query_width = config.query_width
        self.value_width = config.value_width
        self.scale = config.attention_scale
        self.dropout = config.attention_dropout
        self.rotary = rotary
        query_size = self.num_heads * self.query_width
        value_size = self.num_heads * self.value_width
        has_bias = config.attention_bias
        self.q_proj = nn.Linear(config.d_model, query_size, bias=has_bias)
        self.k_proj = nn.Linear(config.d_model, query_size, bias=has_bias)
        self.v_proj = nn.Linear(config.d_model, value_size, bias=has_bias)
        self.out_proj = nn.Linear(value_size, config.d_model, bias=has_bias)

    def _split_heads(self, joined: Tensor) -> Tensor:
        """(B, T, H·d) → (B, H, T, d)."""
        return joined.view(*joined.shape[:-1], self.num_heads, -1).transpose(1, 2)

    def forward(
        self,
        queries: Tensor,
        attended: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Let every query attend to what keys and values are made from.

        Args:
            queries: (B, Q, D).
            attended: (B, K, D); the queries themselves in self-attention.
            mask: Bool, broadcast to (B, H, Q, K); True = may attend.
            is_causal: Query i may attend to positions j ≤ i only.
            bias: Added to the scores, (H, Q, K).
            maps: If given, the weights (B, H, Q, K) are appended to it.

        Returns:
            (B, Q, D).
        """
        q = self._split_heads(self.q_proj(queries))
        k = self._split_heads(self.k_proj(attended))
        v = self._split_heads(self.v_proj(attended))
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        dropout = self.dropout if self.training else 0.0
        if bias is None and maps is None:
            attend = cpu_attention if _suits_cpu_attention(k, dropout) else fused_attention
            context = attend(
                q, k, v, mask=mask, is_causal=is_causal, scale=self.scale, dropout=dropout
            )
        else:
            context, weights = plain_attention(
                q,
                k,
                v,
                mask=mask,
                is_causal=is_causal,
                bias=bias,
                scale=self.scale,
                dropout=dropout,
            )
            if maps is not None:
                maps.append(weights)
        joined = context.transpose(1, 2).flatten(-2)
        output: Tensor = self.out_proj(joined)
        return output
