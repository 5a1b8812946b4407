"""A checkpoint as a Hugging Face Marian directory, with equal logits in float32.

Owns the names of the weights, config.json and generation_config.json as `MarianMTModel` reads
them; `transformers` itself is not needed to write them. It writes no tokenizer: that stays the
checkpoint's.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoint.manifest import Manifest
from model.checkpoint.strict_json import format_json
from model.checkpoint.weights import Checkpoint
from model.config import Activation, ModelConfig, SearchConfig, SpecialTokens
from model.exchange.export.output import (
    EVEN_QUERIES,
    EVEN_VALUES,
    export_problems,
    new_directory,
    num_positions,
    refuse,
    write_licences,
)
from model.honoured import EVERY_VALUE, HonouredFields
from model.nn.layers import known_decoder_layers
from model.nn.self_attention import SelfAttention
from model.nn.transformer import Transformer

_ACTIVATIONS: dict[Activation, str] = {"relu": "relu", "gelu": "gelu", "silu": "swish"}
MARIAN_FIELDS = HonouredFields(
    by="Hugging Face Marian",
    fields={
        "vocab_size": EVERY_VALUE,
        "target_vocab_size": EVERY_VALUE,
        "d_model": EVERY_VALUE,
        "num_heads": EVERY_VALUE,
        "d_ff": EVERY_VALUE,
        "num_encoder_layers": EVERY_VALUE,
        "num_decoder_layers": EVERY_VALUE,
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
        "norm": ("layernorm",),
        "norm_placement": ("post",),
        "norm_epsilon": (1e-5,),
        "position": ("sinusoidal-marian",),
        "position_offset": (0,),
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
    },
)
"""What `MarianMTModel` can be told of a network."""

_PARTS = {
    "self_attention": "self_attn",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward.up_proj": "fc1",
    "feed_forward.down_proj": "fc2",
    "feed_forward_norm": "final_layer_norm",
}


def export_huggingface(checkpoint: Checkpoint, output: Path) -> None:
    """Write configuration, generation_config.json, weights and licences for `MarianMTModel`.

    Args:
        checkpoint: A loaded checkpoint; its weights are written in float32.
        output: A directory that does not exist yet; its parent does.

    Raises:
        UnsupportedVariantError: Marian cannot express the network; all reasons are listed.
        CheckpointError: `output` exists or cannot be written.
    """
    manifest = checkpoint.manifest
    problems = export_problems(manifest, MARIAN_FIELDS)
    if not manifest.tokens.has_source_eos:
        problems.append("tokens.has_source_eos is False (only True)")
    refuse(MARIAN_FIELDS.by, problems)
    known_decoder_layers(
        checkpoint.transformer.decoder.layers, by=MARIAN_FIELDS.by, cell=SelfAttention
    )
    config = marian_config(manifest.network, manifest.tokens, max_positions=num_positions(manifest))
    with new_directory(output) as partial:
        (partial / "config.json").write_bytes(format_json(config))
        (partial / "generation_config.json").write_bytes(format_json(_generation(manifest)))
        state = {name: value.contiguous() for name, value in marian_state(checkpoint.transformer)}
        save_file(state, partial / "model.safetensors", metadata={"format": "pt"})
        (partial / "model.safetensors").chmod(0o644)  # safetensors hides it from other users
        write_licences(partial, manifest)


def marian_config(
    network: ModelConfig, tokens: SpecialTokens, *, max_positions: int
) -> dict[str, object]:
    """What `MarianConfig` has to say for a network that Marian expresses.

    An output projection of its own goes with two tables there, so a shared table is then
    stated twice.
    """
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": network.vocab_size,
        "decoder_vocab_size": network.output_size,
        "share_encoder_decoder_embeddings": _has_one_table(network),
        "tie_word_embeddings": network.tie_output,
        "d_model": network.d_model,
        "encoder_layers": network.num_encoder_layers,
        "decoder_layers": network.num_decoder_layers,
        "encoder_attention_heads": network.num_heads,
        "decoder_attention_heads": network.num_heads,
        "encoder_ffn_dim": network.d_ff,
        "decoder_ffn_dim": network.d_ff,
        "activation_function": _ACTIVATIONS[network.activation],
        "scale_embedding": network.scale_embedding,
        "static_position_embeddings": True,
        "max_position_embeddings": max_positions,
        "dropout": network.dropout,
        "attention_dropout": network.attention_dropout,
        "activation_dropout": network.activation_dropout,
        **_special_ids(tokens),
    }


@torch.no_grad()
def marian_state(transformer: Transformer) -> Iterator[tuple[str, Tensor]]:
    """Names and float32 weights of `MarianMTModel`; those it ties or computes are left out."""
    network = transformer.config
    for name, weight in transformer.state_dict().items():
        value = weight.float()
        if name == "output_bias":
            yield "final_logits_bias", value[None]
        else:
            yield marian_name(name, network), value
    if network.share_embeddings and not network.tie_output:
        yield (
            "model.decoder.embed_tokens.weight",
            transformer.target_embedding.weight.float().clone(),
        )
    if not network.output_bias:
        yield "final_logits_bias", torch.zeros(1, network.output_size)


def marian_name(name: str, network: ModelConfig) -> str:
    """Marian's name for one of our weights, the output bias (of one more dimension) included."""
    shared = "model.shared" if _has_one_table(network) else "model.encoder.embed_tokens"
    tables = {
        "source_embedding.weight": f"{shared}.weight",
        "target_embedding.weight": "model.decoder.embed_tokens.weight",
        "output_projection.weight": "lm_head.weight",
        "output_bias": "final_logits_bias",
    }
    if name in tables:
        return tables[name]
    side, layers, number, *parts, kind = name.split(".")
    part = _PARTS.get(".".join(parts))
    if part is None:
        attention, projection = parts
        part = f"{_PARTS[attention]}.{projection}"
    return f"model.{side}.{layers}.{number}.{part}.{kind}"


def _has_one_table(network: ModelConfig) -> bool:
    return network.share_embeddings and network.tie_output


def _special_ids(tokens: SpecialTokens) -> dict[str, object]:
    return {
        "pad_token_id": tokens.pad_id,
        "eos_token_id": tokens.eos_id,
        "bos_token_id": None,
        "decoder_start_token_id": tokens.start_id,
        "forced_eos_token_id": tokens.eos_id,
    }


def _generation(manifest: Manifest) -> dict[str, object]:
    """The search that comes closest to our default one; the start token counts in its length."""
    search = SearchConfig()
    return {
        **_special_ids(manifest.tokens),
        "suppress_tokens": list(manifest.tokens.suppressed_ids) or None,
        "max_length": manifest.limits.max_target_length + 1,
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "early_stopping": "never",
    }
