"""The one mask convention: bool, True = may attend; made on the device of what is masked.

Owns every mask the network uses. What a mask does to scores is `model.nn.attention`.
A mask has the shape of the scores (B, H, Q, K) with ones where it broadcasts.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Which tokens are real: (B, S) int64 → (B, S) bool."""
    return ids != pad_id


def target_padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Which target tokens are real: (B, T) int64 → (B, T) bool.

    Position 0 is always real: the start token may be the padding token itself, as in Marian.
    """
    mask = ids != pad_id
    mask[:, :1] = True
    return mask


def lengths_mask(lengths: Tensor, max_length: int) -> Tensor:
    """Which positions lie inside each length: (B,) int64 → (B, max_length) bool."""
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]


def key_mask(mask: Tensor) -> Tensor:
    """Every query may attend to the real keys: (B, K) → (B, 1, 1, K).

    Padding is put on the keys, never on the query rows.
    """
    return mask[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Position i may attend to positions j ≤ i: (T, T) bool."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
