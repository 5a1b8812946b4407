"""A Transformer as packed int8 matrices: the same network, another arithmetic.

Owns which tensor goes into which matrix: products of one input become one, a tied table is
stored once. In which order a matrix has its rows is `model.native.layout`; networks in memory are
`model.native.in_memory`. The arithmetic is the kernels' (`src/`): weights int8 with a scale a row,
activations int8 with a scale a row, everything else float32, cached keys and values in half
precision. Imports no torch.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from model.cells import describe_cell
from model.config import ABSOLUTE_POSITIONS, ModelConfig
from model.errors import ConfigError
from model.honoured import EVERY_VALUE, HonouredFields, check_honoured
from model.native import kernels
from model.native.layout import Floats, Quanta, pad_heads, padded, pair
from model.native.matrices import Matrices, MatrixParts, PackedHere
from model.native.positions import relative_buckets, sinusoidal_rows
from model.native.weights import WeightSource

if TYPE_CHECKING:
    from model.native import _kernels

_IMPOSSIBLE = float("-inf")


INT8_FIELDS = HonouredFields(
    by="int8 decoding",
    fields={
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "d_k": EVERY_VALUE,
        "d_v": EVERY_VALUE,
        "decoder_d_ff": EVERY_VALUE,
        "decoder_cell": ("self-attention", "ssru"),
        "gated_feed_forward": EVERY_VALUE,
        "feed_forward_bias": EVERY_VALUE,
        "embedding_norm": EVERY_VALUE,
        "scale_attention": EVERY_VALUE,
        "scale_output": EVERY_VALUE,
        "activation": ("relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"),
        "norm": ("layernorm", "rmsnorm"),
        "norm_placement": ("post", "pre"),
        "norm_epsilon": EVERY_VALUE,
        "attention_bias": EVERY_VALUE,
        "dropout": EVERY_VALUE,
        "attention_dropout": EVERY_VALUE,
        "activation_dropout": EVERY_VALUE,
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "num_encoder_layers": EVERY_VALUE,
        "num_decoder_layers": EVERY_VALUE,
        "position": (*sorted(ABSOLUTE_POSITIONS), "relative"),
        "position_offset": EVERY_VALUE,
        "max_positions": EVERY_VALUE,
        "scale_embedding": EVERY_VALUE,
        "share_embeddings": EVERY_VALUE,
        "tie_output": EVERY_VALUE,
        "output_bias": EVERY_VALUE,
        "pad_id": EVERY_VALUE,
    },
)
"""What the kernels honour, and a packing can say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Network:
    """A packed network, shared by all sessions of a process.

    Attributes:
        config: The shape.
        packed: The weights, as the kernels hold them.
        team: The threads that work on a step.
        instruction_set: What its sessions' kernels are compiled for.
    """

    config: ModelConfig
    packed: "_kernels.Network" = field(repr=False)
    team: "_kernels.Team" = field(repr=False)
    instruction_set: str


def pack(
    config: ModelConfig,
    weights: WeightSource,
    *,
    max_positions: int,
    suppressed_ids: tuple[int, ...],
    num_threads: int,
    matrices: Matrices | None = None,
) -> Int8Network:
    """Pack a network for decoding.

    Args:
        config: Its shape.
        weights: Its tensors.
        max_positions: Positions a sentence may have, source or target.
        suppressed_ids: Target tokens that are never generated.
        num_threads: Threads of its team, the calling one included.
        matrices: Where its matrices come from; None packs them.

    Raises:
        UnsupportedVariantError: The kernels are not there, or do not run this network.
        ConfigError: So many threads cannot be started here.
    """
    check_honoured(config, INT8_FIELDS)
    module = kernels.load()
    return _Packer(config, weights, module, matrices or PackedHere(module)).pack(
        max_positions=max_positions, suppressed_ids=suppressed_ids, num_threads=num_threads
    )


class _Packer:
    """One packing: the shape, the source, the compiled module and the matrices."""

    def __init__(
        self,
        config: ModelConfig,
        weights: WeightSource,
        module: kernels.Kernels,
        matrices: Matrices,
    ) -> None:
        self._config = config
        self._weights = weights
        self._kernels = module
        self._matrices = matrices
        self._matrix = matrices.matrix

    def pack(
        self, *, max_positions: int, suppressed_ids: tuple[int, ...], num_threads: int
    ) -> Int8Network:
        """Pack everything."""
        config = self._config
        source, target, output = self._tables()
        source_positions, target_positions = self._both_positions(max_positions)
        packed = self._kernels.network(
            d_model=config.d_model,
            encoder_d_ff=config.d_ff,
            decoder_d_ff=config.decoder_inner_width,
            max_positions=max_positions,
            heads=(
                config.num_heads,
                padded(config.query_width),
                padded(config.value_width),
                config.query_width**-0.5 if config.scale_attention else 1.0,
            ),
            is_pre_norm=config.norm_placement == "pre",
            activation=config.activation,
            is_gated=config.gated_feed_forward,
            decoder_cell=config.decoder_cell,
            embedding_factor=math.sqrt(config.d_model) if config.scale_embedding else 1.0,
            output_factor=config.d_model**-0.5 if config.scale_output else 1.0,
            source_table=source,
            target_table=target,
            output=output,
            source_positions=source_positions,
            target_positions=target_positions,
            encoder_bias=self._position_bias("encoder", max_positions),
            decoder_bias=self._position_bias("decoder", max_positions),
            suppressed=list(suppressed_ids),
        )
        for index in range(config.num_encoder_layers):
            self._add_encoder_layer(packed, f"encoder.layers.{index}.")
        for index in range(config.num_decoder_layers):
            self._add_decoder_layer(packed, f"decoder.layers.{index}.")
        stacks = ("encoder", "decoder")
        if config.embedding_norm:
            packed.set_embedding_norms(*(self._norm(f"{stack}.embedding_norm") for stack in stacks))
        if config.norm_placement == "pre":
            packed.set_final_norms(*(self._norm(f"{stack}.final_norm") for stack in stacks))
        self._matrices.finish()
        try:
            team = self._kernels.team(num_threads)
        except RuntimeError as error:
            raise ConfigError(str(error)) from error
        return Int8Network(
            config=config,
            packed=packed,
            team=team,
            instruction_set=self._kernels.instruction_set,
        )

    def _tables(self) -> "tuple[_kernels.Matrix, _kernels.Matrix, _kernels.Matrix]":
        """Source table, target table, output projection; what is tied is one matrix."""
        config = self._config
        name = "source_embedding" if config.share_embeddings else "target_embedding"
        if config.tie_output:
            output = self._output(name)
            source = output if config.share_embeddings else self._table("source_embedding")
            return source, output, output
        source = self._table("source_embedding")
        target = source if config.share_embeddings else self._table("target_embedding")
        return source, target, self._output("output_projection")

    def _table(self, name: str) -> "_kernels.Matrix":
        return self._matrix(name, lambda: (*self._weights.rows(f"{name}.weight"), None))

    def _output(self, name: str) -> "_kernels.Matrix":
        def parts() -> MatrixParts:
            bias = self._weights.floats("output_bias") if self._config.output_bias else None
            return *self._weights.rows(f"{name}.weight"), bias

        return self._matrix("output", parts, _IMPOSSIBLE)

    def _both_positions(self, length: int) -> tuple[Floats | None, Floats | None]:
        """What is added to the embeddings of source and target, (length, D); one array if alike."""
        config = self._config
        if config.position not in ABSOLUTE_POSITIONS:
            return None, None
        if config.position == "learned":
            return (
                self._learned_positions("source_positions", length),
                self._learned_positions("target_positions", length),
            )
        table = sinusoidal_rows(config.position, config.position_offset, length, config.d_model)
        return table, table

    def _learned_positions(self, name: str, length: int) -> Floats:
        vectors = self._weights.floats(f"{name}.vectors.weight")
        offset = self._config.position_offset
        vectors = vectors[offset : offset + length]
        # The last token of all is never fed: it may have no row, and the session wants one.
        missing = max(0, length - len(vectors))
        return np.ascontiguousarray(np.pad(vectors, ((0, missing), (0, 0))))

    def _position_bias(self, stack: str, length: int) -> Floats | None:
        """What is added to scores of self-attention, by key − query: (H, 2 · length − 1)."""
        if self._config.position != "relative":
            return None
        distances = np.arange(1 - length, length)
        buckets = relative_buckets(distances, is_bidirectional=stack == "encoder")
        by_bucket = self._weights.floats(f"{stack}.position_bias.scores.weight")
        return np.ascontiguousarray(by_bucket[buckets].T)

    def _add_encoder_layer(self, packed: "_kernels.Network", name: str) -> None:
        packed.add_encoder_layer(
            query_key_value=self._projections(name + "self_attention.", "qkv"),
            attention_output=self._attention_output(name + "self_attention."),
            up=self._inner(name + "feed_forward."),
            down=self._linear(name + "feed_forward.down_proj"),
            attention_norm=self._norm(name + "self_attention_norm"),
            feed_forward_norm=self._norm(name + "feed_forward_norm"),
        )

    def _add_decoder_layer(self, packed: "_kernels.Network", name: str) -> None:
        cell = f"{name}{describe_cell(self._config).name}"
        packed.add_decoder_layer(
            cell=self._cell_matrices(f"{cell}."),
            cross_query=self._projections(name + "cross_attention.", "q"),
            cross_key_value=self._projections(name + "cross_attention.", "kv"),
            cross_output=self._attention_output(name + "cross_attention."),
            up=self._inner(name + "feed_forward."),
            down=self._linear(name + "feed_forward.down_proj"),
            cell_norm=self._norm(f"{cell}_norm"),
            cross_norm=self._norm(name + "cross_attention_norm"),
            feed_forward_norm=self._norm(name + "feed_forward_norm"),
        )

    def _cell_matrices(self, name: str) -> "list[_kernels.Matrix]":
        """The matrices of a layer's cell, in the order in which its kernel reads them."""
        match self._config.decoder_cell:
            case "self-attention":
                return [self._projections(name, "qkv"), self._attention_output(name)]
            case "ssru":
                return [self._pair(f"{name}forget_proj", f"{name}candidate_proj")]

    def _norm(self, name: str) -> "_kernels.Norm":
        bias = f"{name}.bias"
        return self._kernels.norm(
            self._weights.floats(f"{name}.weight"),
            self._weights.floats(bias) if bias in self._weights else None,
            self._config.norm_epsilon,
            self._config.norm == "rmsnorm",
        )

    def _inner(self, name: str) -> "_kernels.Matrix":
        """The inner layer of a feed-forward; with a gate, what is activated comes first."""
        if self._config.gated_feed_forward:
            return self._pair(f"{name}gate_proj", f"{name}up_proj")
        return self._linear(f"{name}up_proj")

    def _linear(self, name: str) -> "_kernels.Matrix":
        return self._matrix(name, lambda: (*self._weights.rows(f"{name}.weight"), self._bias(name)))

    def _bias(self, name: str) -> Floats | None:
        return self._weights.floats(f"{name}.bias") if f"{name}.bias" in self._weights else None

    def _projections(self, name: str, which: str) -> "_kernels.Matrix":
        """Several projections of one input as one matrix; every head begins a new vector."""

        def parts() -> MatrixParts:
            quanta: list[Quanta] = []
            scales: list[Floats] = []
            biases: list[Floats] = []
            for letter in which:
                width = self._config.value_width if letter == "v" else self._config.query_width
                rows, scale = self._weights.rows(f"{name}{letter}_proj.weight")
                bias = self._bias(f"{name}{letter}_proj")
                quanta.append(pad_heads(rows, width))
                scales.append(pad_heads(scale, width))
                biases.append(pad_heads(np.zeros_like(scale) if bias is None else bias, width))
            return np.concatenate(quanta), np.concatenate(scales), np.concatenate(biases)

        return self._matrix(f"{name}{which}", parts)

    def _attention_output(self, name: str) -> "_kernels.Matrix":
        """The projection of all heads' values, its inputs padded as theirs are."""

        def parts() -> MatrixParts:
            rows, scale = self._weights.rows(f"{name}out_proj.weight")
            padded = pad_heads(np.ascontiguousarray(rows.T), self._config.value_width)
            return np.ascontiguousarray(padded.T), scale, self._bias(f"{name}out_proj")

        return self._matrix(f"{name}out_proj", parts)

    def _pair(self, first: str, second: str) -> "_kernels.Matrix":
        """Two projections of one input to one width, whose outputs are wanted together."""

        def parts() -> MatrixParts:
            (rows, scale), (other_rows, other_scale) = (
                self._weights.rows(f"{name}.weight") for name in (first, second)
            )
            biases = (self._bias(name) for name in (first, second))
            bias, other_bias = (np.zeros_like(scale) if each is None else each for each in biases)
            return pair(rows, other_rows), pair(scale, other_scale), pair(bias, other_bias)

        return self._matrix(first, parts)
