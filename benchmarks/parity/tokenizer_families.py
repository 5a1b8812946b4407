"""Every family's tokenizer: files with pieces learned from text, ours after a conversion, its own.

Owns which reference speaks for which family: transformers' tokenizers for what Hugging Face has;
SentencePiece itself with the format's own table for CTranslate2, OpenNMT-py and Marian; and for
releases of OPUS-MT sed and perl before that, with the rules of its preprocess.sh. Networks around
them are as small as can be.
"""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import yaml
from transformers import (
    FSMTTokenizer,
    M2M100Tokenizer,
    MarianTokenizer,
    MBart50Tokenizer,
    NllbTokenizer,
    T5Tokenizer,
)

from model.checkpoint.weights import load_checkpoint
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.text.languages.tags import LanguagePair
from model.text.subwords.tokenizer import Tokenizer
from support.ctranslate2_models import RandomSpec, opennmt_pieces, random_directory
from support.foreign_folders import MADLAD_SYMBOLS, write_fsmt, write_mbart, write_t5
from support.huggingface_folders import m2m100_folder, marian_folder
from support.marian_oracle import FIXTURES
from support.opus_cleaning import cleaned
from support.tiny_checkpoint import tiny_spm

Ids = Sequence[int]
_VOCABULARY = 8000
_NUM_WORD_LINES, _NUM_MERGES = 2000, 400
"""What merges are learned of, in Python and slowly."""
_SPM = "sentencepiece.bpe.model"
_README = """* source language(s): eng
* target language(s): deu fra
* a sentence initial language token is required in the form of `>>id<<`
* valid language labels: >>deu<< >>fra<<
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Pieces that were learned from text, in the forms that families have.

    Attributes:
        lines: The text.
    """

    lines: Sequence[str]

    def spm(self, kind: str = "unigram", *, symbols: Iterable[str] = (), **ids: int) -> bytes:
        """A SentencePiece model with the normalisation that most published ones have."""
        output = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(self.lines),
            model_writer=output,
            model_type=kind,
            vocab_size=min(_VOCABULARY, 40 + 2 * len(self.lines)),
            hard_vocab_limit=False,
            user_defined_symbols=list(symbols),
            num_threads=1,
            minloglevel=2,
            **ids,  # type: ignore[arg-type]  # any of its settings
        )
        return output.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a family's own tokenizer makes of text, in ids.

    Attributes:
        encode: Of a source.
        encode_target: Of a target, without what the decoder is fed first.
        decode: Of a target's ids.
        num_before: Language tokens before a source, which are not compared: their ids are a
            vocabulary's own. Targets are without theirs.
        pieces: Whose scores tell whether two ways to cut a text are equally likely; None where a
            text is cut in one way only.
        skips: Texts in which the reference sees tokens of its own.
        cleaned: Sources as they are before `encode` sees them.
    """

    encode: Callable[[str], Ids]
    encode_target: Callable[[str], Ids]
    decode: Callable[[Ids], str]
    num_before: int = 0
    pieces: sentencepiece.SentencePieceProcessor | None = None
    skips: Callable[[str], bool] = lambda _line: False
    cleaned: Callable[[Sequence[str]], Sequence[str]] = lambda lines: lines


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFamily:
    """A family.

    Attributes:
        name: For the table.
        reference: Whose tokenizer speaks for it.
        write: Writes its files below an empty folder, or names those that are there.
        open: Its own tokenizer, from those files.
        says_directions: Its files say what it translates, English to German among it.
        is_moses: Its text is cut into words by the rules of its languages, English and German.
    """

    name: str
    reference: str
    write: Callable[[Path, Learned], Path]
    open: Callable[[Path], Reference]
    says_directions: bool = False
    is_moses: bool = False

    def ours(self, source: Path, folder: Path) -> tuple[Tokenizer, LanguagePair]:
        """Our tokenizer of the same files, by a conversion into `folder`, and the first pair."""
        options = ImportOptions(pairs=() if self.says_directions else (("en", "de"),))
        convert(source, folder, importers=IMPORTERS, options=options)
        checkpoint = load_checkpoint(folder)
        pair = checkpoint.manifest.pair("en", "de")
        assert pair is not None
        return checkpoint.tokenizer, pair


def _of_transformers(tokenizer: Any, *, prompt: str = "", spm: Path | None = None) -> Reference:
    """A tokenizer of transformers, which takes its special tokens out of texts."""
    tokens = {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
    num_before = 1 if getattr(tokenizer, "src_lang", None) else 0
    return Reference(
        encode=lambda line: tokenizer(prompt + line).input_ids,
        encode_target=lambda line: tokenizer(text_target=line).input_ids[num_before:],
        decode=lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        num_before=num_before,
        pieces=None if spm is None else _processor(spm.read_bytes()),
        skips=lambda line: any(token in line for token in tokens),
    )


def _of_fsmt(folder: Path) -> Reference:
    """FSMTTokenizer, whose target side has a table of its own."""
    files = {"src": "vocab-src.json", "tgt": "vocab-tgt.json"}
    tokenizer = FSMTTokenizer(
        langs=["en", "de"],
        merges_file=str(folder / "merges.txt"),
        **{f"{side}_vocab_file": str(folder / name) for side, name in files.items()},
    )
    table = json.loads((folder / files["tgt"]).read_bytes())

    def encode_target(line: str) -> Ids:
        return [table[piece] for piece in tokenizer.tokenize(line) if piece in table]

    def decode(ids: Ids) -> str:
        return str(
            tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    return Reference(
        encode=lambda line: tokenizer(line, split_special_tokens=True)["input_ids"],
        encode_target=encode_target,
        decode=decode,
    )


def _of_sentencepiece(
    source: bytes,
    target: bytes,
    table: Mapping[str, int],
    *,
    unk: str,
    end: str | None,
    cleaned: Callable[[Sequence[str]], Sequence[str]] = lambda lines: lines,
    before: str | None = None,
) -> Reference:
    """SentencePiece, and a table from its pieces to ids."""
    source_model, target_model = _processor(source), _processor(target)
    names = {index: piece for piece, index in table.items()}
    last = [] if end is None else [table[end]]
    first = [] if before is None else [table[before]]

    def ids(model: sentencepiece.SentencePieceProcessor, text: str) -> list[int]:
        return [table.get(piece, table[unk]) for piece in model.encode(text, out_type=str)]

    specials = {table[unk], *last}
    return Reference(
        encode=lambda line: [*first, *ids(source_model, line), *last],
        encode_target=lambda line: ids(target_model, line),
        decode=lambda found: target_model.decode(
            [names[index] for index in found if index not in specials]
        ),
        num_before=len(first),
        cleaned=cleaned,
    )


def _processor(data: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=data)


def _write_opus(folder: Path, learned: Learned) -> Path:
    return marian_folder(
        folder / "opus-mt-en-de",
        languages=("en", "de"),
        spms=(learned.spm(), learned.spm("bpe")),
    )


def _m2m100(kind: str) -> Callable[[Path, Learned], Path]:
    return lambda folder, learned: m2m100_folder(folder / kind, kind=kind, spm=learned.spm("bpe"))


def _write_mbart(folder: Path, learned: Learned) -> Path:
    write_mbart(folder / "mbart-50", spm=learned.spm(unk_id=0, bos_id=1, eos_id=2, pad_id=-1))
    return folder / "mbart-50"


def _write_madlad(folder: Path, learned: Learned) -> Path:
    spm = learned.spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    ids: Mapping[str, Any] = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    write_t5(folder / "madlad400", spm=spm, **ids)
    return folder / "madlad400"


def _write_t5(folder: Path, learned: Learned) -> Path:
    spm = learned.spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ids: Mapping[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    write_t5(folder / "t5", spm=spm, **ids)
    return folder / "t5"


def _write_fsmt(folder: Path, learned: Learned) -> Path:
    lines = learned.lines[:_NUM_WORD_LINES]
    write_fsmt(folder / "wmt19-en-de", is_joint=False, lines=lines, num_merges=_NUM_MERGES)
    return folder / "wmt19-en-de"


def _write_ctranslate2(folder: Path, _learned: Learned) -> Path:
    return random_directory(folder / "directory", RandomSpec())


def _write_release(folder: Path, _learned: Learned) -> Path:
    """What Marian trained for the tests, with the two text files of a release."""
    copy = Path(shutil.copytree(FIXTURES / "opus", folder / "release"))
    (copy / "README.md").write_text(_README, encoding="utf-8")
    (network,) = copy.glob("*.npz")
    (table,) = copy.glob("*.yml")
    vocabularies = f"vocabs:\n  - {table.name}\n  - {table.name}\n"
    (copy / "decoder.yml").write_text(f"models:\n  - {network.name}\n{vocabularies}")
    return copy


def _open_m2m100(folder: Path, *, source: str, codes: str = "m2m100") -> Reference:
    return _of_transformers(
        M2M100Tokenizer.from_pretrained(
            folder, src_lang=source, tgt_lang="de", language_codes=codes
        )
    )


def _open_nllb(folder: Path) -> Reference:
    return _of_transformers(
        NllbTokenizer.from_pretrained(folder, src_lang="eng_Latn", tgt_lang="deu_Latn")
    )


def _open_mbart(folder: Path) -> Reference:
    tokenizer = MBart50Tokenizer.from_pretrained(folder, src_lang="en_XX", tgt_lang="de_DE")
    return _of_transformers(tokenizer, spm=folder / _SPM)


def _open_t5(folder: Path) -> Reference:
    return _of_transformers(
        T5Tokenizer.from_pretrained(folder, extra_ids=0),
        prompt="translate English to German: ",
        spm=folder / "spiece.model",
    )


def _open_madlad(folder: Path) -> Reference:
    """SentencePiece: of a file alone, transformers takes 2 for unknown, which here is EOS."""
    data = (folder / "spiece.model").read_bytes()
    return _of_sentencepiece(data, data, _own_table(data), unk="<unk>", end="</s>", before="<2de>")


def _open_ctranslate2(_folder: Path) -> Reference:
    table = {piece: index for index, piece in enumerate(opennmt_pieces())}
    return _of_sentencepiece(tiny_spm(), tiny_spm(), table, unk="<unk>", end=None)


def _open_release(folder: Path) -> Reference:
    (path,) = folder.glob("*.vocab.yml")
    loaded = yaml.load(path.read_bytes(), Loader=yaml.BaseLoader)  # noqa: S506  # strings alone
    return _of_sentencepiece(
        (folder / "source.spm").read_bytes(),
        (folder / "target.spm").read_bytes(),
        {piece: int(index) for piece, index in loaded.items()},
        unk="<unk>",
        end="</s>",
        cleaned=cleaned,
        before=">>deu<<",
    )


def _open_student(folder: Path) -> Reference:
    (path,) = folder.glob("*.spm")
    data = path.read_bytes()
    return _of_sentencepiece(data, data, _own_table(data), unk="<unk>", end="</s>")


def _own_table(data: bytes) -> dict[str, int]:
    model = _processor(data)
    return {model.id_to_piece(index): index for index in range(len(model))}


TOKENIZERS: Sequence[TokenizerFamily] = (
    TokenizerFamily(
        name="OPUS-MT",
        reference="transformers",
        write=_write_opus,
        open=lambda folder: _of_transformers(MarianTokenizer.from_pretrained(folder)),
    ),
    TokenizerFamily(
        name="M2M100",
        reference="transformers",
        write=_m2m100("m2m100"),
        says_directions=True,
        open=lambda folder: _open_m2m100(folder, source="en"),
    ),
    TokenizerFamily(
        name="SMaLL-100",
        reference="transformers",
        write=_m2m100("small100"),
        says_directions=True,
        open=lambda folder: _open_m2m100(folder, source="de"),
    ),
    TokenizerFamily(
        name="NLLB",
        reference="transformers",
        write=_m2m100("nllb"),
        says_directions=True,
        open=_open_nllb,
    ),
    TokenizerFamily(
        name="mBART-50",
        reference="transformers",
        write=_write_mbart,
        says_directions=True,
        open=_open_mbart,
    ),
    TokenizerFamily(
        name="T5",
        reference="transformers",
        write=_write_t5,
        open=_open_t5,
    ),
    TokenizerFamily(
        name="MADLAD-400",
        reference="SentencePiece",
        write=_write_madlad,
        says_directions=True,
        open=_open_madlad,
    ),
    TokenizerFamily(
        name="FSMT",
        reference="transformers",
        write=_write_fsmt,
        open=_of_fsmt,
        is_moses=True,
    ),
    TokenizerFamily(
        name="OPUS-MT release",
        reference="sed, perl, SentencePiece",
        write=_write_release,
        open=_open_release,
    ),
    TokenizerFamily(
        name="Marian student",
        reference="SentencePiece",
        write=lambda _folder, _learned: FIXTURES / "student",
        open=_open_student,
    ),
    TokenizerFamily(
        name="CTranslate2, OpenNMT",
        reference="SentencePiece",
        write=_write_ctranslate2,
        open=_open_ctranslate2,
    ),
)
