"""The Makefile: its list has every target that is described, and `clean` leaves nothing built."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.running_server import ROOT

MAKEFILE = ROOT / "Makefile"
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def _make(*arguments: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@needs_make
def test_help_lists_every_target_that_is_described() -> None:
    described = re.findall(r"^(\S+):.*?## ", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    listed = _make(f"--directory={ROOT}", "help").splitlines()
    assert [line.split()[0] for line in listed] == described
    assert "test-s3" in described


@needs_make
def test_clean_leaves_what_was_written_and_nothing_that_was_made(tmp_path: Path) -> None:
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "constraints.txt").touch()
    made = (
        "model/__pycache__/x.pyc",
        "tests/k8s/__pycache__/x.pyc",
        "model/native/_kernels.cpython-311-x86_64-linux-gnu.so",
        "model/native/_kernels_avx2.cpython-311-x86_64-linux-gnu.so",
        ".mypy_cache/x",
        ".venv/x",
        "build/x",
    )
    written = ("model/x.py", "model/native/src/_kernels.cpp", "checkpoints/x")
    for name in made + written:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _make(f"--directory={tmp_path}", "clean")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*written, "Makefile", "constraints.txt"}
