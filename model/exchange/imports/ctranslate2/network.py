"""The network that the variables of a CTranslate2 file describe.

Owns the meaning of the numbers and choices of an encoder-decoder `TransformerSpec`, and what they
are in our words. It reads numbers and position tables. It does not own where the weights are
(`model.exchange.imports.ctranslate2.tensors`), what was used and what is wrong
(`model.exchange.imports.ctranslate2.layout`) or the ids (`model.exchange.imports.numbering`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile

import torch

from model.config import Activation, ModelConfig, PositionKind
from model.errors import ConfigError
from model.exchange.imports.ctranslate2.file import VariableFile
from model.exchange.imports.ctranslate2.layout import Layout
from model.exchange.imports.ctranslate2.tensors import (
    EMBEDDING_NORM,
    LAYER,
    POSITIONS,
    PROJECTION,
    SOURCE_TABLES,
    TARGET_TABLE,
    LayerShape,
    Tensors,
)
from model.exchange.imports.imported import ForeignTensor
from model.exchange.imports.numbering import Numbering
from model.exchange.imports.position_tables import recognised_table
from model.nn.positions import MAX_DISTANCE, NUM_BUCKETS

_ACTIVATIONS: tuple[Activation, ...] = ("relu", "gelu-tanh", "silu", "gelu", "gelu-sigmoid")
_SIDES = ("encoder", "decoder")
_OUR_SIDES = {"encoder": "source", "decoder": "target"}
_GENERATED: tuple[PositionKind, int] = ("sinusoidal-m2m100", 1)
"""What the engine adds where a file has no table: sines and cosines from position 1 on."""
_UNREAD = ("alignment_layer", "alignment_heads", "alibi_use_positive_positions")
"""What says nothing about translations."""
_OFF = ("alibi", "scale_alibi", "multi_query_attention", "embeddings_merge")
"""Switches and choices that say nothing at 0, and are not supported otherwise."""
_TOKEN_VARIABLES = (
    *("unk_token", "bos_token", "eos_token", "with_source_bos", "with_source_eos"),
    *("with_target_bos", "user_decoder_start_tokens", "start_from_zero_embedding"),
)
_RELATIVE = "{}/self_attention/relative_attention_bias"
_MAX_DISTANCE = "{}/self_attention/relative_attention_max_distance"
_SCALE = "{}/{}/queries_scale"
_OUTPUT_SCALE = "decoder/scale_outputs"
_DEFAULT_HEADS: Mapping[str, int] = {"TransformerBig": 16}

Settings = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A network, its tensors and what is in the way.

    Attributes:
        network: None where there are problems.
        tensors: By our names.
        num_positions: Rows of stored position tables; None where the engine computes them.
        problems: Everything that is missing, contradictory or not supported.
    """

    network: ModelConfig | None = None
    tensors: Mapping[str, ForeignTensor] = field(default_factory=dict)
    num_positions: int | None = None
    problems: tuple[str, ...] = ()


def has_relative_positions(file: VariableFile) -> bool:
    """Whether scores of attention depend on distances, in the buckets of T5."""
    return _RELATIVE.format(LAYER.format("encoder", 0)) in file.variables


def depths(file: VariableFile) -> tuple[int, int]:
    """Layers of the encoder and of the decoder."""
    prefixes = {"/".join(name.split("/")[:2]) for name in file.variables}
    encoder, decoder = (
        len(list(takewhile(prefixes.__contains__, (LAYER.format(side, each) for each in count()))))
        for side in _SIDES
    )
    return encoder, decoder


def num_rows(file: VariableFile) -> tuple[int, int]:
    """Rows of the source's table and of the target's; 0 where there is none."""
    layout = Layout(file)
    source, target = (layout.shape(name) for name in (_source_table(layout), TARGET_TABLE))
    return (source or (0,))[0], (target or (0,))[0]


def describe(
    file: VariableFile, numbering: Numbering, *, layer_norm_epsilon: float | None
) -> Description:
    """What a file of an encoder-decoder Transformer holds.

    Args:
        file: Of the specification `TransformerSpec`, revision 2 or later.
        numbering: The ids that its tables are read by.
        layer_norm_epsilon: Of config.json; None takes the engine's own.

    Raises:
        ForeignModelError: A number or a position table cannot be read.
    """
    layout = Layout(file)
    shape = _layer_shape(layout)
    tensors = Tensors(layout, shape)
    num_heads = _num_heads(layout, shape)
    settings = {
        **_choices(layout, shape, num_heads),
        **_norms(layout, tensors, shape, layer_norm_epsilon),
        **_layers(layout, tensors, shape, num_heads),
        **_tables(layout, tensors, numbering),
        **_scales(layout, shape),
    }
    positions, num_positions = _positions(layout, tensors, shape, num_heads)
    layout.ignore(*_UNREAD, *_TOKEN_VARIABLES)
    layout.refuse_rest()
    network = _network(layout, settings | positions, numbering) if not layout.problems else None
    return Description(
        network=network,
        tensors=tensors.found,
        num_positions=num_positions,
        problems=tuple(layout.problems),
    )


def _network(layout: Layout, settings: Settings, numbering: Numbering) -> ModelConfig | None:
    num_source, num_target = len(numbering.source.old), len(numbering.target.old)
    try:
        return ModelConfig(
            vocab_size=num_source,
            target_vocab_size=None if num_source == num_target else num_target,
            pad_id=numbering.tokens.pad_id,
            **settings,  # type: ignore[arg-type]  # built by name
        )
    except ConfigError as error:
        layout.problems.append(str(error))
        return None


def _source_table(layout: Layout) -> str:
    return next(filter(layout.has, SOURCE_TABLES), SOURCE_TABLES[0])


def _layer_shape(layout: Layout) -> LayerShape:
    """The sizes that the first layers have, or else those that other matrices show."""
    first, last = LAYER.format("encoder", 0), LAYER.format("decoder", 0)
    attention = f"{first}/self_attention/linear"
    width = _size(
        layout, (_source_table(layout), 1), (TARGET_TABLE, 1), (f"{attention}_1/weight", 0)
    )
    inner = [
        _size(layout, (f"{layer}/ffn/linear_0/weight", 0), (f"{layer}/ffn/linear_1/weight", 1))
        for layer in (first, last)
    ]
    attention_width = _size(layout, (f"{attention}_1/weight", 1))
    queries = layout.shape(f"{attention}_0/weight")
    if len(queries) == 2:
        attention_width = queries[0] // 3
    return LayerShape(
        width=width,
        attention_width=attention_width or width,
        inner_widths=(inner[0] or inner[1], inner[1] or inner[0]),
        is_gated=layout.has(f"{first}/ffn/linear_0_noact/weight"),
        is_rms=not layout.has(f"{first}/self_attention/layer_norm/beta"),
    )


def _size(layout: Layout, *places: tuple[str, int]) -> int:
    """A dimension of the first matrix that is there; 0 if none is."""
    shapes = ((layout.shape(name), dimension) for name, dimension in places)
    return next((shape[dimension] for shape, dimension in shapes if len(shape) == 2), 0)


def _num_heads(layout: Layout, shape: LayerShape) -> int:
    """Heads of all attentions."""
    num_heads = int(layout.agreed("num_heads", _DEFAULT_HEADS.get(layout.file.specification, 8)))
    if num_heads >= 1 and shape.attention_width % num_heads == 0:
        return num_heads
    layout.problems.append(f"{num_heads} heads do not divide {shape.attention_width} columns")
    return 1


def _choices(layout: Layout, shape: LayerShape, num_heads: int) -> Settings:
    """Widths, activation and scales; what is on and has no word here is a problem."""
    activation = int(layout.agreed("activation", 0))
    if not 0 <= activation < len(_ACTIVATIONS):
        layout.problems.append(f"activation is {activation}; it must be below {len(_ACTIVATIONS)}")
        activation = 0
    for name in _OFF:
        if layout.agreed(name, 0):
            layout.problems.append(f"{name} is not supported")
    head_width = shape.attention_width // num_heads
    is_usual = shape.attention_width == shape.width
    encoder_inner, decoder_inner = shape.inner_widths
    return {
        "d_model": shape.width,
        "num_heads": num_heads,
        "d_k": None if is_usual else head_width,
        "d_v": None if is_usual else head_width,
        "d_ff": encoder_inner,
        "decoder_d_ff": None if decoder_inner == encoder_inner else decoder_inner,
        "gated_feed_forward": shape.is_gated,
        "activation": _ACTIVATIONS[activation],
        "scale_embedding": _is_scaled(layout, shape.width),
        "dropout": 0.0,
    }


def _is_scaled(layout: Layout, width: int) -> bool:
    """Whether embeddings are multiplied by √d: a switch, or the factor itself; on by default."""
    found = set()
    for side in _SIDES:
        names = (f"{side}/scale_embeddings", f"{side}/embeddings/multiply_by_sqrt_depth")
        name = next(filter(layout.has, names), names[0])
        value = layout.number(name, 1.0)
        is_switch = not layout.has(name) or layout.file.variables[name].dtype is torch.int8
        if is_switch or math.isclose(value, 1.0, rel_tol=1e-6):
            found.add(bool(value) and is_switch)
        elif math.isclose(value, math.sqrt(width), rel_tol=1e-3):
            found.add(True)
        else:
            layout.problems.append(f"{name} is {value:g}; it must be 1 or √{width}")
    if len(found) > 1:
        layout.problems.append("embeddings are scaled on one side only, which is not supported")
    return True in found


def _norms(layout: Layout, tensors: Tensors, shape: LayerShape, epsilon: float | None) -> Settings:
    """Which norms there are, and those that stand outside the layers."""
    is_pre_norm = bool(layout.agreed("pre_norm", 1))
    for side in _SIDES:
        if is_pre_norm:
            tensors.norm(f"{side}/layer_norm", f"{side}.final_norm")
    norms = [EMBEDDING_NORM.format(side) for side in _SIDES]
    has_embedding_norm = any(layout.has(f"{norm}/gamma") for norm in norms)
    if has_embedding_norm:
        for side, norm in zip(_SIDES, norms, strict=True):
            tensors.norm(norm, f"{side}.embedding_norm")
    return {
        "norm": "rmsnorm" if shape.is_rms else "layernorm",
        "norm_placement": "pre" if is_pre_norm else "post",
        "norm_epsilon": epsilon or (1e-6 if shape.is_rms else 1e-5),
        "embedding_norm": has_embedding_norm,
    }


def _layers(layout: Layout, tensors: Tensors, shape: LayerShape, num_heads: int) -> Settings:
    """All layers of both stacks."""
    numbers = dict(zip(_SIDES, depths(layout.file), strict=True))
    for side in _SIDES:
        for number in range(numbers[side]):
            tensors.layer(side, number)
            _check_heads(layout, LAYER.format(side, number), shape, num_heads)
    tensors.fill_biases()
    return {
        "num_encoder_layers": numbers["encoder"],
        "num_decoder_layers": numbers["decoder"],
        "attention_bias": bool(tensors.attention.stored),
        "feed_forward_bias": bool(tensors.feed_forward.stored),
    }


def _check_heads(layout: Layout, layer: str, shape: LayerShape, num_heads: int) -> None:
    """Heads of keys and values are those of queries, and of the width that their matrices say."""
    for attention in ("self_attention", "attention"):
        expected = {"num_heads_kv": num_heads, "head_dim": shape.attention_width / num_heads}
        for name, value in expected.items():
            path = f"{layer}/{attention}/{name}"
            if layout.has(path) and layout.number(path, value) != value:
                layout.problems.append(f"{path} is not {value:g}, which is not supported")


def _tables(layout: Layout, tensors: Tensors, numbering: Numbering) -> Settings:
    """Embeddings and the output projection: one table for several where they are the same."""
    source = _source_table(layout)
    tensors.table("source_embedding.weight", source, numbering.source)
    is_shared = numbering.source == numbering.target and _is_same(layout, source, TARGET_TABLE)
    tensors.table("target_embedding.weight", TARGET_TABLE, numbering.target)
    is_tied = _is_same(layout, TARGET_TABLE, PROJECTION)
    tensors.table("output_projection.weight", PROJECTION, numbering.target)
    for name, is_unneeded in (("target_embedding", is_shared), ("output_projection", is_tied)):
        if is_unneeded:
            tensors.found.pop(f"{name}.weight", None)
    return {
        "share_embeddings": is_shared,
        "tie_output": is_tied,
        "output_bias": tensors.output_bias(numbering.target),
    }


def _is_same(layout: Layout, one: str, other: str) -> bool:
    return layout.has(one) and layout.has(other) and layout.is_same(one, other)


def _scales(layout: Layout, shape: LayerShape) -> Settings:
    """Factors that T5 leaves out of its attention, and has at its output."""
    if not has_relative_positions(layout.file):
        return {}
    for side, depth in zip(_SIDES, depths(layout.file), strict=True):
        attentions = ("self_attention", "attention")[: 1 + (side == "decoder")]
        for number in range(depth):
            for attention in attentions:
                path = _SCALE.format(LAYER.format(side, number), attention)
                if layout.number(path, 0.0) != 1.0:
                    layout.problems.append(f"{path} is not 1, which is not supported")
    factor = layout.number(_OUTPUT_SCALE, 1.0)
    is_scaled = shape.width > 0 and math.isclose(factor, shape.width**-0.5, rel_tol=1e-3)
    if not is_scaled and factor != 1.0:
        layout.problems.append(f"{_OUTPUT_SCALE} is {factor:g}; it must be 1 or {shape.width}^-0.5")
    return {"scale_attention": False, "scale_output": is_scaled}


def _relative_positions(layout: Layout, tensors: Tensors, num_heads: int) -> Settings:
    """One table of biases a stack, which every layer has again."""
    for side, depth in zip(_SIDES, depths(layout.file), strict=True):
        first = _RELATIVE.format(LAYER.format(side, 0))
        for number in range(depth):
            path = _RELATIVE.format(LAYER.format(side, number))
            distance = _MAX_DISTANCE.format(LAYER.format(side, number))
            if layout.number(distance, 0) != MAX_DISTANCE:
                layout.problems.append(f"{distance} is not {MAX_DISTANCE}")
            if layout.use(path, (NUM_BUCKETS, num_heads)) and not _is_same(layout, first, path):
                layout.problems.append(f"{path} is another table than {first}")
        tensors.biases(side, first, (NUM_BUCKETS, num_heads))
    return {"position": "relative"}


def _positions(
    layout: Layout, tensors: Tensors, shape: LayerShape, num_heads: int
) -> tuple[Settings, int | None]:
    """The positions of both stacks, and how many rows their tables have."""
    if has_relative_positions(layout.file):
        return _relative_positions(layout, tensors, num_heads), None
    paths = {side: POSITIONS.format(side) for side in _SIDES}
    stored = [path for path in paths.values() if layout.has(path)]
    if not stored:
        kind, offset = _GENERATED
        return {"position": kind, "position_offset": offset}, None
    num_rows = min((layout.shape(path) or (0,))[0] for path in stored)
    usable = [layout.use(path, ((layout.shape(path) or (0,))[0], shape.width)) for path in stored]
    if len(stored) < len(_SIDES):
        layout.problems.append(f"it has {stored[0]} alone, which is not supported")
    if not all(usable) or layout.problems:
        return {}, num_rows
    forms = {recognised_table(layout.file.values(path)) for path in stored}
    form = forms.pop()
    if form is not None and not forms:
        return {"position": form[0], "position_offset": form[1]}, num_rows
    for side, path in paths.items():
        tensors.positions(_OUR_SIDES[side], path, num_rows)
    return {"position": "learned", "max_positions": num_rows}, num_rows
