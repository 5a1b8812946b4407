"""Networks saved as checkpoints, and what they say: the same logits are the same network."""

from pathlib import Path

import torch
from torch import Tensor

from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.manifest import CONFIG_FILE
from model.checkpoint.weights import TokenizerParts, save_checkpoint
from model.nn.transformer import Transformer
from support.tiny_checkpoint import EN_ZH, TINY_LICENCES, TINY_LIMITS, TINY_TOKENS, tiny_spm

WEIGHTS = "model.safetensors"
FILES = [CONFIG_FILE, WEIGHTS, "source.spm", "vocabulary.json", "card.md", CHECKSUMS_FILE]
SOURCE = torch.tensor([[20, 30, 40, 1], [50, 60, 1, 0]])
TARGET = torch.tensor([[0, 7, 8], [0, 9, 10]])


def logits(transformer: Transformer) -> Tensor:
    with torch.inference_mode():
        return transformer(SOURCE, TARGET)


def save(directory: Path, transformer: Transformer, *, quantise: bool = False) -> None:
    save_checkpoint(
        directory,
        transformer=transformer,
        name="saved",
        description="",
        licence="Apache-2.0",
        tokens=TINY_TOKENS,
        pairs=(EN_ZH,),
        limits=TINY_LIMITS,
        licences=TINY_LICENCES,
        tokenizer=TokenizerParts(source_pieces=tiny_spm()),
        card="# saved\n",
        quantise=quantise,
    )
