"""The encoder by itself, behind a front end for features."""

import pytest
import torch

from examples.encoder_only import CONFIG, FeatureFrontEnd, SequenceClassifier, main, signals
from model.config import ModelConfig, PositionKind
from model.nn.transformer import Encoder, Transformer

PAD = 2


def config(**changes: object) -> ModelConfig:
    shape = {"vocab_size": 9, "d_model": 16, "num_heads": 4, "d_ff": 24, "pad_id": PAD}
    depth = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    return ModelConfig(**shape | depth | changes)


@pytest.fixture
def classifier() -> SequenceClassifier:
    torch.manual_seed(3)
    return SequenceClassifier(CONFIG, num_features=4, num_classes=2).eval()


def test_the_example_learns_to_tell_signals_apart(capsys: pytest.CaptureFixture[str]) -> None:
    num_threads = torch.get_num_threads()
    try:
        main()
    finally:
        torch.set_num_threads(num_threads)
    share, _, rest = capsys.readouterr().out.partition("%")
    assert float(share) > 95.0
    assert rest == " of 500 unseen signals are classified correctly\n"


@torch.no_grad()
def test_padding_never_reaches_an_embedding(classifier: SequenceClassifier) -> None:
    features, lengths, _ = signals(6, torch.Generator().manual_seed(1))
    whole = classifier.embed(features, lengths)
    for own, length, embedding in zip(features, lengths, whole, strict=True):
        alone = classifier.embed(own[None, :length], length[None])
        torch.testing.assert_close(alone[0], embedding)


@torch.no_grad()
def test_the_order_of_frames_counts(classifier: SequenceClassifier) -> None:
    features, _, _ = signals(1, torch.Generator().manual_seed(1))
    lengths = torch.tensor([features.shape[1]])
    found = classifier.embed(features, lengths)
    assert not torch.allclose(found, classifier.embed(features.flip(1), lengths))


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
