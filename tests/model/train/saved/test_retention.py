import errno
import fcntl
import re
from pathlib import Path

import pytest
import torch

from model.errors import DataError, TrainingError
from model.train.config.optimiser import OptimiserConfig
from model.train.data.store import check_cache
from model.train.loop.trainer import build_optimiser
from model.train.saved.averaging import MovingAverage
from model.train.saved.retention import RunFiles, check_folder, opened_folder, remove_retired
from model.train.saved.state import (
    PREVIOUS_STATE_FILE,
    STATE_FILE,
    Progress,
    average_path,
    list_averages,
    list_snapshots,
    load_snapshot,
    snapshot_path,
    update_of,
)
from support.logged import fields_of
from support.training import network


def files_of(folder: Path, *, average: MovingAverage | None = None) -> RunFiles:
    transformer = network()
    return RunFiles(
        folder,
        transformer=transformer,
        optimiser=build_optimiser(transformer, OptimiserConfig()),
        average=average or MovingAverage(transformer, decay=0.5),
        fingerprint="f",
        num_snapshots=2,
    )


def updates_of(paths: list[Path]) -> list[int]:
    return [update_of(path) for path in paths]


def test_a_snapshot_comes_with_the_moving_average(tmp_path: Path) -> None:
    transformer = network()
    average = MovingAverage(transformer, decay=0.5)
    files = RunFiles(
        tmp_path,
        transformer=transformer,
        optimiser=build_optimiser(transformer, OptimiserConfig()),
        average=average,
        fingerprint="f",
        num_snapshots=2,
    )
    before = transformer.source_embedding.weight.detach().clone()
    with torch.no_grad():
        transformer.source_embedding.weight.add_(1.0)
    files.snapshot(5)
    with files.scored_weights():
        assert torch.equal(transformer.source_embedding.weight, before)
    assert torch.equal(transformer.source_embedding.weight, before + 1.0)
    name = "source_embedding.weight"
    assert torch.equal(load_snapshot(snapshot_path(tmp_path, 5))[name], before + 1.0)
    assert torch.equal(load_snapshot(average_path(tmp_path, 5))[name], before)


def test_the_best_snapshot_of_every_saved_state_stays(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    best_then = {1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 4, 7: 7}
    for update, best in best_then.items():
        files.snapshot(update)
        progress = Progress(update=update, best_update=best)
        files.prune(progress)
        if update in {2, 5}:
            files.save(progress)
    # 6 and 7 are the latest, 7 is the best, 4 was it in the latest state, 2 in the one before.
    assert updates_of(list_snapshots(tmp_path)) == [2, 4, 6, 7]
    assert updates_of(list_averages(tmp_path)) == [2, 4, 7]


def test_snapshots_later_than_the_state_are_forgotten(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    for update in (3, 6, 9):
        files.snapshot(update)
    (tmp_path / "snapshot-00000012.partial").write_bytes(b"half")
    files.remove_later(Progress(update=6, scored_update=6))
    assert updates_of(list_snapshots(tmp_path)) == [3, 6]
    assert updates_of(list_averages(tmp_path)) == [3, 6]
    assert not list(tmp_path.glob("*.partial"))


def test_a_checkpoint_that_was_only_begun_is_removed_and_nothing_else_with_it(
    tmp_path: Path,
) -> None:
    for name in (".checkpoint.1f.partial", "mine.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_bytes(b"{}")
    files_of(tmp_path).remove_later(Progress())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.partial"]


def test_lines_that_are_being_translated_into_the_folder_stay(tmp_path: Path) -> None:
    lines = tmp_path / ".train.en.gz.1f.partial"
    lines.write_text("One.\nTwo.\n", encoding="utf-8")
    files_of(tmp_path).remove_later(Progress())
    assert list(tmp_path.iterdir()) == [lines]


def test_a_checkpoint_that_was_being_replaced_goes_when_there_is_another(tmp_path: Path) -> None:
    old, place = tmp_path / ".checkpoint.1f.old", tmp_path / "checkpoint"
    other = tmp_path / ".mine.1f.old"
    for folder in (old, other):
        folder.mkdir()
        (folder / "config.json").write_bytes(b"{}")
    remove_retired(tmp_path)
    assert old.exists()  # all that is left of the run's checkpoint
    place.mkdir()
    (place / "config.json").write_bytes(b"{}")
    remove_retired(tmp_path)
    assert sorted(tmp_path.iterdir()) == [other, place]


def test_a_folder_is_one_process_s_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "tiny"
    message = rf"^{re.escape(str(folder))}: another process is training in this folder"
    with opened_folder(folder), pytest.raises(TrainingError, match=message), opened_folder(folder):
        pass
    with pytest.raises(KeyError), opened_folder(folder):
        raise KeyError
    with opened_folder(folder):
        assert not list(folder.iterdir())


def test_a_file_system_without_locks_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with opened_folder(tmp_path), opened_folder(tmp_path):
        pass


def test_what_cannot_be_removed_is_one_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    files = files_of(tmp_path)
    for update in (3, 6, 9):
        files.snapshot(update)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(
        TrainingError, match=r"snapshot-00000003\.safetensors: cannot be used: Perm"
    ):
        files.prune(Progress(update=9))
    with pytest.raises(
        TrainingError, match=r"snapshot-00000009\.safetensors: cannot be used: Perm"
    ):
        files.remove_later(Progress(update=6, scored_update=6))


def test_a_snapshot_that_the_state_does_not_know_as_scored_is_forgotten(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    for update in (3, 6):
        files.snapshot(update)
    files.remove_later(Progress(update=6, scored_update=3))
    assert updates_of(list_snapshots(tmp_path)) == [3]
    assert updates_of(list_averages(tmp_path)) == [3]


def test_a_snapshot_that_cannot_be_read_is_as_good_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_of(tmp_path)
    files.snapshot(3)
    assert files.has_snapshot(3)
    assert not files.has_snapshot(4)
    path = average_path(tmp_path, 3)
    path.write_bytes(path.read_bytes()[:500])
    assert not files.has_snapshot(3)
    [fields] = fields_of(caplog, "snapshot_made_again")
    assert "ema-00000003.safetensors: not a snapshot" in str(fields["reason"])
    path.unlink()
    assert not files.has_snapshot(3)


def test_a_damaged_state_never_takes_the_place_of_the_good_one_before_it(tmp_path: Path) -> None:
    def update_in(name: str) -> int:
        found: int = torch.load(tmp_path / name, weights_only=True)["progress"]["update"]
        return found

    files = files_of(tmp_path)
    for update in (1, 2):
        files.save(Progress(update=update))
    (tmp_path / STATE_FILE).write_bytes(b"damaged")
    resumed = files_of(tmp_path)
    assert resumed.restore().update == 1
    resumed.save(Progress(update=3))
    assert [update_in(name) for name in (STATE_FILE, PREVIOUS_STATE_FILE)] == [3, 1]
    resumed.save(Progress(update=4))
    assert [update_in(name) for name in (STATE_FILE, PREVIOUS_STATE_FILE)] == [4, 3]


def test_a_resumed_run_keeps_the_best_snapshot_of_the_state_before_the_latest(
    tmp_path: Path,
) -> None:
    files = files_of(tmp_path)
    for update, best in ((2, 2), (4, 4)):
        files.snapshot(update)
        files.save(Progress(update=update, best_update=best, scored_update=update))
    resumed = files_of(tmp_path)
    resumed.restore()
    for update in (6, 8, 10):
        resumed.snapshot(update)
        resumed.prune(Progress(update=update, best_update=update))
    # 8 and 10 are the latest, 4 was the best in the latest state, 2 in the one before.
    assert updates_of(list_snapshots(tmp_path)) == [2, 4, 8, 10]
    resumed.save(Progress(update=10, best_update=10, scored_update=10))
    resumed.prune(Progress(update=10, best_update=10))
    assert updates_of(list_snapshots(tmp_path)) == [4, 8, 10]


def test_a_state_before_the_latest_that_cannot_be_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_of(tmp_path)
    for update in (1, 2):
        files.save(Progress(update=update))
    (tmp_path / PREVIOUS_STATE_FILE).write_bytes(b"damaged")
    assert files_of(tmp_path).restore().update == 2
    [fields] = fields_of(caplog, "state_unreadable")
    assert fields["path"] == str(tmp_path / PREVIOUS_STATE_FILE)


def test_a_run_goes_on_with_the_average_it_had(tmp_path: Path) -> None:
    transformer = network()
    average = MovingAverage(transformer, decay=0.5)
    with torch.no_grad():
        transformer.source_embedding.weight.add_(1.0)
    average.move()
    files_of(tmp_path, average=average).save(Progress(update=1))
    other = MovingAverage(network(), decay=0.5)
    assert files_of(tmp_path, average=other).restore().update == 1
    assert other.state().num_updates == 1
    for name, value in average.state().weights.items():
        assert torch.equal(other.state().weights[name], value)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((6, 8), (6, 8)),  # 2 is only kept as the best
        ((), ()),
        ((4, 6, 8), (6, 8)),  # 4 is gone
        ((2, 4), ()),
    ],
)
def test_a_resumed_run_takes_up_the_latest_snapshots_without_a_gap(
    tmp_path: Path, known: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    files = files_of(tmp_path)
    for update in (2, 6, 8, 9, 10):  # 9 was made, and not scored, and 10 after the state was saved
        files.snapshot(update)
    files.save(Progress(update=9, best_update=2, scored_update=8, snapshot_updates=known))
    assert files_of(tmp_path).restore().snapshot_updates == expected


def test_a_run_begins_only_where_its_checkpoint_can_be_put(tmp_path: Path) -> None:
    checkpoint, elsewhere = tmp_path / "checkpoint", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.json").write_bytes(b"{}")

    def make_file() -> None:
        checkpoint.write_bytes(b"")

    def make_link() -> None:  # to a checkpoint, and one that is not there
        checkpoint.unlink()
        checkpoint.symlink_to(elsewhere)

    def make_broken_link() -> None:
        checkpoint.unlink()
        checkpoint.symlink_to(tmp_path / "nowhere")

    def make_folder() -> None:
        checkpoint.unlink()
        checkpoint.mkdir()

    for make in (make_file, make_link, make_broken_link, make_folder):
        make()
        for resume in (False, True):
            with pytest.raises(TrainingError, match="checkpoint: exists and is not a checkpoint"):
                check_folder(tmp_path, has_state=resume, resume=resume)
    (checkpoint / "config.json").write_bytes(b"{}")
    check_folder(tmp_path, has_state=True, resume=True)


def test_a_folder_that_cannot_be_written_is_found_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("model.train.files.TemporaryFile", refuse)
    with pytest.raises(TrainingError, match=r"cannot be written: Permission denied$"):
        check_folder(tmp_path, has_state=False, resume=False)
    for cache in (tmp_path, tmp_path / "none" / "yet"):
        with pytest.raises(DataError, match=rf"{tmp_path}: cannot be written: .*cannot be stored"):
            check_cache(cache)


def test_a_run_begins_only_where_there_is_none_and_resumes_only_where_there_is_one(
    tmp_path: Path,
) -> None:
    check_folder(tmp_path, has_state=False, resume=False)
    check_folder(tmp_path, has_state=True, resume=True)
    with pytest.raises(TrainingError, match="holds a run already"):
        check_folder(tmp_path, has_state=True, resume=False)
    with pytest.raises(TrainingError, match="holds no state to resume from"):
        check_folder(tmp_path, has_state=False, resume=True)
    files_of(tmp_path).snapshot(3)
    with pytest.raises(TrainingError, match="holds snapshots but no state"):
        check_folder(tmp_path, has_state=False, resume=False)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_does_not_write_into_a_checkpoint(tmp_path: Path, *, resume: bool) -> None:
    (tmp_path / "config.json").write_bytes(b"{}")
    with pytest.raises(TrainingError, match="is a checkpoint, whose files a run would replace"):
        check_folder(tmp_path, has_state=resume, resume=resume)
