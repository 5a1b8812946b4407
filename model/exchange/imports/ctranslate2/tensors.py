"""Our tensors in the variables of a CTranslate2 file.

Owns the names: which rows of which variable each weight of the network is. Matrices are outputs by
inputs on both sides; CTranslate2 keeps queries, keys and values in one. It does not own the
network's settings (`model.exchange.imports.ctranslate2.network`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from model.exchange.imports.ctranslate2.layout import Layout
from model.exchange.imports.imported import ForeignTensor, QuantisedRows
from model.exchange.imports.numbering import Rows

SOURCE_TABLES = ("encoder/embeddings_0/weight", "encoder/embeddings/weight")
TARGET_TABLE = "decoder/embeddings/weight"
PROJECTION = "decoder/projection/weight"
OUTPUT_BIAS = "decoder/projection/bias"
POSITIONS = "{}/position_encodings/encodings"
EMBEDDING_NORM = "{}/layernorm_embedding"
LAYER = "{}/layer_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Shape that all layers of a file have in common.

    Attributes:
        width: Of the network.
        attention_width: Of all heads' queries, and of their values.
        inner_widths: Of the feed-forward layers, encoder's and decoder's.
        is_gated: The feed-forward has two inner products.
        is_rms: Norms have no bias.
    """

    width: int
    attention_width: int
    inner_widths: tuple[int, int]
    is_gated: bool
    is_rms: bool


@dataclass(frozen=True, slots=True)
class Biases:
    """Linear layers of one kind, by our names: a network has all of their biases or none.

    Attributes:
        sizes: Outputs of every layer.
        stored: Those that have a bias in the file.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)


class Tensors:
    """Our tensors, found one by one; what is missing becomes the layout's problem.

    Attributes:
        found: By our names.
        attention: Biases of the attentions' projections.
        feed_forward: Biases of the feed-forward layers.
    """

    def __init__(self, layout: Layout, shape: LayerShape) -> None:
        self.found: dict[str, ForeignTensor] = {}
        self.attention = Biases()
        self.feed_forward = Biases()
        self._layout = layout
        self._shape = shape

    def __repr__(self) -> str:
        return f"<Tensors of {self._layout!r}: {len(self.found)} found>"

    def table(self, name: str, path: str, rows: Rows) -> None:
        """A table with a row a piece."""
        width = self._shape.width
        if self._layout.use(path, (rows.num_old, width)):
            read = partial(_moved, self._layout, path, rows)
            self.found[name] = ForeignTensor(shape=(len(rows.old), width), read=read)

    def output_bias(self, rows: Rows) -> bool:
        """A number a target piece, if there is one in the file or rows are added; whether so."""
        is_stored = self._layout.has(OUTPUT_BIAS)
        if is_stored and not self._layout.use(OUTPUT_BIAS, (rows.num_old,)):
            return False
        if is_stored or rows.has_added:
            read = partial(_bias, self._layout, rows) if is_stored else rows.no_bias
            self.found["output_bias"] = ForeignTensor(shape=(len(rows.old),), read=read)
        return is_stored or rows.has_added

    def positions(self, side: str, path: str, num_rows: int) -> None:
        """The first rows of a stored position table."""
        shape = (num_rows, self._shape.width)
        read = partial(self._layout.file.values, path, 0, num_rows)
        self.found[f"{side}_positions.vectors.weight"] = ForeignTensor(shape=shape, read=read)

    def biases(self, side: str, path: str, shape: tuple[int, int]) -> None:
        """Biases of T5 by distance, (buckets, heads)."""
        read = partial(self._layout.file.values, path)
        self.found[f"{side}.position_bias.scores.weight"] = ForeignTensor(shape=shape, read=read)

    def layer(self, side: str, number: int) -> None:
        """One layer of a stack: self-attention, the decoder's attention, feed-forward."""
        ours, theirs = f"{side}.layers.{number}", LAYER.format(side, number)
        width, inner = self._shape.attention_width, self._shape.inner_widths[side == "decoder"]
        qkv = [(f"{ours}.self_attention.{letter}_proj", width) for letter in "qkv"]
        self._linear(f"{theirs}/self_attention/linear_0", qkv, self.attention)
        self._outputs(f"{theirs}/self_attention/linear_1", f"{ours}.self_attention")
        self.norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attention_norm")
        if side == "decoder":
            self._cross_attention(f"{theirs}/attention", f"{ours}.cross_attention")
        up = f"{ours}.feed_forward.up_proj"
        first = f"{ours}.feed_forward.gate_proj" if self._shape.is_gated else up
        self._linear(f"{theirs}/ffn/linear_0", [(first, inner)], self.feed_forward)
        if self._shape.is_gated:
            self._linear(f"{theirs}/ffn/linear_0_noact", [(up, inner)], self.feed_forward)
        down = [(f"{ours}.feed_forward.down_proj", self._shape.width)]
        self._linear(f"{theirs}/ffn/linear_1", down, self.feed_forward, num_inputs=inner)
        self.norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_norm")

    def norm(self, path: str, name: str) -> None:
        """A norm's factors and, but for an RMSNorm, its biases."""
        kinds = {"gamma": "weight"} if self._shape.is_rms else {"gamma": "weight", "beta": "bias"}
        for theirs, ours in kinds.items():
            if self._layout.use(f"{path}/{theirs}", (self._shape.width,)):
                self._vector(f"{name}.{ours}", f"{path}/{theirs}", 0, self._shape.width)

    def fill_biases(self) -> None:
        """Zeros for the layers without a bias among those of their kind that have one."""
        for biases in (self.attention, self.feed_forward):
            if not biases.stored:
                continue
            for name in biases.sizes.keys() - biases.stored:
                shape = (biases.sizes[name],)
                self.found[f"{name}.bias"] = ForeignTensor(
                    shape=shape, read=partial(torch.zeros, shape)
                )

    def _cross_attention(self, theirs: str, ours: str) -> None:
        width = self._shape.attention_width
        self._linear(f"{theirs}/linear_0", [(f"{ours}.q_proj", width)], self.attention)
        memory = [(f"{ours}.{letter}_proj", width) for letter in "kv"]
        self._linear(f"{theirs}/linear_1", memory, self.attention)
        self._outputs(f"{theirs}/linear_2", ours)
        self.norm(f"{theirs}/layer_norm", f"{ours}_norm")

    def _outputs(self, path: str, attention: str) -> None:
        parts = [(f"{attention}.out_proj", self._shape.width)]
        self._linear(path, parts, self.attention, num_inputs=self._shape.attention_width)

    def _linear(
        self,
        path: str,
        parts: Sequence[tuple[str, int]],
        biases: Biases,
        *,
        num_inputs: int | None = None,
    ) -> None:
        """One linear layer of theirs that is several of ours, one after the other."""
        inputs, outputs = num_inputs or self._shape.width, sum(size for _, size in parts)
        biases.sizes.update(parts)
        has_weight = self._layout.use(f"{path}/weight", (outputs, inputs))
        has_bias = self._layout.has(f"{path}/bias") and self._layout.use(f"{path}/bias", (outputs,))
        start = 0
        for name, size in parts:
            stop = start + size
            if has_weight:
                read = partial(self._layout.file.weight, f"{path}/weight", start, stop)
                self.found[f"{name}.weight"] = ForeignTensor(shape=(size, inputs), read=read)
            if has_bias:
                self._vector(f"{name}.bias", f"{path}/bias", start, stop)
                biases.stored.add(name)
            start = stop

    def _vector(self, name: str, path: str, start: int, stop: int) -> None:
        read = partial(self._layout.file.values, path, start, stop)
        self.found[name] = ForeignTensor(shape=(stop - start,), read=read)


def _moved(layout: Layout, path: str, rows: Rows) -> Tensor | QuantisedRows:
    return rows.of(layout.file.weight(path))


def _bias(layout: Layout, rows: Rows) -> Tensor:
    return rows.bias(layout.file.values(OUTPUT_BIAS))
