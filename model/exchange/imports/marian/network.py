"""Marian's tensors under the names of our network: which goes where, transposed, with which shape.

Owns that correspondence, and what is missing, misshapen or left over. A projection of Marian's is
(inputs, outputs), of ours (outputs, inputs). Marian's decoder begins with a vector of zeros: it
is a row more than the vocabulary has, which is the padding too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from model.config import ModelConfig
from model.errors import ConfigError
from model.exchange.imports.imported import ForeignTensor, QuantisedRows
from model.exchange.imports.marian.files import MarianFile, MarianTensor
from model.exchange.imports.marian.options import LAYER_NORM_EPSILON, MarianShape

IMPOSSIBLE_BIAS = -1e4
"""Of rows that no token of Marian's has: e to it is zero, and half precision can say it."""

Read = Callable[[], Tensor | QuantisedRows]

ALPHAS_SUFFIX = "_QuantMultA"
_PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianNetwork:
    """A network of ours, its tensors still in Marian's file.

    Attributes:
        config: The shape.
        tensors: By the names of our `state_dict`.
        unused: Tensors of the file that nothing reads.
        has_alphas: The file has multipliers of activations, which are not needed here.
    """

    config: ModelConfig
    tensors: Mapping[str, ForeignTensor]
    unused: tuple[str, ...]
    has_alphas: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianTensors:
    """Tensors of a file, held against a shape.

    Attributes:
        source_size: Rows of the source's table in the file; 0 if there is none.
        target_size: Rows of the target's.
        num_rows: Rows of our tables.
        unused: Tensors that nothing reads; none where not all of the shape is known.
        problems: What is missing, misshapen or impossible.
        network: None where there are problems, or not all of the shape is known.
    """

    source_size: int
    target_size: int
    num_rows: int
    unused: tuple[str, ...]
    problems: tuple[str, ...]
    network: MarianNetwork | None


def find_network(file: MarianFile, shape: MarianShape) -> MarianTensors:
    """The network of a file, and everything in its tensors that is in the way of one."""
    source_name, target_name = _table_names(shape)
    source_size, target_size = (_num_rows(file, name) for name in (source_name, target_name))
    num_rows = max(source_size, target_size) + 1
    placed = _Placed(file=file, shape=shape, num_rows=num_rows)
    placed.add_tables(source_name, target_name, target_size)
    placed.add_stacks()
    alphas = {name for name in file.tensors if name.endswith(ALPHAS_SUFFIX)}
    unused = tuple(sorted(file.tensors.keys() - placed.read - alphas))
    config = None
    try:
        config = _config(file, shape, rows=num_rows)
    except ConfigError as error:
        placed.problems.insert(0, str(error))
    network = None
    if config is not None and shape.is_whole and not placed.problems:
        network = MarianNetwork(
            config=config, tensors=placed.tensors, unused=unused, has_alphas=bool(alphas)
        )
    return MarianTensors(
        source_size=source_size,
        target_size=target_size,
        num_rows=num_rows,
        unused=unused if shape.is_whole else (),
        problems=tuple(placed.problems),
        network=network,
    )


def _num_rows(file: MarianFile, name: str) -> int:
    """Rows of a table; 0 if there is none."""
    found = file.tensors.get(name)
    return found.shape[0] if found is not None and found.shape else 0


def _positions(file: MarianFile, shape: MarianShape) -> int:
    """Rows of the table of positions; 0 if there is none, or none is used."""
    # Marian 1.12.42 takes sinusoids all the same, and writes no table.
    return _num_rows(file, "Wpos") if shape.learned_positions else 0


def _table_names(shape: MarianShape) -> tuple[str, str]:
    return ("Wemb", "Wemb") if shape.embeddings_shared else ("encoder_Wemb", "decoder_Wemb")


def _config(file: MarianFile, shape: MarianShape, *, rows: int) -> ModelConfig:
    """Shape of our network.

    Raises:
        ConfigError: The shape cannot work.
    """
    num_positions = _positions(file, shape)
    return ModelConfig(
        vocab_size=rows,
        target_vocab_size=None if shape.embeddings_shared else rows,
        d_model=shape.dim,
        num_heads=shape.heads,
        d_ff=shape.d_ff,
        decoder_d_ff=None if shape.decoder_d_ff == shape.d_ff else shape.decoder_d_ff,
        num_encoder_layers=shape.encoder_depth,
        num_decoder_layers=len(shape.decoder_layers),
        decoder_cell=shape.cell,
        activation=shape.activation,
        norm=shape.norm,
        norm_placement=shape.placement,
        norm_epsilon=LAYER_NORM_EPSILON,
        embedding_norm=shape.embedding_norm,
        position="learned" if num_positions else "sinusoidal-m2m100",
        max_positions=num_positions or 1024,
        scale_embedding=not num_positions,
        share_embeddings=shape.embeddings_shared,
        tie_output=shape.output_tied,
        dropout=0.0,
        pad_id=rows - 1,
    )


@dataclass(slots=True, kw_only=True)
class _Placed:
    """Tensors that have found their place, and what is wrong with the others."""

    file: MarianFile
    shape: MarianShape
    num_rows: int
    tensors: dict[str, ForeignTensor] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add_tables(self, source_name: str, target_name: str, target_size: int) -> None:
        """Embeddings, learned positions and output layer."""
        width = self.shape.dim
        self._table("source_embedding.weight", source_name)
        if not self.shape.embeddings_shared:
            self._table("target_embedding.weight", target_name)
        num_positions = _positions(self.file, self.shape)
        for side in ("source", "target") if num_positions else ():
            self._vectors(f"{side}_positions.vectors.weight", "Wpos", num_positions)
        self._output_bias(target_size)
        if not self.shape.output_tied:
            self._output_projection(target_size, width)

    def add_stacks(self) -> None:
        """Both stacks, layer by layer, and the norms around them."""
        shape = self.shape
        for index in range(shape.encoder_depth):
            ours, theirs = f"encoder.layers.{index}", f"encoder_l{index + 1}"
            self._attention(f"{ours}.self_attention", f"{theirs}_self")
            self._feed_forward(ours, f"{theirs}_ffn", shape.d_ff)
        for index, number in enumerate(shape.decoder_layers):
            ours, theirs = f"decoder.layers.{index}", f"decoder_l{number}"
            if shape.has_known_cell:
                self._cell(ours, theirs)
            self._attention(f"{ours}.cross_attention", f"{theirs}_context")
            self._feed_forward(ours, f"{theirs}_ffn", shape.decoder_d_ff)
        for stack in ("encoder", "decoder"):
            if shape.embedding_norm:
                self._norm(f"{stack}.embedding_norm", f"{stack}_emb", "_pre")
            if shape.placement == "pre":
                self._norm(f"{stack}.final_norm", f"{stack}_top", "")

    def _cell(self, ours: str, theirs: str) -> None:
        if self.shape.cell == "ssru":
            self._ssru(ours, f"{theirs}_rnn")
        else:
            self._attention(f"{ours}.self_attention", f"{theirs}_self")

    def _attention(self, ours: str, theirs: str) -> None:
        width = self.shape.dim
        for letter, name in _PROJECTIONS.items():
            if letter == "o" and not self.shape.has_projection:
                self._identity(f"{ours}.{name}")
            else:
                self._linear(f"{ours}.{name}", theirs, f"W{letter}", f"b{letter}", (width, width))
        self._layer_norm(f"{ours}_norm", f"{theirs}_Wo")

    def _ssru(self, ours: str, theirs: str) -> None:
        square = (self.shape.dim, self.shape.dim)
        self._linear(f"{ours}.ssru.candidate_proj", theirs, "W", None, square)
        self._linear(f"{ours}.ssru.forget_proj", theirs, "Wf", "bf", square)
        norm = theirs if self.shape.placement == "pre" else f"{theirs}_ffn"
        self._layer_norm(f"{ours}.ssru_norm", norm)

    def _feed_forward(self, ours: str, theirs: str, inner: int) -> None:
        width = self.shape.dim
        self._linear(f"{ours}.feed_forward.up_proj", theirs, "W1", "b1", (width, inner))
        self._linear(f"{ours}.feed_forward.down_proj", theirs, "W2", "b2", (inner, width))
        self._layer_norm(f"{ours}.feed_forward_norm", f"{theirs}_ffn")

    def _layer_norm(self, ours: str, theirs: str) -> None:
        self._norm(ours, theirs, "_pre" if self.shape.placement == "pre" else "")

    def _norm(self, ours: str, theirs: str, suffix: str) -> None:
        if not self.shape.has_known_norms:
            return
        row = (1, self.shape.dim)
        if self.shape.norm == "rmsnorm":
            self._vector(f"{ours}.weight", f"{theirs}_rms_scale{suffix}", row)
            return
        self._vector(f"{ours}.weight", f"{theirs}_ln_scale{suffix}", row)
        self._vector(f"{ours}.bias", f"{theirs}_ln_bias{suffix}", row)

    def _linear(
        self, ours: str, prefix: str, weight: str, bias: str | None, shape: tuple[int, int]
    ) -> None:
        """A projection of (inputs, outputs), and its bias where it has one."""
        found = self._found(f"{prefix}_{weight}", shape)
        if found is not None:
            self._put(f"{ours}.weight", shape[::-1], partial(_output_rows, found))
        if bias is not None:
            self._vector(f"{ours}.bias", f"{prefix}_{bias}", (1, shape[1]))

    def _output_bias(self, target_size: int) -> None:
        """The bias of every token, and of rows that no token has, which get no probability."""
        size, bias = self.num_rows, None
        if self.shape.output_bias:
            bias = self._found("decoder_ff_logit_out_b", (1, target_size))
            if bias is None:
                return
        self._put("output_bias", (size,), partial(_biases, bias, target_size, size))

    def _output_projection(self, target_size: int, width: int) -> None:
        """The untied output layer: (V, D), or as older versions have it (D, V)."""
        is_old = "decoder_ff_logit_out_W" in self.file.tensors
        name = "decoder_ff_logit_out_W" if is_old else "decoder_ff_logit_out_Wt"
        found = self._found(name, (width, target_size) if is_old else (target_size, width))
        if found is not None and found.has_output_rows and not is_old:
            self.problems.append(f"{name} is int8, whose arrangement differs; convert the .npz")
        elif found is not None:
            size = self.num_rows
            table = partial(_output_rows, found) if is_old else found.read
            self._put("output_projection.weight", (size, width), partial(_extended, table, size))

    def _table(self, ours: str, theirs: str) -> None:
        rows, width = self.num_rows, self.shape.dim
        found = self._found(theirs, (_num_rows(self.file, theirs) or 1, width))
        if found is not None:
            self._put(ours, (rows, width), partial(_extended, found.read, rows))

    def _vectors(self, ours: str, theirs: str, rows: int) -> None:
        shape = (rows, self.shape.dim)
        found = self._found(theirs, shape)
        if found is not None:
            self._put(ours, shape, found.read)

    def _vector(self, ours: str, theirs: str, shape: tuple[int, int]) -> None:
        found = self._found(theirs, shape)
        if found is not None:
            self._put(ours, (shape[1],), partial(_vector, found))

    def _identity(self, ours: str) -> None:
        """The projection that leaves out what Marian leaves out."""
        width = self.shape.dim
        self.tensors[f"{ours}.weight"] = ForeignTensor(
            shape=(width, width), read=lambda: torch.eye(width)
        )
        self.tensors[f"{ours}.bias"] = ForeignTensor(
            shape=(width,), read=lambda: torch.zeros(width)
        )

    def _put(self, ours: str, shape: tuple[int, ...], read: Read) -> None:
        self.tensors[ours] = ForeignTensor(shape=shape, read=read)

    def _found(self, name: str, shape: tuple[int, ...]) -> MarianTensor | None:
        self.read.add(name)
        found = self.file.tensors.get(name)
        if found is None:
            self.problems.append(f"{name} is missing")
        elif found.shape != shape and self.shape.has_all_sizes and 0 not in shape:
            self.problems.append(f"{name} has shape {found.shape}; the options need {shape}")
        else:
            return found
        return None


def _output_rows(tensor: MarianTensor) -> Tensor | QuantisedRows:
    """A projection as (outputs, inputs)."""
    values = tensor.read()
    if tensor.has_output_rows:
        return values
    assert isinstance(values, Tensor)  # int8 without output rows are tables alone
    return values.T.contiguous()


def _vector(tensor: MarianTensor) -> Tensor:
    """A row as a vector."""
    values = tensor.read()
    assert isinstance(values, Tensor)  # rows are never int8
    return values.reshape(-1)


def _biases(tensor: MarianTensor | None, num_tokens: int, size: int) -> Tensor:
    """Biases of tokens, zeros if there are none, and of the rows that no token has."""
    values = torch.zeros(num_tokens) if tensor is None else _vector(tensor)
    return torch.nn.functional.pad(values, (0, size - num_tokens), value=IMPOSSIBLE_BIAS)


def _extended(read: Read, size: int) -> Tensor | QuantisedRows:
    """A table of `size` rows, the last of them zeros."""
    values = read()
    if isinstance(values, QuantisedRows):
        missing = size - len(values.quanta)
        return QuantisedRows(
            quanta=torch.nn.functional.pad(values.quanta, (0, 0, 0, missing)),
            scale=torch.cat((values.scale, values.scale[:1].expand(missing))),
        )
    return torch.nn.functional.pad(values, (0, 0, 0, size - len(values)))
