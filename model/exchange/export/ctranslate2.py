"""A checkpoint as a CTranslate2 model directory, through CTranslate2's own specification.

Owns which variable of `TransformerSpec` holds which of our weights, and the vocabularies.
CTranslate2 is imported only while an export runs. What belongs to a search and not to a network is
not in such a directory: whoever translates with it suppresses the checkpoint's `suppressed_ids`
(`suppress_sequences`) and gives target prefixes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from model.checkpoint.weights import Checkpoint
from model.config import ABSOLUTE_POSITIONS, ModelConfig, SpecialTokens
from model.errors import ConfigError
from model.exchange.export.output import (
    EVEN_QUERIES,
    EVEN_VALUES,
    export_problems,
    new_directory,
    num_positions,
    refuse,
    write_licences,
)
from model.honoured import EVERY_VALUE, Condition, HonouredFields
from model.nn.layers import known_decoder_layers
from model.nn.positions import NoPositions
from model.nn.self_attention import SelfAttention
from model.nn.transformer import Transformer

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}
CTRANSLATE2_FIELDS = HonouredFields(
    by="CTranslate2",
    fields={
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "num_encoder_layers": Condition(
            name="1 or more", holds=lambda network: network.num_encoder_layers > 0
        ),
        "num_decoder_layers": Condition(
            name="1 or more", holds=lambda network: network.num_decoder_layers > 0
        ),
        "d_k": EVEN_QUERIES,
        "d_v": EVEN_VALUES,
        "decoder_d_ff": (None,),
        "decoder_cell": ("self-attention",),
        "gated_feed_forward": (False,),
        "feed_forward_bias": (True,),
        "embedding_norm": (False,),
        "scale_attention": (True,),
        "scale_output": (False,),
        "activation": tuple(_ACTIVATIONS),
        "norm": ("layernorm", "rmsnorm"),
        "norm_placement": ("post", "pre"),
        "norm_epsilon": EVERY_VALUE,
        "position": tuple(sorted(ABSOLUTE_POSITIONS)),
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
        problems += _name_problems(side, known, tokens)
    refuse(CTRANSLATE2_FIELDS.by, problems)
    known_decoder_layers(
        checkpoint.transformer.decoder.layers, by=CTRANSLATE2_FIELDS.by, cell=SelfAttention
    )
    with new_directory(output) as partial:
        spec = _empty_spec(network, tokens)
        variables = spec_variables(checkpoint.transformer, num_positions=num_positions(manifest))
        _fill(spec, dict(variables))
        spec.register_source_vocabulary(_vocabulary(pieces["source"], tokens, network.vocab_size))
        spec.register_target_vocabulary(_vocabulary(pieces["target"], tokens, network.output_size))
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(partial))
        write_licences(partial, manifest)


@torch.no_grad()
def spec_variables(transformer: Transformer, *, num_positions: int) -> Iterator[tuple[str, Tensor]]:
    """Paths in a `TransformerSpec` and their float32 values, none of them the network's own memory.

    Args:
        transformer: Of absolute positions.
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
        assert not isinstance(positions, NoPositions)
        rows = getattr(positions, "max_length", num_positions)
        table = positions.table(rows, source)
        yield f"{side}/position_encodings/encodings", table.clone()
        if f"{side}.final_norm.weight" in weights:
            yield from _norm(weights, f"{side}.final_norm", f"{side}/layer_norm")
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


def _layer(weights: Mapping[str, Tensor], side: str, number: int) -> Iterator[tuple[str, Tensor]]:
    """Self-attention and feed-forward, which both kinds of layer have."""
    ours, theirs = f"{side}.layers.{number}", f"{side}/layer_{number}"
    inputs = tuple(f"{ours}.self_attention.{letter}_proj" for letter in "qkv")
    yield from _linear(weights, inputs, f"{theirs}/self_attention/linear_0")
    outputs = (f"{ours}.self_attention.out_proj",)
    yield from _linear(weights, outputs, f"{theirs}/self_attention/linear_1")
    yield from _norm(weights, f"{ours}.self_attention_norm", f"{theirs}/self_attention/layer_norm")
    yield from _linear(weights, (f"{ours}.feed_forward.up_proj",), f"{theirs}/ffn/linear_0")
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
    )
    names = _special_pieces(tokens)
    spec.encoder.scale_embeddings = network.scale_embedding
    spec.decoder.scale_embeddings = network.scale_embedding
    spec.config.layer_norm_epsilon = network.norm_epsilon
    spec.config.add_source_eos = tokens.has_source_eos
    spec.config.eos_token = names[tokens.eos_id]
    spec.config.unk_token = names[tokens.unk_id]
    spec.config.decoder_start_token = names[tokens.start_id]
    return spec


def _fill(spec: "TransformerSpec", variables: Mapping[str, Tensor]) -> None:
    """Set the variables; a path that the specification lacks is an AttributeError."""
    from ctranslate2.specs import model_spec  # noqa: PLC0415  # same

    arrays = {id(value): value.numpy() for value in variables.values()}
    for path, value in variables.items():
        scope, _, name = path.rpartition("/")
        setattr(model_spec.index_spec(spec, scope), name, arrays[id(value)])


def _special_pieces(tokens: SpecialTokens) -> dict[int, str]:
    names = {tokens.start_id: "<s>", tokens.unk_id: "<unk>"}
    return names | {tokens.pad_id: "<pad>", tokens.eos_id: "</s>"}


def _vocabulary(pieces: Mapping[int, str], tokens: SpecialTokens, size: int) -> list[str]:
    """The piece of every id; an id that nothing uses has a name that no text has."""
    names = {**pieces, **_special_pieces(tokens)}
    return [names.get(index, f"<unused {index}>") for index in range(size)]


def _name_problems(side: str, pieces: Mapping[int, str], tokens: SpecialTokens) -> list[str]:
    specials = {piece: index for index, piece in _special_pieces(tokens).items()}
    return [
        f"the {side} vocabulary has {piece!r} as id {index} (only as {specials[piece]})"
        for index, piece in pieces.items()
        if piece in specials and index != specials[piece]
    ]
