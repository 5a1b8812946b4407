"""Weights start as the docstring says."""

import math
from dataclasses import replace

import torch
from torch import nn

from model.config import ModelConfig
from model.nn.transformer import Transformer

CONFIG = ModelConfig(
    vocab_size=500,
    d_model=64,
    num_heads=4,
    d_ff=96,
    num_encoder_layers=1,
    num_decoder_layers=1,
    position="learned",
    max_positions=100,
    pad_id=3,
)


def fresh() -> Transformer:
    torch.manual_seed(0)
    return Transformer(CONFIG)


def test_embeddings_are_normal_with_deviation_one_over_root_d_model() -> None:
    transformer = fresh()
    for table in (transformer.source_embedding, transformer.source_positions.vectors):
        assert abs(table.weight.mean().item()) < 0.01
        assert math.isclose(table.weight.std().item(), 64**-0.5, rel_tol=0.03)


def test_the_padding_row_is_zero() -> None:
    table = fresh().source_embedding.weight
    assert not table[3].any()
    assert table[:3].any(dim=1).all()


def test_matrices_are_xavier_uniform() -> None:
    for part in fresh().modules():
        if isinstance(part, nn.Linear):
            bound = math.sqrt(6.0 / (part.in_features + part.out_features))
            assert 0.97 * bound < part.weight.abs().max() <= bound
            assert math.isclose(part.weight.std().item(), bound / math.sqrt(3), rel_tol=0.05)


def deep(**changes: object) -> Transformer:
    torch.manual_seed(0)
    shape = {
        "d_ff": 256,
        "num_encoder_layers": 6,
        "num_decoder_layers": 3,
        "position": "sinusoidal-marian",
    }
    return Transformer(replace(CONFIG, **shape, **changes)).eval()  # type: ignore[arg-type]


def test_matrices_of_deeper_layers_are_smaller_where_the_norm_is_behind() -> None:
    for placement, power in (("post", 0.5), ("pre", 0.0)):
        transformer = deep(norm_placement=placement)
        for stack in (transformer.encoder, transformer.decoder):
            for depth, layer in enumerate(stack.layers, start=1):
                for part in layer.modules():
                    if isinstance(part, nn.Linear):
                        bound = math.sqrt(6.0 / (part.in_features + part.out_features))
                        expected = bound / math.sqrt(3) / depth**power
                        assert math.isclose(part.weight.std().item(), expected, rel_tol=0.05)


def test_positions_of_a_sentence_stay_different_in_a_deep_encoder() -> None:
    """Plain Xavier weights leave a mean cosine of more than 0.9, from which nothing is learnt."""
    transformer = deep()
    ids = torch.randint(4, CONFIG.vocab_size, (8, 20))
    with torch.no_grad():
        encoded = transformer.encoder(transformer.embed_source(ids))
    directions = torch.nn.functional.normalize(encoded, dim=-1)
    assert (directions @ directions.mT).mean() < 0.75


def test_biases_are_zero_and_norms_are_the_identity() -> None:
    transformer = fresh()
    biases = [p for name, p in transformer.named_parameters() if name.endswith("bias")]
    assert biases
    assert not any(bias.any() for bias in biases)
    norms = [part for part in transformer.modules() if isinstance(part, nn.LayerNorm)]
    assert len(norms) == 5
    assert all((norm.weight == 1.0).all() for norm in norms)


def test_relative_scores_are_normal_with_deviation_one_over_root_d_model() -> None:
    torch.manual_seed(0)
    config = replace(CONFIG, num_heads=32, position="relative")
    for stack in (Transformer(config).encoder, Transformer(config).decoder):
        scores = stack.position_bias.scores.weight
        assert math.isclose(scores.std().item(), 64**-0.5, rel_tol=0.05)
