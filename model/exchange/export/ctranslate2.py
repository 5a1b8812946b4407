"""A checkpoint as a CTranslate2 model directory, through CTranslate2's own specification.

Owns which variable of `TransformerSpec` holds which of our weights, and the vocabularies.
CTranslate2 is imported only while an export runs. What belongs to a search and not to a network is
not in such a directory: whoever translates with it suppresses the checkpoint's `suppressed_ids`
(`suppress_sequences`) and gives target prefixes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import ABSOLUTE_POSITIONS, ModelConfig, SpecialTokens
from model.errors import ConfigError
from model.exchange.carried import write_carried
from model.exchange.export.output import (
    export_problems,
    new_directory,
    num_positions,
    refuse,
    some_layers,
    write_licences,
)
from model.exchange.export.vocabulary import name_problems, special_pieces
from model.honoured import EVERY_VALUE, Condition, HonouredFields
from model.nn.layers import known_decoder_layers
from model.nn.positions import MAX_DISTANCE, NoPositions
from model.nn.self_attention import SelfAttention
from model.nn.transformer import Transformer
from model.text.subwords.normalisation import Normalisation, NormalisedPieces
from model.text.subwords.pieces import PieceModel
from model.text.subwords.tokenizer import Tokenizer

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu-tanh": "GELUTanh",
    "gelu-sigmoid": "GELUSigmoid",
    "silu": "SWISH",
}
_CLEANING_NOTES: Mapping[Normalisation, str] = {
    "opus-mt": """
The source must be cleaned before SentencePiece cuts it, as the network's training text was by the
preprocess.sh of OPUS-MT's releases: full-width and typographic punctuation becomes ASCII's, every
character of Unicode's category C a space, several spaces one, none at the ends. Nothing here does
that, and `dragoman convert` does not know it of this folder.
""",
}
_BOS = "<s>"
_OUTER_NORMS = {"final_norm": "layer_norm", "embedding_norm": "layernorm_embedding"}
CTRANSLATE2_FIELDS = HonouredFields(
    by="CTranslate2",
    fields={
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "num_encoder_layers": some_layers("num_encoder_layers"),
        "num_decoder_layers": some_layers("num_decoder_layers"),
        "d_k": EVERY_VALUE,
        "d_v": Condition(
            name="d_k", holds=lambda network: network.value_width == network.query_width
        ),
        "decoder_d_ff": EVERY_VALUE,
        "decoder_cell": ("self-attention",),
        "gated_feed_forward": EVERY_VALUE,
        "feed_forward_bias": EVERY_VALUE,
        "embedding_norm": EVERY_VALUE,
        "scale_attention": EVERY_VALUE,
        "scale_output": EVERY_VALUE,
        "activation": tuple(_ACTIVATIONS),
        "norm": ("layernorm", "rmsnorm"),
        "norm_placement": ("post", "pre"),
        "norm_epsilon": EVERY_VALUE,
        "position": (*sorted(ABSOLUTE_POSITIONS), "relative"),
        "position_offset": EVERY_VALUE,
        "max_positions": EVERY_VALUE,
        "scale_embedding": EVERY_VALUE,
        "share_embeddings": EVERY_VALUE,
        "tie_output": EVERY_VALUE,
        "output_bias": EVERY_VALUE,
        "attention_bias": EVERY_VALUE,
        "dropout": EVERY_VALUE,
        "attention_dropout": EVERY_VALUE,
        "activation_dropout": EVERY_VALUE,
        "pad_id": EVERY_VALUE,
    },
)
"""What a `TransformerSpec` can be told of a network."""


def export_ctranslate2(
    checkpoint: Checkpoint, output: Path, *, quantization: str | None = None
) -> None:
    """Write model.bin, config.json, vocabularies and licences for `ctranslate2.Translator`.

    SentencePiece files stand beside them, where the checkpoint's tokenizer has some; README.md says
    so where text must be cleaned before them.

    Args:
        checkpoint: A loaded checkpoint; its weights are widened to float32 first.
        output: A directory that does not exist yet; its parent does.
        quantization: How CTranslate2 stores the weights ("int8", "float16", …); None keeps
            float32.

    Raises:
        UnsupportedVariantError: CTranslate2 cannot express the network; all reasons are listed.
        ConfigError: CTranslate2 is not installed, or does not know the quantization.
        CheckpointError: `output` exists or cannot be written.
    """
    _check_quantization(quantization)
    manifest, tokenizer = checkpoint.manifest, checkpoint.tokenizer
    tokens, network = manifest.tokens, manifest.network
    problems = export_problems(manifest, CTRANSLATE2_FIELDS)
    pieces = {"source": tokenizer.source_pieces(), "target": tokenizer.target_pieces()}
    for side, known in pieces.items():
        problems += name_problems(side, known, tokens)
    refuse(CTRANSLATE2_FIELDS.by, problems)
    known_decoder_layers(
        checkpoint.transformer.decoder.layers, by=CTRANSLATE2_FIELDS.by, cell=SelfAttention
    )
    with new_directory(output) as partial:
        spec = _empty_spec(network, tokens)
        spec.config.add_source_bos = _has_source_bos(manifest)
        variables = spec_variables(checkpoint.transformer, num_positions=num_positions(manifest))
        _fill(spec, dict(variables))
        spec.register_source_vocabulary(_vocabulary(pieces["source"], tokens, network.vocab_size))
        spec.register_target_vocabulary(_vocabulary(pieces["target"], tokens, network.output_size))
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(partial))
        for name, data in _piece_files(tokenizer).items():
            (partial / name).write_bytes(data)
        rules = manifest.normalisation
        after = "" if rules is None else _CLEANING_NOTES[rules]
        write_carried(partial, manifest)
        write_licences(partial, manifest, after=after)


@torch.no_grad()
def spec_variables(transformer: Transformer, *, num_positions: int) -> Iterator[tuple[str, Tensor]]:
    """Paths in a `TransformerSpec` and their float32 values, none of them the network's own memory.

    Args:
        transformer: Of positions that are added to embeddings, or of relative ones.
        num_positions: Rows of the position tables; a learned table keeps its own number.
    """
    weights = {name: value.float() for name, value in transformer.state_dict().items()}
    source = weights["source_embedding.weight"].clone()
    target = weights.get("target_embedding.weight", source)
    projection = weights.get("output_projection.weight", target)
    yield "encoder/embeddings_0/weight", source
    yield "decoder/embeddings/weight", target if target is source else target.clone()
    yield "decoder/projection/weight", projection if projection is source else projection.clone()
    if "output_bias" in weights:
        yield "decoder/projection/bias", weights["output_bias"].clone()
    for side, positions in (
        ("encoder", transformer.source_positions),
        ("decoder", transformer.target_positions),
    ):
        if not isinstance(positions, NoPositions):
            rows = getattr(positions, "max_length", num_positions)
            yield f"{side}/position_encodings/encodings", positions.table(rows, source).clone()
        for ours, theirs in _OUTER_NORMS.items():
            if f"{side}.{ours}.weight" in weights:
                yield from _norm(weights, f"{side}.{ours}", f"{side}/{theirs}")
    yield from _position_biases(weights, transformer.config)
    for number in range(transformer.config.num_encoder_layers):
        yield from _layer(weights, "encoder", number)
    for number in range(transformer.config.num_decoder_layers):
        yield from _layer(weights, "decoder", number)
        ours, theirs = f"decoder.layers.{number}", f"decoder/layer_{number}/attention"
        attention = f"{ours}.cross_attention"
        yield from _linear(weights, (f"{attention}.q_proj",), f"{theirs}/linear_0")
        memory = (f"{attention}.k_proj", f"{attention}.v_proj")
        yield from _linear(weights, memory, f"{theirs}/linear_1")
        yield from _linear(weights, (f"{attention}.out_proj",), f"{theirs}/linear_2")
        yield from _norm(weights, f"{ours}.cross_attention_norm", f"{theirs}/layer_norm")


def _position_biases(
    weights: Mapping[str, Tensor], network: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    """The table of each stack, which every layer of it states: it is stored once."""
    depths = {"encoder": network.num_encoder_layers, "decoder": network.num_decoder_layers}
    for side, depth in depths.items():
        table = weights.get(f"{side}.position_bias.scores.weight")
        if table is None:
            continue
        copy = table.clone()
        for number in range(depth):
            yield f"{side}/layer_{number}/self_attention/relative_attention_bias", copy


def _layer(weights: Mapping[str, Tensor], side: str, number: int) -> Iterator[tuple[str, Tensor]]:
    """Self-attention and feed-forward, which both kinds of layer have."""
    ours, theirs = f"{side}.layers.{number}", f"{side}/layer_{number}"
    inputs = tuple(f"{ours}.self_attention.{letter}_proj" for letter in "qkv")
    yield from _linear(weights, inputs, f"{theirs}/self_attention/linear_0")
    outputs = (f"{ours}.self_attention.out_proj",)
    yield from _linear(weights, outputs, f"{theirs}/self_attention/linear_1")
    yield from _norm(weights, f"{ours}.self_attention_norm", f"{theirs}/self_attention/layer_norm")
    is_gated = f"{ours}.feed_forward.gate_proj.weight" in weights
    inner = ("gate_proj", "up_proj") if is_gated else ("up_proj",)
    for part, place in zip(inner, ("linear_0", "linear_0_noact"), strict=False):
        yield from _linear(weights, (f"{ours}.feed_forward.{part}",), f"{theirs}/ffn/{place}")
    yield from _linear(weights, (f"{ours}.feed_forward.down_proj",), f"{theirs}/ffn/linear_1")
    yield from _norm(weights, f"{ours}.feed_forward_norm", f"{theirs}/ffn/layer_norm")


def _linear(
    weights: Mapping[str, Tensor], names: tuple[str, ...], path: str
) -> Iterator[tuple[str, Tensor]]:
    """One linear layer that is several of ours, one after the other."""
    for kind in ("weight", "bias"):
        parts = [weights[f"{name}.{kind}"] for name in names if f"{name}.{kind}" in weights]
        if parts:
            yield f"{path}/{kind}", torch.cat(parts)


def _norm(weights: Mapping[str, Tensor], name: str, path: str) -> Iterator[tuple[str, Tensor]]:
    yield f"{path}/gamma", weights[f"{name}.weight"].clone()
    if f"{name}.bias" in weights:  # an RMSNorm has none
        yield f"{path}/beta", weights[f"{name}.bias"].clone()


def _check_quantization(quantization: str | None) -> None:
    try:
        from ctranslate2.specs import model_spec  # noqa: PLC0415  # an optional extra
    except ImportError as error:
        raise ConfigError(
            "the package ctranslate2 is not installed; it comes with dragoman[bench]"
        ) from error
    accepted = model_spec.ACCEPTED_MODEL_TYPES
    if quantization is not None and quantization not in accepted:
        raise ConfigError(f"quantization is {quantization!r}; it must be one of {accepted}")


def _empty_spec(network: ModelConfig, tokens: SpecialTokens) -> "TransformerSpec":
    """A specification of the network's shape, everything set but the weights."""
    from ctranslate2.specs import TransformerSpec, common_spec  # noqa: PLC0415  # same

    spec = TransformerSpec.from_config(
        (network.num_encoder_layers, network.num_decoder_layers),
        network.num_heads,
        pre_norm=network.norm_placement == "pre",
        activation=common_spec.Activation[_ACTIVATIONS[network.activation]],
        rms_norm=network.norm == "rmsnorm",
        layernorm_embedding=network.embedding_norm,
        relative_attention_bias=network.position == "relative",
        ffn_glu=network.gated_feed_forward,
    )
    _set_scales(spec, network)
    names = special_pieces(tokens)
    spec.encoder.scale_embeddings = network.scale_embedding
    spec.decoder.scale_embeddings = network.scale_embedding
    spec.config.layer_norm_epsilon = network.norm_epsilon
    spec.config.add_source_eos = tokens.has_source_eos
    spec.config.bos_token = _BOS
    spec.config.eos_token = names[tokens.eos_id]
    spec.config.unk_token = names[tokens.unk_id]
    spec.config.decoder_start_token = names[tokens.start_id]
    return spec


def _has_source_bos(manifest: Manifest) -> bool:
    """Whether every source begins with the piece that the engine adds by itself where it is told.

    What else begins a source, whoever translates gives it.
    """
    return {pair.source_start[:1] for pair in manifest.pairs} == {(_BOS,)}


def _set_scales(spec: "TransformerSpec", network: ModelConfig) -> None:
    """Scales that are not the usual ones, and the last bucket of distances."""
    if network.scale_output:
        spec.decoder.scale_outputs = network.d_model**-0.5
    attentions = [layer.self_attention for layer in (*spec.encoder.layer, *spec.decoder.layer)]
    if network.position == "relative":
        for attention in attentions:
            attention.relative_attention_max_distance = np.int32(MAX_DISTANCE)
    if network.attention_scale != (network.d_model // network.num_heads) ** -0.5:
        for attention in (*attentions, *(layer.attention for layer in spec.decoder.layer)):
            attention.queries_scale = network.attention_scale


def _fill(spec: "TransformerSpec", variables: Mapping[str, Tensor]) -> None:
    """Set the variables; a path that the specification lacks is an AttributeError."""
    from ctranslate2.specs import model_spec  # noqa: PLC0415  # same

    arrays = {id(value): value.numpy() for value in variables.values()}
    for path, value in variables.items():
        scope, _, name = path.rpartition("/")
        setattr(model_spec.index_spec(spec, scope), name, arrays[id(value)])


def _piece_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    """SentencePiece files by their names: one for both sides where they have the same."""
    cut = [
        model.inner if isinstance(model, NormalisedPieces) else model for model in tokenizer.models
    ]
    source, target = (model.data if isinstance(model, PieceModel) else None for model in cut)
    if source is None or target is None:
        return {}
    if source == target:
        return {"sentencepiece.model": source}
    return {"source.spm": source, "target.spm": target}


def _vocabulary(pieces: Mapping[int, str], tokens: SpecialTokens, size: int) -> list[str]:
    """The piece of every id; an id that nothing uses has a name that no text has."""
    names = {**pieces, **special_pieces(tokens)}
    return [names.get(index, f"<unused {index}>") for index in range(size)]
