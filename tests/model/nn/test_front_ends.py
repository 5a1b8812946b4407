"""Token and feature front ends."""

import pytest
import torch

from model.config import ModelConfig, PositionKind
from model.errors import ConfigError
from model.nn.front_ends import FeatureFrontEnd, TokenEmbedding
from model.nn.transformer import Encoder, Transformer

PAD = 2


def config(**changes: object) -> ModelConfig:
    shape = {"vocab_size": 9, "d_model": 16, "num_heads": 4, "d_ff": 24, "pad_id": PAD}
    depth = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    return ModelConfig(**shape | depth | changes)


def test_token_embeddings_are_scaled_by_the_root_of_the_width() -> None:
    embedding = TokenEmbedding(config(), vocab_size=9)
    torch.nn.init.normal_(embedding.weight)  # until then it is whatever the memory held
    ids = torch.tensor([[3, 4]])
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * 4.0)
    unscaled = TokenEmbedding(config(scale_embedding=False), vocab_size=9)
    torch.nn.init.normal_(unscaled.weight)
    assert torch.equal(unscaled(ids), unscaled.weight[ids])


def test_the_padding_embedding_gets_no_gradient() -> None:
    embedding = TokenEmbedding(config(), vocab_size=9)
    embedding(torch.tensor([[3, PAD]])).sum().backward()
    assert embedding.weight.grad is not None
    assert not embedding.weight.grad[PAD].any()
    assert embedding.weight.grad[3].all()


@pytest.mark.parametrize(("stride", "expected"), [(1, [7, 4, 1]), (2, [4, 2, 1]), (3, [3, 2, 1])])
def test_lengths_are_rescaled_with_the_frames(stride: int, expected: list[int]) -> None:
    front_end = FeatureFrontEnd(config(), num_features=5, stride=stride)
    lengths = torch.tensor([7, 4, 1])
    embeddings, mask = front_end(torch.randn(3, 7, 5), lengths)
    assert front_end.output_lengths(lengths).tolist() == expected
    assert embeddings.shape == (3, expected[0], 16)
    assert mask.sum(dim=1).tolist() == expected
    assert mask.shape == embeddings.shape[:2]


def test_frames_are_stacked_projected_and_given_positions() -> None:
    front_end = FeatureFrontEnd(config(), num_features=5, stride=2)
    features = torch.randn(1, 3, 5)
    embeddings, _ = front_end(features, torch.tensor([3]))
    last_group = torch.cat((features[0, 2], torch.zeros(5)))
    expected = front_end.positions(torch.zeros(1, 2, 16))[0, 1] + front_end.projection(last_group)
    torch.testing.assert_close(embeddings[0, 1], expected)


@pytest.mark.parametrize("position", ["sinusoidal-marian", "learned", "rope", "relative"])
def test_frames_past_the_length_never_change_the_encoder_output(position: PositionKind) -> None:
    front_end = FeatureFrontEnd(config(position=position), num_features=5, stride=2)
    encoder = Encoder(config(position=position)).eval()
    lengths = torch.tensor([8, 3])
    features = torch.randn(2, 8, 5)
    encoded = encoder(*front_end(features, lengths))
    features[1, 3:] = torch.nan
    assert torch.equal(encoder(*front_end(features, lengths)), encoded)
    alone = encoder(*front_end(features[1:, :3], lengths[1:]))
    torch.testing.assert_close(encoded[1:, :2], alone, atol=1e-5, rtol=1e-4)


def test_the_decoder_reads_the_output_over_a_feature_front_end() -> None:
    front_end = FeatureFrontEnd(config(), num_features=5, stride=2)
    transformer = Transformer(config())
    embeddings, mask = front_end(torch.randn(2, 8, 5), torch.tensor([8, 3]))
    logits = transformer.decode(
        torch.tensor([[PAD, 4], [PAD, 5]]), transformer.encoder(embeddings, mask), mask
    )
    logits.sum().backward()
    assert logits.shape == (2, 2, 9)
    assert front_end.projection.weight.grad is not None


@pytest.mark.parametrize("shape", [{"num_features": 0}, {"num_features": 3, "stride": 0}])
def test_impossible_shapes_are_refused_by_name(shape: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="is 0; it must be at least 1"):
        FeatureFrontEnd(config(), **shape)
