"""What is done around the updates, in whole runs: cut off at the worst moment, out of patience in
more than one process, and scored in another way when they are resumed."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model.train.config.experiment import Experiment
from model.train.config.optimiser import OptimiserConfig
from model.train.loop.validation import DevScore, Validator
from model.train.observer import comparable
from model.train.records.journal import read_journal
from model.train.saved.retention import RunFiles
from model.train.saved.state import STATE_FILE, Progress, list_snapshots, snapshot_path
from support.logged import events_of, fields_of
from support.same_states import assert_same_state
from support.tiny_runs import EXPERIMENT, StopInScores, run

SHORT = replace(
    EXPERIMENT,
    data=replace(EXPERIMENT.data, report=()),
    run=replace(
        EXPERIMENT.run,
        max_updates=9,  # no multiple of the snapshots' interval, but of the saves'
        save_every_updates=3,
        score_dev=False,
        metric="loss",
        final_beam_size=1,
        average_counts=(),
    ),
)
SCORED = replace(
    SHORT, run=replace(SHORT.run, max_updates=8, score_dev=True, metric="bleu", log_every_updates=1)
)
BATCHES = replace(SHORT, run=replace(SHORT.run, max_dev_sentences=0))
AVERAGED = replace(SHORT, optimiser=OptimiserConfig(ema_decay=0.9))
ONE_SNAPSHOT = replace(SHORT, run=replace(SHORT.run, snapshot_every_updates=100))


class Kill(BaseException):
    """What nothing catches."""


def saved_progress(folder: Path) -> dict[str, object]:
    found: dict[str, object] = torch.load(folder / STATE_FILE, weights_only=True)["progress"]
    return {name: value for name, value in found.items() if name != "elapsed_seconds"}


def evaluations(folder: Path) -> list[tuple[int, dict[str, object]]]:
    return [
        (record.update, dict(record.fields))
        for record in read_journal(folder)
        if record.event == "evaluation"
    ]


def evaluated_updates(folder: Path) -> list[int]:
    return [update for update, _ in evaluations(folder)]


def assert_same_end(found: Path, expected: Path) -> None:
    assert saved_progress(found) == saved_progress(expected)
    assert evaluations(found) == evaluations(expected)
    names = [path.name for path in list_snapshots(expected)]
    assert [path.name for path in list_snapshots(found)] == names
    for name in (*names, "checkpoint/model.safetensors"):
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name


def die_before_it_is_scored(patch: pytest.MonkeyPatch) -> None:
    snapshot = RunFiles.snapshot

    def dying(self: RunFiles, update: int) -> None:
        snapshot(self, update)
        if update == SHORT.run.max_updates:
            raise Kill

    patch.setattr(RunFiles, "snapshot", dying)


def die_before_it_is_saved(patch: pytest.MonkeyPatch) -> None:
    prune = RunFiles.prune

    def dying(self: RunFiles, progress: Progress) -> None:
        prune(self, progress)
        if progress.update == SHORT.run.max_updates:
            raise Kill

    patch.setattr(RunFiles, "prune", dying)


@pytest.mark.parametrize(
    ("experiment", "die"),
    [
        (SHORT, die_before_it_is_scored),
        (SHORT, die_before_it_is_saved),
        (ONE_SNAPSHOT, die_before_it_is_scored),
    ],
)
def test_a_run_killed_around_its_last_score_is_scored_once_when_it_is_resumed(
    data_folder: Path,
    tmp_path: Path,
    experiment: Experiment,
    die: Callable[[pytest.MonkeyPatch], None],
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(data_folder, whole, experiment=experiment)
    assert evaluated_updates(whole)[-1] == 9
    with pytest.MonkeyPatch.context() as patch:
        die(patch)
        with pytest.raises(Kill):
            run(data_folder, cut, experiment=experiment)
    assert saved_progress(cut)["update"] == 9
    assert saved_progress(cut)["scored_update"] != 9
    assert run(data_folder, cut, experiment=experiment, resume=True)
    assert_same_end(cut, whole)
    assert run(data_folder, cut, experiment=experiment, resume=True)  # now there is nothing to do
    assert_same_end(cut, whole)


@pytest.mark.parametrize(
    ("experiment", "update", "num_noes", "scored"),
    [
        (SHORT, 4, 0, []),  # before the first batch
        (BATCHES, 8, 1, [4]),  # before the second
        (SHORT, 9, 0, [4, 8]),  # the last one, which no interval asks for
        (SCORED, 4, 3, []),  # between two translations
        (SCORED, 8, 0, [4]),  # the last one, which an interval asks for
        (AVERAGED, 8, 0, [4]),
    ],
)
def test_a_run_stopped_while_it_scores_goes_on_as_if_it_had_scored(
    data_folder: Path,
    tmp_path: Path,
    *,
    experiment: Experiment,
    update: int,
    num_noes: int,
    scored: list[int],
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(data_folder, whole, experiment=experiment)
    for resume in (False, True):  # and once more, while it makes up for it
        stop = StopInScores(cut, update=update, num_noes=num_noes)
        assert not run(data_folder, cut, experiment=experiment, resume=resume, should_stop=stop)
        progress = saved_progress(cut)
        assert progress["update"] == update
        assert progress["scored_update"] == (scored[-1] if scored else None)
        assert evaluated_updates(cut) == scored
        assert not (cut / "checkpoint").exists()
    assert run(data_folder, cut, experiment=experiment, resume=True)
    assert_same_end(cut, whole)
    assert_same_state(cut, whole)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Gives up after two snapshots that are no better than the first; none ever is."""
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=1.0))
    return replace(SHORT, run=replace(SHORT.run, max_updates=100, patience=2))


def test_a_run_stopped_while_it_scores_has_no_more_patience_than_another(
    data_folder: Path, tmp_path: Path, patient: Experiment
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(data_folder, whole, experiment=patient)
    for update, resume in ((8, False), (12, True)):
        stop = StopInScores(cut, update=update)
        assert not run(data_folder, cut, experiment=patient, resume=resume, should_stop=stop)
        assert saved_progress(cut)["update"] == update
    assert run(data_folder, cut, experiment=patient, resume=True)
    assert saved_progress(cut)["update"] == 12
    assert_same_end(cut, whole)
    assert_same_state(cut, whole)


def test_a_run_out_of_patience_ends_at_the_same_update_however_often_it_was_stopped(
    data_folder: Path, tmp_path: Path, patient: Experiment
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(data_folder, whole, experiment=patient)
    assert saved_progress(whole)["update"] == 12  # 4 is the best, 8 and 12 are no better
    assert not run(data_folder, parts, experiment=patient, num_updates=5)
    assert not run(data_folder, parts, experiment=patient, num_updates=4, resume=True)
    assert saved_progress(parts)["update"] == 9
    assert run(data_folder, parts, experiment=patient, resume=True)
    assert_same_end(parts, whole)
    assert run(data_folder, parts, experiment=patient, resume=True)
    assert_same_end(parts, whole)


def test_snapshots_of_equal_bleu_are_told_apart_by_chrf_and_then_by_the_loss(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter(
        [
            DevScore(loss=5.0, bleu=0.0, chrf=19.8),
            DevScore(loss=6.0, bleu=0.0, chrf=27.8),
            DevScore(loss=4.0, bleu=0.0, chrf=27.8),
            DevScore(loss=1.0, bleu=0.0, chrf=10.0),
            DevScore(loss=float("nan"), bleu=0.0, chrf=10.0),
        ]
    )
    monkeypatch.setattr(Validator, "choosing", lambda *_: next(found))
    monkeypatch.setattr("model.train.loop.validation.Validator.score", lambda *_: {})
    patient = replace(SCORED, run=replace(SCORED.run, max_updates=100, patience=2))
    assert run(data_folder, tmp_path, experiment=patient)
    progress = saved_progress(tmp_path)
    assert (progress["update"], progress["best_update"]) == (20, 12)
    assert (progress["best_score"], progress["best_ties"]) == (0.0, (27.8, -4.0))


def test_of_snapshots_that_are_equal_in_everything_the_last_is_the_best(
    data_folder: Path, tmp_path: Path, patient: Experiment
) -> None:
    assert run(data_folder, tmp_path, experiment=patient)
    progress = saved_progress(tmp_path)
    assert (progress["best_update"], progress["num_snapshots_since_best"]) == (12, 2)


def test_patience_counts_snapshots_however_far_apart_they_are(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=1.0))  # never better
    patient = replace(SHORT, run=replace(SHORT.run, max_updates=100, patience=2))
    assert not run(data_folder, tmp_path, experiment=patient, num_updates=9)
    assert saved_progress(tmp_path)["num_snapshots_since_best"] == 1  # 4 is the best, 8 no better
    often = replace(patient, run=replace(patient.run, snapshot_every_updates=2))
    assert run(data_folder, tmp_path, experiment=often, resume=True)
    progress = saved_progress(tmp_path)
    assert (progress["update"], progress["num_snapshots_since_best"]) == (10, 2)


def test_a_last_snapshot_that_is_made_again_is_counted_once(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=1.0))
    assert run(data_folder, tmp_path, experiment=SHORT)
    before = saved_progress(tmp_path)
    assert before["num_snapshots_since_best"] == 2  # 8 and 9 are no better than 4
    snapshot_path(tmp_path, 9).write_bytes(b"damaged")
    assert run(data_folder, tmp_path, experiment=SHORT, resume=True)
    assert saved_progress(tmp_path) == before


def test_a_score_that_is_not_a_number_is_never_the_best(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([float("nan"), 2.0, float("nan")])
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=next(losses)))
    assert run(data_folder, tmp_path, experiment=SHORT)
    progress = saved_progress(tmp_path)
    assert (progress["best_update"], progress["best_score"]) == (8, -2.0)
    assert progress["scored_update"] == 9


BEST = Progress(
    update=9,
    scoring="loss a",
    best_score=-2.0,
    best_ties=(30.0, -2.0),
    best_update=8,
    num_snapshots_since_best=1,
)


def test_a_best_score_that_was_measured_alike_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    assert comparable(BEST, scoring="loss a") == BEST
    assert not caplog.records


@pytest.mark.parametrize("scoring", ["loss a", "bleu beams:1"])
def test_a_best_score_that_was_measured_in_another_way_is_forgotten_with_a_warning(
    scoring: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = comparable(replace(BEST, scoring=scoring), scoring="loss b")
    assert found == replace(
        BEST, scoring="loss b", best_score=None, best_ties=(), num_snapshots_since_best=0
    )
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    [(event, fields)] = events_of(caplog)
    assert event == "best_score_forgotten"
    assert (fields["best_score"], fields["best_update"]) == (-2.0, 8)
    assert (fields["measured_with"], fields["now_measured_with"]) == (scoring, "loss b")
    assert comparable(found, scoring="loss b") == found
    assert len(caplog.records) == 1  # it is told once


def test_where_there_is_no_best_score_nothing_is_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert comparable(Progress(), scoring="bleu a") == Progress(scoring="bleu a")
    assert not caplog.records


def other_dev_text(data_folder: Path, tmp_path: Path) -> Path:
    """The run's text, with a dev corpus of the same name and another content."""
    folder = shutil.copytree(data_folder, tmp_path / "other data")
    path = folder / "en-zh" / "dev" / "held-out.zh"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[::-1]), encoding="utf-8")
    return folder


def test_a_run_resumed_with_other_dev_text_has_patience_again_and_another_best(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    losses: Any = iter([1.0, 5.0, 5.0, 3.0, 2.0, 4.0, 4.0])
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=next(losses)))
    patient = replace(SHORT, run=replace(SHORT.run, max_updates=100, patience=2))
    output = tmp_path / "run"
    assert run(data_folder, output, experiment=patient)
    progress = saved_progress(output)
    assert [progress[name] for name in ("update", "best_update", "best_score")] == [12, 4, -1.0]
    assert run(data_folder, output, experiment=patient, resume=True)  # alike: nothing to do
    assert saved_progress(output) == progress
    assert not fields_of(caplog, "best_score_forgotten")
    other = other_dev_text(data_folder, tmp_path)
    assert run(other, output, experiment=patient, resume=True)
    [fields] = fields_of(caplog, "best_score_forgotten")
    assert (fields["best_score"], fields["best_update"]) == (-1.0, 4)
    assert str(fields["measured_with"]).startswith("loss ")
    progress = saved_progress(output)
    assert [progress[name] for name in ("update", "best_update", "best_score")] == [28, 20, -2.0]


def test_a_run_that_was_over_is_finished_by_other_dev_text(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "run"
    assert run(data_folder, output, experiment=SHORT)
    before = saved_progress(output)
    assert run(other_dev_text(data_folder, tmp_path), output, experiment=SHORT, resume=True)
    after = saved_progress(output)
    assert after["scoring"] != before["scoring"]
    assert after["best_score"] is None
    assert after["best_update"] == before["best_update"]
    assert (output / "checkpoint" / "model.safetensors").is_file()


def test_no_minutes_leave_the_saves_to_the_updates(data_folder: Path, tmp_path: Path) -> None:
    settings = replace(SHORT.run, save_every_minutes=0.0, save_every_updates=4)
    run(data_folder, tmp_path, experiment=replace(SHORT, run=settings))
    found = torch.load(tmp_path / "state-previous.pt", weights_only=True)["progress"]
    assert found["update"] == 8  # the last one is of the end
