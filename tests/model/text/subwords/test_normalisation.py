"""Cleaning of text, against sed and perl with the same rules."""

import random
import shutil

import pytest

from model.text.subwords.normalisation import NormalisedPieces, normalised
from support.opus_cleaning import SINGLE, cleaned


@pytest.mark.skipif(shutil.which("perl") is None, reason="compares with perl")
def test_a_hundred_lines_are_those_of_sed_and_perl() -> None:
    choices = random.Random(3)
    alphabet = [
        *SINGLE,
        *"。．… ",
        "  ",
        "\t",
        "\u200b",
        "\u2060",
        "\ufeff",
        "\u00ad",
        "\x07",
        "a",
        "é",
        "猫",
    ]
    lines = ["".join(choices.choices(alphabet, k=40)) for _ in range(100)]
    assert [normalised(line, "opus-mt") for line in lines] == cleaned(lines)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("１２３", '"23'),
        ("你好。  世界．", "你好. 世界. ".rstrip()),
        ("  a\u200bb\tc  d ", "a b c d"),
        ("“a”…", '"a"...'),
        ("naïve — \u00a0x", "naïve — \u00a0x"),
        ("", ""),
    ],
)
def test_examples(text: str, clean: str) -> None:
    assert normalised(text, "opus-mt") == clean


class Letters:
    def pieces(self, text: str) -> list[str]:
        return list(text)

    def text(self, pieces: list[str]) -> str:
        return "".join(pieces)


def test_pieces_are_of_the_clean_text_and_translations_stay_as_they_are() -> None:
    pieces = NormalisedPieces(Letters(), "opus-mt")
    assert pieces.pieces(" ！ ") == ["!"]
    assert pieces.text(["！"]) == "！"
