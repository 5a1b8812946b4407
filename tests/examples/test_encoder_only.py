"""The encoder by itself, behind the front end for features."""

import pytest
import torch

from examples.encoder_only import CONFIG, SequenceClassifier, main, signals


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
