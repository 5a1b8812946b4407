"""Marian's options (`special:model.yml`) as the shape of a network, and all that is in its way.

Owns which options are honoured, which do not matter to a translation, that every other one is
refused where it is on, and what stands in for one that is refused while tensors are looked at. It
knows no tensors; `network.py` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from model.config import Activation, DecoderCell, NormKind, NormPlacement
from model.errors import shown

LAYER_NORM_EPSILON = 1e-6
"""Of Marian's norms, under the root (`src/graph/expression_operators.h`)."""
MAX_DEPTH = 2**10
MAX_WIDTH = 2**20

_ACTIVATIONS: Mapping[str, Activation] = {
    "swish": "silu",
    "relu": "relu",
    "gelu": "gelu",
}
"""GELU itself as of Marian 1.12.42, whose word scores show it."""
_HARMLESS = frozenset(
    {
        # of recurrent networks, which have another `type`
        "dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "dec-cell-base-depth",
        "dec-cell-high-depth", "skip", "best-deep", "char-conv-filters-num",
        "char-conv-filters-widths", "char-highway", "char-stride",
        # of other kinds of transformers
        "bert-train-type-embeddings", "bert-type-vocab-size", "bert-mask-symbol",
        "bert-sep-symbol", "bert-class-symbol", "bert-masking-fraction",
        "comet-dropout", "comet-mix", "comet-mix-norm", "comet-mix-transformation", "comet-pool",
        "comet-pooler-ffn", "comet-final-sigmoid", "comet-stop-grad", "comet-prepend-zero",
        "comet-use-separator", "transformer-dim-aan", "transformer-aan-depth",
        "transformer-aan-activation", "transformer-aan-nogate",
        # of factors, which only a vocabulary of theirs uses
        "factors-combine", "factors-dim-emb", "factor-weight",
        # of training
        "transformer-depth-scaling", "transformer-guided-alignment-layer", "original-type",
        "max-length", "dropout-rnn", "dropout-src", "dropout-trg", "transformer-dropout",
        "transformer-dropout-attention", "transformer-dropout-ffn", "embedding-fix-src",
        "embedding-fix-trg", "ulr-dim-emb", "ulr-dropout", "ulr-softmax-temperature",
        # without effect unless another option, which is refused, is on
        "separator-symbol", "input-join-fields", "transformer-alibi-shift",
        "transformer-alibi-trainable",
        # of the file
        "version", "special-vocab", "relative-paths",
    }
)  # fmt: skip
_DEFAULTS = frozenset({("transformer-attention-mask", "default")})
"""Values that are not empty, and still mean that an option is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianShape:
    """Shape of a network by its options.

    Attributes:
        embeddings_shared: One table for source and target.
        output_tied: The target's table is the output projection.
        decoder_layers: The number that the tensors of each decoder layer have; tied layers share.
        has_projection: Attention ends in a projection.
        learned_positions: Positions are a table, if there is one, and embeddings are not scaled.
        has_all_sizes: Every width and depth is what the options say; where one is not, another
            number stands in for it, and shapes of tensors mean nothing.
        has_known_cell: The decoder's layers begin with a cell that is supported; where they do
            not, another one stands in for it.
        has_known_norms: Norms are of a kind and in places that are supported; likewise.
    """

    dim: int
    heads: int
    d_ff: int
    decoder_d_ff: int
    encoder_depth: int
    decoder_layers: tuple[int, ...]
    cell: DecoderCell
    activation: Activation
    norm: NormKind
    placement: NormPlacement
    embedding_norm: bool
    embeddings_shared: bool
    output_tied: bool
    output_bias: bool
    has_projection: bool
    learned_positions: bool
    has_all_sizes: bool = True
    has_known_cell: bool = True
    has_known_norms: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether nothing stands in for what is not known: what no tensor is for is left over."""
        return self.has_all_sizes and self.has_known_cell and self.has_known_norms


def parse_shape(options: Mapping[str, object]) -> tuple[MarianShape | None, list[str]]:
    """The shape, and everything in the options that is in the way of it.

    What is not supported has the nearest supported value in the shape, so that the other tensors
    of a file can be told along; there is none of networks that are no transformers.
    """
    read = _Options(options)
    kind = read.text("type", "")
    if kind != "transformer":
        return None, [f"type is {shown(kind)}; only transformer is supported"]
    pre = read.operations("transformer-preprocess", "")
    post = read.operations("transformer-postprocess", "dan")
    top = read.operations("transformer-postprocess-top", "")
    embedding = read.operations("transformer-postprocess-emb", "d")
    norm, placement = _norms(read, pre=pre, post=post, top=top, embedding=embedding)
    d_ff = read.count("transformer-dim-ffn", 2048, MAX_WIDTH)
    share_all = read.flag("tied-embeddings-all")
    layers = _decoder_layers(read)
    shape = MarianShape(
        dim=read.count("dim-emb", 512, MAX_WIDTH),
        heads=read.count("transformer-heads", 8, MAX_WIDTH),
        d_ff=d_ff,
        decoder_d_ff=read.count("transformer-decoder-dim-ffn", 0, MAX_WIDTH, least=0) or d_ff,
        encoder_depth=read.count("enc-depth", 1, MAX_DEPTH),
        decoder_layers=layers,
        cell=_cell(read),
        activation=_activation(read),
        norm=norm,
        placement=placement,
        embedding_norm=bool(embedding),
        embeddings_shared=share_all or read.flag("tied-embeddings-src"),
        output_tied=share_all or read.flag("tied-embeddings"),
        output_bias=not read.flag("output-omit-bias"),
        has_projection=not read.flag("transformer-no-projection"),
        learned_positions=read.flag("transformer-train-position-embeddings"),
        has_all_sizes=read.has_all_sizes,
        has_known_cell=read.has_known_cell,
        has_known_norms=read.has_known_norms,
    )
    _check_depths(read)
    read.check_inputs()
    return shape, [*read.problems, *read.unread()]


def _norms(
    read: "_Options", *, pre: str, post: str, top: str, embedding: str
) -> tuple[NormKind, NormPlacement]:
    """The kind and place of norms that the operations of a layer come to."""
    kinds = set(pre + post + top + embedding) & {"n", "r"}
    if len(kinds) > 1:
        read.problems.append("layers mix LayerNorm (n) and RMSNorm (r)")
        read.has_known_norms = False
    norm: NormKind = "rmsnorm" if kinds == {"r"} else "layernorm"
    code = "r" if norm == "rmsnorm" else "n"
    placement: NormPlacement = "pre" if pre else "post"
    known = {"post": ("", f"a{code}", ""), "pre": (code, "a", code)}
    if (pre, post, top) != known[placement]:
        read.problems.append(
            f"transformer-preprocess {shown(pre)}, -postprocess {shown(post)} and -postprocess-top"
            f" {shown(top)} (without dropout) are neither post-norm ('', 'an', '') nor pre-norm"
            " ('n', 'a', 'n')"
        )
        read.has_known_norms = False
    if embedding not in {"", code}:
        read.problems.append(f"transformer-postprocess-emb is {shown(embedding)}")
        read.has_known_norms = False
    return norm, placement


def _cell(read: "_Options") -> DecoderCell:
    kind = read.text("transformer-decoder-autoreg", "self-attention")
    cell = read.text("dec-cell", "gru")
    if kind == "self-attention":
        return "self-attention"
    if kind != "rnn":
        known = "self-attention and rnn are supported"
        read.problems.append(f"transformer-decoder-autoreg is {shown(kind)}; {known}")
        read.has_known_cell = False
        return "self-attention"
    if cell != "ssru":
        read.problems.append(f"dec-cell is {shown(cell)}; of recurrent decoders ssru is supported")
        read.has_known_cell = False
    for name in ("transformer-rnn-projection", "layer-normalization"):
        if read.flag(name):
            read.problems.append(f"{name} is on, which is not supported with ssru")
            read.has_known_cell = False
    return "ssru"


def _activation(read: "_Options") -> Activation:
    name = read.text("transformer-ffn-activation", "swish")
    if name not in _ACTIVATIONS:
        known = f"{', '.join(_ACTIVATIONS)} are supported"
        read.problems.append(f"transformer-ffn-activation is {shown(name)}; {known}")
    return _ACTIVATIONS.get(name, "silu")


def _decoder_layers(read: "_Options") -> tuple[int, ...]:
    depth = read.count("dec-depth", 1, MAX_DEPTH)
    tied = read.counts("transformer-tied-layers")
    if not tied:
        return tuple(range(1, depth + 1))
    if len(tied) != depth or not all(1 <= number <= depth for number in tied):
        read.problems.append(
            f"transformer-tied-layers is {shown(list(tied))}; it needs {depth} numbers from 1 to"
            f" {depth}"
        )
        return tuple(range(1, depth + 1))
    return tied


def _check_depths(read: "_Options") -> None:
    encoder = read.count("transformer-ffn-depth", 2, MAX_DEPTH)
    decoder = read.count("transformer-decoder-ffn-depth", 0, MAX_DEPTH, least=0) or encoder
    for name, depth in (("transformer-ffn-depth", encoder), ("-decoder-ffn-depth", decoder)):
        if depth != 2:
            read.problems.append(f"{name} is {depth}; only 2 is supported")


def is_off(name: str, value: object) -> bool:
    """Whether an option has its default value."""
    return not value or (name, value) in _DEFAULTS or value == "false"


@dataclass(slots=True)
class _Options:
    """Options that are read one by one; what is wrong with them is collected."""

    values: Mapping[str, object]
    problems: list[str] = field(default_factory=list)
    has_all_sizes: bool = True
    has_known_cell: bool = True
    has_known_norms: bool = True
    _read: set[str] = field(default_factory=set)

    def _value(self, name: str, default: object) -> object:
        self._read.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def text(self, name: str, default: str) -> str:
        value = self._value(name, default)
        if not isinstance(value, str):
            self.problems.append(f"{name} is {shown(value)}; it must be text")
            return default
        return value

    def flag(self, name: str) -> bool:
        value = self._value(name, default=False)
        if not isinstance(value, bool):
            self.problems.append(f"{name} is {shown(value)}; it must be true or false")
            return False
        return value

    def count(self, name: str, default: int, most: int, *, least: int = 1) -> int:
        value = self._value(name, default)
        if type(value) is not int or not least <= value <= most:
            self.problems.append(f"{name} is {shown(value)}; it must be from {least} to {most}")
            self.has_all_sizes = False
            return max(default, least)
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        value = self._value(name, [])
        if not isinstance(value, list) or any(type(item) is not int for item in value):
            self.problems.append(f"{name} is {shown(value)}; it must be a list of numbers")
            return ()
        return tuple(value)

    def operations(self, name: str, default: str) -> str:
        """The codes of what happens around a layer, without dropout."""
        return self.text(name, default).replace("d", "")

    def check_inputs(self) -> None:
        """Refuse inputs that are no text, several sources, and vocabularies that are factored."""
        inputs = self._value("input-types", [])
        if not isinstance(inputs, list) or any(kind != "sequence" for kind in inputs):
            self.problems.append(f"input-types is {shown(inputs)}; only sequences are supported")
        self._read |= {"dim-vocabs", "transformer-rnn-projection", "layer-normalization"}

    def unread(self) -> list[str]:
        """Every other option that is on."""
        return [
            f"{name} is {shown(value)}, which is not supported"
            for name, value in sorted(self.values.items())
            if name not in _HARMLESS | self._read and not is_off(name, value)
        ]
