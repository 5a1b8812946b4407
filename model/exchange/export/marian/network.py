"""A network as Marian has it: its options, and its tensors under Marian's names.

Owns which networks Marian expresses, self-attention and SSRU alike, and what each parameter is
called there (marian-dev, `src/models/transformer.h`). A projection of Marian's is (inputs,
outputs), a vector (1, width). Its decoder begins with a vector of zeros, no row of a table.
"""

import json
from collections.abc import Iterator

import torch
from torch import Tensor

from model.config import ModelConfig
from model.exchange.export.output import EVEN_QUERIES, EVEN_VALUES, some_layers
from model.exchange.imports.marian.network import IMPOSSIBLE_BIAS
from model.exchange.imports.marian.options import LAYER_NORM_EPSILON
from model.honoured import EVERY_VALUE, HonouredFields
from model.nn.transformer import Transformer

_ACTIVATIONS = {"silu": "swish", "relu": "relu", "gelu": "gelu"}
_VERSION = "v1.12.42"
"""Of the Marian whose options these are; one that is newer says so and goes on."""

MARIAN_NATIVE_FIELDS = HonouredFields(
    by="Marian",
    fields={
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "num_encoder_layers": some_layers("num_encoder_layers"),
        "num_decoder_layers": some_layers("num_decoder_layers"),
        "d_k": EVEN_QUERIES,
        "d_v": EVEN_VALUES,
        "decoder_d_ff": EVERY_VALUE,
        "decoder_cell": ("self-attention", "ssru"),
        "gated_feed_forward": (False,),
        "feed_forward_bias": (True,),
        "embedding_norm": EVERY_VALUE,
        "scale_attention": (True,),
        "scale_output": (False,),
        "activation": tuple(_ACTIVATIONS),
        "norm": ("layernorm", "rmsnorm"),
        "norm_placement": ("post", "pre"),
        "norm_epsilon": (LAYER_NORM_EPSILON,),
        "position": ("sinusoidal-m2m100",),
        "position_offset": (0,),
        "max_positions": EVERY_VALUE,
        "scale_embedding": (True,),
        "share_embeddings": EVERY_VALUE,
        "tie_output": EVERY_VALUE,
        "output_bias": (True,),
        "attention_bias": (True,),
        "dropout": EVERY_VALUE,
        "attention_dropout": EVERY_VALUE,
        "activation_dropout": EVERY_VALUE,
        "pad_id": EVERY_VALUE,
    },
)
"""What Marian can be told of a network; transformers' form of its positions is another."""

_PROJECTIONS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}
_ATTENTIONS = {"self_attention": "self", "cross_attention": "context"}


def marian_options(network: ModelConfig, *, rows: tuple[int, int]) -> str:
    """The YAML that Marian keeps in its models; what it does not say has Marian's default.

    Args:
        network: The shape.
        rows: Of the tables of source and target.
    """
    code = "r" if network.norm == "rmsnorm" else "n"
    is_pre = network.norm_placement == "pre"
    options: dict[str, object] = {
        "type": "transformer",
        "dim-emb": network.d_model,
        "dim-vocabs": list(rows),
        "enc-depth": network.num_encoder_layers,
        "dec-depth": network.num_decoder_layers,
        "transformer-heads": network.num_heads,
        "transformer-dim-ffn": network.d_ff,
        "transformer-decoder-dim-ffn": network.decoder_d_ff or 0,
        "transformer-ffn-activation": _ACTIVATIONS[network.activation],
        "transformer-preprocess": code if is_pre else "",
        "transformer-postprocess": "da" if is_pre else f"da{code}",
        "transformer-postprocess-top": code if is_pre else "",
        "transformer-postprocess-emb": f"d{code}" if network.embedding_norm else "d",
        **_ties(network),
        "version": _VERSION,
    }
    if network.decoder_cell == "ssru":
        options |= {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in options.items())


def _ties(network: ModelConfig) -> dict[str, object]:
    """Which tables are one; Marian has a word for all of them together."""
    if network.share_embeddings and network.tie_output:
        return {"tied-embeddings-all": True}
    return {
        "tied-embeddings-src": network.share_embeddings,
        "tied-embeddings": network.tie_output,
    }


@torch.no_grad()
def marian_parameters(
    transformer: Transformer, *, rows: tuple[slice, slice], impossible: tuple[int, ...] = ()
) -> Iterator[tuple[str, Tensor]]:
    """Marian's name of every parameter with its float32 values.

    Args:
        transformer: Of a shape that Marian has, its positions aside, which are no parameters.
        rows: Of our tables of source and target, those that Marian's vocabularies number.
        impossible: Target ids, in our numbering, that are never to be written: their bias is
            Marian's least.
    """
    network = transformer.config
    weights = {name: value.float() for name, value in transformer.state_dict().items()}
    source, target = rows
    table = "Wemb" if network.share_embeddings else "encoder_Wemb"
    yield table, weights.pop("source_embedding.weight")[source]
    if not network.share_embeddings:
        yield "decoder_Wemb", weights.pop("target_embedding.weight")[target]
    if not network.tie_output:
        yield "decoder_ff_logit_out_Wt", weights.pop("output_projection.weight")[target]
    bias = weights.pop("output_bias").clone()
    bias[list(impossible)] = IMPOSSIBLE_BIAS
    yield "decoder_ff_logit_out_b", bias[None, target]
    for name, values in weights.items():
        yield _name(name, network), values[None] if values.dim() == 1 else values.T


def _name(name: str, network: ModelConfig) -> str:
    """Marian's name of a layer's weight, or of a norm around the layers."""
    side, *path, kind = name.split(".")
    is_pre = network.norm_placement == "pre"
    if path[0] == "final_norm":
        return _norm(f"{side}_top", kind, network)
    if path[0] == "embedding_norm":
        return _norm(f"{side}_emb", kind, network) + "_pre"
    layer, part = f"{side}_l{int(path[1]) + 1}", path[2]
    if part.endswith("_norm"):
        prefix = f"{layer}_{_normed(part.removesuffix('_norm'), is_pre=is_pre)}"
        return _norm(prefix, kind, network) + ("_pre" if is_pre else "")
    return f"{layer}_{_linear(part, path[3], kind)}"


def _norm(prefix: str, kind: str, network: ModelConfig) -> str:
    """γ or β of a norm; an RMSNorm has no β."""
    what = "scale" if kind == "weight" else "bias"
    return f"{prefix}_{'rms' if network.norm == 'rmsnorm' else 'ln'}_{what}"


def _normed(part: str, *, is_pre: bool) -> str:
    """What a layer's norm is called after."""
    if part in _ATTENTIONS:
        return f"{_ATTENTIONS[part]}_Wo"
    if part == "feed_forward":
        return "ffn_ffn"
    return "rnn" if is_pre else "rnn_ffn"


def _linear(part: str, projection: str, kind: str) -> str:
    letter = "b" if kind == "bias" else "W"
    if part == "ssru":
        return f"rnn_{letter}{'f' if projection == 'forget_proj' else ''}"
    if part == "feed_forward":
        return f"ffn_{letter}{1 if projection == 'up_proj' else 2}"
    return f"{_ATTENTIONS[part]}_{letter}{_PROJECTIONS[projection]}"
