from pathlib import Path

import pytest
import sacrebleu

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.errors import ConfigError, DataError
from model.offline.evaluate import check_tokenizer, default_tokenizer, evaluate, score
from model.offline.translator import Translator
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint

HYPOTHESES = ["一个男人骑着马。", "两只狗在跑。", "她在看书，喝茶。"]
REFERENCES = ["一名男子骑着一匹马。", "两只狗在奔跑。", "她一边看书一边喝茶。"]


def test_scores_are_sacrebleus_own() -> None:
    found = score(HYPOTHESES, REFERENCES, tokenizer="zh")
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="zh")
    assert found.bleu.value == bleu.score
    assert found.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score


def test_signatures_name_tokenizer_and_version() -> None:
    found = score(HYPOTHESES, REFERENCES, tokenizer="zh")
    assert "tok:zh" in found.bleu.signature
    assert f"version:{sacrebleu.__version__}" in found.bleu.signature
    assert "nc:6" in found.chrf.signature
    assert str(found.bleu).startswith(f"BLEU {found.bleu.value:.2f} (nrefs:1|")


def test_a_perfect_translation_scores_a_hundred() -> None:
    found = score(REFERENCES, REFERENCES, tokenizer="zh")
    assert found.bleu.value == pytest.approx(100)
    assert found.chrf.value == pytest.approx(100)


def test_the_target_language_chooses_the_tokenizer() -> None:
    assert default_tokenizer("zh-Hans") == "zh"
    assert default_tokenizer("ja") == "ja-mecab"
    assert default_tokenizer("de") == "13a"


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        ("yue", "zh"),
        ("yue-Hant", "zh"),
        ("yue-Latn", "13a"),
        ("wuu", "zh"),
        ("lzh", "zh"),
        ("th", "char"),
        ("lo", "char"),
        ("km", "char"),
        ("my", "char"),
        ("shn", "char"),
        ("bo", "char"),
        ("dz", "char"),
        ("ko", "ko-mecab"),
        ("vi", "13a"),
        ("hi", "13a"),
    ],
)
def test_languages_without_spaces_have_no_tokenizer_that_needs_them(
    language: str, tokenizer: str
) -> None:
    assert default_tokenizer(language) == tokenizer


def test_a_translation_without_spaces_that_is_nearly_right_has_a_score() -> None:
    hypotheses, references = ["ฉันรักประเทศไทยมาก"], ["ฉันรักเมืองไทยมาก"]
    assert score(hypotheses, references, tokenizer=default_tokenizer("th")).bleu.value > 30


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ConfigError, match="tokenizer is 'words'; it must be one of 13a"):
        score(HYPOTHESES, REFERENCES, tokenizer="words")
    with pytest.raises(DataError, match="no translation to score"):
        score([], [], tokenizer="zh")
    with pytest.raises(DataError, match="3 translations and 2 references"):
        score(HYPOTHESES, REFERENCES[:2], tokenizer="zh")


def test_a_tokenizer_is_checked_without_a_corpus() -> None:
    check_tokenizer("zh")
    with pytest.raises(ConfigError, match="tokenizer is 'words'; it must be one of 13a"):
        check_tokenizer("words")


def test_an_evaluation_scores_what_the_translator_says(tmp_path: Path) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    sources, references = zip(*generated_pairs(12), strict=True)
    search = SearchConfig(beam_size=2)
    found = evaluate(
        Translator(load_checkpoint(directory)), EN_ZH, sources, references, search=search
    )
    translations = Translator(load_checkpoint(directory)).translate(sources, EN_ZH, search)
    assert found.hypotheses == tuple(translation.text for translation in translations)
    assert found.scores == score(found.hypotheses, references, tokenizer="zh")


def test_sides_of_different_lengths_are_refused_before_translating(tmp_path: Path) -> None:
    translator = Translator(load_checkpoint(write_tiny_checkpoint(tmp_path / "tiny")))
    with pytest.raises(DataError, match="2 sources and 1 references"):
        evaluate(translator, EN_ZH, ["a", "b"], ["c"])
