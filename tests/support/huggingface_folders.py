"""Folders as transformers has them: random networks whose weights all matter, trained tokenizers.

The vocabularies are small, and numbered as the families number theirs: Marian's apart from its
SentencePiece files, M2M100's with tags behind it, NLLB's one off.
"""

import io
import json
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import sentencepiece
import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedModel,
)
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES

from support.tiny_checkpoint import generated_pairs

SENTENCES = (Path(__file__).parent / "sentences.en").read_text(encoding="utf-8").splitlines()
ODD_LINES = [
    "",
    "   two  spaces   inside   ",
    "ﬁne ｗｉｄｅ １２３ ＡＢＣ",
    "a\tb\u00a0c\u200bd\u3000e",
    "naïve cafe\u0301 Ⅷ ½ ™",
    "猫看见那条河。 Она читает книгу.",
    "😀 👩\u200d👩\u200d👧 unknown",
    "▁ _ ▁▁a",
    "e-mail: a.b@example.org, http://example.org/?q=1&x=%20",
    "“quotes” ‘single’ «other» … — –",
]
MARIAN_TAGS = (">>deu<<", ">>cmn_Hans<<", ">>pt_br<<")


@cache
def trained_spm(size: int, *, is_chinese: bool = False, kind: str = "unigram") -> bytes:
    """A SentencePiece model with the normalisation that published ones have; <unk> <s> </s>."""
    output = io.BytesIO()
    chinese = [line for _, line in generated_pairs()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(chinese if is_chinese else [*SENTENCES, *chinese[:40]]),
        model_writer=output,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0 if is_chinese else 0.9995,
        num_threads=1,
        minloglevel=2,
    )
    return output.getvalue()


def filled(spm: bytes, size: int) -> bytes:
    """The same file with pieces of type "unused" behind it, which no text has, up to `size`."""
    fillers = (f"filler{number}".encode() for number in range(len(pieces_of(spm)), size))
    return spm + b"".join(_unused_piece(name) for name in fillers)


def _unused_piece(name: bytes) -> bytes:
    """A message of a file's field 1, and within it text (1), a score of 0 (2) and type 5 (3)."""
    content = b"\x0a" + bytes([len(name)]) + name + b"\x15" + bytes(4) + b"\x18\x05"
    return b"\x0a" + bytes([len(content)]) + content


def pieces_of(spm: bytes) -> list[str]:
    """All pieces, in order."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    return [processor.id_to_piece(index) for index in range(len(processor))]


@torch.no_grad()
def make_weights_matter(network: PreTrainedModel, *, pad_id: int, seed: int = 3) -> None:
    """Random norms and biases, peaked distributions, and a padding row of zeros."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        if "embed_positions" in name:
            continue
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() < 2:
            parameter.add_(noise * 0.2)
        elif "shared" in name or "embed_tokens" in name or "lm_head" in name:
            parameter.copy_(noise * 0.6)
            parameter[pad_id] = 0
        else:
            parameter.copy_(noise * 1.6 / parameter.shape[-1] ** 0.5)
    if "final_logits_bias" in dict(network.named_buffers()):
        bias = network.get_buffer("final_logits_bias")
        bias.copy_(torch.randn(bias.shape, generator=generator) * 0.5)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def marian_vocabulary(spms: Iterable[bytes], tags: Iterable[str], *, seed: int) -> dict[str, int]:
    """Pieces of several files in an order of their own, <pad> last; </s> is not 0."""
    pieces = {piece for spm in spms for piece in pieces_of(spm)} - {"<s>"}
    order = sorted(pieces)
    random.Random(seed).shuffle(order)
    return {piece: number for number, piece in enumerate([*order, *tags, "<pad>"])}


def marian_folder(
    folder: Path,
    *,
    tags: tuple[str, ...] = (),
    is_separate: bool = False,
    activation: str = "swish",
    languages: tuple[str, str] | None = ("en", "zh"),
    spms: tuple[bytes, bytes] | None = None,
    **more: object,
) -> Path:
    """A folder of `MarianMTModel`; with separate vocabularies both have the same special ids."""
    folder.mkdir(parents=True)
    source, target = spms or (trained_spm(260), trained_spm(140, is_chinese=True))
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    vocabulary = marian_vocabulary([source, target], tags, seed=1)
    write_json(folder / "vocab.json", vocabulary)
    settings: dict[str, object] = {"tokenizer_class": "MarianTokenizer"}
    if languages is not None:
        settings |= {"source_lang": languages[0], "target_lang": languages[1]}
    if is_separate:
        specials = {vocabulary[piece] for piece in ("</s>", "<unk>", "<pad>")}
        kept = {piece for piece, index in vocabulary.items() if index in specials}
        others = [piece for piece in pieces_of(target) if piece not in {*kept, "<s>"}]
        free = [index for index in range(len(vocabulary)) if index not in specials]
        table = {piece: vocabulary[piece] for piece in kept} | dict(zip(others, free, strict=False))
        write_json(folder / "target_vocab.json", table)
        settings["separate_vocabs"] = True
    write_json(folder / "tokenizer_config.json", settings)
    pad_id = vocabulary["<pad>"]
    shape = {
        "vocab_size": len(vocabulary),
        "decoder_vocab_size": len(vocabulary),
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 128,
        "activation_function": activation,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": not is_separate,
        "pad_token_id": pad_id,
        "decoder_start_token_id": pad_id,
        "eos_token_id": vocabulary["</s>"],
        "forced_eos_token_id": vocabulary["</s>"],
    }
    network = MarianMTModel(MarianConfig(**(shape | more))).eval()
    make_weights_matter(network, pad_id=pad_id)
    network.generation_config.bad_words_ids = [[pad_id]]
    network.save_pretrained(folder)
    return folder


def m2m100_folder(
    folder: Path, *, kind: str = "m2m100", spm: bytes | None = None, **more: object
) -> Path:
    """A folder of M2M100, "wmt21", "small100" or "nllb"."""
    folder.mkdir(parents=True)
    spm = spm or trained_spm(260, kind="bpe")
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    pieces = [piece for piece in pieces_of(spm) if piece not in {"<s>", "</s>", "<unk>"}]
    num_tags = {"m2m100": 100, "small100": 100, "wmt21": 8, "nllb": 202}[kind]
    num_pieces = 4 + len(pieces)
    if kind == "nllb":
        stated = {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": NLLB_CODES}
        write_json(folder / "tokenizer_config.json", stated)
        num_more = 4  # the mask, and what fills up
    else:
        random.Random(1).shuffle(pieces)
        order = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
        write_json(folder / "vocab.json", {piece: number for number, piece in enumerate(order)})
        settings = {"tokenizer_class": "M2M100Tokenizer", "language_codes": kind}
        if kind == "small100":
            settings = {"tokenizer_class": "SMALL100Tokenizer"}
        write_json(folder / "tokenizer_config.json", settings)
        num_more = 8
    shape: dict[str, object] = {
        "vocab_size": num_pieces + num_tags + num_more,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 128,
        "scale_embedding": True,
        "dropout": 0.1,
    }
    network = M2M100ForConditionalGeneration(M2M100Config(**(shape | more))).eval()
    make_weights_matter(network, pad_id=1)
    network.save_pretrained(folder)
    return folder
