"""Runs that are killed, stopped, starved of disk or robbed of their last save, against one that
was left alone: the same losses and, at the end, the same bytes."""

import os
import random
import re
import shutil
import signal
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.errors import TrainingError
from model.train.config.experiment import Experiment
from model.train.records.journal import read_journal
from model.train.run import train
from model.train.saved.state import PREVIOUS_STATE_FILE, STATE_FILE, snapshot_path
from support.forked import Forked
from support.recorded_runs import (
    EXPERIMENT,
    NUM_UPDATES,
    RICH_EXPERIMENT,
    UNTOUCHED,
    Fate,
    recorded_run,
    write_text,
)
from support.same_states import assert_same_state


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data"))


def start(
    data_folder: Path,
    output: Path,
    fate: Fate = UNTOUCHED,
    *,
    experiment: Experiment = EXPERIMENT,
) -> Forked:
    return Forked(recorded_run, experiment, data_folder, output, fate)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    """A run that was never broken off: its folder, and the loss of every update."""

    experiment: Experiment
    folder: Path
    losses: dict[int, str]


def leave_alone(experiment: Experiment, data_folder: Path, output: Path) -> LeftAlone:
    *losses, is_complete = start(data_folder, output, experiment=experiment).rest()
    assert is_complete is True
    assert [update for update, _ in losses] == list(range(1, len(losses) + 1))
    return LeftAlone(experiment=experiment, folder=output, losses=dict(losses))


@pytest.fixture(scope="module")
def unbroken(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> LeftAlone:
    found = leave_alone(EXPERIMENT, data_folder, tmp_path_factory.mktemp("runs") / "unbroken")
    assert len(found.losses) == NUM_UPDATES
    return found


@pytest.fixture(scope="module")
def rich(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> LeftAlone:
    """Two batches an update, segmentations drawn, fractions of copies, BLEU, ended by patience."""
    found = leave_alone(RICH_EXPERIMENT, data_folder, tmp_path_factory.mktemp("runs") / "rich")
    progress = torch.load(found.folder / STATE_FILE, weights_only=True)["progress"]
    assert progress["best_score"] > 0
    assert progress["num_snapshots_since_best"] == RICH_EXPERIMENT.run.patience
    assert len(found.losses) < RICH_EXPERIMENT.run.max_updates
    assert snapshot_path(found.folder, progress["best_update"]).exists()
    return found


def assert_same_end(output: Path, unbroken: Path) -> None:
    """Weights, moments, best score, patience, dev and final scores, files: all but times."""
    assert_same_state(output, unbroken)
    assert measured(output) == measured(unbroken)
    names = [{path.name for path in folder.glob("*.safetensors")} for folder in (output, unbroken)]
    assert names[0] == names[1]
    assert not list(output.glob("*.partial"))
    stored = {path.name for path in (unbroken / "checkpoint").iterdir()}
    assert {path.name for path in (output / "checkpoint").iterdir()} == stored
    told = {"card.md", CHECKSUMS_FILE}  # the card tells minutes
    for name in (*names[1], *(f"checkpoint/{name}" for name in stored - told)):
        assert (output / name).read_bytes() == (unbroken / name).read_bytes(), name


def measured(folder: Path) -> list[tuple[str, int, dict[str, Any]]]:
    """What the journal says of dev text and of the end, each once and in order."""
    return [
        (record.event, record.update, dict(record.fields))
        for record in read_journal(folder)
        if record.event in {"evaluation", "score"}
    ]


def saved_update(folder: Path, name: str) -> int:
    found: int = torch.load(folder / name, weights_only=True)["progress"]["update"]
    return found


def rest_of_a_killed(
    data_folder: Path, output: Path, fate: Fate, experiment: Experiment
) -> list[Any]:
    """What a run says before it kills itself."""
    running = start(data_folder, output, fate, experiment=experiment)
    heard = running.rest()
    assert running.process.exitcode == -9
    return heard


@pytest.mark.parametrize(
    ("kind", "seed", "num_kills"), [("unbroken", 1, 3), ("unbroken", 2, 3), ("rich", 1, 2)]
)
def test_a_run_killed_again_and_again_ends_with_the_bits_of_one_left_alone(
    data_folder: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    *,
    kind: str,
    seed: int,
    num_kills: int,
) -> None:
    left_alone: LeftAlone = request.getfixturevalue(kind)
    choices = random.Random(seed)
    heard: list[Any] = []
    num_done = 0
    for _ in range(num_kills):
        num_done += choices.randrange(5, 12)
        delay = choices.uniform(0, 0.02)  # in the middle of whatever it does then
        fate = Fate(killed_after=num_done, kill_delay=delay)
        heard += rest_of_a_killed(data_folder, tmp_path, fate, left_alone.experiment)
        num_done = heard[-1][0]
    near_the_end = Fate(killed_after=len(left_alone.losses) - 2)  # with some patience used up
    heard += rest_of_a_killed(data_folder, tmp_path, near_the_end, left_alone.experiment)
    heard += start(data_folder, tmp_path, experiment=left_alone.experiment).rest()
    assert heard.pop() is True
    assert all(left_alone.losses.get(update) == loss for update, loss in heard)
    updates = [update for update, _ in heard]
    repeated = [last - first + 1 for last, first in pairwise(updates) if first <= last]
    assert 1 <= len(repeated) <= num_kills + 1
    assert all(num_lost <= 3 + 1 for num_lost in repeated)  # saved every third update
    assert_same_end(tmp_path, left_alone.folder)


def test_a_run_killed_again_and_again_in_its_end_leaves_the_same_checkpoint(
    data_folder: Path, rich: LeftAlone, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    heard: list[Any] = []
    for fate, is_stored in (
        (Fate(killed_while="choosing"), False),
        (Fate(killed_while="storing"), False),
        (Fate(killed_while="scoring"), True),
        (Fate(killed_while="storing"), False),  # what stood there is beside it
    ):
        heard += rest_of_a_killed(data_folder, tmp_path, fate, RICH_EXPERIMENT)
        assert checkpoint.exists() == is_stored
    assert heard == list(rich.losses.items())  # none of the updates was done again
    assert len(list(tmp_path.glob(".checkpoint.*.partial"))) == 1
    assert len(list(tmp_path.glob(".checkpoint.*.old"))) == 1
    assert start(data_folder, tmp_path, experiment=RICH_EXPERIMENT).rest() == [True]
    assert not list(tmp_path.glob(".checkpoint.*"))
    assert_same_end(tmp_path, rich.folder)


def test_a_full_disk_ends_a_run_with_one_error_and_spares_its_state(
    data_folder: Path, unbroken: LeftAlone, tmp_path: Path
) -> None:
    *heard, message = start(data_folder, tmp_path, Fate(full_after=14)).rest()
    assert heard[-1][0] == 15  # saved every third update
    assert message == (
        f"{tmp_path / STATE_FILE}: the state of update 15 cannot be written: File too large; what"
        " was saved before is whole"
    )
    assert not list(tmp_path.glob("*.partial"))
    heard = start(data_folder, tmp_path).rest()
    assert heard[0] == (13, unbroken.losses[13])
    assert_same_end(tmp_path, unbroken.folder)


def test_a_damaged_save_costs_only_the_updates_since_the_one_before(
    data_folder: Path,
    unbroken: LeftAlone,
    tmp_path: Path,
) -> None:
    assert start(data_folder, tmp_path, Fate(stop_after=17)).rest()[-1] is False
    path = tmp_path / STATE_FILE
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert snapshot_path(tmp_path, 16).exists()  # later than the state before, of update 15
    other = shutil.copytree(tmp_path, tmp_path / "other")
    heard = start(data_folder, tmp_path).rest()
    assert heard[0] == (16, unbroken.losses[16])
    assert heard[-1] is True
    assert_same_end(tmp_path, unbroken.folder)
    # The next save drops the damaged one: what the run went on from stays.
    assert start(data_folder, other, Fate(stop_after=17)).rest()[-1] is False
    assert [saved_update(other, name) for name in (STATE_FILE, PREVIOUS_STATE_FILE)] == [17, 15]


def test_the_state_before_the_last_one_is_kept(unbroken: LeftAlone) -> None:
    assert saved_update(unbroken.folder, PREVIOUS_STATE_FILE) == NUM_UPDATES - 1


def resume_here(data_folder: Path, output: Path) -> bool:
    return train(
        EXPERIMENT,
        data_folder=data_folder,
        output=output,
        resume=True,
        device=torch.device("cpu"),
        command="dragoman train tiny.yaml",
    )


def test_a_folder_that_is_trained_in_is_nobody_elses_until_that_process_ends(
    data_folder: Path, unbroken: LeftAlone, tmp_path: Path
) -> None:
    running = start(data_folder, tmp_path)
    assert running.next()[0] == 1
    assert running.process.pid is not None
    os.kill(running.process.pid, signal.SIGSTOP)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    message = rf"^{re.escape(str(tmp_path))}: another process is training in this folder"
    with pytest.raises(TrainingError, match=message):
        resume_here(data_folder, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    running.process.kill()
    running.rest()
    assert resume_here(data_folder, tmp_path)
    assert_same_end(tmp_path, unbroken.folder)
