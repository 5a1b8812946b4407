"""Importer of OpenNMT-py's Transformers: checkpoints with SentencePiece files beside.

Owns which option and which tensor of theirs is which of ours. Their networks are pre-norm with a
final norm, embeddings times √d where sines and cosines are added (Klein et al. 2017, and the
project's own defaults). The file is read by `model.exchange.imports.opennmt.file`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from model.checkpoint.weights import TokenizerParts
from model.config import Activation, LengthLimits, ModelConfig
from model.errors import ForeignModelError, shown
from model.exchange.imports.completeness import unread
from model.exchange.imports.imported import (
    ForeignTensor,
    ImportedModel,
    ImportOptions,
    QuantisedRows,
)
from model.exchange.imports.numbering import Numbering, Rows, TokenNames, number_pieces, unmoved
from model.exchange.imports.opennmt.file import OpenNMTFile, opennmt_path, read_opennmt
from model.exchange.imports.piece_files import PieceFiles, find_piece_files
from model.exchange.imports.position_tables import recognised_table
from model.exchange.imports.problems import NAME_DIRECTIONS, attempted
from model.text.languages.tags import LanguagePair

Settings = dict[str, object]

_ACTIVATIONS: Mapping[str, Activation] = MappingProxyType(
    {"relu": "relu", "gelu": "gelu", "fast_gelu": "gelu-tanh", "silu": "silu"}
)
_NAMES = TokenNames(unk="<unk>", bos="<s>", eos="</s>", start="<s>", has_source_eos=False)
_EPSILON = 1e-6
_MAX_COUNT = 1024
_MAX_LENGTH = 256
"""Tokens of a sentence: no option says how long those were that a network learned."""
_EMBEDDINGS = "{}.embeddings.make_embedding.emb_luts.0.weight"
_POSITIONS = "{}.embeddings.make_embedding.pe.pe"
_MASK = ".mask"
"""Of what comes later, which versions before 2 kept beside the weights of each layer."""
_LAYERS = {"encoder": "encoder.transformer", "decoder": "decoder.transformer_layers"}
_NORMS = {
    "encoder": {"self_attention_norm": "layer_norm"},
    "decoder": {"self_attention_norm": "layer_norm_1", "cross_attention_norm": "layer_norm_2"},
}
_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "context_attn"}
_PROJECTIONS = {
    "q_proj": "linear_query",
    "k_proj": "linear_keys",
    "v_proj": "linear_values",
    "out_proj": "final_linear",
}
_REQUIRED: Mapping[str, object] = MappingProxyType(
    {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "self_attn_type": "scaled-dot",
        "position_encoding": True,
        "max_relative_positions": 0,
        "layer_norm": "standard",
        "copy_attn": False,
        "multiquery": False,
        "num_kv": 0,
        "parallel_residual": False,
        "sliding_window": 0,
        "num_experts": 0,
        "generator_function": "softmax",
    }
)
"""Options that change what a network computes, with the one value that is supported, which is also
what a checkpoint without the option has."""


class OpenNMTImporter:
    """Checkpoints of OpenNMT-py, of all its versions."""

    name = "OpenNMT-py checkpoint"

    def __repr__(self) -> str:
        return f"<{self.name} importer>"

    def recognises(self, source: Path) -> bool:
        """Whether `source` is a checkpoint, or a folder with one alone."""
        return opennmt_path(source) is not None

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Options, vocabularies and the names of tensors; no weights yet.

        Raises:
            ForeignModelError: With every problem.
        """
        path = opennmt_path(source)
        if path is None:
            raise ForeignModelError(source, ["is no checkpoint of OpenNMT-py"])
        file = read_opennmt(path)
        problems = [*_option_problems(file.options)]
        if not options.pairs:
            problems.append(
                f"its files do not say which languages it translates; {NAME_DIRECTIONS}"
            )
        pieces = attempted(problems, lambda: find_piece_files(path.parent))
        numbering = attempted(problems, lambda: number_pieces(file.source, file.target, _NAMES))
        if pieces is not None:
            problems += pieces.problems(file.source, file.target)
        rows = numbering or unmoved(len(file.source), len(file.target))
        network = attempted(problems, lambda: _Network(file, rows))
        problems += network.problems if network is not None else ()
        if problems or pieces is None or numbering is None or network is None:
            unused = () if network is None else network.unused
            raise ForeignModelError(path, [*problems, *unread(unused)])
        return _imported(file, options, pieces, numbering, network)


def _option_problems(options: Mapping[str, object]) -> Iterator[str]:
    for name, wanted in _REQUIRED.items():
        value = options.get(name, wanted)
        is_of_heads = name == "num_kv" and _is(value, options.get("heads"))
        if not _is(value, wanted) and not is_of_heads:
            yield f"{name} is {shown(value)}; only {wanted!r} is supported"
    activation = options.get("pos_ffn_activation_fn", "relu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        yield f"pos_ffn_activation_fn is {shown(activation)}; it must be one of {known}"
    if not _is(options.get("decoder_start_token", "<s>"), "<s>"):
        start = shown(options["decoder_start_token"])
        yield f"decoder_start_token is {start}; only '<s>' is supported"


def _is(value: object, wanted: object) -> bool:
    """Whether two options are plain values, and the same; tensors compare in ways of their own."""
    is_plain = all(isinstance(each, (bool, int, float, str)) for each in (value, wanted))
    return is_plain and value == wanted


class _Network:
    """The network of a checkpoint: what was found of its tensors, and what is wrong."""

    def __init__(self, file: OpenNMTFile, numbering: Numbering) -> None:
        self.problems: list[str] = []
        self.tensors: dict[str, ForeignTensor] = {}
        self._file = file
        self._left = {
            name: value for name, value in file.tensors.items() if not name.endswith(_MASK)
        }
        source = self._left.get(_EMBEDDINGS.format("encoder"))
        self._width = source.shape[1] if source is not None and source.dim() == 2 else 0
        settings = {**_numbers(file.options, self.problems), **self._tables(numbering)}
        settings |= self._positions()
        for side in _LAYERS:
            for number in range(int(str(settings[f"num_{side}_layers"]))):
                self._layer(side, number)
            self._norm(f"{side}.final_norm", f"{side}.layer_norm")
        settings |= self._fill_biases()
        self.unused = tuple(sorted(self._left))
        self.config = None if self.problems else self._config(settings, numbering)

    def __repr__(self) -> str:
        return f"<Network of {len(self.tensors)} tensors, {len(self.problems)} problems>"

    def _config(self, settings: Settings, numbering: Numbering) -> ModelConfig:
        up = "layers.0.feed_forward.up_proj.weight"
        inner = {side: self.tensors[f"{side}.{up}"].shape[0] for side in _LAYERS}
        num_source, num_target = len(numbering.source.old), len(numbering.target.old)
        return ModelConfig(
            vocab_size=num_source,
            target_vocab_size=None if num_source == num_target else num_target,
            d_model=self._width,
            d_ff=inner["encoder"],
            decoder_d_ff=None if inner["encoder"] == inner["decoder"] else inner["decoder"],
            gated_feed_forward="encoder.layers.0.feed_forward.gate_proj.weight" in self.tensors,
            norm_placement="pre",
            pad_id=numbering.tokens.pad_id,
            dropout=0.0,
            **settings,  # type: ignore[arg-type]  # built by name
        )

    def _take(self, ours: str, theirs: str, rows: Rows | None = None) -> bool:
        """Use one tensor; whether it is there."""
        value = self._left.pop(theirs, None)
        if value is None:
            return False
        if not value.is_floating_point():
            self.problems.append(f"{theirs} has the type {value.dtype}")
        count = value.shape[0] if rows is None else len(rows.old)
        if rows is not None and value.shape[0] != rows.num_old:
            self.problems.append(f"{theirs} has {value.shape[0]} rows for {rows.num_old} pieces")
        self.tensors[ours] = ForeignTensor(
            shape=(count, *value.shape[1:]), read=partial(_moved, value, rows)
        )
        return True

    def _need(self, ours: str, *theirs: str, rows: Rows | None = None) -> None:
        if not any(self._take(ours, name, rows) for name in theirs):
            self.problems.append(f"it lacks {theirs[0]}")

    def _norm(self, ours: str, theirs: str) -> None:
        """A LayerNorm, whose parts older checkpoints call a_2 and b_2."""
        self._need(f"{ours}.weight", f"{theirs}.weight", f"{theirs}.a_2")
        self._need(f"{ours}.bias", f"{theirs}.bias", f"{theirs}.b_2")

    def _linear(self, ours: str, theirs: str) -> None:
        self._need(f"{ours}.weight", f"{theirs}.weight")
        self._take(f"{ours}.bias", f"{theirs}.bias")

    def _layer(self, side: str, number: int) -> None:
        ours, theirs = f"{side}.layers.{number}", f"{_LAYERS[side]}.{number}"
        for norm, their_norm in _NORMS[side].items():
            self._norm(f"{ours}.{norm}", f"{theirs}.{their_norm}")
            attention = norm.removesuffix("_norm")
            for projection, their_projection in _PROJECTIONS.items():
                path = f"{theirs}.{_ATTENTIONS[attention]}.{their_projection}"
                self._linear(f"{ours}.{attention}.{projection}", path)
        forward = f"{theirs}.feed_forward"
        is_gated = f"{forward}.w_3.weight" in self._left
        first = "gate_proj" if is_gated else "up_proj"
        self._linear(f"{ours}.feed_forward.{first}", f"{forward}.w_1")
        if is_gated:
            self._linear(f"{ours}.feed_forward.up_proj", f"{forward}.w_3")
        self._linear(f"{ours}.feed_forward.down_proj", f"{forward}.w_2")
        self._norm(f"{ours}.feed_forward_norm", f"{forward}.layer_norm")

    def _tables(self, numbering: Numbering) -> Settings:
        """Embeddings and the output projection: one table for several where they are the same."""
        source, target = (_EMBEDDINGS.format(side) for side in _LAYERS)
        projection = next(
            (name for name in ("generator.weight", "generator.0.weight") if name in self._left),
            "generator.weight",
        )
        is_shared = numbering.source == numbering.target and self._is_same(source, target)
        is_tied = self._is_same(target, projection)
        self._need("source_embedding.weight", source, rows=numbering.source)
        self._need("target_embedding.weight", target, rows=numbering.target)
        self._need("output_projection.weight", projection, rows=numbering.target)
        for name, is_copy in (("target_embedding", is_shared), ("output_projection", is_tied)):
            if is_copy:
                self.tensors.pop(f"{name}.weight", None)
        bias = projection.removesuffix("weight") + "bias"
        has_bias = self._take("output_bias", bias, numbering.target)
        if not has_bias and numbering.target.has_added:
            has_bias, shape = True, (len(numbering.target.old),)
            self.tensors["output_bias"] = ForeignTensor(shape=shape, read=numbering.target.no_bias)
        return {"share_embeddings": is_shared, "tie_output": is_tied, "output_bias": has_bias}

    def _is_same(self, one: str, other: str) -> bool:
        return (
            one in self._left
            and other in self._left
            and torch.equal(self._left[one], self._left[other])
        )

    def _positions(self) -> Settings:
        """The form of the table that both sides carry along; without one, the usual form."""
        tables = [self._left.pop(_POSITIONS.format(side), None) for side in _LAYERS]
        forms = {("sinusoidal-interleaved", 0) if t is None else _form(t) for t in tables}
        form = forms.pop()
        if form is None or forms:
            self.problems.append("its position tables are none that are computed here")
            return {}
        return {"position": form[0], "position_offset": form[1]}

    def _fill_biases(self) -> Settings:
        """Zeros for layers without a bias among those of their kind that have one."""
        found = {}
        for setting, kind in (("attention_bias", "attention."), ("feed_forward_bias", "forward.")):
            layers = [name for name in self.tensors if kind in name and name.endswith("weight")]
            layers = [name.removesuffix(".weight") for name in layers]
            found[setting] = any(f"{name}.bias" in self.tensors for name in layers)
            for name in layers if found[setting] else ():
                shape = self.tensors[f"{name}.weight"].shape[:1]
                zeros = ForeignTensor(shape=shape, read=partial(torch.zeros, shape))
                self.tensors.setdefault(f"{name}.bias", zeros)
        return dict(found)


def _form(table: Tensor) -> tuple[str, int] | None:
    return recognised_table(table.reshape(-1, table.shape[-1])) if table.numel() else None


def _moved(value: Tensor, rows: Rows | None) -> Tensor | QuantisedRows:
    if rows is None:
        return value
    return rows.bias(value) if value.dim() == 1 else rows.of(value)


def _numbers(options: Mapping[str, object], problems: list[str]) -> Settings:
    """Counts of layers and heads, the activation, the norms' ε."""
    common = options.get("layers", 6)
    counts = {
        "num_encoder_layers": options.get("enc_layers", common),
        "num_decoder_layers": options.get("dec_layers", common),
        "num_heads": options.get("heads", 8),
    }
    for name, value in counts.items():
        if type(value) is not int or not 1 <= value <= _MAX_COUNT:
            problems.append(f"{name} is {shown(value)}; it must be from 1 to {_MAX_COUNT}")
            counts[name] = 1
    epsilon = options.get("norm_eps", _EPSILON)
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        problems.append(f"norm_eps is {shown(epsilon)}; it must be between 0 and 1")
    named = options.get("pos_ffn_activation_fn", "relu")
    activation = _ACTIVATIONS.get(named) if isinstance(named, str) else None
    return {**counts, "norm_epsilon": epsilon, "activation": activation}


def _imported(
    file: OpenNMTFile,
    options: ImportOptions,
    pieces: PieceFiles,
    numbering: Numbering,
    network: _Network,
) -> ImportedModel:
    assert network.config is not None  # a network without problems has one
    return ImportedModel(
        family="OpenNMT",
        format="OpenNMT-py",
        name=file.path.stem,
        description=f"Converted from the OpenNMT-py checkpoint {file.path.name}",
        licence=None,
        licences=(),
        network=network.config,
        tokens=numbering.tokens,
        pairs=tuple(LanguagePair(source=one, target=two) for one, two in options.pairs),
        limits=LengthLimits(max_source_length=_MAX_LENGTH, max_target_length=_MAX_LENGTH),
        tokenizer=TokenizerParts(
            source_pieces=pieces.source,
            source_table=numbering.source_table,
            target_pieces=pieces.target,
            target_table=numbering.target_table,
        ),
        tensors=network.tensors,
        unused=network.unused,
        notes=("<unk> is never written.",),
    )
