"""Tiny checkpoints of many shapes whose weights all matter, and random sentences for them."""

import random
from pathlib import Path

import torch

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import ModelConfig
from support.tiny_checkpoint import EN_ZH, TINY_TOKENS, TINY_VOCABULARY_SIZE, write_tiny_checkpoint

Shape = dict[str, object]
MARIAN_SHAPES: dict[str, Shape] = {
    "marian": {},
    "silu": {"activation": "silu"},
    "gelu": {"activation": "gelu"},
    "unscaled": {"scale_embedding": False},
    "without output bias": {"output_bias": False},
    "two tables": {"share_embeddings": False},
    "own output projection": {"tie_output": False},
    "three tables": {"share_embeddings": False, "tie_output": False},
}


def exchange_checkpoint(directory: Path, **shape: object) -> Checkpoint:
    """A loaded tiny checkpoint; norms and biases are random too, and distributions peaked."""
    settings: Shape = {
        "vocab_size": TINY_VOCABULARY_SIZE,
        "d_model": 32,
        "num_heads": 4,
        "d_ff": 48,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "pad_id": TINY_TOKENS.pad_id,
    }
    network = ModelConfig(**(settings | shape))  # type: ignore[arg-type]
    checkpoint = load_checkpoint(
        write_tiny_checkpoint(directory / "checkpoint", pairs=(EN_ZH,), network=network)
    )
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in checkpoint.transformer.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
            else:
                parameter.mul_(2.0)
        if checkpoint.transformer.output_bias is not None:
            checkpoint.transformer.output_bias[TINY_TOKENS.eos_id] = 7.0
    return checkpoint


def random_ids(count: int, *, seed: int) -> list[list[int]]:
    """Sentences of 1 to 20 ordinary ids, without EOS."""
    rng = random.Random(seed)
    return [
        [rng.randrange(3, TINY_VOCABULARY_SIZE) for _ in range(rng.randint(1, 20))]
        for _ in range(count)
    ]
