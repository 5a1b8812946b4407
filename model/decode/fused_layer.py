"""One decoder layer for single steps: what all backends in PyTorch share.

Owns the order of a layer's parts, its fused projections, its norms and residual connections. It
keeps nothing: where the keys and values of a row's past and of its source lie, and how they are
attended to, is each backend's `Past` and `Memory`. The plain layer, `model.nn.layers`, is its
oracle.
"""

from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.config import ModelConfig
from model.honoured import EVERY_VALUE, Allowed
from model.nn.layers import ACTIVATIONS, DecoderLayer, known_decoder_layers
from model.nn.norms import Norm
from model.nn.transformer import Transformer


class Past(Protocol):
    """The pasts of one step's rows, as a backend keeps them."""

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Store what the rows were fed now, and attend to all that they were ever fed.

        Args:
            layer: Index of the layer.
            queries: (R, H, d_k), not scaled.
            keys: (R, H, d_k) of this step.
            values: (R, H, d_v) of this step.

        Returns:
            (R, H·d_v).
        """
        ...


class Memory(Protocol):
    """The encoder outputs of one step's rows, as a backend keeps them."""

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """Attend to the sources of the rows.

        Args:
            layer: Index of the layer.
            queries: (R, H, d_k), not scaled.

        Returns:
            (R, H·d_v).
        """
        ...


LAYER_FIELDS: dict[str, Allowed] = {
    "d_model": EVERY_VALUE,
    "num_heads": EVERY_VALUE,
    "d_ff": EVERY_VALUE,
    "d_k": EVERY_VALUE,
    "d_v": EVERY_VALUE,
    "activation": tuple(ACTIVATIONS),
    "norm": ("layernorm", "rmsnorm"),
    "norm_placement": ("post", "pre"),
    "norm_epsilon": EVERY_VALUE,
    "attention_bias": EVERY_VALUE,
    "dropout": EVERY_VALUE,
    "attention_dropout": EVERY_VALUE,
    "activation_dropout": EVERY_VALUE,
}
"""What a fused layer honours; what stands around the layers, each backend declares itself."""


class FusedLayer:
    """A decoder layer whose self-attention makes queries, keys and values in one product."""

    def __init__(self, index: int, layer: DecoderLayer, config: ModelConfig) -> None:
        """Fuse the projections of `layer`, whose weights must not change afterwards."""
        own = layer.self_attention
        self._index = index
        self._layer = layer
        self._is_pre_norm = config.norm_placement == "pre"
        self._activation = ACTIVATIONS[config.activation]
        self._num_heads = config.num_heads
        self._widths = [config.num_heads * config.query_width] * 2
        self._widths.append(config.num_heads * config.value_width)
        projections = (own.q_proj, own.k_proj, own.v_proj)
        self._weight = torch.cat([projection.weight for projection in projections])
        biases: list[Tensor] = [p.bias for p in projections if p.bias is not None]
        self._bias = torch.cat(biases) if biases else None

    def project_memory(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output: (B, S, D) → (B, H, S, d_k), (B, H, S, d_v)."""
        cross = self._layer.cross_attention
        size, flat = encoded.shape[:2], encoded.flatten(0, 1)
        keys, values = (
            projection(flat).view(*size, self._num_heads, -1).transpose(1, 2)
            for projection in (cross.k_proj, cross.v_proj)
        )
        return keys, values

    def step(self, hidden: Tensor, past: Past, memory: Memory) -> Tensor:
        """The whole layer: (R, D) → (R, D)."""
        hidden = self.attend_to_past(hidden, past)
        hidden = self.attend_to_memory(hidden, memory)
        return self.feed_forward(hidden)

    def attend_to_past(self, hidden: Tensor, past: Past) -> Tensor:
        """Self-attention with its residual connection: (R, D) → (R, D)."""
        layer = self._layer
        inner = self._before(hidden, layer.self_attention_norm)
        projected = F.linear(inner, self._weight, self._bias)
        queries, keys, values = map(
            self._heads, torch.split_with_sizes(projected, self._widths, -1)
        )
        attended = past.attend(self._index, queries, keys, values)
        return self._after(
            hidden, layer.self_attention.out_proj(attended), layer.self_attention_norm
        )

    def attend_to_memory(self, hidden: Tensor, memory: Memory) -> Tensor:
        """Cross-attention with its residual connection: (R, D) → (R, D)."""
        layer = self._layer
        inner = self._before(hidden, layer.cross_attention_norm)
        attended = memory.attend(self._index, self._heads(layer.cross_attention.q_proj(inner)))
        return self._after(
            hidden, layer.cross_attention.out_proj(attended), layer.cross_attention_norm
        )

    def feed_forward(self, hidden: Tensor) -> Tensor:
        """The feed-forward part with its residual connection: (R, D) → (R, D)."""
        layer = self._layer
        inner = self._before(hidden, layer.feed_forward_norm)
        inner = layer.feed_forward.down_proj(self._activation(layer.feed_forward.up_proj(inner)))
        return self._after(hidden, inner, layer.feed_forward_norm)

    def _heads(self, projected: Tensor) -> Tensor:
        """(R, H·d) → (R, H, d)."""
        return projected.view(len(projected), self._num_heads, -1)

    def _before(self, hidden: Tensor, norm: Norm) -> Tensor:
        normalised: Tensor = norm(hidden) if self._is_pre_norm else hidden
        return normalised

    def _after(self, hidden: Tensor, change: Tensor, norm: Norm) -> Tensor:
        total: Tensor = hidden + change if self._is_pre_norm else norm(hidden + change)
        return total


def fuse_layers(transformer: Transformer) -> list[FusedLayer]:
    """The decoder's layers, ready for single steps; the weights must not change afterwards.

    Raises:
        UnsupportedVariantError: A layer is of a kind that single steps do not know.
    """
    layers = known_decoder_layers(transformer.decoder.layers, by="incremental decoding")
    return [FusedLayer(index, layer, transformer.config) for index, layer in enumerate(layers)]
