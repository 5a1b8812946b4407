"""Names and shapes without a network are those of the network."""

from dataclasses import replace

import pytest

from model.checkpoint.tensors.shapes import tensor_problems, tensor_shapes
from model.config import ModelConfig
from model.nn.transformer import Transformer

BASE = ModelConfig(
    vocab_size=11,
    target_vocab_size=13,
    d_model=8,
    num_heads=2,
    d_ff=12,
    decoder_d_ff=20,
    d_k=6,
    d_v=10,
    num_encoder_layers=2,
    num_decoder_layers=1,
    share_embeddings=False,
    tie_output=False,
)
CHANGES: list[dict[str, object]] = [
    {},
    {"share_embeddings": True, "target_vocab_size": None},
    {"tie_output": True, "output_bias": False},
    {"norm": "rmsnorm", "norm_placement": "pre", "embedding_norm": True},
    {"gated_feed_forward": True, "feed_forward_bias": False, "attention_bias": False},
    {"decoder_cell": "ssru", "norm": "rmsnorm"},
    {"decoder_cell": "ssru", "attention_bias": False},
    {"position": "learned", "max_positions": 5},
    {"position": "relative", "attention_bias": False},
    {"position": "rope"},
    {"position": "alibi", "num_decoder_layers": 0},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_names_and_shapes_are_those_of_the_network(change: dict[str, object]) -> None:
    config = replace(BASE, **change)  # type: ignore[arg-type]  # fields by name
    state = Transformer(config).state_dict()
    assert tensor_shapes(config) == {name: tuple(value.shape) for name, value in state.items()}


def test_everything_that_differs_is_named() -> None:
    found = tensor_shapes(BASE)
    del found["output_bias"]
    found |= {"source_embedding.weight": (11, 9), "more": (1,)}
    assert tensor_problems(BASE, tensor_shapes(BASE)) == ""
    assert tensor_problems(BASE, found) == (
        "output_bias is missing; more is unexpected;"
        " source_embedding.weight is [11, 9], expected [11, 8]"
    )
