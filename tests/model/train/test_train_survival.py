"""Runs that are killed, stopped, starved of disk or robbed of their last save, against one that
was left alone: the same losses and, at the end, the same bytes."""

import os
import random
import re
import shutil
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from model.errors import TrainingError
from model.train.run import train
from model.train.state import PREVIOUS_STATE_FILE, STATE_FILE, snapshot_path
from support.forked import Forked
from support.recorded_runs import EXPERIMENT, NUM_UPDATES, recorded_run, write_text
from support.same_states import assert_same_state


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data"))


def start(
    data_folder: Path, output: Path, *, full_after: int | None = None, stop_after: int | None = None
) -> Forked:
    return Forked(recorded_run, data_folder, output, full_after, stop_after)


@pytest.fixture(scope="module")
def unbroken(
    data_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[int, str]]:
    output = tmp_path_factory.mktemp("runs") / "unbroken"
    *losses, is_complete = start(data_folder, output).rest()
    assert is_complete is True
    assert [update for update, _ in losses] == list(range(1, NUM_UPDATES + 1))
    return output, dict(losses)


def assert_same_end(output: Path, unbroken: Path) -> None:
    assert_same_state(output, unbroken)
    names = [{path.name for path in folder.glob("*.safetensors")} for folder in (output, unbroken)]
    assert names[0] == names[1]
    assert not list(output.glob("*.partial"))
    for name in (*names[1], "checkpoint/model.safetensors"):
        assert (output / name).read_bytes() == (unbroken / name).read_bytes(), name


def saved_update(folder: Path, name: str) -> int:
    found: int = torch.load(folder / name, weights_only=True)["progress"]["update"]
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_again_and_again_ends_with_the_bits_of_one_left_alone(
    data_folder: Path, unbroken: tuple[Path, dict[int, str]], tmp_path: Path, seed: int
) -> None:
    folder, losses = unbroken
    choices = random.Random(seed)
    heard: list[Any] = []
    for _ in range(4):
        running = start(data_folder, tmp_path)
        heard += [running.next() for _ in range(choices.randrange(5, 15))]
        time.sleep(choices.uniform(0, 0.02))  # in the middle of whatever it does then
        running.process.kill()
        heard += running.rest()
        assert running.process.exitcode == -9
    heard += start(data_folder, tmp_path).rest()
    assert heard.pop() is True
    assert all(losses[update] == loss for update, loss in heard)
    updates = [update for update, _ in heard]
    repeated = [last - first + 1 for last, first in pairwise(updates) if first <= last]
    assert len(repeated) <= 4
    assert all(num_lost <= 3 + 1 for num_lost in repeated)  # saved every third update
    assert_same_end(tmp_path, folder)


def test_a_full_disk_ends_a_run_with_one_error_and_spares_its_state(
    data_folder: Path, unbroken: tuple[Path, dict[int, str]], tmp_path: Path
) -> None:
    folder, losses = unbroken
    *heard, message = start(data_folder, tmp_path, full_after=14).rest()
    assert heard[-1][0] == 15  # saved every third update
    assert message == (
        f"{tmp_path / STATE_FILE}: the state of update 15 cannot be written: File too large; what"
        " was saved before is whole"
    )
    assert not list(tmp_path.glob("*.partial"))
    heard = start(data_folder, tmp_path).rest()
    assert heard[0] == (13, losses[13])
    assert_same_end(tmp_path, folder)


def test_a_damaged_save_costs_only_the_updates_since_the_one_before(
    data_folder: Path,
    unbroken: tuple[Path, dict[int, str]],
    tmp_path: Path,
) -> None:
    folder, losses = unbroken
    assert start(data_folder, tmp_path, stop_after=17).rest()[-1] is False
    path = tmp_path / STATE_FILE
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert snapshot_path(tmp_path, 16).exists()  # later than the state before, of update 15
    other = shutil.copytree(tmp_path, tmp_path / "other")
    heard = start(data_folder, tmp_path).rest()
    assert heard[0] == (16, losses[16])
    assert heard[-1] is True
    assert_same_end(tmp_path, folder)
    # The next save drops the damaged one: what the run went on from stays.
    assert start(data_folder, other, stop_after=17).rest()[-1] is False
    assert [saved_update(other, name) for name in (STATE_FILE, PREVIOUS_STATE_FILE)] == [17, 15]


def test_the_state_before_the_last_one_is_kept(unbroken: tuple[Path, dict[int, str]]) -> None:
    assert saved_update(unbroken[0], PREVIOUS_STATE_FILE) == NUM_UPDATES - 1


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
    data_folder: Path, unbroken: tuple[Path, dict[int, str]], tmp_path: Path
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
    assert_same_end(tmp_path, unbroken[0])
