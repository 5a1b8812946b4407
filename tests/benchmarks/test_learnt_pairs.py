"""Pairs of a test set that stand in a checkpoint's training text."""

import gzip
from pathlib import Path

import pytest

from benchmarks.learnt_pairs import LearntPairs, read_learnt_pairs
from model.errors import DataError
from support.tiny_checkpoint import EN_ZH, ZH_EN


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "en-zh" / "train"
    folder.mkdir(parents=True)
    for language, text in (
        ("en", "Good morning!\nThank you.\n…\n"),
        ("zh", "早上好\n谢谢你！\n—\n"),
    ):
        (folder / f"formulae.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_case_and_punctuation_make_no_other_pair(data: Path) -> None:
    learnt = read_learnt_pairs(data, ["formulae", "formulae"], EN_ZH)
    assert learnt.corpora == ("formulae",)
    sources = ["good morning", "Thank you.", "Good morning!", "!"]
    references = ["早上好。", "谢谢。", "谢谢你！", "。"]
    assert learnt.are_learnt(sources, references) == [True, False, False, False]


def test_a_direction_back_learnt_the_pairs_the_other_way_round(data: Path) -> None:
    learnt = read_learnt_pairs(data, ["formulae"], ZH_EN)
    assert learnt.are_learnt(["早上好"], ["Good morning"]) == [True]


def test_text_that_is_not_there_is_left_out(data: Path) -> None:
    assert read_learnt_pairs(data, ["tatoeba-back"], EN_ZH) == LearntPairs()


def test_text_that_is_not_aligned_is_refused(data: Path) -> None:
    (data / "en-zh" / "train" / "formulae.zh.gz").write_bytes(gzip.compress("早上好\n".encode()))
    with pytest.raises(DataError, match=r"formulae"):
        read_learnt_pairs(data, ["formulae"], EN_ZH)
