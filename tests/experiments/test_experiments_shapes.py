"""The students' shapes: whose translation they learn from, and that it is made once."""

import subprocess
import sys
from pathlib import Path

import pytest

from model.checkpoint.manifest import LanguagePair
from model.train.data import read_lines
from support.tiny_checkpoint import generated_pairs, write_tiny_checkpoint

SCRIPT = Path(__file__).parents[2] / "experiments" / "shapes.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    return tmp_path


def started(folder: Path, teacher: str, shape: str = "3-3") -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), "data", "--teacher", teacher, "--shapes", shape]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def test_a_text_goes_with_its_teacher(folder: Path) -> None:
    text = folder / "runs" / "shapes" / "text.gz"
    _, first = started(folder, "one").communicate()
    assert "dragoman train runs/shapes/multi30k-de-en-student-3-3.yaml" in first
    assert len(read_lines(text)) == 6
    written = text.stat()

    _, other = started(folder, "two").communicate()
    assert other.startswith("runs/shapes/text.gz was not written by two/checkpoint; to begin")
    _, none = started(folder, "three").communicate()
    assert none == "three/checkpoint/checksums.sha256: No such file or directory\n"
    assert text.stat() == written


def test_shapes_that_begin_side_by_side_share_one_text(folder: Path) -> None:
    running = [started(folder, "one", shape) for shape in ("3-3", "2-1")]
    for process in running:
        _, said = process.communicate()
        assert "dragoman train" in said
        assert "dragoman translate" not in said
    assert len(read_lines(folder / "runs" / "shapes" / "text.gz")) == 6
    assert not list((folder / "runs" / "shapes").glob(".*partial*"))
