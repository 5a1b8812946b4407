"""Whole runs of two workers over Gloo: stopped and resumed, and refused where they differ."""

import errno
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import pytest
import torch

from model.errors import TrainingError
from model.train.data.store import hash_file
from model.train.loop.distributed import Group
from model.train.saved.state import STATE_FILE
from model.train.stopping import ShouldStop, never
from support.forked import Send, run_workers
from support.same_states import assert_same_state
from support.tiny_runs import EXPERIMENT as TINY
from support.tiny_runs import StopInScores, run

SHARED = replace(
    TINY,
    data=replace(TINY.data, report=()),
    run=replace(
        TINY.run,
        update_freq=3,  # two batches for one worker, one for the other
        score_dev=False,
        metric="loss",
        final_beam_size=1,
        average_counts=(),
    ),
)


def resume_another(send: Send, group: Group, *, output: Path, data: Path) -> None:
    """Resume a run whose state is of another seed, which only the state says."""
    other = replace(TINY, run=replace(TINY.run, seed=2, update_freq=2))
    try:
        run(data, output, experiment=other, resume=True, group=group)
    except TrainingError as error:
        send((type(error).__name__, str(error)))


def test_that_a_state_does_not_fit_is_told_by_the_first_worker_alone(
    data_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    assert not run(data_folder, output, num_updates=1)
    (output / "experiment.yaml").unlink()
    resume = partial(resume_another, output=output, data=data_folder)
    sent, exits = run_workers(resume, size=2)
    assert exits == [0, 0]
    (first, *_), (second, *_) = sent
    assert first[0] == "TrainingError"
    assert "belongs to another experiment" in first[1]
    told = "the first worker has ended, and says why"
    assert second == ("FirstWorkerError", told)


def stop_at_once(send: Send, group: Group, *, output: Path, data: Path) -> None:
    """Both are asked to stop, as torchrun does, and only the first has a say."""
    shared = replace(TINY, run=replace(TINY.run, update_freq=2))
    try:
        send(run(data, output, experiment=shared, group=group, should_stop=lambda: True))
    except TrainingError as error:
        send(type(error).__name__)
        raise SystemExit from error


def test_two_workers_that_are_stopped_before_they_train_leave_together(
    data_folder: Path, tmp_path: Path
) -> None:
    stop = partial(stop_at_once, output=tmp_path / "run", data=data_folder)
    sent, _ = run_workers(stop, size=2)
    assert sent[0][0] is False
    assert sent[1] == ["FirstWorkerError"]
    assert not list((tmp_path / "run").iterdir())


def train_together(
    send: Send,
    group: Group,
    *,
    output: Path,
    data: Path,
    resume: bool = False,
    num_updates: int = 10_000,
    should_stop: ShouldStop = never,
) -> NoReturn:
    """Says whether the run came to its end."""
    is_complete = run(
        data,
        output,
        experiment=SHARED,
        group=group,
        resume=resume,
        num_updates=num_updates,
        should_stop=should_stop,
    )
    send(is_complete)
    raise SystemExit  # the run has parted the workers


def trained(output: Path, data: Path, **settings: Any) -> Sequence[object]:
    """What the two workers say."""
    sent, exits = run_workers(partial(train_together, output=output, data=data, **settings), size=2)
    assert exits == [0, 0]
    return [said for (said,) in sent]


def saved_updates(folder: Path) -> tuple[int, int | None]:
    progress = torch.load(folder / STATE_FILE, weights_only=True)["progress"]
    return progress["update"], progress["scored_update"]


@pytest.fixture(scope="module")
def unbroken(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "unbroken"
    assert trained(output, data_folder) == [True, True]
    return output


def assert_same_end(output: Path, unbroken: Path) -> None:
    assert_same_state(output, unbroken)
    name = "checkpoint/model.safetensors"
    assert (output / name).read_bytes() == (unbroken / name).read_bytes()


def test_two_workers_stopped_between_updates_end_with_the_bits_of_two_that_were_not(
    data_folder: Path, unbroken: Path, tmp_path: Path
) -> None:
    assert trained(tmp_path, data_folder, num_updates=7) == [False, False]
    assert saved_updates(tmp_path) == (7, 4)
    assert trained(tmp_path, data_folder, resume=True) == [True, True]
    assert_same_end(tmp_path, unbroken)


def test_two_workers_stopped_while_the_first_scores_do_so_too(
    data_folder: Path, unbroken: Path, tmp_path: Path
) -> None:
    stop = StopInScores(tmp_path, update=8)
    assert trained(tmp_path, data_folder, should_stop=stop) == [False, False]
    assert saved_updates(tmp_path) == (8, 4)
    assert trained(tmp_path, data_folder, resume=True) == [True, True]
    assert_same_end(tmp_path, unbroken)


def differ(
    send: Send, group: Group, *, output: Path, data: Path, others: dict[str, Any], **settings: Any
) -> None:
    """The second worker is started with what `others` says; both say what they come to."""
    own = {"experiment": SHARED, "data": data, **settings} | ({} if group.is_first else others)
    try:
        is_complete = run(own.pop("data"), output, group=group, **own)
    except TrainingError as error:
        send((type(error).__name__, str(error)))
    else:
        send(is_complete)
        raise SystemExit  # the run has parted the workers


def refused(output: Path, data: Path, *, others: dict[str, Any], **settings: Any) -> str:
    """The one error of both workers; the first alone reports it."""
    sent, exits = run_workers(
        partial(differ, output=output, data=data, others=others, **settings), size=2
    )
    assert exits == [0, 0]
    (first, *_), (second, *_) = sent
    assert (first[0], second[0]) == ("TrainingError", "FirstWorkerError")
    assert first[1] == second[1]
    assert first[1].startswith("worker 1 is not about to do what worker 0 is: ")
    return str(first[1])


def test_a_worker_with_another_experiment_is_refused_by_the_key(
    data_folder: Path, tmp_path: Path
) -> None:
    other = replace(SHARED, schedule=replace(SHARED.schedule, peak=1e-2))
    message = refused(tmp_path, data_folder, others={"experiment": other})
    assert "schedule.peak is 0.01 there, and 0.005 here" in message
    assert not list(tmp_path.iterdir())


def test_a_worker_with_other_text_is_refused_and_leaves_no_text(
    data_folder: Path, tmp_path: Path
) -> None:
    output, copy = tmp_path / "run", tmp_path / "copy"
    shutil.copytree(data_folder, copy)
    source = copy / "en-zh" / "train" / "talk.en"
    source.write_text(source.read_text(encoding="utf-8").upper(), encoding="utf-8")
    message = refused(output, data_folder, others={"data": copy})
    assert "the training text's en-zh talk, source is " in message
    (store,) = (output / "text").iterdir()
    facts = json.loads((output / "text.json").read_bytes())
    assert facts["key"] == store.name
    hash_here = hash_file(data_folder / "en-zh" / "train" / "talk.en")
    assert facts["made_of"]["en-zh talk, source"] == hash_here


@pytest.mark.parametrize("is_first_resumed", [True, False])
def test_a_worker_without_the_others_resume_is_refused(
    data_folder: Path, tmp_path: Path, *, is_first_resumed: bool
) -> None:
    assert trained(tmp_path, data_folder, num_updates=1) == [False, False]
    message = refused(
        tmp_path, data_folder, resume=is_first_resumed, others={"resume": not is_first_resumed}
    )
    words = ("not given", "given") if is_first_resumed else ("given", "not given")
    assert f"--resume is {words[0]} there, and {words[1]} here" in message


def resume_with_one_read_failed(send: Send, group: Group, *, output: Path, data: Path) -> None:
    """The second worker cannot read the latest state, once."""
    reads, load = iter(range(9)), torch.load

    def failing(*arguments: Any, **settings: Any) -> Any:
        if next(reads) == 0 and not group.is_first:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return load(*arguments, **settings)

    with patch.object(torch, "load", failing):
        differ(send, group, output=output, data=data, others={}, resume=True)


def test_a_worker_that_goes_on_from_the_state_before_is_refused(
    data_folder: Path, tmp_path: Path
) -> None:
    assert trained(tmp_path, data_folder, num_updates=7) == [False, False]
    kept = sorted(path.name for path in tmp_path.iterdir())
    resume = partial(resume_with_one_read_failed, output=tmp_path, data=data_folder)
    sent, exits = run_workers(resume, size=2)
    assert exits == [0, 0]
    names, messages = zip(*(said for said, *_ in sent), strict=True)
    assert names == ("TrainingError", "FirstWorkerError")
    assert "the state's update is 0 there, and 7 here" in messages[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
