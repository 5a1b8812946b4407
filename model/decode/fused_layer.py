"""One decoder layer for single steps: what all backends in PyTorch share.

Owns the order of a layer's parts, its norms and residual connections. What a row takes from its
past is its cell's (`model.nn.cells`). It keeps nothing: where the states of a row and the encoder's
output lie, and how they are attended to, is each backend's `Past` and `EncoderOutputs`. The plain
layer, `model.nn.layers`, is its oracle.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.errors import UnsupportedVariantError
from model.honoured import EVERY_VALUE, Allowed
from model.nn.cells import Past
from model.nn.layers import ACTIVATIONS, DecoderLayer, known_decoder_layers
from model.nn.norms import Norm
from model.nn.transformer import Transformer


class EncoderOutputs(Protocol):
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
    "decoder_d_ff": EVERY_VALUE,
    "decoder_cell": ("self-attention", "ssru"),
    "gated_feed_forward": EVERY_VALUE,
    "feed_forward_bias": EVERY_VALUE,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedLayers:
    """The layers of a decoder, ready for single steps.

    Attributes:
        layers: First to last.
        states: What the cell of each of them keeps of a row.
    """

    layers: tuple["FusedLayer", ...]
    states: tuple[StateShape, ...]


class FusedLayer:
    """A decoder layer whose cell is stepped."""

    def __init__(self, index: int, layer: DecoderLayer, config: ModelConfig) -> None:
        """Fuse what can be fused of `layer`, whose weights must not change afterwards."""
        self._index = index
        self._layer = layer
        self._cell = layer.cell.fuse()
        self._cell_norm = layer.cell_norm
        self._is_pre_norm = config.norm_placement == "pre"
        self._num_heads = config.num_heads

    def project_encoder_output(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output: (B, S, D) → (B, H, S, d_k), (B, H, S, d_v)."""
        cross = self._layer.cross_attention
        size, flat = encoded.shape[:2], encoded.flatten(0, 1)
        keys, values = (
            projection(flat).view(*size, self._num_heads, -1).transpose(1, 2)
            for projection in (cross.k_proj, cross.v_proj)
        )
        return keys, values

    def step(self, hidden: Tensor, past: Past, outputs: EncoderOutputs) -> Tensor:
        """The whole layer: (R, D) → (R, D)."""
        hidden = self.step_cell(hidden, past)
        hidden = self.cross_attend(hidden, outputs)
        return self.feed_forward(hidden)

    def step_cell(self, hidden: Tensor, past: Past) -> Tensor:
        """The cell with its residual connection: (R, D) → (R, D)."""
        change = self._cell(self._index, self._before(hidden, self._cell_norm), past)
        return self._after(hidden, change, self._cell_norm)

    def cross_attend(self, hidden: Tensor, outputs: EncoderOutputs) -> Tensor:
        """Cross-attention with its residual connection: (R, D) → (R, D)."""
        layer = self._layer
        inner = self._before(hidden, layer.cross_attention_norm)
        queries = layer.cross_attention.q_proj(inner).view(len(inner), self._num_heads, -1)
        attended = outputs.attend(self._index, queries)
        return self._after(
            hidden, layer.cross_attention.out_proj(attended), layer.cross_attention_norm
        )

    def feed_forward(self, hidden: Tensor) -> Tensor:
        """The feed-forward part with its residual connection: (R, D) → (R, D)."""
        layer = self._layer
        change = layer.feed_forward(self._before(hidden, layer.feed_forward_norm))
        return self._after(hidden, change, layer.feed_forward_norm)

    def _before(self, hidden: Tensor, norm: Norm) -> Tensor:
        normalised: Tensor = norm(hidden) if self._is_pre_norm else hidden
        return normalised

    def _after(self, hidden: Tensor, change: Tensor, norm: Norm) -> Tensor:
        total: Tensor = hidden + change if self._is_pre_norm else norm(hidden + change)
        return total


def fuse_layers(transformer: Transformer) -> FusedLayers:
    """The decoder's layers, ready for single steps; the weights must not change afterwards.

    Raises:
        UnsupportedVariantError: A layer is of a kind that single steps do not know, or keeps other
            states than the first: their tables are one.
    """
    layers = known_decoder_layers(transformer.decoder.layers, by="incremental decoding")
    states = layers[0].cell.state_shapes() if layers else ()
    for index, layer in enumerate(layers):
        if layer.cell.state_shapes() != states:
            raise UnsupportedVariantError(
                f"the cell of decoder layer {index} is a {type(layer.cell).__name__}, which keeps"
                f" other states than the {type(layers[0].cell).__name__} of layer 0; incremental"
                " decoding runs cells that keep the same"
            )
    fused = (FusedLayer(index, layer, transformer.config) for index, layer in enumerate(layers))
    return FusedLayers(layers=tuple(fused), states=states)
