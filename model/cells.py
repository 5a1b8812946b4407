"""Decoder cells as descriptions: which tensors each of them has, which states it keeps of a row.

Owns what is known of a cell without running it; the shapes of checkpoints, the memory of a session
and that of training are derived from it. What a cell computes is `model.nn.cells`, whose networks
are the oracle of these descriptions, and `native/src/cell.h`. Imports no torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.config import DecoderCell, ModelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class StateShape:
    """One tensor that a cell keeps of each row: H vectors of `width` numbers.

    Attributes:
        num_heads: H.
        width: Numbers of a head.
        grows: There is one for each position so far, and all of them are attended to; otherwise
            there is one, which every step replaces.
    """

    num_heads: int
    width: int
    grows: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One linear map: its name below its owner's, and the shape of its weight.

    Attributes:
        name: "q_proj" of "decoder.layers.0.self_attention.q_proj.weight".
        num_outputs: Rows of the weight.
        num_inputs: Its columns.
        has_bias: Whether it has a bias, (num_outputs,).
    """

    name: str
    num_outputs: int
    num_inputs: int
    has_bias: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDescription:
    """Description of the cell of a network's decoder layers.

    Attributes:
        name: What its weights stand under in a layer; its norm's stand under `name` + "_norm".
        projections: All of its weights, in the order of the network's state dict.
        states: What it keeps of a row, in the order in which states are given and taken.
    """

    name: str
    projections: tuple[Projection, ...]
    states: tuple[StateShape, ...]

    @property
    def num_weights(self) -> int:
        """Weights of its matrices, biases left out."""
        return sum(item.num_outputs * item.num_inputs for item in self.projections)


def describe_cell(config: ModelConfig) -> CellDescription:
    """The cell of a network's decoder layers."""
    return _DESCRIPTIONS[config.decoder_cell](config)


def attention_projections(config: ModelConfig) -> tuple[Projection, ...]:
    """The four projections of any attention of a network, of cross-attention too."""
    width, has_bias = config.d_model, config.attention_bias
    queries = config.num_heads * config.query_width
    values = config.num_heads * config.value_width
    shapes = {
        "q_proj": (queries, width),
        "k_proj": (queries, width),
        "v_proj": (values, width),
        "out_proj": (width, values),
    }
    return tuple(
        Projection(name=name, num_outputs=outputs, num_inputs=inputs, has_bias=has_bias)
        for name, (outputs, inputs) in shapes.items()
    )


def _self_attention(config: ModelConfig) -> CellDescription:
    keys, values = (
        StateShape(num_heads=config.num_heads, width=width, grows=True)
        for width in (config.query_width, config.value_width)
    )
    return CellDescription(
        name="self_attention",
        projections=attention_projections(config),
        states=(keys, values),
    )


def _ssru(config: ModelConfig) -> CellDescription:
    width = config.d_model
    return CellDescription(
        name="ssru",
        projections=(
            Projection(name="candidate_proj", num_outputs=width, num_inputs=width, has_bias=False),
            Projection(name="forget_proj", num_outputs=width, num_inputs=width, has_bias=True),
        ),
        states=(StateShape(num_heads=1, width=width, grows=False),),
    )


_DESCRIPTIONS: Mapping[DecoderCell, Callable[[ModelConfig], CellDescription]] = {
    "self-attention": _self_attention,
    "ssru": _ssru,
}
