"""Small random networks of other families in `transformers`, and ours with the same weights.

Every weight is drawn, norms and biases included, so that whatever is mapped or computed wrongly
shows. Their names are mapped here for the tests of the network alone.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from transformers import (
    FSMTConfig,
    FSMTForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from model.config import ModelConfig
from model.nn.transformer import Transformer

Pair = tuple[PreTrainedModel, Transformer]

_BART_PARTS = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "feed_forward.up_proj": "fc1",
    "feed_forward.down_proj": "fc2",
}
_T5_PARTS = {
    "self_attention_norm": "layer.0.layer_norm",
    "self_attention": "layer.0.SelfAttention",
    "cross_attention_norm": "layer.1.layer_norm",
    "cross_attention": "layer.1.EncDecAttention",
}
_T5_PROJECTIONS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}


def t5_pair(*, is_tied: bool, feed_forward: str = "gated-gelu") -> Pair:
    """T5: relative positions, RMSNorm, heads that are not d_model wide together."""
    reference = T5ForConditionalGeneration(
        T5Config(
            vocab_size=41,
            d_model=16,
            d_kv=6,
            d_ff=24,
            num_layers=2,
            num_decoder_layers=3,
            num_heads=4,
            feed_forward_proj=feed_forward,
            tie_word_embeddings=is_tied,
            dropout_rate=0.0,
        )
    )
    if not is_tied:
        reference.lm_head.weight = nn.Parameter(torch.zeros(41, 16))
    network = ModelConfig(
        vocab_size=41,
        d_model=16,
        d_k=6,
        d_v=6,
        d_ff=24,
        num_encoder_layers=2,
        num_decoder_layers=3,
        num_heads=4,
        gated_feed_forward=feed_forward.startswith("gated"),
        feed_forward_bias=False,
        attention_bias=False,
        activation="gelu-tanh" if feed_forward == "gated-gelu" else "relu",
        scale_attention=False,
        scale_output=is_tied,
        scale_embedding=False,
        norm="rmsnorm",
        norm_placement="pre",
        norm_epsilon=1e-6,
        position="relative",
        tie_output=is_tied,
        output_bias=False,
        pad_id=0,
    )
    return _with_the_same_weights(reference, network, partial(_t5_name, network))


def mbart_pair() -> Pair:
    """mBART: learned positions from row 2, embeddings that are normalised."""
    reference = MBartForConditionalGeneration(
        MBartConfig(**_bart_shape(), activation_function="gelu")
    )
    network = ModelConfig(
        **_bart_network(),
        decoder_d_ff=28,
        activation="gelu",
        embedding_norm=True,
        norm_placement="pre",
        position="learned",
        max_positions=66,
        output_bias=True,
    )
    return _with_the_same_weights(reference, network, _bart_name)


def m2m100_pair() -> Pair:
    """M2M100 and NLLB: sinusoids from position 2, final norms."""
    reference = M2M100ForConditionalGeneration(
        M2M100Config(**_bart_shape(), activation_function="relu")
    )
    network = ModelConfig(
        **_bart_network(),
        decoder_d_ff=28,
        norm_placement="pre",
        position="sinusoidal-m2m100",
        output_bias=False,
    )
    return _with_the_same_weights(reference, network, _bart_name)


def fsmt_pair() -> Pair:
    """FSMT: post-norm, two vocabularies, a wider feed-forward in the encoder than behind it."""
    shape = _bart_shape()
    del shape["vocab_size"]
    reference = FSMTForConditionalGeneration(
        FSMTConfig(**shape, src_vocab_size=41, tgt_vocab_size=37, bos_token_id=0, eos_token_id=2)
    )
    network = ModelConfig(
        **_bart_network(),
        target_vocab_size=37,
        share_embeddings=False,
        tie_output=False,
        decoder_d_ff=28,
        position="sinusoidal-m2m100",
        output_bias=False,
    )
    return _with_the_same_weights(reference, network, _fsmt_name)


def _bart_shape() -> dict[str, object]:
    return {
        "vocab_size": 41,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 28,
        "max_position_embeddings": 64,
        "dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "scale_embedding": True,
        "pad_token_id": 1,
    }


def _bart_network() -> dict[str, object]:
    return {
        "vocab_size": 41,
        "d_model": 16,
        "d_ff": 24,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "position_offset": 2,
        "pad_id": 1,
    }


def _with_the_same_weights(
    reference: PreTrainedModel, network: ModelConfig, name_of: Callable[[str], str]
) -> Pair:
    _randomise(reference)
    transformer = Transformer(network)
    theirs = reference.state_dict()
    weights = {}
    for name in transformer.state_dict():
        value = theirs[name_of(name)]
        weights[name] = value[0] if name == "output_bias" else value
    transformer.load_state_dict(weights)
    return reference.eval(), transformer.eval()


@torch.no_grad()
def _randomise(reference: PreTrainedModel) -> None:
    generator = torch.Generator().manual_seed(0)

    def draw(values: Tensor, centre: float) -> None:
        values.normal_(centre, 0.3, generator=generator)

    for name, parameter in reference.named_parameters():
        if parameter.requires_grad:  # tables of sinusoids are frozen
            draw(parameter, 1.0 if "norm" in name and name.endswith("weight") else 0.0)
    if hasattr(reference, "final_logits_bias"):
        draw(reference.final_logits_bias, 0.0)


def _bart_name(name: str) -> str:
    known = {
        "source_embedding.weight": "model.shared.weight",
        "output_bias": "final_logits_bias",
        "source_positions.vectors.weight": "model.encoder.embed_positions.weight",
        "target_positions.vectors.weight": "model.decoder.embed_positions.weight",
    }
    if name in known:
        return known[name]
    name = name.replace("final_norm", "layer_norm").replace("embedding_norm", "layernorm_embedding")
    return "model." + _replaced(name, _BART_PARTS)


def _fsmt_name(name: str) -> str:
    known = {
        "source_embedding.weight": "model.encoder.embed_tokens.weight",
        "target_embedding.weight": "model.decoder.embed_tokens.weight",
        "output_projection.weight": "model.decoder.output_projection.weight",
    }
    return known.get(name) or _bart_name(name)


def _t5_name(network: ModelConfig, name: str) -> str:
    known = {
        "source_embedding.weight": "shared.weight",
        "output_projection.weight": "lm_head.weight",
    }
    if name in known:
        return known[name]
    stack = name.split(".", maxsplit=1)[0]
    if "position_bias" in name:
        return f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    if name.endswith("final_norm.weight"):
        return f"{stack}.final_layer_norm.weight"
    last = f"layer.{1 if stack == 'encoder' else 2}"
    up = "wi_1" if network.gated_feed_forward else "wi"
    parts = _T5_PARTS | {
        "feed_forward_norm": f"{last}.layer_norm",
        "feed_forward.gate_proj": f"{last}.DenseReluDense.wi_0",
        "feed_forward.up_proj": f"{last}.DenseReluDense.{up}",
        "feed_forward.down_proj": f"{last}.DenseReluDense.wo",
    }
    return _replaced(_replaced(name.replace("layers", "block"), parts), _T5_PROJECTIONS)


def _replaced(name: str, parts: dict[str, str]) -> str:
    """The first of our words that the name has, in theirs."""
    for ours, theirs in parts.items():
        if f".{ours}." in name:
            return name.replace(f".{ours}.", f".{theirs}.")
    return name
