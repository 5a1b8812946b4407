"""Multi30k's own form of its text, and the three scores."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import multi30k
from model.text.languages.tags import LanguagePair
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


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["multi30k.py", *map(str, words)])
    multi30k.main()


def test_text_is_lower_case_normalised_and_tokenised(data: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "text", data, tmp_path / "text"], check=True)

    folder = tmp_path / "text" / "multi30k"
    assert (folder / "train" / "multi30k.en").read_text(encoding="utf-8") == (
        "two young , white males aren 't outside .\n"
    )
    assert (folder / "test" / "multi30k-test-2017-mscoco.de").read_text(encoding="utf-8") == (
        'zwei junge weiße männer sind " im freien " .\n'
    )


@pytest.mark.parametrize("flags", [(), ("--tokenised",)])
def test_every_set_has_three_scores(
    data: Path,
    tmp_path: Path,
    flags: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = tmp_path / "tiny"
    write_tiny_checkpoint(checkpoint, pairs=(LanguagePair(source="en", target="de"),))

    run(monkeypatch, "score", data, checkpoint, *flags, "--beam-size", 2)

    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == NAMES["dev"] + NAMES["test"]
    assert all(re.fullmatch(r"\| tiny \| \S+( \| \d+\.\d\d){3} \|", row) for row in rows)


def test_scores_of_the_references_themselves() -> None:
    line = LINES["de"].strip()
    assert [round(value) for value in multi30k.two_scores([line], [line])] == [100, 100]
    plain = multi30k.PlainLine("de")("zwei junge weiße männer sind hier .")
    cased, uncased = multi30k.two_scores([plain], ["Zwei junge weiße Männer sind hier."])
    assert cased < 50
    assert round(uncased) == 100


@pytest.mark.parametrize("words", [("text", "data", "text"), ("score", "data", "checkpoint")])
def test_what_is_missing_is_one_line(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *words)
    assert isinstance(caught.value.code, str)  # printed, and the status is 1
    assert len(caught.value.code.splitlines()) == 1
    assert not [*tmp_path.iterdir()]
