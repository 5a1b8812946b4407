"""How fast a CPU trains: cases in processes of their own, medians in the table."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import training
from benchmarks.training import Speed


def test_every_case_is_measured_in_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[training.Case] = []

    def in_a_process(_: object, case: training.Case) -> Speed:
        asked.append(case)
        return Speed(tokens_per_second=float(len(asked)), peak_mib=100.0)

    monkeypatch.setattr(training, "in_a_process", in_a_process)
    monkeypatch.setattr(sys, "argv", ["training", "--rounds", "3", "--results", str(tmp_path)])

    training.main()

    assert asked[:8] == asked[15:7:-1] == asked[16:]
    (file,) = tmp_path.iterdir()
    result = json.loads(file.read_text(encoding="utf-8"))
    folder = "/".join(tmp_path.parts[-2:])
    assert result["command"] == f"python -m benchmarks.training --rounds 3 --results {folder}"
    named = [(case["loss"], case["memory"], case["precision"]) for case in result["cases"]]
    assert named == asked[:8]
    assert result["cases"][0]["tokens_per_second"] == [1.0, 16.0, 17.0]
    assert "| cross-entropy | as it is | float32 | 16 | 100 |" in capsys.readouterr().out


def test_one_case_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "NUM_WARM_UP", 0)
    words = ["--memory", "as it is", "--loss", "R-Drop", "--precision", "float32", "--updates", "1"]
    monkeypatch.setattr(sys, "argv", ["training", *words])

    training.main()

    tokens_per_second, peak_mib = json.loads(capsys.readouterr().out)
    assert tokens_per_second > 0
    assert peak_mib > 100
