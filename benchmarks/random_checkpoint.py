"""A random network as a checkpoint: what raw engine speed is measured with.

By default of base size: 6+6 layers of width 512, 8 heads, feed-forward 2048, Marian's positions,
post-norm, tied, int8 in the file; `SHAPES` has those of other families. Its vocabulary is a
SentencePiece model of exactly as many pieces: letters, and letter groups that real text splits
into. EOS has a bias that no logit overcomes, so every search, in every engine, runs to its maximum
length: lengths are forced.

    python benchmarks/random_checkpoint.py OUTPUT [--shape NAME] [--vocabulary N] [--seed N]
"""

import argparse
import string
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import torch
from torch import nn

from model.checkpoint.manifest import Licence
from model.checkpoint.weights import TokenizerParts, save_checkpoint
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair
from model.train.config.presets import preset_network

VOCABULARY_SIZE = 58_101
_STUDENT = ModelConfig(
    vocab_size=32_000,
    d_model=256,
    num_heads=8,
    d_ff=1536,
    num_encoder_layers=6,
    num_decoder_layers=2,
)
_LARGE = ModelConfig(
    vocab_size=256_206,
    d_model=1024,
    num_heads=16,
    d_ff=4096,
    num_encoder_layers=12,
    num_decoder_layers=12,
    norm_placement="pre",
    position="sinusoidal-m2m100",
    position_offset=2,
)
SHAPES: Mapping[str, ModelConfig] = {
    "base": preset_network("base", vocab_size=VOCABULARY_SIZE),
    "student": replace(_STUDENT, decoder_cell="ssru"),  # Firefox Translations, "tiny"
    "attention-student": _STUDENT,  # of the same size, for engines without that cell
    "nllb-600m": _LARGE,
    "m2m100-418m": replace(_LARGE, vocab_size=128_112),
    "mbart-50": replace(
        _LARGE, vocab_size=250_054, activation="gelu", position="learned", embedding_norm=True
    ),
    "t5-base": ModelConfig(
        vocab_size=32_128,
        d_model=768,
        num_heads=12,
        d_ff=3072,
        num_encoder_layers=12,
        num_decoder_layers=12,
        norm="rmsnorm",
        norm_placement="pre",
        position="relative",
        scale_attention=False,
        scale_embedding=False,
        scale_output=True,
        feed_forward_bias=False,
        attention_bias=False,
    ),
    "fsmt-wmt19": ModelConfig(
        vocab_size=42_024,
        d_model=1024,
        num_heads=16,
        d_ff=8192,
        decoder_d_ff=4096,
        position="sinusoidal-m2m100",
        position_offset=2,
    ),
}
"""Shapes by name; all have a bias on the logits, so that EOS can be kept from being chosen."""
MIN_VOCABULARY_SIZE, MAX_VOCABULARY_SIZE = 200, 500_000
MAX_LENGTH = 512
EOS_BIAS = -10_000.0
TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0, 2))
SPECIALS = ("<pad>", "</s>", "<unk>")

_SPACE = "▁"
_SCORE = -10.0  # the same for every piece, so that text is split into as few as possible
_UNIGRAM, _NORMAL, _UNKNOWN, _CONTROL = 1, 1, 2, 3
_VARINT, _LENGTH_DELIMITED, _FIXED32 = 0, 2, 5


def write_random_checkpoint(
    directory: Path, *, vocab_size: int, seed: int, shape: str = "base"
) -> None:
    """Write the checkpoint; equal arguments give equal files.

    Args:
        directory: Where it goes; its parent must exist.
        vocab_size: Pieces, specials included, from 200 to 500,000.
        seed: Of the weights.
        shape: A name of `SHAPES`.

    Raises:
        ValueError: The vocabulary is too small for the letters, or too large.
        CheckpointError: `directory` is something else than a checkpoint.
    """
    save_checkpoint(
        directory,
        transformer=random_transformer(replace(SHAPES[shape], vocab_size=vocab_size), seed),
        name=f"random-{shape}-{vocab_size}",
        description=f"Random weights of {shape} shape, for measuring speed; it translates nothing",
        licence="Apache-2.0",
        tokens=TOKENS,
        pairs=(LanguagePair(source="en", target="de"),),
        limits=LengthLimits(max_source_length=MAX_LENGTH, max_target_length=MAX_LENGTH),
        licences=(Licence(corpus="none", licence="Apache-2.0"),),
        tokenizer=TokenizerParts(source_pieces=synthetic_spm(vocab_size)),
        card=f"# Random weights, seed {seed}\n\nFor measuring speed. It translates nothing.\n",
    )


def synthetic_spm(vocab_size: int) -> bytes:
    """A SentencePiece unigram model of `vocab_size` pieces: pad 0, EOS 1, unk 2, no BOS.

    Raises:
        ValueError: The vocabulary is too small for the letters, or too large.
    """
    if not MIN_VOCABULARY_SIZE <= vocab_size <= MAX_VOCABULARY_SIZE:
        limits = f"{MIN_VOCABULARY_SIZE} to {MAX_VOCABULARY_SIZE}"
        raise ValueError(f"vocab_size is {vocab_size}; it must be from {limits}")
    pieces = [*SPECIALS, *islice(_pieces(), vocab_size - len(SPECIALS))]
    types = {"<pad>": _CONTROL, "</s>": _CONTROL, "<unk>": _UNKNOWN}
    data = bytearray()
    for piece in pieces:
        score = torch.tensor(0.0 if piece in types else _SCORE).numpy().tobytes()
        message = _text(1, piece) + _key(2, _FIXED32) + score
        data += _message(1, message + _number(3, types.get(piece, _NORMAL)))
    data += _message(2, _trainer(vocab_size))
    return bytes(data + _message(3, _text(1, "identity")))


def random_transformer(config: ModelConfig, seed: int) -> Transformer:
    """Starting weights, changed so that searches are as lively as those of a trained network.

    A random network repeats one token for ever: attention averages to a constant, and a tied table
    prefers the token that was just read. So the decoder's attention says less, and the last norm
    turns the preference round, twice as strongly.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        transformer = Transformer(config).eval()
        for name, weight in transformer.decoder.named_parameters():
            if name.endswith("out_proj.weight"):
                weight.mul_(0.3)
        parts = transformer.decoder.modules()
        norms = [part for part in parts if isinstance(part, nn.LayerNorm | nn.RMSNorm)]
        norms[-1].weight.mul_(-2.0)
        assert transformer.output_bias is not None
        transformer.output_bias[TOKENS.eos_id] = EOS_BIAS
    return transformer


def _pieces() -> Iterator[str]:
    """Different pieces, the shortest first: printable characters, then groups of letters."""
    yield _SPACE
    yield from sorted({*string.printable[:94], "é", "ü", "ß"})
    for length in range(1, 5):
        for letters in product(string.ascii_lowercase, repeat=length):
            group = "".join(letters)
            if length > 1:
                yield group
            yield _SPACE + group


def _trainer(vocab_size: int) -> bytes:
    """TrainerSpec: model type, size and special ids, by their field numbers."""
    fields = {3: _UNIGRAM, 4: vocab_size, 40: TOKENS.unk_id, 42: TOKENS.eos_id, 43: TOKENS.pad_id}
    ids = b"".join(_number(field, value) for field, value in fields.items())
    no_bos = _key(41, _VARINT) + _varint(2**64 - 1)  # −1
    names = {45: "<unk>", 47: "</s>", 48: "<pad>"}
    return ids + no_bos + b"".join(_text(field, name) for field, name in names.items())


def _varint(value: int) -> bytes:
    """Protocol Buffers' variable-length integer: seven bits a byte, the lowest first."""
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _number(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _key(field, _LENGTH_DELIMITED) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def main() -> None:
    """Read the flags and write."""
    parser = argparse.ArgumentParser(description="Write a random checkpoint.")
    parser.add_argument("output", type=Path, help="checkpoint directory to write")
    parser.add_argument("--shape", choices=tuple(SHAPES), default="base", help="(%(default)s)")
    parser.add_argument("--vocabulary", type=int, help="pieces (those of the shape)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    arguments = parser.parse_args()
    write_random_checkpoint(
        arguments.output,
        vocab_size=arguments.vocabulary or SHAPES[arguments.shape].vocab_size,
        seed=arguments.seed,
        shape=arguments.shape,
    )


if __name__ == "__main__":
    main()
