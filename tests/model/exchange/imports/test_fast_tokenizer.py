"""Files made again of what transformers 5 saves, against the SentencePiece files it read."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import MBart50Tokenizer, NllbTokenizer, T5Tokenizer

from model.errors import ConfigError
from model.exchange.export.huggingface.unigram import unigram_tokenizer
from model.exchange.imports.fast_tokenizer import rebuilt_pieces
from model.exchange.piece_file import read_header
from model.text.subwords.pieces import PieceModel
from support.foreign_folders import MADLAD_SYMBOLS
from support.foreign_folders import trained_spm as unigram_spm
from support.huggingface_folders import ODD_LINES, SENTENCES, trained_spm

NLLB = (NllbTokenizer, "sentencepiece.bpe.model")
MBART = (MBart50Tokenizer, "sentencepiece.bpe.model")
T5 = (T5Tokenizer, "spiece.model")
LINES = [*SENTENCES, *ODD_LINES, "<s> </s> <pad> <unk> <mask> <extra_id_0> en_XX eng_Latn"]


def saved(folder: Path, kind: tuple[Any, str], spm: bytes, **more: object) -> dict[str, Any]:
    """tokenizer.json of a SentencePiece file by a class of transformers."""
    folder.mkdir()
    (folder / kind[1]).write_bytes(spm)
    kind[0].from_pretrained(folder, **more).save_pretrained(folder)
    described: dict[str, Any] = json.loads((folder / "tokenizer.json").read_bytes())
    return described


def check_same(found: PieceModel, spm: bytes) -> None:
    original = PieceModel(spm)
    assert found.table() == original.table()
    for line in LINES:
        ids = original.own_ids(line)
        assert found.own_ids(line) == ids, line
        assert found.own_text(ids) == original.own_text(ids), line


@pytest.mark.parametrize("size", [260, 700])
def test_byte_pairs_of_nllb_are_the_original_ones(tmp_path: Path, size: int) -> None:
    spm = trained_spm(size, kind="bpe")
    described = saved(tmp_path / "hub", NLLB, spm)
    check_same(rebuilt_pieces(described), spm)
    model = described["model"]
    model["merges"] = [" ".join(pair) for pair in model["merges"]]  # as older versions write them
    check_same(rebuilt_pieces(described), spm)


def test_unigrams_of_mbart_are_the_original_ones_without_the_languages(tmp_path: Path) -> None:
    spm = trained_spm(260)
    check_same(rebuilt_pieces(saved(tmp_path / "hub", MBART, spm)), spm)


def test_unigrams_of_t5_are_the_original_ones_without_the_sentinels(tmp_path: Path) -> None:
    spm = unigram_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    check_same(rebuilt_pieces(saved(tmp_path / "hub", T5, spm)), spm)


@pytest.mark.parametrize("has_bytes", [False, True])
def test_symbols_and_bytes_are_what_they_were(has_bytes: bool, tmp_path: Path) -> None:
    spm = unigram_spm(
        symbols=MADLAD_SYMBOLS,
        vocabulary_size=500,
        byte_fallback=has_bytes,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
    )
    found = rebuilt_pieces(saved(tmp_path / "hub", T5, spm, extra_ids=0))
    assert read_header(found.data) == read_header(spm)
    check_same(found, spm)


@pytest.mark.parametrize("normaliser", ["identity", "nmt_nfkc", "nmt_nfkc_cf"])
def test_normalisation_is_that_of_the_file(normaliser: str, tmp_path: Path) -> None:
    rules = {"normalization_rule_name": normaliser}
    spm = unigram_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, **rules)
    check_same(rebuilt_pieces(saved(tmp_path / "hub", T5, spm)), spm)


def test_what_the_exporter_writes_comes_back() -> None:
    model = PieceModel(unigram_spm())
    described, _ = unigram_tokenizer(model, specials=("<unk>", "</s>"), end="</s>", tags=())
    check_same(rebuilt_pieces(json.loads(json.dumps(described))), model.data)


def described(**more: object) -> dict[str, Any]:
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
    vocab = [["<unk>", 0], ["▁", -1.5], ["a", -2.5], ["▁a", -3.5]]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocab}
    return {"model": model, "pre_tokenizer": spaces, "normalizer": None} | more


def byte_pairs(**more: object) -> dict[str, Any]:
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "▁a": 4, "▁ab": 5, "ab": 6}
    merges = ["▁ a", "▁a b", "a b", "▁ ab"]
    return described(model={"type": "BPE", "vocab": vocab, "merges": merges} | more)


def test_of_two_merges_the_first_is_made_first() -> None:
    assert rebuilt_pieces(byte_pairs()).pieces("ab") == ["▁ab"]
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "▁a": 4, "ab": 5}
    for merges, pieces in ((["▁ a", "a b"], ["▁a", "b"]), (["a b", "▁ a"], ["▁", "ab"])):
        assert rebuilt_pieces(byte_pairs(vocab=vocab, merges=merges)).pieces("ab") == pieces


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "it is no JSON object"),
        (described(model={"type": "WordPiece"}), "its model is 'WordPiece', not Unigram or BPE"),
        (described(model={"type": "Unigram", "vocab": [["a"]]}), r"its vocab has \['a'\], which"),
        (described(model={"type": "Unigram", "vocab": [["a", "1"]]}), "its vocab has .*, which is"),
        (
            described(model={"type": "Unigram", "vocab": [["a", 1e300]]}),
            "1e\\+300.* out of all bounds",
        ),
        (described(model={"type": "Unigram", "vocab": [["a", 10**400]]}), "its vocab has"),
        (described(model={"type": "Unigram", "vocab": {}}), "its vocab has no pieces"),
        (described(model={"type": "Unigram", "vocab": [["a", -1]]}), "its vocab lacks <unk>"),
        (
            described(model={"type": "Unigram", "vocab": [["<unk>", 0], ["a" * 5000, -1]]}),
            "its vocab has a piece of 5000 characters; 1 to 1024 are allowed",
        ),
        (
            described(model={"type": "Unigram", "vocab": [["<unk>", 0], ["", -1]]}),
            "a piece of 0 ch",
        ),
        (described(normalizer={"type": "Lowercase"}), "its normalizer has 'Lowercase'"),
        (
            described(normalizer={"type": "Precompiled", "precompiled_charsmap": "?"}),
            "its precompiled_charsmap is not base64",
        ),
        (
            described(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
            "is not a SentencePiece model",
        ),
        (described(pre_tokenizer=None), r"its pre_tokenizer is \[\]"),
        (described(pre_tokenizer={"type": "ByteLevel"}), r"its pre_tokenizer is \['ByteLevel'\]"),
        (
            described(
                pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"}
            ),
            "its prepend_scheme is 'last'",
        ),
        (byte_pairs(vocab={"<unk>": 0, "a": "1"}), "its vocab has what is no id"),
        (byte_pairs(vocab=[]), "its vocab has no pieces"),
        (byte_pairs(merges=["a b c"]), "its merges have 'a b c', which is no pair"),
        (byte_pairs(merges=[["a", 3]]), r"its merges have \['a', 3\], which is no pair"),
        (byte_pairs(merges=["▁ a", "a b"]), "its merges lack '▁' with 'ab', which SentencePiece"),
    ],
)
def test_what_says_something_else_is_refused(value: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        rebuilt_pieces(value)


def test_a_text_without_a_space_before_it_stays_without() -> None:
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}
    assert rebuilt_pieces(described(pre_tokenizer=spaces)).pieces("a") == ["a"]
    assert rebuilt_pieces(described()).pieces("a") == ["▁a"]
