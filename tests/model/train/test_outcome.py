"""What is left of runs that end with an error."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from model.errors import TrainingError
from model.train.loop.trainer import Trainer
from model.train.records.journal import read_journal
from model.train.records.recorder import RunRecorder
from support.tiny_runs import EXPERIMENT, run

SHORT = replace(
    EXPERIMENT,
    data=replace(EXPERIMENT.data, report=()),
    run=replace(
        EXPERIMENT.run,
        max_updates=6,
        max_skipped_updates=1,
        score_dev=False,
        metric="loss",
        final_beam_size=1,
        average_counts=(),
    ),
)


def diverge(patch: pytest.MonkeyPatch) -> None:
    """No update after the first four has a finite loss."""
    accumulate = Trainer.accumulate

    def diverging(self: Trainer, batches: object) -> torch.Tensor:
        loss = accumulate(self, batches)  # type: ignore[arg-type]  # as it came
        return loss if self.progress.update < 4 else loss * math.nan

    patch.setattr(Trainer, "accumulate", diverging)


def errors(folder: Path) -> list[tuple[int, str]]:
    return [
        (record.update, record.text("text"))
        for record in read_journal(folder)
        if record.event == "error"
    ]


def test_a_run_that_diverges_says_so_in_its_journal_and_its_report(
    data_folder: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        diverge(patch)
        with pytest.raises(TrainingError, match="update 6: loss nan") as caught:
            run(data_folder, tmp_path, experiment=SHORT)
    assert errors(tmp_path) == [(5, str(caught.value))]
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Ended with an error after 5 updates, 0 minutes of training, 100 pairs" in report
    assert f"sentences: `{caught.value}`" in report
    assert "## Configuration" in report
    assert "## Model card" not in report
    assert run(data_folder, tmp_path, experiment=SHORT, resume=True)
    assert errors(tmp_path) == []  # it was later than the state
    assert "Ended" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_run_that_fails_at_its_end_says_so_and_the_next_end_does_not(
    data_folder: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        message = "holds no snapshot to choose the weights from"
        patch.setattr("model.train.finish._candidates", lambda *_: {})
        with pytest.raises(TrainingError, match=message):
            run(data_folder, tmp_path, experiment=SHORT)
    ((update, text),) = errors(tmp_path)
    assert update == 6
    assert text == f"{tmp_path}: {message}"
    assert f"`{text}`" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert run(data_folder, tmp_path, experiment=SHORT, resume=True)
    assert errors(tmp_path) == [(6, text)]  # it has happened
    assert text not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_an_error_that_nobody_foresaw_is_written_down_with_its_kind(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise RuntimeError("no\nkernel")

    monkeypatch.setattr(Trainer, "accumulate", fail)
    with pytest.raises(RuntimeError, match="no\nkernel"):
        run(data_folder, tmp_path, experiment=SHORT)
    assert errors(tmp_path) == [(0, "RuntimeError: no\nkernel")]
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "`RuntimeError: no kernel`" in report


def test_a_run_out_of_memory_names_its_batches_and_goes_on_from_its_state(
    data_folder: Path, tmp_path: Path
) -> None:
    """Another process may have had the memory: the same command can do."""
    accumulate = Trainer.accumulate

    def hungry(self: Trainer, batches: object) -> torch.Tensor:
        if self.progress.update == 4:
            torch.empty(1 << 47)
        return accumulate(self, batches)  # type: ignore[arg-type]  # as it came

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "accumulate", hungry)
        with pytest.raises(TrainingError, match=r"run\.batch_tokens is 200: .*allocat") as caught:
            run(data_folder, tmp_path, experiment=SHORT)
    assert str(caught.value).startswith("update 5: out of memory on cpu; ")
    assert errors(tmp_path) == [(4, str(caught.value))]
    assert f"`{caught.value}`" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert run(data_folder, tmp_path, experiment=SHORT, resume=True)


@pytest.mark.parametrize(
    ("scorer", "beams"),
    [
        ("model.train.loop.validation", "run.dev_beam_size is 3"),
        ("model.train.finish", "run.final_beam_size is 1"),
    ],
)
def test_a_run_out_of_memory_while_it_is_scored_names_the_corpus_and_goes_on(
    data_folder: Path, tmp_path: Path, scorer: str, beams: str
) -> None:
    settings = replace(SHORT.run, score_dev=True, metric="bleu", dev_beam_size=3)
    experiment = replace(SHORT, run=settings)

    def hungry(*_: object, **__: object) -> NoReturn:
        torch.empty(1 << 47)
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{scorer}.evaluate", hungry)
        with pytest.raises(TrainingError, match=beams) as caught:
            run(data_folder, tmp_path, experiment=experiment)
    assert str(caught.value).startswith("dev/held-out: out of memory on cpu while it was scored; ")
    assert [text for _, text in errors(tmp_path)] == [str(caught.value)]
    fewer = replace(experiment, run=replace(settings, dev_beam_size=1))
    assert run(data_folder, tmp_path, experiment=fewer, resume=True)


def fail_to_note(patch: pytest.MonkeyPatch) -> None:
    note = RunRecorder.note

    def failing(self: RunRecorder, event: str, **fields: object) -> None:
        if event == "error":
            raise TrainingError("no journal")
        note(self, event, **fields)  # type: ignore[arg-type]  # as they came

    patch.setattr(RunRecorder, "note", failing)


def fail_to_report(patch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> NoReturn:
        raise OSError("no report")

    patch.setattr("model.train.outcome.write_report", failing)


@pytest.mark.parametrize(
    ("fail", "added", "is_noted", "is_reported"),
    [(fail_to_note, "no journal", False, True), (fail_to_report, "no report", True, False)],
)
def test_what_cannot_be_written_hides_neither_the_error_nor_the_other_of_the_two(
    data_folder: Path,
    tmp_path: Path,
    *,
    fail: Callable[[pytest.MonkeyPatch], None],
    added: str,
    is_noted: bool,
    is_reported: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        diverge(patch)
        fail(patch)
        with pytest.raises(TrainingError, match="the run has diverged") as caught:
            run(data_folder, tmp_path, experiment=SHORT)
    assert caught.value.__notes__ == [added]
    assert bool(errors(tmp_path)) == is_noted
    assert (tmp_path / "report.md").exists() == is_reported
