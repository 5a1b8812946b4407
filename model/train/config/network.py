"""The `network` part of an experiment file: the shape of the network that is trained.

Owns which fields of `ModelConfig` a file may set, and how large a network may be. Shapes by name
are `model.train.config.presets`.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from model.checkpoint.description.consistency import MAX_LAYERS, MAX_WIDTH
from model.config import (
    Activation,
    DecoderCell,
    ModelConfig,
    NormKind,
    NormPlacement,
    PositionKind,
)
from model.errors import ConfigError
from model.train.config.limits import at_most
from model.train.config.presets import NETWORK_PRESETS


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Fields of `ModelConfig` that an experiment may set; the vocabulary sets the rest.

    In a file, `preset` names the values to begin with: `model.train.config.presets`.
    """

    PRESETS: ClassVar = NETWORK_PRESETS

    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    decoder_d_ff: int | None = None
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    decoder_cell: DecoderCell = "self-attention"
    gated_feed_forward: bool = False
    feed_forward_bias: bool = True
    embedding_norm: bool = False
    scale_attention: bool = True
    scale_output: bool = False
    activation: Activation = "relu"
    norm: NormKind = "layernorm"
    norm_placement: NormPlacement = "post"
    norm_epsilon: float = 1e-5
    position: PositionKind = "sinusoidal-marian"
    tie_output: bool = True
    output_bias: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    def __post_init__(self) -> None:
        """Reject shapes that cannot work."""
        try:
            self.build(source_size=1, target_size=1, is_joint=True)  # sizes play no part here
        except ConfigError as error:
            raise ConfigError(f"network.{error}") from error
        if self.norm_epsilon >= 1:
            raise ConfigError(f"network.norm_epsilon is {self.norm_epsilon}; it must be below 1")
        for name in ("d_model", "num_heads", "d_ff"):
            at_most(f"network.{name}", getattr(self, name), MAX_WIDTH)
        if self.decoder_d_ff is not None:
            at_most("network.decoder_d_ff", self.decoder_d_ff, MAX_WIDTH)
        for name in ("num_encoder_layers", "num_decoder_layers"):
            at_most(f"network.{name}", getattr(self, name), MAX_LAYERS)

    def build(self, *, source_size: int, target_size: int, is_joint: bool) -> ModelConfig:
        """The network's configuration for vocabularies of the given sizes.

        Raises:
            ConfigError: The values contradict each other.
        """
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return ModelConfig(
            vocab_size=source_size,
            target_vocab_size=None if is_joint else target_size,
            share_embeddings=is_joint,
            pad_id=0,
            **fields,
        )
