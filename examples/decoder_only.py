"""The decoder alone, as a language model of number sequences: 3 5 7 9 1 … continues.

    python -m examples.decoder_only

Trains for some seconds on a CPU. Without an encoder output the decoder skips cross-attention: what
is left is a causal language model. Its sequences are digits that grow by a constant step, modulo
ten; given two of them, the model writes the rest.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from model.config import ModelConfig
from model.nn.embedding import TokenEmbedding
from model.nn.transformer import Decoder

NUM_DIGITS = 10
LENGTH = 12
CONFIG = ModelConfig(
    vocab_size=NUM_DIGITS + 1,
    pad_id=NUM_DIGITS,
    d_model=32,
    num_heads=4,
    d_ff=64,
    num_encoder_layers=0,
    num_decoder_layers=2,
    norm_placement="pre",
    position="alibi",
    dropout=0.0,
)


class LanguageModel(nn.Module):
    """Token embedding, decoder, and the embedding again as output projection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(config, vocab_size=config.vocab_size)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.decoder = Decoder(config)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of every next token: (B, T) int64 → (B, T, V)."""
        hidden: Tensor = self.decoder(self.embedding(ids))
        logits: Tensor = F.linear(hidden, self.embedding.weight)
        return logits

    @torch.no_grad()
    def continue_greedily(self, ids: Tensor, num_tokens: int) -> Tensor:
        """Append the likeliest token, again and again: (B, T) → (B, T + num_tokens)."""
        for _ in range(num_tokens):
            next_ids = self(ids)[:, -1].argmax(dim=-1, keepdim=True)
            ids = torch.cat((ids, next_ids), dim=1)
        return ids


def progressions(num_sequences: int, generator: torch.Generator) -> Tensor:
    """Digits that grow by a constant step, modulo ten: (B, `LENGTH`) int64."""
    start, step = torch.randint(0, NUM_DIGITS, (2, num_sequences, 1), generator=generator)
    digits: Tensor = (start + step * torch.arange(LENGTH)) % NUM_DIGITS
    return digits


def train(num_updates: int = 400, *, seed: int = 1) -> LanguageModel:
    """A language model that has seen `num_updates` batches of 64 sequences."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    language_model = LanguageModel(CONFIG)
    optimiser = torch.optim.Adam(language_model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, num_updates)
    for _ in range(num_updates):
        ids = progressions(64, generator)
        logits = language_model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        optimiser.step()
        schedule.step()
    return language_model.eval()


def share_continued(language_model: LanguageModel) -> float:
    """Share of all 100 sequences that are continued correctly from their first two digits."""
    digits = torch.arange(NUM_DIGITS)
    start, step = torch.cartesian_prod(digits, digits).unsqueeze(-1).unbind(1)
    whole = (start + step * torch.arange(LENGTH)) % NUM_DIGITS
    found = language_model.continue_greedily(whole[:, :2], LENGTH - 2)
    return float((found == whole).all(dim=1).double().mean())


def main() -> None:
    """Train, and print a continuation and how many are right."""
    torch.set_num_threads(1)  # products so small gain nothing from a second
    language_model = train()
    found = language_model.continue_greedily(torch.tensor([[3, 5]]), LENGTH - 2)
    print("3 5 continues:", *found[0, 2:].tolist())
    print(f"{share_continued(language_model):.0%} of all sequences are continued correctly")


if __name__ == "__main__":
    main()
