"""Token embeddings.

Owns the table and its scale. The stacks take embeddings of any origin, with positions added and a
mask; `examples/encoder_only.py` has some that are made of feature sequences.
"""

import math

from torch import Tensor, nn

from model.config import ModelConfig


class TokenEmbedding(nn.Embedding):
    """Token ids → embeddings · √d_model (Vaswani et al. 2017, section 3.4); padding is zero."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(vocab_size, config.d_model, padding_idx=config.pad_id)
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def reset_parameters(self) -> None:
        """Nothing: `model.nn.initialisation` fills the table, once."""

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) int64 → (B, T, D)."""
        return super().forward(ids) * self.scale
