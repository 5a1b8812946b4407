"""Networks of every kind that the int8 kernels run, of random weights, beside their definition."""

from model.config import ModelConfig
from model.native.in_memory import NetworkWeights
from model.native.network import Int8Network, pack
from model.native.weights import WeightSource
from support.int8_reference import Int8Reference
from support.random_weights import random_weights
from support.search_cases import TOKENS

SHAPES = {
    "post-norm, tied": {},
    "pre-norm, gelu": {"norm_placement": "pre", "activation": "gelu"},
    "rmsnorm, silu, nothing shared": {
        "norm": "rmsnorm",
        "activation": "silu",
        "share_embeddings": False,
        "tie_output": False,
        "target_vocab_size": 29,
    },
    "odd widths, no biases": {
        "d_model": 36,
        "num_heads": 3,
        "d_k": 8,
        "d_v": 20,
        "d_ff": 50,
        "attention_bias": False,
        "share_embeddings": False,
    },
    "many pieces, wide heads": {"vocab_size": 700, "d_model": 96, "num_heads": 1, "d_ff": 64},
    "learned positions": {"position": "learned", "max_positions": 40, "position_offset": 2},
    "one layer": {"num_encoder_layers": 0, "num_decoder_layers": 1},
    "no decoder layer": {"num_encoder_layers": 1, "num_decoder_layers": 0},
    "as many learned positions as are fed": {"position": "learned", "max_positions": 37},
    "more learned positions than are fed": {"position": "learned", "max_positions": 99},
    "ssru": {"decoder_cell": "ssru"},
    "ssru, pre-norm, odd width": {
        "decoder_cell": "ssru",
        "norm_placement": "pre",
        "d_model": 70,
        "num_decoder_layers": 3,
    },
}
SHAPES |= {
    f"{activation}{', gated' if is_gated else ''}": {
        "activation": activation,
        "gated_feed_forward": is_gated,
        "d_ff": 50,
    }
    for activation in ("relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu")
    for is_gated in (False, True)
}
SHAPES |= {
    "t5": {
        "position": "relative",
        "norm": "rmsnorm",
        "norm_placement": "pre",
        "activation": "gelu-tanh",
        "gated_feed_forward": True,
        "feed_forward_bias": False,
        "attention_bias": False,
        "scale_attention": False,
        "scale_embedding": False,
        "scale_output": True,
        "num_heads": 3,
        "d_k": 20,
        "d_v": 20,
    },
    "post-norm, relative positions": {"position": "relative"},
    "mbart": {
        "position": "learned",
        "position_offset": 2,
        "max_positions": 40,
        "norm_placement": "pre",
        "activation": "gelu",
        "embedding_norm": True,
    },
    "post-norm, normalised embeddings": {"embedding_norm": True, "share_embeddings": False},
    "fsmt": {"d_ff": 100, "decoder_d_ff": 40, "position": "sinusoidal-m2m100"},
    "a decoder wider than the encoder": {"d_ff": 20, "decoder_d_ff": 90},
    "scaled output, untied, post-norm": {"scale_output": True, "tie_output": False},
    "unscaled attention, no biases": {
        "scale_attention": False,
        "attention_bias": False,
        "feed_forward_bias": False,
    },
}
SHAPE = {"vocab_size": 23, "d_model": 16, "num_heads": 2, "d_ff": 32, "num_encoder_layers": 2,
         "num_decoder_layers": 2}  # fmt: skip


def random_network(
    shape: dict[str, object],
    *,
    num_threads: int = 1,
    eos_bias: float = 1.0,
    suppressed_ids: tuple[int, ...] = TOKENS.suppressed_ids,
) -> tuple[Int8Network, Int8Reference]:
    """A network of random weights, packed, and the definition with the same ones."""
    config = ModelConfig(**(SHAPE | shape))
    weights = random_weights(config, eos_bias=eos_bias)
    network = packed(config, NetworkWeights(weights), num_threads, suppressed_ids)
    return network, Int8Reference(config, weights)


def packed(
    config: ModelConfig,
    weights: WeightSource,
    num_threads: int = 1,
    suppressed_ids: tuple[int, ...] = TOKENS.suppressed_ids,
) -> Int8Network:
    return pack(
        config,
        weights,
        max_positions=38,
        suppressed_ids=suppressed_ids,
        num_threads=num_threads,
    )
