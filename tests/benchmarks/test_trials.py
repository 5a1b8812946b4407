"""The table of trials: from their journals, the best first, and only of those that ended."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import trials
from model.train.records.journal import Journal


def write_run(folder: Path, bleu: float | None) -> None:
    """A run that had so much on dev text in the end; None: it has not ended."""
    folder.mkdir(parents=True)
    (folder / "experiment.yaml").write_text("run: {max_minutes: 15.0}\n", encoding="utf-8")
    with Journal(folder, update=0, is_resumed=False) as journal:
        tokens = {"num_source_tokens": 1_000_000, "num_target_tokens": 1_500_000}
        journal.append("progress", update=700, time=1.0, fields=tokens)
        for loss in (2.5, 2.25):
            journal.append(
                "evaluation", update=700, time=1.0, fields={"corpus": "everyday", "loss": loss}
            )
        if bleu is not None:
            for corpus, value in (("dev/everyday", bleu), ("dev/docs-heldout", 30.0)):
                fields = {"corpus": corpus, "bleu": value}
                journal.append("score", update=700, time=2.0, fields=fields)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["trials", *words])
    trials.main()


def test_the_best_trial_is_first_and_one_that_runs_still_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, bleu in (("plain", 23.25), ("r-drop", 24.5), ("half-done", None)):
        write_run(tmp_path / "recipes" / name, bleu)
    run(monkeypatch, str(tmp_path / "recipes"), "--results", str(tmp_path / "results"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| trial | minutes | updates | million tokens | dev/everyday |")
    assert lines[2] == "| r-drop | 15 | 700 | 2.5 | 24.5 | 30.0 | 2.250 |"
    assert lines[3].startswith("| plain |")
    (path,) = (tmp_path / "results").iterdir()
    assert len(json.loads(path.read_text(encoding="utf-8"))["trials"]) == 2


def test_a_folder_without_a_trial_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, str(tmp_path))
    assert "has no trial that came to its end" in capsys.readouterr().err


def test_a_network_for_two_directions_is_told_by_its_first() -> None:
    one_way = {"dev/everyday": 12.5, "dev/docs-heldout": 17.0}
    there = {f"zh-en/{corpus}": bleu for corpus, bleu in one_way.items()}
    assert trials.of_first_direction(there | {"en-zh/dev/everyday": 20.0}) == one_way
    assert trials.of_first_direction(one_way) == one_way
