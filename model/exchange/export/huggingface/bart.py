"""Common part of exports of networks of BART's build: Marian, M2M100, mBART and FSMT.

Owns the fields that all of them are told, the part of config.json that they have in common, and the
order of their tensors. Names are those that imports go by
(`model.exchange.imports.huggingface.bart`).
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from model.config import ModelConfig
from model.exchange.export.huggingface.family import inverse
from model.exchange.export.output import EVEN_QUERIES, EVEN_VALUES
from model.exchange.imports.huggingface.bart import (
    ACTIVATIONS,
    DECODER_TABLE,
    ENCODER_TABLE,
    HEAD,
    SHARED,
    bart_modules,
)
from model.honoured import EVERY_VALUE, Allowed
from model.nn.transformer import Transformer

_NAMES = inverse(ACTIVATIONS)

BART_FIELDS: Mapping[str, Allowed] = {
    "vocab_size": EVERY_VALUE,
    "target_vocab_size": EVERY_VALUE,
    "d_model": EVERY_VALUE,
    "num_heads": EVERY_VALUE,
    "d_ff": EVERY_VALUE,
    "num_encoder_layers": EVERY_VALUE,
    "num_decoder_layers": EVERY_VALUE,
    "d_k": EVEN_QUERIES,
    "d_v": EVEN_VALUES,
    "decoder_d_ff": EVERY_VALUE,
    "decoder_cell": ("self-attention",),
    "gated_feed_forward": (False,),
    "feed_forward_bias": (True,),
    "embedding_norm": (False,),
    "scale_attention": (True,),
    "scale_output": (False,),
    "activation": tuple(_NAMES),
    "norm": ("layernorm",),
    "norm_placement": ("post",),
    "norm_epsilon": (1e-5,),
    "max_positions": EVERY_VALUE,
    "scale_embedding": EVERY_VALUE,
    "share_embeddings": EVERY_VALUE,
    "tie_output": EVERY_VALUE,
    "output_bias": EVERY_VALUE,
    "attention_bias": (True,),
    "dropout": EVERY_VALUE,
    "attention_dropout": EVERY_VALUE,
    "activation_dropout": EVERY_VALUE,
    "pad_id": EVERY_VALUE,
}
"""All fields but those of the positions; a family replaces what it has otherwise."""


def bart_shape(network: ModelConfig, *, max_positions: int) -> dict[str, object]:
    """What config.json says of the shape in every family; vocabularies and ties are a family's."""
    return {
        "d_model": network.d_model,
        "encoder_layers": network.num_encoder_layers,
        "decoder_layers": network.num_decoder_layers,
        "encoder_attention_heads": network.num_heads,
        "decoder_attention_heads": network.num_heads,
        "encoder_ffn_dim": network.d_ff,
        "decoder_ffn_dim": network.decoder_inner_width,
        "activation_function": _NAMES[network.activation],
        "scale_embedding": network.scale_embedding,
        "max_position_embeddings": max_positions,
        "dropout": network.dropout,
        "attention_dropout": network.attention_dropout,
        "activation_dropout": network.activation_dropout,
    }


@torch.no_grad()
def bart_tensors(
    transformer: Transformer, tables: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Tensor]]:
    """Names and float32 weights.

    Args:
        transformer: Of a network that the family honours.
        tables: By our names of tables and output projection, those under which each is stated.
    """
    weights = {name: value.float() for name, value in transformer.state_dict().items()}
    for ours, names in tables.items():
        for name in names:
            yield name, weights[ours].clone()
    for ours, theirs in bart_modules(transformer.config):
        for kind in ("weight", "bias"):
            yield f"{theirs}.{kind}", weights[f"{ours}.{kind}"]


def one_table(network: ModelConfig) -> bool:
    """Whether source, target and output projection have one table."""
    return network.share_embeddings and network.tie_output


def shared_tables(network: ModelConfig) -> dict[str, tuple[str, ...]]:
    """The names of one table for both sides, with which the output projection may be tied.

    Without ties transformers ties nothing at all, each side has a table, and the shared one is
    there and not read.
    """
    if network.tie_output:
        return {"source_embedding.weight": (SHARED,)}
    tables: dict[str, tuple[str, ...]]
    if network.share_embeddings:
        tables = {"source_embedding.weight": (SHARED, ENCODER_TABLE, DECODER_TABLE)}
    else:
        tables = {
            "source_embedding.weight": (SHARED, ENCODER_TABLE),
            "target_embedding.weight": (DECODER_TABLE,),
        }
    return {**tables, "output_projection.weight": (HEAD,)}
