"""Two workers over Gloo against one: the same run, only shared out."""

import contextlib
import io
import json
import math
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.errors import DataError, TrainingError
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.loop.distributed import (
    FirstWorkerError,
    Group,
)
from model.train.saved.state import list_snapshots, load_snapshot
from service.cli.main import main
from support.forked import Forked, Send, all_of, free_port, run_workers
from support.tiny_checkpoint import generated_pairs
from support.training import (
    Recorder,
    SecondPassDiffers,
    cut,
    gradients,
    network,
    reversal_pairs,
    trainer,
)

ROOT = Path(__file__).parents[4]
LOST = (
    "another worker has ended; if its log does not say why, the system killed it (out of memory?)"
)
EXPERIMENT = """
name: tiny
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  train: [{name: talk, licence: CC0-1.0}]
  dev: [talk]
  regularisation: {alpha: 0.2}
vocabulary: {size: 450}
network:
  {d_model: 16, num_heads: 2, d_ff: 16, num_encoder_layers: 1, num_decoder_layers: 1, dropout: 0.0}
schedule: {peak: 1e-2, warmup_updates: 2}
optimiser: {epsilon: 1e-4}
run:
  {max_updates: 6, batch_tokens: 200, update_freq: 3, score_dev: false, final_beam_size: 1}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "dev"):
        (tmp_path / "data" / "en-zh" / split).mkdir(parents=True)
        for language, side in (("en", 0), ("zh", 1)):
            lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(60))
            path = tmp_path / "data" / "en-zh" / split / f"talk.{language}"
            path.write_text(lines, encoding="utf-8")
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return tmp_path


def arguments(folder: Path, output: str) -> list[str]:
    experiment, data = str(folder / "tiny.yaml"), str(folder / "data")
    flags = ["--data", data, "--output", str(folder / output), "--device", "cpu"]
    return ["train", experiment, *flags, "--threads", "1"]


def on_two_nodes(command: list[str]) -> list[tuple[int, str, str]]:
    """A command under one torchrun a node, as if these were two machines, with a worker each.

    Returns:
        Of each node the exit status, standard output and standard error.
    """
    rendezvous = ["--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node=1"]
    nodes = [
        subprocess.Popen(
            [*torchrun, f"--node-rank={rank}", "-m", "service.cli.main", *command],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [node.communicate(timeout=150) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return [(node.returncode, *texts) for node, texts in zip(nodes, said, strict=True)]


def test_two_nodes_make_the_network_that_one_worker_makes(folder: Path) -> None:
    first, second = on_two_nodes(arguments(folder, "two"))
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    # Said once, where rank 0 is.
    assert first[1].strip() == str(folder / "two" / "checkpoint")
    assert second[1] == ""
    assert main(arguments(folder, "one")) == 0
    alone, shared = (load_snapshot(list_snapshots(folder / name)[-1]) for name in ("one", "two"))
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, rtol=0, atol=1e-5)


def accumulate(send: Send, group: Group) -> None:
    """Eight batches of four sentences: the loss and the gradient of all of them."""
    for rdrop_alpha in (0.0, 3.0):
        transformer = network(dtype=torch.float64)
        if rdrop_alpha:
            transformer.encoder.dropout = SecondPassDiffers()
        config = OptimiserConfig(rdrop_alpha=rdrop_alpha)
        loss = trainer(transformer, optimiser=config, group=group).accumulate(
            cut(reversal_pairs(32), 4)
        )
        loss = group.sum(loss.item(), torch.device("cpu"))
        send((loss, {name: value.numpy() for name, value in gradients(transformer).items()}))


def test_two_workers_accumulate_the_gradient_of_the_large_batch() -> None:
    sent, exits = run_workers(accumulate, size=2)
    assert exits == [0, 0]
    for number, rdrop_alpha in enumerate((0.0, 3.0)):
        transformer = network(dtype=torch.float64)
        if rdrop_alpha:
            transformer.encoder.dropout = SecondPassDiffers()
        config = OptimiserConfig(rdrop_alpha=rdrop_alpha)
        loss = trainer(transformer, optimiser=config).accumulate(cut(reversal_pairs(32), 32))
        loss = loss.item()
        expected = gradients(transformer)
        for found_loss, found in (messages[number] for messages in sent):
            assert found_loss == pytest.approx(loss, abs=1e-12)
            assert found.keys() == expected.keys()
            for name, gradient in expected.items():
                assert np.abs(found[name] - gradient.numpy()).max() < 1e-12, name


def fail_first(send: Send, group: Group) -> None:
    """A block in which the first worker cannot go on."""

    def read() -> None:
        send("reads")
        raise DataError("no text")

    try:
        with group.first_worker_first(torch.device("cpu")):
            read()
    except (DataError, FirstWorkerError) as error:
        send(str(error))


def test_the_others_leave_when_the_first_cannot_go_on() -> None:
    sent, exits = run_workers(fail_first, size=2)
    assert exits == [0, 0]
    assert sent[0][:2] == ["reads", "no text"]
    assert sent[1][0] == "the first worker has ended, and says why"


def fail_in_the_middle(send: Send, group: Group, *, rank: int) -> None:
    """One worker comes to an error between two sums."""
    try:
        group.sum(1.0, torch.device("cpu"))
        if group.rank == rank:
            raise DataError("no more text")
        group.sum(1.0, torch.device("cpu"))
    except TrainingError as error:
        send((type(error).__name__, str(error)))
        raise SystemExit from error


@pytest.mark.parametrize(("rank", "kind"), [(0, "FirstWorkerError"), (1, "TrainingError")])
def test_who_loses_the_other_in_the_middle_says_so_in_one_sentence(rank: int, kind: str) -> None:
    sent, exits = run_workers(partial(fail_in_the_middle, rank=rank), size=2)
    assert exits[rank] == 1
    assert exits[1 - rank] == 0
    assert sent[1 - rank] == [(kind, LOST)]


def die_in_the_middle(send: Send, group: Group) -> None:
    """The second worker is killed, as by a system that is out of memory."""
    group.sum(1.0, torch.device("cpu"))
    if not group.is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        group.sum(1.0, torch.device("cpu"))
    except TrainingError as error:
        send(str(error))
        raise SystemExit from error


def test_of_a_worker_that_was_killed_nobody_claims_that_it_told_why() -> None:
    sent, exits = run_workers(die_in_the_middle, size=2)
    assert exits == [0, -signal.SIGKILL]
    assert sent == [[LOST], []]


def learn(send: Send, group: Group) -> None:
    """A run of 20 updates of four batches each: its losses, and what is left of it."""
    recorder = Recorder()
    transformer = network(dtype=torch.float64)
    run = RunConfig(max_updates=20, update_freq=4)
    trainer(transformer, run=run, group=group).train(recorder)
    send([result.loss for result in recorder.results])
    send([result.gradient_norm for result in recorder.results])


def meet_a_nan(send: Send, group: Group) -> None:
    """The second worker's part of the second update has no finite gradient."""
    recorder = Recorder()
    transformer = network()
    numbers = iter(range(1, 99))
    if not group.is_first:
        transformer.get_parameter("output_bias").register_hook(
            lambda gradient: gradient * math.nan if next(numbers) == 2 else gradient
        )
    run = RunConfig(max_updates=3, update_freq=2)
    trainer(transformer, run=run, group=group).train(recorder)
    send([result.is_skipped for result in recorder.results])
    send({name: value.numpy() for name, value in transformer.state_dict().items()})


def test_what_one_worker_cannot_use_both_skip() -> None:
    sent, exits = run_workers(meet_a_nan, size=2)
    assert exits == [0, 0]
    assert [skipped for skipped, *_ in sent] == [[False, True, False]] * 2
    weights = [found for _, found, _ in sent]
    for name, value in weights[0].items():
        assert np.isfinite(value).all()
        assert np.array_equal(weights[1][name], value), name


def diverge(send: Send, group: Group) -> None:
    """No update has a finite gradient."""
    transformer = network()
    transformer.get_parameter("output_bias").register_hook(lambda gradient: gradient * math.nan)
    run = RunConfig(max_updates=9, update_freq=2, max_skipped_updates=1)
    try:
        trainer(transformer, run=run, group=group).train(Recorder())
    except TrainingError as error:
        send((type(error).__name__, str(error)))


def test_that_a_run_has_diverged_is_told_by_the_first_worker_alone() -> None:
    sent, exits = run_workers(diverge, size=2)
    assert exits == [0, 0]
    names = [name for (name, message), *_ in sent if "the run has diverged" in message]
    assert names == ["TrainingError", "FirstWorkerError"]


@pytest.fixture(scope="module")
def learnt_by_two() -> list[list[Any]]:
    sent, exits = run_workers(learn, size=2)
    assert exits == [0, 0]
    return sent


def test_two_workers_have_the_loss_curve_of_one(learnt_by_two: list[list[Any]]) -> None:
    alone: list[list[float]] = []
    learn(alone.append, Group())  # type: ignore[arg-type]  # it sends these lists
    for losses, norms, _ in learnt_by_two:
        np.testing.assert_allclose(losses, alone[0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(norms, alone[1], rtol=0, atol=1e-8)
    assert alone[0][-1] < 0.9 * alone[0][0]


def test_leaving_a_group_ends_its_threads(learnt_by_two: list[list[Any]]) -> None:
    # Were they alive while the interpreter ends, they would now and then abort the process.
    for _, _, threads in learnt_by_two:
        assert not [name for name in threads if "gloo" in name]


def test_batches_are_dealt_out_without_remainder() -> None:
    batches = list(range(7))
    parts = [Group(rank=rank, size=3).shard(batches) for rank in range(3)]
    assert sorted(item for part in parts for item in part) == batches
    assert Group().shard(batches) == batches


def test_other_workers_have_dropout_of_their_own_that_a_resumed_run_repeats() -> None:
    drawn = []
    for rank, update in ((1, 5), (2, 5), (1, 6), (1, 5)):
        Group(rank=rank, size=3).seed_dropout(1, update)
        drawn.append(torch.rand(4).tolist())
    assert drawn[0] == drawn[3]
    assert len({tuple(values) for values in drawn}) == 3


def run_command(send: Send, rank: int, port: int, command: list[str]) -> None:
    """The command as torchrun would run it: what it says on standard error, and its status."""
    variables = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in variables.items()})
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(command)
    send((status, said.getvalue()))


def test_what_is_wrong_with_an_experiment_is_told_by_the_first_worker_alone(folder: Path) -> None:
    experiment = folder / "tiny.yaml"
    experiment.write_text(EXPERIMENT.replace("vocabulary:", "vocabluary:"), encoding="utf-8")
    port = free_port()
    command = arguments(folder, "two")
    workers = [Forked(run_command, rank, port, command) for rank in range(2)]
    (first,), (second,) = all_of(workers)
    assert first[0] == 1
    (event,) = map(json.loads, first[1].splitlines())
    assert (event["event"], event["level"]) == ("error", "error")
    assert event["text"].startswith(f"{experiment}:11: vocabluary is unknown")
    assert second == (0, "")  # with another status torchrun would end the first before it speaks
