"""The end of runs that are over, with files of theirs damaged or gone."""

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.errors import DecodingError, TrainingError
from model.loading import Runnable, load_for_decoding
from model.train.config.experiment import Experiment
from model.train.config.run import RunConfig
from model.train.data.parallel import TokenisedPairs
from model.train.loop.validation import DevScore, Validator
from model.train.saved.averaging import average_snapshots
from model.train.saved.state import STATE_FILE, list_snapshots, snapshot_path, update_of
from support.logged import fields_of
from support.tiny_runs import EXPERIMENT, run

LOSS = replace(
    EXPERIMENT,
    data=replace(EXPERIMENT.data, report=()),
    run=replace(EXPERIMENT.run, score_dev=False, metric="loss", final_beam_size=1),
)
DEFAULT_COUNTS = RunConfig(max_updates=1).average_counts
ONLY_THE_BEST = replace(LOSS, run=replace(LOSS.run, average_counts=()))


@pytest.fixture(scope="module")
def whole_run(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Over at update 12, with snapshots of 4, 8 and 12."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    assert run(data_folder, output, experiment=LOSS)
    return output


@pytest.fixture
def folder(whole_run: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(whole_run, tmp_path / "copy")


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:500])


def set_progress(folder: Path, **values: object) -> None:
    state = torch.load(folder / STATE_FILE, weights_only=True)
    state["progress"].update(values)
    torch.save(state, folder / STATE_FILE)


def watch_averages(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Gets the updates of every average that is made; the first one is chosen."""
    averaged = []
    losses = itertools.count(1.0)

    def record(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
        averaged.append([update_of(path) for path in paths])
        return average_snapshots(paths)

    monkeypatch.setattr("model.train.finish.average_snapshots", record)
    monkeypatch.setattr("model.train.finish.dev_loss", lambda *_, **__: next(losses))
    return averaged


def finish(data_folder: Path, folder: Path, experiment: Experiment = LOSS) -> str:
    """Finish the run again; what its card says of the weights."""
    assert run(data_folder, folder, experiment=experiment, resume=True)
    card = (folder / "checkpoint" / "card.md").read_text(encoding="utf-8")
    return card.partition("Weights: ")[2].partition(", stored")[0]


def test_candidates_with_a_damaged_snapshot_are_left_out_and_the_log_names_them(
    data_folder: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    set_progress(folder, best_update=12)
    damage(snapshot_path(folder, 8))
    assert finish(data_folder, folder) == "the snapshot of update 12"
    for fields, count in zip(fields_of(caplog, "candidate_left_out"), (2, 3), strict=True):
        assert "snapshot-00000008.safetensors: not a snapshot" in str(fields["reason"])
        assert fields["candidate"] == f"the average of the last {count} snapshots"


def test_what_was_stored_is_scored_on_the_device_of_the_network_by_as_many_threads(
    data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(directory: Path, *, device: torch.device, num_threads: int) -> Runnable:
        asked.append((device, num_threads))
        return load_for_decoding(directory, device=device, num_threads=1)

    monkeypatch.setattr("model.train.finish.load_for_decoding", load)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    finish(data_folder, folder)
    assert asked == [(torch.device("cpu"), 3)]


def test_a_damaged_snapshot_of_the_last_update_is_made_again_from_the_state(
    data_folder: Path, folder: Path, whole_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = snapshot_path(folder, 12)
    damage(path)
    finish(data_folder, folder)
    [fields] = fields_of(caplog, "snapshot_made_again")
    assert "snapshot-00000012.safetensors: not a snapshot" in str(fields["reason"])
    for name in (path.name, "checkpoint/model.safetensors"):
        assert (folder / name).read_bytes() == (whole_run / name).read_bytes()


def test_a_run_of_which_no_snapshot_can_be_read_names_the_damaged_one(
    data_folder: Path, folder: Path
) -> None:
    set_progress(folder, best_update=4)
    damage(snapshot_path(folder, 4))
    with pytest.raises(TrainingError, match=r"snapshot-00000004\.safetensors: not a snapshot"):
        run(data_folder, folder, experiment=ONLY_THE_BEST, resume=True)
    snapshot_path(folder, 4).unlink()
    with pytest.raises(TrainingError, match="holds no snapshot to choose the weights from"):
        run(data_folder, folder, experiment=ONLY_THE_BEST, resume=True)


def test_an_old_snapshot_that_is_kept_as_the_best_is_in_no_average_of_the_latest(
    data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With four kept, the default counts 5 and 10 are left out, however many files there are."""
    for update in (9, 10):
        shutil.copy(snapshot_path(folder, 8), snapshot_path(folder, update))
    averaged = watch_averages(monkeypatch)
    set_progress(folder, best_update=4, snapshot_updates=(8, 9, 10, 12))
    for counts, expected in (((2, 4), [[4], [10, 12], [8, 9, 10, 12]]), (DEFAULT_COUNTS, [[4]])):
        run_config = replace(LOSS.run, num_snapshots=4, average_counts=counts)
        finish(data_folder, folder, replace(LOSS, run=run_config))
        assert averaged == [*expected, [4]]  # the last one is the choice
        averaged.clear()


def test_a_run_resumed_to_keep_more_snapshots_never_takes_an_old_best_for_one_of_the_last(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    averaged = watch_averages(monkeypatch)
    losses = iter([1.0, 2.0, 2.0, 2.0, 2.0, 2.0])  # the best is the first, of update 4
    monkeypatch.setattr(Validator, "choosing", lambda *_: DevScore(loss=next(losses)))
    one = replace(LOSS.run, num_snapshots=1, average_counts=(1,))
    assert run(data_folder, tmp_path, experiment=replace(LOSS, run=one))
    assert [update_of(path) for path in list_snapshots(tmp_path)] == [4, 12]
    assert averaged == [[4], [12], [4]]  # the last one is the choice
    for max_updates, expected in (
        (16, [[4], [12, 16], [4]]),  # three files, but 8 is missing between them
        (20, [[4], [16, 20], [12, 16, 20], [4]]),
        (24, [[4], [20, 24], [16, 20, 24], [4]]),
    ):
        averaged.clear()
        three = replace(LOSS.run, max_updates=max_updates, num_snapshots=3, average_counts=(2, 3))
        finish(data_folder, tmp_path, replace(LOSS, run=three))
        assert averaged == expected


def test_the_choice_by_the_loss_can_be_stopped_between_batches(
    data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    averaged = []

    def record(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
        averaged.append(paths)
        return average_snapshots(paths)

    monkeypatch.setattr("model.train.finish.average_snapshots", record)
    shutil.rmtree(folder / "checkpoint")
    assert not run(
        data_folder, folder, experiment=LOSS, resume=True, should_stop=lambda: bool(averaged)
    )
    assert len(averaged) == 1  # of three
    assert not (folder / "checkpoint").exists()


def test_a_candidate_whose_loss_is_not_a_number_loses(
    data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([float("nan"), 2.0, 1.0])  # the best snapshot; the last two; the last three
    monkeypatch.setattr("model.train.finish.dev_loss", lambda *_, **__: next(losses))
    assert finish(data_folder, folder) == "the average of the last 3 snapshots"


def test_the_choice_by_loss_is_on_all_of_the_dev_text(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = set()

    def loss(_: object, pairs: TokenisedPairs, *__: object) -> float:
        sizes.add(len(pairs))
        return 1.0

    monkeypatch.setattr("model.train.finish.dev_loss", loss)
    few = replace(LOSS, run=replace(LOSS.run, max_dev_sentences=1))
    assert run(data_folder, tmp_path / "run", experiment=few)
    (direction,) = few.data.directions
    (dev,) = direction.dev_corpora
    path = data_folder / dev.folder / dev.split / f"{dev.corpus}.{direction.source_language}"
    assert sizes == {len(path.read_text(encoding="utf-8").splitlines())}


def test_a_candidate_that_translates_into_nothing_loses(
    data_folder: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def losses(_: object, candidate: str, **__: object) -> list[DevScore]:
        if candidate.startswith("the snapshot"):
            raise DecodingError("the network gave no finite score for a segment")
        return [DevScore(loss=1.0)]

    monkeypatch.setattr("model.train.finish._dev_losses", losses)
    assert finish(data_folder, folder) == "the average of the last 2 snapshots"
    [fields] = fields_of(caplog, "candidate_not_scored")
    assert fields["reason"] == "the network gave no finite score for a segment"


def scored(found: dict[str, tuple[float, float]]) -> object:
    """Stands for `_dev_scores`: BLEU and chrF of a candidate by the beginning of its name."""

    def scores(_: object, candidate: str, **__: object) -> list[DevScore]:
        (values,) = (item for name, item in found.items() if candidate.startswith(name))
        return [DevScore(loss=float("nan"), bleu=values[0], chrf=values[1])]

    return scores


def test_candidates_of_equal_bleu_are_told_apart_by_chrf_with_a_warning(
    data_folder: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_progress(folder, best_update=4)
    table = {
        "the snapshot": (0.0, 27.8),
        "the average of the last 2": (0.0, 96.9),
        "the average of the last 3": (0.0, 80.0),
    }
    bleu = replace(LOSS, run=replace(LOSS.run, score_dev=True, metric="bleu"))
    monkeypatch.setattr("model.train.finish._dev_scores", scored(table))
    assert finish(data_folder, folder, bleu) == "the average of the last 2 snapshots"
    [fields] = fields_of(caplog, "candidates_equal")
    assert (fields["metric"], fields["value"]) == ("bleu", 0.0)
    assert fields["chosen"] == "the average of the last 2 snapshots"


def test_of_candidates_that_are_equal_in_everything_the_latest_is_chosen(
    data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_progress(folder, best_update=4)
    monkeypatch.setattr("model.train.finish.dev_loss", lambda *_, **__: 1.0)
    assert finish(data_folder, folder) == "the average of the last 2 snapshots"


def test_candidates_of_different_scores_are_not_warned_of(
    data_folder: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    losses = iter([1.0, 2.0, 2.0])
    monkeypatch.setattr("model.train.finish.dev_loss", lambda *_, **__: next(losses))
    finish(data_folder, folder)
    assert not fields_of(caplog, "candidates_equal")
