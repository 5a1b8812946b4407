"""Folders as the hub has them, written by transformers, of small networks with random weights."""

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import sentencepiece
import torch
from transformers import (
    FSMTConfig,
    FSMTForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from model.text.subwords.moses import MosesBpe, MosesPieces
from support.learned_merges import fairseq_vocabulary, learned_merges, merges_file, real_lines

MBART_TAGS = 52
_WIDE = 64
MADLAD_SYMBOLS = ("<2en>", "<2de>", "<2zh>", "<2iw>", "<2nonsense>")
_STACKS: Mapping[str, object] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 28,
    "dropout": 0.0,
    "max_position_embeddings": 64,
}


@cache
def trained_spm(*, vocabulary_size: int = 260, symbols: tuple[str, ...] = (), **ids: int) -> bytes:
    """A unigram SentencePiece model of real lines; `ids` are the trainer's `pad_id` and so on."""
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(real_lines()[:600]),
        model_writer=output,
        model_type="unigram",
        vocab_size=vocabulary_size,
        user_defined_symbols=list(symbols),
        num_threads=1,
        minloglevel=2,
        **ids,  # type: ignore[arg-type]  # any of its settings
    )
    return output.getvalue()


@torch.no_grad()
def randomised(reference: PreTrainedModel) -> None:
    """Draw every weight, biases and norms included, so that whatever is mapped wrongly shows.

    Wide matrices are drawn narrower, so that networks of released sizes stay within float32.
    """
    generator = torch.Generator().manual_seed(0)
    has_sinusoids = reference.config.model_type == "fsmt"  # among the parameters
    for name, parameter in reference.named_parameters():
        if not (has_sinusoids and "embed_positions" in name):
            is_norm = "norm" in name and name.endswith("weight")
            spread = 0.3 if parameter.dim() < 2 else min(0.3, 1.6 / parameter.shape[-1] ** 0.5)
            if name.endswith("Attention.q.weight") and parameter.shape[-1] > _WIDE:
                spread /= reference.config.d_kv**0.5  # T5 scales queries, and no scores
            parameter.normal_(float(is_norm), spread, generator=generator)
    if hasattr(reference, "final_logits_bias"):
        reference.final_logits_bias.normal_(0.0, 0.3, generator=generator)
    reference.eval()


def write_mbart(folder: Path, *, spm: bytes | None = None, **settings: object) -> PreTrainedModel:
    """mBART-50 with all its tags; its SentencePiece file has its own <unk>, <s> and </s> first."""
    spm = spm or trained_spm(unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    num_pieces = sentencepiece.SentencePieceProcessor(model_proto=spm).get_piece_size()
    shape = {
        **_STACKS,
        "vocab_size": num_pieces + 1 + MBART_TAGS + 1,
        "scale_embedding": True,
        "decoder_start_token_id": 2,
        **settings,
    }
    reference = MBartForConditionalGeneration(MBartConfig(**shape))
    randomised(reference)
    reference.final_logits_bias[0, 2] += 4.0
    reference.save_pretrained(folder)
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    return reference


def write_t5(
    folder: Path, *, spm: bytes, head: str = "own", is_mt5: bool = False, **settings: object
) -> PreTrainedModel:
    """T5, MADLAD and mT5.

    Args:
        folder: Where.
        spm: Its pieces.
        head: "own" for an output projection of its own (MADLAD), "tied" for the embedding times
            d_model^-0.5 (the first T5), or as it is (mT5).
        is_mt5: Written as an mT5.
        settings: Of its configuration.
    """
    num_pieces = sentencepiece.SentencePieceProcessor(model_proto=spm).get_piece_size()
    shape = {
        "vocab_size": num_pieces + 4,
        "d_model": 16,
        "d_kv": 6,
        "d_ff": 24,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "dropout_rate": 0.0,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": head == "tied",
        **settings,
    }
    reference = (
        MT5ForConditionalGeneration(MT5Config(**shape))
        if is_mt5
        else T5ForConditionalGeneration(T5Config(**shape))
    )
    if head == "own":
        reference.lm_head.weight = torch.nn.Parameter(torch.zeros_like(reference.shared.weight))
    randomised(reference)
    config = reference.config
    _make_end_likely(
        reference,
        reference.lm_head.weight,
        start_id=config.decoder_start_token_id,
        eos_id=config.eos_token_id,
    )
    reference.save_pretrained(folder)
    (folder / "spiece.model").write_bytes(spm)
    return reference


def write_fsmt(
    folder: Path,
    *,
    is_joint: bool,
    lines: Sequence[str] = (),
    num_merges: int = 60,
    **settings: object,
) -> PreTrainedModel:
    """FSMT with vocabularies of its own lines; split ones differ in their order and their size."""
    rules = MosesBpe(source_language="en", target_language="de", marks="word-end")
    moses = MosesPieces(b"a b\n", rules, "en")
    words = [word for line in lines or real_lines()[:200] for word in moses.words(line)]
    merges = learned_merges(words, num_merges)
    source = dict(fairseq_vocabulary(words, merges))
    target = source if is_joint else dict(fairseq_vocabulary(words[:1500], reversed(merges)))
    shape = {
        **_STACKS,
        "langs": ["en", "de"],
        "src_vocab_size": len(source),
        "tgt_vocab_size": len(target),
        "tie_word_embeddings": is_joint,
        **settings,
    }
    reference = FSMTForConditionalGeneration(FSMTConfig(**shape))
    randomised(reference)
    rows = reference.model.decoder.output_projection.weight
    _make_end_likely(reference, rows, start_id=2, eos_id=2)
    reference.save_pretrained(folder)
    (folder / "merges.txt").write_bytes(merges_file(merges))
    for name, table in (("vocab-src.json", source), ("vocab-tgt.json", target)):
        (folder / name).write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    return reference


@torch.no_grad()
def _make_end_likely(
    reference: PreTrainedModel, rows: torch.Tensor, *, start_id: int, eos_id: int
) -> None:
    """Give EOS nearly the output row of what is written first, so that some sentences end."""
    start, source = torch.tensor([[start_id]]), torch.arange(4, 12)[None]
    best = int(reference(input_ids=source, decoder_input_ids=start).logits[0, 0].argmax())
    noise = torch.randn(rows.shape[1], generator=torch.Generator().manual_seed(2))
    rows[eos_id] = rows[best] + 0.1 * noise


def change_json(path: Path, **changes: object) -> None:
    """Change keys of a file; None takes one away."""
    value = json.loads(path.read_bytes()) | changes
    kept = {key: item for key, item in value.items() if item is not None}
    path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
