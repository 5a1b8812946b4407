"""Moses' words and their pieces against transformers' FSMTTokenizer, on lines that people wrote."""

import io
import json
import sys
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from subword_nmt.apply_bpe import BPE
from transformers import FSMTTokenizer

from model.config import SpecialTokens
from model.errors import ConfigError
from model.text.languages.tags import LanguagePair
from model.text.pipeline import without_surrogates
from model.text.subwords.moses import MosesBpe, MosesPieces
from model.text.subwords.tokenizer import Tokenizer
from support.learned_merges import fairseq_vocabulary, learned_merges, merges_file, real_lines
from support.texts import awkward_texts

PAIR = LanguagePair(source="en", target="de")
RULES = MosesBpe(source_language="en", target_language="de", marks="word-end")
TOKENS = SpecialTokens(pad_id=1, eos_id=2, unk_id=3, start_id=2, suppressed_ids=(0, 1, 3))
TYPOGRAPHY = (
    "“Well,” she said — “that’s £5… or 50％”.",
    "（全角）：１２３，４５６。７！？",
    "Prices of 1\u00a0000\u00a0€ , «quoted» and \u200bzero-width\xad soft hyphens.",
    "A well-known state-of-the-art e-mail: a@b.example & <tag> [x] | y",
    "U.S. Sen. Smith vs. Mr. Jones at 5 p.m. No. 7 of Fig. 3...",
    "it's o'clock, l'été, rock 'n' roll, the '90s",
    'quote", and ," and ."',
)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [*TYPOGRAPHY, *real_lines()]


@pytest.fixture(scope="module")
def words(lines: list[str]) -> list[str]:
    moses = MosesPieces(b"a b\n", RULES, "en")
    return [word for line in lines for word in moses.words(line)]


@pytest.fixture(scope="module")
def learned(words: list[str]) -> list[tuple[str, str]]:
    return learned_merges(words[:4000], 300)


@pytest.fixture(scope="module")
def merges(learned: list[tuple[str, str]]) -> bytes:
    return merges_file(learned)


@pytest.fixture(scope="module")
def vocabulary(words: list[str], learned: list[tuple[str, str]]) -> Mapping[str, int]:
    return fairseq_vocabulary(words[:4000], learned)


@pytest.fixture(scope="module")
def theirs(
    merges: bytes, vocabulary: Mapping[str, int], tmp_path_factory: pytest.TempPathFactory
) -> FSMTTokenizer:
    folder = tmp_path_factory.mktemp("fsmt")
    (folder / "merges.txt").write_bytes(merges)
    for side in ("src", "tgt"):
        text = json.dumps(vocabulary, ensure_ascii=False)
        (folder / f"vocab-{side}.json").write_text(text, encoding="utf-8")
    return FSMTTokenizer(
        langs=["en", "de"],
        src_vocab_file=str(folder / "vocab-src.json"),
        tgt_vocab_file=str(folder / "vocab-tgt.json"),
        merges_file=str(folder / "merges.txt"),
    )


@pytest.fixture(scope="module")
def ours(merges: bytes, vocabulary: Mapping[str, int]) -> Tokenizer:
    return Tokenizer(
        tokens=TOKENS,
        pairs=(PAIR,),
        source_size=len(vocabulary),
        target_size=len(vocabulary),
        source_model=MosesPieces(merges, RULES, "en"),
        target_model=MosesPieces(merges, RULES, "de"),
        source_table=vocabulary,
        target_table=vocabulary,
    )


def test_ids_are_those_of_the_tokenizer_of_the_wmt19_networks(
    ours: Tokenizer, theirs: FSMTTokenizer, lines: list[str]
) -> None:
    assert len(lines) > 1500
    for line in lines:
        # "</s>" that people type is text to us; they are asked to take it so.
        assert ours.encode(line, PAIR) == theirs(line, split_special_tokens=True)["input_ids"]


def test_the_text_of_ids_is_theirs(
    ours: Tokenizer, theirs: FSMTTokenizer, lines: list[str]
) -> None:
    different = 0
    for line in lines:
        ids = theirs(line)["input_ids"]
        text = theirs.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert ours.decode(ids) == text
        different += text != line
    assert different < len(lines)


def test_continuation_marks_give_what_argos_does_with_the_same_scripts(
    lines: list[str], merges: bytes
) -> None:
    rules = MosesBpe(
        source_language="en",
        target_language="de",
        marks="continuation",
        replaces_punctuation=False,
        removes_control_characters=False,
        splits_dashes=False,
    )
    pieces = MosesPieces(b"#version: 0.2\n" + merges, rules, "en")
    normaliser, tokeniser = MosesPunctNormalizer("en"), MosesTokenizer("en")
    detokeniser = MosesDetokenizer("en")
    for line in lines:
        words = tokeniser.tokenize(normaliser.normalize(line))
        found = pieces.pieces(line)
        assert " ".join(found).replace("@@ ", "").split(" ") == (words or [""])
        assert pieces.text(found) == detokeniser.detokenize(words)


@pytest.mark.parametrize("is_of_opus", [True, False], ids=["OPUS-MT of 2019", "older Argos"])
def test_pieces_are_those_of_subword_nmt(lines: list[str], merges: bytes, is_of_opus: bool) -> None:
    """Words by Moses' scripts as these programs call them, then codes applied by their own tool."""
    data = b"#version: 0.2\n" + merges
    rules = MosesBpe(
        source_language="en",
        target_language="de",
        marks="continuation",
        replaces_punctuation=is_of_opus,
        removes_control_characters=is_of_opus,
        splits_dashes=is_of_opus,
    )
    ours = MosesPieces(data, rules, "en")
    theirs = BPE(io.StringIO(data.decode()))
    normaliser = MosesPunctNormalizer(
        "en", pre_replace_unicode_punct=is_of_opus, post_remove_control_chars=is_of_opus
    )
    tokeniser = MosesTokenizer("en")
    num_cut = 0
    for line in lines:
        words = tokeniser.tokenize(normaliser.normalize(line), aggressive_dash_splits=is_of_opus)
        expected = theirs.segment_tokens(words)
        assert ours.pieces(line) == expected
        num_cut += len(expected) > len(words)
    assert num_cut > 1000


@given(text=awkward_texts)
@settings(deadline=None)
def test_any_text_has_ids_and_any_ids_have_text(ours: Tokenizer, text: str) -> None:
    ids = ours.encode(without_surrogates(text), PAIR)
    assert ids[-1] == TOKENS.eos_id
    assert TOKENS.pad_id not in ids
    ours.decode(ids)


def test_special_tokens_that_people_type_are_text(ours: Tokenizer) -> None:
    assert ours.encode("</s> <pad>", PAIR).count(TOKENS.eos_id) == 1


def test_long_lines_of_one_sign_have_ids(ours: Tokenizer) -> None:
    for text in ("." * 20_000, "a-" * 10_000, "a" * 20_000, "'\"" * 10_000, "1," * 10_000):
        ids = ours.encode(text, PAIR)
        assert 1 < len(ids) <= 8 * len(text)
        ours.decode(ids)


def test_a_language_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"source_language is '\.\./en'; it must be like 'en'"):
        MosesBpe(source_language="../en", target_language="de", marks="word-end")


def test_without_sacremoses_an_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[models\]'"):
        MosesPieces(b"a b\n", RULES, "en")


def test_where_words_are_joined_from_pieces_a_beginning_ends_before_the_last_word(
    ours: Tokenizer, lines: list[str]
) -> None:
    num_kept = 0
    for line in lines[:60]:
        *ids, _ = ours.encode_target(line)
        whole = ours.decode(ids)
        for end in range(len(ids) + 1):
            beginning = ours.decode_beginning(ids[:end])
            assert "@@" not in beginning or "@@" in whole
            num_kept += whole.startswith(beginning)
            assert len(beginning) <= len(ours.decode(ids[:end]))
    assert num_kept > 300
