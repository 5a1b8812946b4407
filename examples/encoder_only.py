"""The encoder alone, as a classifier of feature sequences: does a noisy signal rise or fall?

    python -m examples.encoder_only

Trains for some seconds on a CPU. The features (frames of speech in the real world) enter by a
linear front end, two frames at a time; the mean of the encoder output over the real positions is
the embedding of the sequence, and a linear layer over it tells the classes apart. The front end is
here and not in the library, which trains and serves text: the encoder takes any embeddings with a
mask, and this is how features become some.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig
from model.nn.initialisation import initialise
from model.nn.masks import lengths_mask
from model.nn.positions import build_absolute_positions
from model.nn.transformer import Encoder

NUM_FEATURES = 4
NUM_CLASSES = 2
MAX_FRAMES = 24
CONFIG = ModelConfig(
    vocab_size=1,  # no tokens anywhere
    d_model=32,
    num_heads=4,
    d_ff=64,
    num_encoder_layers=2,
    num_decoder_layers=0,
    norm_placement="pre",
    position="rope",
    dropout=0.0,
)


class FeatureFrontEnd(nn.Module):
    """Feature sequences → embeddings with positions: a linear map of `stride` frames at a time.

    A last group that is not full is completed with zeros, as are frames past a sequence's
    length, so that what pads a batch never reaches an embedding.
    """

    def __init__(self, config: ModelConfig, *, num_features: int, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.projection = nn.Linear(num_features * stride, config.d_model)
        self.positions = build_absolute_positions(config)
        initialise(self, config.d_model)

    def output_lengths(self, lengths: Tensor) -> Tensor:
        """Lengths in embeddings of lengths in frames, (B,) → (B,): divided, rounded up."""
        return (lengths + self.stride - 1) // self.stride

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Embed a batch, ready for `Encoder`.

        Args:
            features: (B, T, F).
            lengths: Real frames of each sequence, (B,) int64.

        Returns:
            Embeddings (B, S, D) and their mask (B, S), S = ⌈T / stride⌉.
        """
        num_frames = features.shape[1]
        is_real = lengths_mask(lengths, num_frames)
        features = features.masked_fill(~is_real[..., None], 0.0)
        features = F.pad(features, (0, 0, 0, -num_frames % self.stride))
        groups = features.reshape(len(features), -1, self.projection.in_features)
        embeddings: Tensor = self.positions(self.projection(groups))
        return embeddings, lengths_mask(self.output_lengths(lengths), embeddings.shape[1])


class SequenceClassifier(nn.Module):
    """Front end, encoder, mean over positions, and a linear layer."""

    def __init__(self, config: ModelConfig, *, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.front_end = FeatureFrontEnd(config, num_features=num_features, stride=2)
        self.encoder = Encoder(config)
        self.classes = nn.Linear(config.d_model, num_classes)

    def embed(self, features: Tensor, lengths: Tensor) -> Tensor:
        """One vector a sequence: (B, T, F) features of (B,) real frames → (B, D)."""
        embeddings, mask = self.front_end(features, lengths)
        encoded: Tensor = self.encoder(embeddings, mask)  # (B, S, D)
        is_real = mask.unsqueeze(-1)
        embedding: Tensor = (encoded * is_real).sum(dim=1) / is_real.sum(dim=1)
        return embedding

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Logits of the classes: (B, T, F), (B,) → (B, C)."""
        logits: Tensor = self.classes(self.embed(features, lengths))
        return logits


def signals(num_sequences: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Noisy signals that rise (class 1) or fall (class 0) by one over their length.

    Returns:
        Features (B, T, F), real frames of each (B,), classes (B,).
    """
    lengths = torch.randint(8, MAX_FRAMES + 1, (num_sequences,), generator=generator)
    classes = torch.randint(0, NUM_CLASSES, (num_sequences,), generator=generator)
    frames = torch.arange(MAX_FRAMES) / (lengths - 1).unsqueeze(1)
    slopes = (2 * classes - 1).unsqueeze(1)
    level = slopes * (frames - 0.5)  # (B, T), centred: only the order of frames tells the class
    noise = torch.randn(num_sequences, MAX_FRAMES, NUM_FEATURES, generator=generator)
    return level.unsqueeze(-1) + 0.3 * noise, lengths, classes


def train(num_updates: int = 60, *, seed: int = 1) -> SequenceClassifier:
    """A classifier that has seen `num_updates` batches of 32 signals."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    classifier = SequenceClassifier(CONFIG, num_features=NUM_FEATURES, num_classes=NUM_CLASSES)
    optimiser = torch.optim.Adam(classifier.parameters(), lr=3e-3)
    for _ in range(num_updates):
        features, lengths, classes = signals(32, generator)
        loss = F.cross_entropy(classifier(features, lengths), classes)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        optimiser.step()
    return classifier.eval()


@torch.no_grad()
def accuracy(classifier: SequenceClassifier, *, seed: int = 2) -> float:
    """Share of 500 unseen signals whose class is found."""
    features, lengths, classes = signals(500, torch.Generator().manual_seed(seed))
    found = classifier(features, lengths).argmax(dim=-1)
    return float((found == classes).double().mean())


def main() -> None:
    """Train, and print the accuracy on unseen signals."""
    torch.set_num_threads(1)  # products so small gain nothing from a second
    print(f"{accuracy(train()):.1%} of 500 unseen signals are classified correctly")


if __name__ == "__main__":
    main()
