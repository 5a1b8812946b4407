"""Multi30k's own form of its text, and the three scores."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from model.text.language import LanguagePair
from support.tiny_checkpoint import write_tiny_checkpoint

SCRIPT = Path(__file__).parents[2] / "experiments" / "multi30k.py"
LINES = {
    "en": "Two young, White males aren't outside.\n",
    "de": "Zwei junge weiße Männer sind „im Freien“.\n",
}
NAMES = {
    "train": ["multi30k"],
    "dev": ["multi30k-val"],
    "test": [f"multi30k-test-{rest}" for rest in ("2016-flickr", "2017-flickr", "2017-mscoco")],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split, names in NAMES.items():
        folder = tmp_path / "data" / "en-de" / split
        folder.mkdir(parents=True)
        for name in names:
            for language, line in LINES.items():
                (folder / f"{name}.{language}").write_text(line, encoding="utf-8")
    return tmp_path / "data"


def run(*words: object) -> str:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_text_is_lower_case_normalised_and_tokenised(data: Path, tmp_path: Path) -> None:
    run("text", data, tmp_path / "text")

    folder = tmp_path / "text" / "multi30k"
    assert (folder / "train" / "multi30k.en").read_text(encoding="utf-8") == (
        "two young , white males aren 't outside .\n"
    )
    assert (folder / "test" / "multi30k-test-2017-mscoco.de").read_text(encoding="utf-8") == (
        'zwei junge weiße männer sind " im freien " .\n'
    )


@pytest.mark.parametrize("flags", [(), ("--tokenised",)])
def test_every_set_has_three_scores(data: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    checkpoint = tmp_path / "tiny"
    write_tiny_checkpoint(checkpoint, pairs=(LanguagePair(source="en", target="de"),))

    rows = run("score", data, checkpoint, *flags, "--beam-size", 2).splitlines()[2:]

    assert [row.split(" | ")[1] for row in rows] == NAMES["dev"] + NAMES["test"]
    assert all(re.fullmatch(r"\| tiny \| \S+( \| \d+\.\d\d){3} \|", row) for row in rows)


def test_scores_of_the_references_themselves() -> None:
    code = (
        "from multi30k import PlainLine, two_scores\n"
        f"line = {LINES['de'].strip()!r}\n"
        "print(two_scores([line], [line]))\n"
        "print(two_scores([PlainLine('de')('zwei junge weiße männer sind hier .')],"
        " ['Zwei junge weiße Männer sind hier.']))\n"
    )
    command = [sys.executable, "-c", code]
    same, lower = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=SCRIPT.parent
    ).stdout.splitlines()
    assert [round(float(value)) for value in same.strip("()").split(",")] == [100, 100]
    cased, uncased = (float(value) for value in lower.strip("()").split(","))
    assert cased < 50
    assert round(uncased) == 100


@pytest.mark.parametrize("words", [("text", "data", "text"), ("score", "data", "checkpoint")])
def test_what_is_missing_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, str(SCRIPT), *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert not [*tmp_path.iterdir()]
