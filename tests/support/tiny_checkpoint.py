"""A real checkpoint that is made in about a second: trained tokenizer, random small network.

The text is generated here, so no data is needed; everything is seeded, so two calls with the
same arguments write the same network.
"""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import sentencepiece
import torch

from model.checkpoint.manifest import Licence
from model.checkpoint.weights import TokenizerParts, save_checkpoint
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair

EN_ZH = LanguagePair(source="en", target="zh-Hans")
ZH_EN = LanguagePair(source="zh-Hans", target="en")
TINY_TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0, 2))
TINY_LIMITS = LengthLimits(max_source_length=64, max_target_length=64)
TINY_LICENCES = (Licence(corpus="generated lines", licence="Apache-2.0"),)
TINY_VOCABULARY_SIZE = 600

_ENGLISH = (
    ("The cat", "My friend", "A small boat", "Our teacher", "The old train", "Nobody", "She"),
    ("sees", "waits for", "remembers", "paints", "follows", "sells", "repairs"),
    ("the river", "two apples", "a letter", "the red house", "your garden", "this bridge"),
    ("in the morning", "at 7.30", "without a word", "on Monday", "near the station", "again"),
    (".", "!", "?", "."),
)
_CHINESE = (
    ("猫", "我的朋友", "一条小船", "我们的老师", "那列旧火车", "没有人", "她"),
    ("看见", "等待", "记得", "画", "跟着", "卖掉", "修理"),
    ("那条河", "两个苹果", "一封信", "红房子", "你的花园", "这座桥"),
    ("在早上", "在七点半", "一句话也不说", "在星期一", "在车站附近", "又一次"),
    ("。", "！", "？", "。"),
)


def generated_pairs(num_pairs: int = 400, *, seed: int = 11) -> Iterator[tuple[str, str]]:
    """Aligned English and Chinese lines, word by word translations of each other."""
    choices = random.Random(seed)
    for _ in range(num_pairs):
        picks = [choices.randrange(len(words)) for words in _ENGLISH]
        english = [words[pick] for words, pick in zip(_ENGLISH, picks, strict=True)]
        chinese = [words[pick] for words, pick in zip(_CHINESE, picks, strict=True)]
        yield " ".join(english[:-1]) + english[-1], "".join(chinese)


def tiny_spm(vocabulary_size: int = TINY_VOCABULARY_SIZE, *, byte_fallback: bool = True) -> bytes:
    """A joint BPE model over the generated lines; pad 0, EOS 1, unk 2."""
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for pair in generated_pairs() for line in pair),
        model_writer=output,
        model_type="bpe",
        vocab_size=vocabulary_size,
        character_coverage=1.0,
        byte_fallback=byte_fallback,
        normalization_rule_name="identity",
        pad_id=TINY_TOKENS.pad_id,
        eos_id=TINY_TOKENS.eos_id,
        unk_id=TINY_TOKENS.unk_id,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    return output.getvalue()


def tiny_network(vocabulary_size: int = TINY_VOCABULARY_SIZE) -> ModelConfig:
    """Two layers a side, width 32."""
    return ModelConfig(
        vocab_size=vocabulary_size,
        d_model=32,
        num_heads=4,
        d_ff=64,
        num_encoder_layers=2,
        num_decoder_layers=2,
        pad_id=TINY_TOKENS.pad_id,
    )


def tiny_transformer(network: ModelConfig | None = None, *, seed: int = 5) -> Transformer:
    """A randomly initialised network in eval mode; the global generator is left as it was.

    Deeper layers start as large as the first: such a network says more, and other things of other
    sources.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        transformer = Transformer(network or tiny_network()).eval()
    if transformer.config.norm_placement == "post":
        for stack in (transformer.encoder, transformer.decoder):
            for depth, layer in enumerate(stack.layers, start=1):
                for part in layer.modules():
                    if isinstance(part, torch.nn.Linear):
                        part.weight.data *= depth**0.5
    return transformer


def write_tiny_checkpoint(
    directory: Path,
    *,
    name: str = "tiny",
    pairs: tuple[LanguagePair, ...] = (EN_ZH, ZH_EN),
    limits: LengthLimits = TINY_LIMITS,
    tokens: SpecialTokens = TINY_TOKENS,
    network: ModelConfig | None = None,
    quantise: bool = False,
    seed: int = 5,
) -> Path:
    """Write a checkpoint to `directory` and return it."""
    save_checkpoint(
        directory,
        transformer=tiny_transformer(network, seed=seed),
        name=name,
        description="Random weights for tests",
        licence="Apache-2.0",
        tokens=tokens,
        pairs=pairs,
        limits=limits,
        licences=TINY_LICENCES,
        tokenizer=TokenizerParts(source_pieces=tiny_spm()),
        card="# tiny\n\nRandom weights; it translates nothing.\n",
        quantise=quantise,
    )
    return directory
