"""Multilingual networks of transformers, as CTranslate2's own converter leaves them on a disk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctranslate2.converters import TransformersConverter
from transformers import (
    M2M100Tokenizer,
    MarianTokenizer,
    MBart50Tokenizer,
    NllbTokenizer,
    T5Tokenizer,
)

from support.foreign_folders import MADLAD_SYMBOLS, trained_spm, write_mbart, write_t5
from support.huggingface_folders import MARIAN_TAGS, m2m100_folder, marian_folder

_SPM = "sentencepiece.bpe.model"


@dataclass(frozen=True, kw_only=True)
class Multilingual:
    """A family: how its folder is written, and how English is translated into German.

    Attributes:
        write: Writes the folder of transformers.
        tokenizer: Of transformers, for that direction.
        files: Copied beside, as the converter's users do; the source's pieces, then the target's.
        prompt: Before a text.
        target: Tokens that the engine is given before the translation.
    """

    write: Callable[[Path], object]
    tokenizer: Callable[[Path], Any]
    files: Sequence[str] = (_SPM, _SPM)
    prompt: str = ""
    target: Sequence[str] = ()

    def source_pieces(self, folder: Path, text: str) -> list[str]:
        """What transformers' tokenizer makes of a text, EOS included."""
        tokenizer = self.tokenizer(folder)
        pieces: list[str] = tokenizer.convert_ids_to_tokens(tokenizer(self.prompt + text).input_ids)
        return pieces


def _m2m100(folder: Path, *, source: str) -> Any:
    return M2M100Tokenizer.from_pretrained(
        folder, src_lang=source, tgt_lang="de", language_codes="m2m100"
    )


def _write_mbart(folder: Path) -> object:
    return write_mbart(folder, tokenizer_class="MBart50Tokenizer", normalize_before=True)


def _write_madlad(folder: Path) -> object:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    ids: Mapping[str, Any] = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    return write_t5(folder, spm=spm, **ids)


def _write_t5(folder: Path) -> object:
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ids: Mapping[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return write_t5(folder, spm=spm, head="tied", feed_forward_proj="relu", **ids)


MULTILINGUAL: Mapping[str, Multilingual] = {
    "nllb": Multilingual(
        write=lambda folder: m2m100_folder(folder, kind="nllb"),
        tokenizer=lambda folder: NllbTokenizer.from_pretrained(
            folder, src_lang="eng_Latn", tgt_lang="deu_Latn"
        ),
        target=("deu_Latn",),
    ),
    "m2m100": Multilingual(
        write=m2m100_folder,
        tokenizer=lambda folder: _m2m100(folder, source="en"),
        target=("__de__",),
    ),
    "small100": Multilingual(
        write=lambda folder: m2m100_folder(folder, kind="small100", decoder_layers=1),
        tokenizer=lambda folder: _m2m100(folder, source="de"),
    ),
    "mbart-50": Multilingual(
        write=_write_mbart,
        tokenizer=lambda folder: MBart50Tokenizer.from_pretrained(
            folder, src_lang="en_XX", tgt_lang="de_DE", bos_token="<s>"
        ),
        target=("de_DE",),
    ),
    "madlad": Multilingual(
        write=_write_madlad,
        tokenizer=lambda folder: T5Tokenizer.from_pretrained(
            folder,
            extra_ids=0,
            pad_token="<s>",
        ),
        files=("spiece.model", "spiece.model"),
        prompt="<2de> ",
    ),
    "t5": Multilingual(
        write=_write_t5,
        tokenizer=lambda folder: T5Tokenizer.from_pretrained(folder, extra_ids=0),
        files=("spiece.model", "spiece.model"),
        prompt="translate English to German: ",
    ),
    "opus-mt": Multilingual(
        write=lambda folder: marian_folder(folder, tags=MARIAN_TAGS),
        tokenizer=MarianTokenizer.from_pretrained,
        files=("source.spm", "target.spm"),
        prompt=">>deu<< ",
    ),
}


def _with_all_tokens(tokenizer: Any) -> Any:
    """The same, whose vocabulary has its language tokens too, as those of transformers 4 had."""
    own = tokenizer.get_vocab()
    vocabulary = {**own, **getattr(tokenizer, "lang_token_to_id", {})}
    tokenizer.get_vocab = lambda: vocabulary
    return tokenizer


def converted_directory(kind: str, folder: Path, directory: Path) -> Path:
    """A random network of a family, written by transformers and converted by the engine.

    Args:
        kind: Of `MULTILINGUAL`.
        folder: Of transformers.
        directory: Of the engine; nothing but its own files and the SentencePiece files is in it.
    """
    family = MULTILINGUAL[kind]
    family.write(folder)

    class Converter(TransformersConverter):  # type: ignore[misc]  # untyped
        """With the family's tokenizer, whatever the folder says."""

        def load_tokenizer(self, *_arguments: object, **_options: object) -> object:
            return _with_all_tokens(family.tokenizer(folder))

    Converter(str(folder), copy_files=sorted(set(family.files))).convert(str(directory))
    return directory
