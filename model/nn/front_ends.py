"""What turns inputs into the (B, S, D) embeddings a stack reads.

Owns the token embedding (the default) and a linear front end for feature sequences such as
speech frames. The encoder takes what either gives and does not know which it was.
"""

import math

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig
from model.errors import ConfigError
from model.nn.initialisation import initialise
from model.nn.masks import lengths_mask
from model.nn.positions import build_absolute_positions


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


class FeatureFrontEnd(nn.Module):
    """Feature sequences → embeddings with positions: a linear map of `stride` frames at a time.

    A last group that is not full is completed with zeros, as are frames past a sequence's
    length, so that what pads a batch never reaches an embedding.
    """

    def __init__(self, config: ModelConfig, *, num_features: int, stride: int = 1) -> None:
        super().__init__()
        for name, value in (("num_features", num_features), ("stride", stride)):
            if value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        self.stride = stride
        self.projection = nn.Linear(num_features * stride, config.d_model)
        self.positions = build_absolute_positions(config)
        initialise(self, config.d_model)

    def output_lengths(self, lengths: Tensor) -> Tensor:
        """Lengths in embeddings of lengths in frames, (B,) → (B,): divided, rounded up."""
        return (lengths + self.stride - 1) // self.stride

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Embed a batch, ready for `Encoder`.

        Args:
            features: (B, T, F).
            lengths: Real frames of each sequence, (B,) int64.

        Returns:
            Embeddings (B, S, D) and their mask (B, S), S = ⌈T / stride⌉.
        """
        num_frames = features.shape[1]
        is_real = lengths_mask(lengths, num_frames)
        features = features.masked_fill(~is_real[..., None], 0.0)
        features = F.pad(features, (0, 0, 0, -num_frames % self.stride))
        groups = features.reshape(len(features), -1, self.projection.in_features)
        embeddings: Tensor = self.positions(self.projection(groups))
        return embeddings, lengths_mask(self.output_lengths(lengths), embeddings.shape[1])
