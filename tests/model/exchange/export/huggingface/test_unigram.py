"""tokenizer.json against SentencePiece itself, read by the library that it is for."""

import json

import pytest
from tokenizers import Tokenizer

from model.exchange.export.huggingface.unigram import unigram_tokenizer
from model.text.subwords.pieces import PieceModel
from support.foreign_folders import trained_spm
from support.huggingface_folders import ODD_LINES, SENTENCES
from support.huggingface_folders import trained_spm as bpe_spm

SPECIALS = ("<unk>", "</s>")


def described(model: PieceModel, *tags: str) -> Tokenizer:
    value, problems = unigram_tokenizer(model, specials=SPECIALS, end="</s>", tags=tags)
    assert problems == []
    return Tokenizer.from_str(json.dumps(value))


@pytest.mark.parametrize("has_bytes", [False, True])
def test_text_is_cut_and_joined_as_sentencepiece_does(has_bytes: bool) -> None:
    model = PieceModel(trained_spm(vocabulary_size=500, byte_fallback=has_bytes))
    theirs = described(model)
    for line in [*SENTENCES, *(line for line in ODD_LINES if "▁" not in line)]:
        ids = theirs.encode(line).ids
        assert ids == [*model.own_ids(line), model.own_id("</s>")], line
        if model.unk_id not in ids:
            assert theirs.decode(ids) == model.own_text(ids), line


def test_what_has_no_piece_is_the_files_own_unknown() -> None:
    model = PieceModel(trained_spm(unk_id=3, bos_id=1, eos_id=2, pad_id=0))
    ids = described(model).encode("\U0001f600").ids
    assert model.unk_id == 3
    assert ids == [model.own_id("▁"), 3, 2]


def test_a_tag_is_cut_out_and_the_rest_is_as_without_it() -> None:
    model = PieceModel(trained_spm(symbols=("<2de>",), unk_id=0, bos_id=1, eos_id=2, pad_id=-1))
    theirs, line = described(model, "<2de>"), SENTENCES[0]
    rest = described(model).encode(line).ids
    assert theirs.encode(f"<2de> {line}").ids == [model.own_id("<2de>"), *rest]
    assert theirs.decode(theirs.encode(f"<2de> {line}").ids) == line


def test_pieces_of_another_kind_are_a_problem() -> None:
    model = PieceModel(bpe_spm(260, kind="bpe"))
    _, problems = unigram_tokenizer(model, specials=SPECIALS, end="</s>", tags=())
    assert problems == ["the SentencePiece file has byte pairs (only unigrams)"]


@pytest.mark.parametrize("normaliser", ["identity", "nmt_nfkc", "nmt_nfkc_cf"])
def test_normalisation_is_that_of_the_file(normaliser: str) -> None:
    model = PieceModel(trained_spm(normalization_rule_name=normaliser))
    theirs = described(model)
    for line in ("ﬁne ｗｉｄｅ ABC", "Naïve cafe\u0301"):
        assert theirs.encode(line).ids[:-1] == model.own_ids(line)
