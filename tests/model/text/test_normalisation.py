"""Cleaning of text, against sed and perl with the same rules."""

import random
import shutil
import subprocess

import pytest

from model.text.normalisation import NormalisedPieces, normalised

SINGLE = dict(
    zip(
        "，、”“∶：？《》）！（；１」「０３２５６９７８４～’━〈〉【】％",
        ',,""::?"")!(;"""03256978' + "4~'-<>[]%",
        strict=True,
    )
)
LONGER = {"。 *": ". ", "． *": ". ", "…": "..."}


def by_other_programs(lines: list[str]) -> list[str]:
    """The same by sed and perl, as preprocess.sh has it."""
    rules = {**SINGLE, **LONGER}
    expressions = [f"s/{found}/{put}/g" for found, put in rules.items()]
    text = "".join(line + "\n" for line in lines).encode()
    sed = ["sed", *(part for expression in expressions for part in ("-e", expression))]
    for command in (
        sed,
        ["perl", "-C", "-pe", r"s/(?!\n)\p{C}/ /g;"],
        ["sed", "s/  */ /g;s/^ *//g;s/ *$//g"],
    ):
        environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        text = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, check=True, env=environment
        ).stdout
    return text.decode().removesuffix("\n").split("\n")


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
    assert [normalised(line, "opus-mt") for line in lines] == by_other_programs(lines)


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
