"""The students' shapes: whose translation they learn from, and that it is made once."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import shapes
from model.errors import DataError
from model.text.languages.tags import LanguagePair
from model.train.data.parallel import read_lines
from model.train.saved.state import STATE_FILE
from support import commands_in_process
from support.forked import Forked, Send, all_of
from support.tiny_checkpoint import generated_pairs, write_tiny_checkpoint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two teachers, and text to translate but none to score, so that students end at once."""
    train = tmp_path / "data" / "multi30k" / "train"
    train.mkdir(parents=True)
    for language, side in (("de", 0), ("en", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(6))
        (train / f"multi30k.{language}").write_text(lines, encoding="utf-8")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        pairs = (LanguagePair(source="de", target="en"),)
        write_tiny_checkpoint(tmp_path / name / "checkpoint", name=name, pairs=pairs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """What is run, of which only the text is made."""
    found: list[Sequence[str]] = []

    def run_all(commands: Sequence[Sequence[str]]) -> None:
        found.extend(commands)
        for words in commands:
            if words[0] == "translate":
                Path(words[words.index("--output") + 1]).touch()

    monkeypatch.setattr(shapes, "run_all", run_all)
    return found


def run(monkeypatch: pytest.MonkeyPatch, teacher: str, *flags: str) -> None:
    monkeypatch.setattr(sys, "argv", ["shapes.py", "data", "--teacher", teacher, *flags])
    shapes.main()


def test_a_text_goes_with_its_teacher_and_its_source(
    folder: Path, commands: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "one", "--shapes", "3-3")
    assert [words[0] for words in commands] == ["translate", "train"]
    run(monkeypatch, "one", "--shapes", "2-1")
    assert [words[0] for words in commands[2:]] == ["train"]

    with pytest.raises(
        SystemExit,
        match=r"^runs/shapes/text\.gz was made with another teacher than two/checkpoint; to begin",
    ):
        run(monkeypatch, "two")
    with pytest.raises(
        SystemExit, match=r"^three/checkpoint/checksums\.sha256: No such file or directory$"
    ):
        run(monkeypatch, "three")
    source = folder / "data" / "multi30k" / "train" / "multi30k.de"
    lines = source.read_text(encoding="utf-8")
    source.write_text(f"{lines}Noch eine.\n", encoding="utf-8")
    with pytest.raises(
        SystemExit, match=r"was made with another text than data/multi30k/train/multi30k\.de; to"
    ):
        run(monkeypatch, "one")
    source.write_text(lines, encoding="utf-8")
    (folder / "runs" / "shapes" / "made-of.sha256").unlink()
    with pytest.raises(SystemExit, match=r"of another teacher than .*sha256 does not name it"):
        run(monkeypatch, "one")
    assert len(commands) == 3


def test_threads_are_for_both_and_a_state_is_gone_on_from(
    folder: Path, commands: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    student = folder / "runs" / "shapes" / "multi30k-de-en-student-3-3"
    student.mkdir(parents=True)
    (student / "state-begun.partial").touch()
    run(monkeypatch, "one", "--shapes", "3-3", "--threads", "5")
    assert all(words[words.index("--threads") + 1] == "5" for words in commands)
    assert not any("--resume" in words for words in commands)
    (student / STATE_FILE).touch()
    written = student.with_suffix(".yaml").stat().st_mtime_ns
    run(monkeypatch, "one", "--shapes", "3-3")
    assert "--resume" in commands[-1]
    assert student.with_suffix(".yaml").stat().st_mtime_ns == written  # somebody may read it


def test_text_that_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "data" / "multi30k" / "train" / "multi30k.de").unlink()
    with pytest.raises(DataError, match=r"multi30k\.de: no such file, nor with \.gz$"):
        run(monkeypatch, "one")


def run_script(send: Send, folder: Path, shape: str) -> None:
    """The script in a process of its own, and how it ends: there is no text to score."""
    os.chdir(folder)
    sys.argv = ["shapes.py", "data", "--teacher", "one", "--shapes", shape]
    shapes.run_all = commands_in_process.run_all
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            shapes.main()
        except SystemExit as error:
            send(error.code)


def test_shapes_that_begin_side_by_side_share_one_text(folder: Path) -> None:
    running = [Forked(run_script, folder, shape) for shape in ("3-3", "2-1")]
    for (said,) in all_of(running):
        assert said.startswith("dragoman train")
    assert len(read_lines(folder / "runs" / "shapes" / "text.gz")) == 6
    assert not list((folder / "runs" / "shapes").glob(".*partial*"))


def test_a_card_that_is_worded_otherwise_makes_no_other_teacher(
    folder: Path, commands: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "one")
    before = len(commands)
    listing = folder / "one" / "checkpoint" / "checksums.sha256"
    lines = listing.read_text(encoding="utf-8").splitlines()
    changed = [f"{'0' * 64}  card.md" if line.endswith("  card.md") else line for line in lines]
    assert changed != lines
    listing.write_text("".join(f"{line}\n" for line in changed), encoding="utf-8")
    run(monkeypatch, "one")
    assert [words[0] for words in commands[before:]].count("translate") == 0
