"""One encoder layer and one decoder layer (Vaswani et al. 2017, section 3.1).

Every sub-layer is dropped out and added to its own input. The paper normalises the sum
(post-norm); pre-norm normalises what enters the sub-layer and leaves the sum alone, so a
pre-norm stack ends in a norm of its own (`model.nn.transformer`).
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import Activation, ModelConfig
from model.errors import UnsupportedVariantError
from model.nn.attention import MultiHeadAttention
from model.nn.cells import Cell
from model.nn.dropout import Dropout
from model.nn.norms import Norm, build_norm
from model.nn.positions import RotaryPositions

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "gelu-sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, at every position alike (section 3.3).

    A gated one has a second inner layer, whose activation the first is multiplied by (Shazeer 2020,
    "GLU variants improve Transformer").
    """

    def __init__(self, config: ModelConfig, *, inner_width: int) -> None:
        super().__init__()
        has_bias = config.feed_forward_bias
        self.gate_proj = (
            nn.Linear(config.d_model, inner_width, bias=has_bias)
            if config.gated_feed_forward
            else None
        )
        self.up_proj = nn.Linear(config.d_model, inner_width, bias=has_bias)
        self.down_proj = nn.Linear(inner_width, config.d_model, bias=has_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        if self.gate_proj is None:
            inner = self.activation(self.up_proj(x))
        else:
            inner = self.activation(self.gate_proj(x)) * self.up_proj(x)
        output: Tensor = self.down_proj(self.dropout(inner))
        return output


class _Layer(nn.Module):
    """Common part of both kinds of layer: the residual connection around every sub-layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_post_norm = config.norm_placement == "post"
        self.dropout = Dropout(config.dropout)

    def _residual(self, x: Tensor, norm: Norm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """LayerNorm(x + Sublayer(x)) of the paper, or x + Sublayer(LayerNorm(x)) of pre-norm."""
        if self.is_post_norm:
            output: Tensor = norm(x + self.dropout(sublayer(x)).to(x.dtype))
        else:
            output = x + self.dropout(sublayer(norm(x))).to(x.dtype)
        return output


class EncoderLayer(_Layer):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, *, rotary: RotaryPositions | None = None) -> None:
        super().__init__(config)
        self.self_attention = MultiHeadAttention(config, rotary=rotary)
        self.self_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config, inner_width=config.d_ff)
        self.feed_forward_norm = build_norm(config)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Run the layer.

        Args:
            x: (B, S, D).
            mask: Which keys each query may attend to, broadcast to (B, H, S, S).
            bias: Added to the scores, (H, S, S).
            maps: If given, the attention weights (B, H, S, S) are appended to it.

        Returns:
            (B, S, D).
        """
        x = self._residual(
            x,
            self.self_attention_norm,
            lambda x: self.self_attention(x, x, mask=mask, bias=bias, maps=maps),
        )
        return self._residual(x, self.feed_forward_norm, self.feed_forward)


class DecoderLayer(_Layer):
    """A recurrent cell, attention to the encoder output, then feed-forward.

    The cell and its norm are submodules under the cell's own name.
    """

    def __init__(self, config: ModelConfig, cell: Cell) -> None:
        super().__init__(config)
        self._cell_name = cell.name
        self.add_module(cell.name, cell)
        self.add_module(f"{cell.name}_norm", build_norm(config))
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = build_norm(config)
        self.feed_forward = FeedForward(config, inner_width=config.decoder_inner_width)
        self.feed_forward_norm = build_norm(config)

    @property
    def cell(self) -> Cell:
        """What each position takes from those before it."""
        cell = self._modules[self._cell_name]
        assert isinstance(cell, Cell)
        return cell

    @property
    def cell_norm(self) -> Norm:
        """The norm of the cell's sub-layer."""
        norm = self._modules[f"{self._cell_name}_norm"]
        assert isinstance(norm, Norm)
        return norm

    def forward(
        self,
        x: Tensor,
        encoder_output: Tensor | None = None,
        mask: Tensor | None = None,
        encoder_mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
        cross_maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Run the layer.

        Args:
            x: (B, T, D).
            encoder_output: (B, S, D); None skips the cross-attention sub-layer.
            mask: Narrows what the cell sees of the past, broadcast to (B, H, T, T).
            encoder_mask: Which source positions may be attended to, broadcast to (B, H, T, S).
            bias: Added to the scores of a cell that attends, (H, T, T).
            maps: If given, the weights (B, H, T, T) of a cell that attends are appended to it.
            cross_maps: If given, the cross-attention weights (B, H, T, S) are appended to it.

        Returns:
            (B, T, D).
        """
        x = self._residual(
            x,
            self.cell_norm,
            lambda x: self.cell.over_sequence(x, mask=mask, bias=bias, maps=maps),
        )
        if encoder_output is not None:
            x = self._residual(
                x,
                self.cross_attention_norm,
                lambda x: self.cross_attention(
                    x, encoder_output, mask=encoder_mask, maps=cross_maps
                ),
            )
        return self._residual(x, self.feed_forward_norm, self.feed_forward)


def known_decoder_layers(
    layers: Iterable[nn.Module], *, by: str, cell: type[Cell] = Cell
) -> list[DecoderLayer]:
    """The layers of a decoder, for those who take them apart.

    Args:
        layers: Of a `Decoder`.
        by: What takes them apart, as an error names it.
        cell: The kind of cell that is known.

    Raises:
        UnsupportedVariantError: One of them, or its cell, is of another kind.
    """
    known = []
    for index, layer in enumerate(layers):
        if not isinstance(layer, DecoderLayer):
            raise UnsupportedVariantError(
                f"decoder layer {index} is a {type(layer).__name__}; {by} knows only"
                f" {DecoderLayer.__name__}"
            )
        if not isinstance(layer.cell, cell):
            raise UnsupportedVariantError(
                f"the cell of decoder layer {index} is a {type(layer.cell).__name__}; {by} knows"
                f" only {cell.__name__}"
            )
        known.append(layer)
    return known
