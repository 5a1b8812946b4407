"""The first run's order: every row is written, and what fails stops nothing."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu import first_run

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "benchmarks" / "gpu" / "first-run"


def test_every_row_is_written_and_a_part_that_fails_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(_: first_run.Setting) -> Iterator[dict[str, Any]]:
        yield {"row": 1}
        raise RuntimeError("no more memory")

    def good(_: first_run.Setting) -> Iterator[dict[str, Any]]:
        yield {"row": 2}

    monkeypatch.setattr(first_run, "PARTS", {"failing": failing, "good": good})
    report: dict[str, Any] = {}
    written: list[int] = []
    setting = first_run.Setting(device=torch.device("cpu"), is_quick=True)
    first_run.run(setting, report, lambda: written.append(len(report)), seconds=60)
    assert report == {
        "failing": [{"row": 1}, {"error": "RuntimeError: no more memory"}],
        "good": [{"row": 2}],
    }
    assert written == [1, 1, 2, 2]


def test_without_time_no_part_begins() -> None:
    report: dict[str, Any] = {}
    setting = first_run.Setting(device=torch.device("cpu"), is_quick=True)
    first_run.run(setting, report, lambda: None, seconds=-1)
    assert list(report) == list(first_run.PARTS)
    assert all(rows == [{"error": "no time left"}] for rows in report.values())


def test_the_script_goes_on_behind_a_part_that_is_stopped_and_leaves_out_what_has_no_time(
    tmp_path: Path,
) -> None:
    """One second is less than Python takes to load torch."""
    output = tmp_path / "new" / "output"
    done = subprocess.run(
        ["bash", str(SCRIPT), str(output)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"DEVICE": "cpu", "PYTHON": sys.executable}
        | {"SMOKE": "1", "KERNELS": "0", "TESTS": "240", "BENCH": "1"},
    )
    assert done.returncode == 0, done.stderr
    ends = (output / "ends.txt").read_text(encoding="utf-8")
    assert done.stdout.endswith(ends)
    found = re.findall(r"^(\w+) ended with (\d+) after \d+ seconds in all$", ends, re.MULTILINE)
    assert found == [("smoke", "124"), ("tests", "0"), ("bench", "124")]
    assert not (output / "kernels.log").exists()
    collected = (output / "tests.log").read_text(encoding="utf-8")
    assert "tests/model/decode/test_cuda.py" in collected


def test_every_file_and_part_that_the_script_names_is_there() -> None:
    script = SCRIPT.read_text(encoding="utf-8")
    for path in re.findall(r"tests/[\w/.]+", script):
        assert (ROOT / path).exists(), path
    parts = re.findall(r'"\$python" -m (benchmarks[\w.]*)', script)
    assert parts == ["benchmarks.gpu.first_run", "benchmarks.gpu"]
    named = re.search(r"--parts ([\w ]+) --output", script)
    assert named is not None
    assert named[1].split() == ["speed", "huggingface", "busy"]
