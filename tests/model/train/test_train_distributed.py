"""Two workers over Gloo against one: the same run, only shared out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from model.errors import ConfigError
from model.train.distributed import Group, joined_group
from model.train.state import list_snapshots, load_snapshot
from service.cli.main import main
from support.tiny_checkpoint import generated_pairs

ROOT = Path(__file__).parents[3]
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


@pytest.mark.workers
def test_two_workers_make_the_network_that_one_makes(folder: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    workers = subprocess.run(
        [*torchrun, "--nproc-per-node=2", "-m", "service.cli.main", *arguments(folder, "two")],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert workers.returncode == 0, workers.stderr
    assert workers.stdout.strip() == str(folder / "two" / "checkpoint")  # said once
    assert main(arguments(folder, "one")) == 0
    alone, shared = (load_snapshot(list_snapshots(folder / name)[-1]) for name in ("one", "two"))
    for name, value in alone.items():
        torch.testing.assert_close(shared[name], value, rtol=0, atol=1e-5)


def test_batches_are_dealt_out_without_remainder() -> None:
    batches = list(range(7))
    parts = [Group(rank=rank, size=3).deal(batches) for rank in range(3)]
    assert sorted(item for part in parts for item in part) == batches
    assert Group().deal(batches) == batches


def test_without_torchrun_a_worker_is_alone() -> None:
    with joined_group({}, torch.device("cpu")) as group:
        assert (group.rank, group.size) == (0, 1)
        assert group.is_first


def test_half_an_environment_is_refused() -> None:
    environment = {"WORLD_SIZE": "2", "RANK": "0"}
    with (
        pytest.raises(ConfigError, match="LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not"),
        joined_group(environment, torch.device("cpu")),
    ):
        pass


def test_other_workers_have_dropout_of_their_own_that_a_resumed_run_repeats() -> None:
    drawn = []
    for rank, update in ((1, 5), (2, 5), (1, 6), (1, 5)):
        Group(rank=rank, size=3).seed_dropout(1, update)
        drawn.append(torch.rand(4).tolist())
    assert drawn[0] == drawn[3]
    assert len({tuple(values) for values in drawn}) == 3
