"""The families that are compared: who makes a random network of each, and of which size.

Owns nothing of what is measured. References write their folders with the generators of the tests
(`support`), where every weight is drawn, norms and biases included; Marian's networks are the
fixtures that Marian itself trained. Vocabularies of released sizes are small ones, filled up with
tokens that no text has and that searches may choose.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from support.ctranslate2_models import RandomSpec, random_directory
from support.foreign_folders import MADLAD_SYMBOLS, trained_spm, write_fsmt, write_mbart, write_t5
from support.huggingface_folders import filled, m2m100_folder, marian_folder
from support.huggingface_folders import trained_spm as plain_spm
from support.marian_oracle import FIXTURES
from support.opennmt_checkpoints import converted_checkpoint, random_parts, saved

Reference = Literal["transformers", "ctranslate2", "marian"]
# Settings of configurations, by their names: transformers says their types.
_MADLAD: Mapping[str, Any] = {
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
    "num_layers": 2,
    "num_decoder_layers": 2,
}
_T5: Mapping[str, Any] = {
    **_MADLAD,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "feed_forward_proj": "relu",
}
_M2M100_418M: Mapping[str, Any] = {
    "vocab_size": 128_112,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
}
_NLLB_600M: Mapping[str, Any] = {**_M2M100_418M, "vocab_size": 256_206}
_MBART_LARGE: Mapping[str, Any] = {
    **_M2M100_418M,
    "vocab_size": 250_054,
    "max_position_embeddings": 1024,
}
_FSMT_WMT19: Mapping[str, Any] = {
    "src_vocab_size": 42_024,
    "tgt_vocab_size": 42_024,
    "d_model": 1024,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 8192,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
}
_T5_BASE: Mapping[str, Any] = {
    **_T5,
    "vocab_size": 32_128,
    "d_model": 768,
    "d_kv": 64,
    "d_ff": 3072,
    "num_layers": 12,
    "num_decoder_layers": 12,
    "num_heads": 12,
}
# All but the depth of its 32 layers a stack, which are all alike: so it fits beside its reference.
_MADLAD_3B: Mapping[str, Any] = {
    **_MADLAD,
    "vocab_size": 256_000,
    "d_model": 1024,
    "d_kv": 128,
    "d_ff": 8192,
    "num_heads": 16,
}
_OPUS_BASE: Mapping[str, Any] = {
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "max_position_embeddings": 512,
}
_TC_BIG: Mapping[str, Any] = {
    **_OPUS_BASE,
    "vocab_size": 58_101,
    "decoder_vocab_size": 58_101,
    "d_model": 1024,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "activation": "relu",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A network of a family.

    Attributes:
        name: Of the family, and of the shape if it has several.
        reference: Who made it and runs it.
        write: Writes it below an empty folder and returns what `convert` is given.
        engine: What the reference's engine is given, made of that if need be.
        pairs: What the files do not say of themselves; the first pair is translated.
    """

    name: str
    reference: Reference
    write: Callable[[Path], Path]
    engine: Callable[[Path], Path] = lambda source: source
    pairs: tuple[tuple[str, str], ...] = (("en", "de"),)


def _opus(folder: Path) -> Path:
    return marian_folder(folder / "opus-mt-en-de", languages=("en", "de"))


def _opus_base(folder: Path) -> Path:
    return marian_folder(folder / "opus-mt-en-de", languages=("en", "de"), **_OPUS_BASE)


def _tc_big(folder: Path) -> Path:
    """Of 58,101 tokens, most of them in both SentencePiece files, and padding."""
    spms = filled(plain_spm(260), 57_900), filled(plain_spm(140), 57_900)
    return marian_folder(
        folder / "opus-mt-tc-big-en-de", languages=("en", "de"), spms=spms, **_TC_BIG
    )


def _m2m100(folder: Path) -> Path:
    return m2m100_folder(folder / "m2m100")


def _small100(folder: Path) -> Path:
    return m2m100_folder(folder / "small100", kind="small100", decoder_layers=1)


def _wmt21(folder: Path) -> Path:
    return m2m100_folder(folder / "wmt21-dense-24-wide-en-x", kind="wmt21")


def _m2m100_418m(folder: Path) -> Path:
    spm = filled(plain_spm(260, kind="bpe"), 128_000)
    return m2m100_folder(folder / "m2m100", spm=spm, **_M2M100_418M)


def _nllb(folder: Path) -> Path:
    return m2m100_folder(folder / "nllb", kind="nllb")


def _nllb_600m(folder: Path) -> Path:
    spm = filled(plain_spm(260, kind="bpe"), 256_000)
    return m2m100_folder(folder / "nllb", kind="nllb", spm=spm, **_NLLB_600M)


def _mbart_large(folder: Path) -> Path:
    spm = filled(trained_spm(unk_id=0, bos_id=1, eos_id=2, pad_id=-1), 250_000)
    write_mbart(folder / "mbart-large-50", spm=spm, **_MBART_LARGE)
    return folder / "mbart-large-50"


def _mbart(folder: Path) -> Path:
    write_mbart(folder / "mbart-50")
    return folder / "mbart-50"


def _madlad(folder: Path) -> Path:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    write_t5(folder / "madlad400", spm=spm, **_MADLAD)
    return folder / "madlad400"


def _madlad_3b(folder: Path) -> Path:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    write_t5(folder / "madlad400", spm=filled(spm, 256_000), **_MADLAD_3B)
    return folder / "madlad400"


def _t5(folder: Path) -> Path:
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_t5(folder / "t5", spm=spm, head="tied", **_T5)
    return folder / "t5"


def _t5_base(folder: Path) -> Path:
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_t5(folder / "t5-base", spm=filled(spm, 32_000), head="tied", **_T5_BASE)
    return folder / "t5-base"


def _fsmt_wmt19(folder: Path) -> Path:
    write_fsmt(folder / "wmt19-en-de", is_joint=True, **_FSMT_WMT19)
    for name in ("vocab-src.json", "vocab-tgt.json"):
        path = folder / "wmt19-en-de" / name
        table = json.loads(path.read_bytes())
        rows = range(len(table), _FSMT_WMT19["src_vocab_size"])
        path.write_text(json.dumps(table | {f"filler{row}": row for row in rows}), encoding="utf-8")
    return folder / "wmt19-en-de"


def _fsmt(folder: Path) -> Path:
    write_fsmt(folder / "wmt19-en-de", is_joint=False)
    return folder / "wmt19-en-de"


def _ctranslate2(folder: Path) -> Path:
    return random_directory(folder / "directory", RandomSpec())


def _opennmt(folder: Path) -> Path:
    parts = random_parts()
    parts["generator"]["bias"][parts["vocab"]["tgt"].index("</s>")] += 6  # so that some end
    return saved(folder / "opennmt", parts)


def _fixture(name: str) -> Callable[[Path], Path]:
    return lambda _folder: FIXTURES / name


REDUCED: Sequence[Family] = (
    Family(name="OPUS-MT", reference="transformers", write=_opus),
    Family(name="M2M100", reference="transformers", write=_m2m100),
    Family(name="SMaLL-100", reference="transformers", write=_small100),
    Family(name="WMT21", reference="transformers", write=_wmt21),
    Family(name="NLLB", reference="transformers", write=_nllb),
    Family(name="mBART-50", reference="transformers", write=_mbart),
    Family(name="T5, tied", reference="transformers", write=_t5),
    Family(name="MADLAD, untied", reference="transformers", write=_madlad),
    Family(name="FSMT", reference="transformers", write=_fsmt),
    Family(name="CTranslate2", reference="ctranslate2", write=_ctranslate2),
    Family(
        name="OpenNMT-py",
        reference="ctranslate2",
        write=_opennmt,
        engine=lambda source: converted_checkpoint(source, source.parent / "engine"),
    ),
    Family(name="Marian, SSRU student", reference="marian", write=_fixture("student")),
    Family(name="Marian, shallow", reference="marian", write=_fixture("int8/model.npz")),
    Family(name="Marian, OPUS-MT", reference="marian", write=_fixture("opus")),
    Family(
        name="Marian, pre-norm",
        reference="marian",
        write=_fixture("prenorm"),
        pairs=(("en", "fr"),),
    ),
)
"""Every family, of a size that takes seconds."""
FULL: Sequence[Family] = (
    Family(name="OPUS-MT base", reference="transformers", write=_opus_base),
    Family(name="OPUS-MT tc-big", reference="transformers", write=_tc_big),
    Family(name="M2M100 418M", reference="transformers", write=_m2m100_418m),
    Family(name="NLLB 600M", reference="transformers", write=_nllb_600m),
    Family(name="mBART-50 large", reference="transformers", write=_mbart_large),
    Family(name="T5 base", reference="transformers", write=_t5_base),
    Family(name="MADLAD-400 3B, 2 + 2", reference="transformers", write=_madlad_3b),
    Family(name="FSMT WMT19", reference="transformers", write=_fsmt_wmt19),
)
"""Layers, widths, heads and rows of released networks; of MADLAD-400 two layers a stack of its 32,
and of OPUS-MT base a small vocabulary."""
