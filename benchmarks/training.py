"""`python -m benchmarks.training`: how fast a CPU trains, and what `model.system.allocator` does.

Trains the tiny network (Wu et al. 2021) on random ids with the lengths of image captions, with and
without R-Drop, in float32 and in bfloat16, in one process after the other: with the allocator as it
is and with memory kept.
They take turns; prints a table of medians and writes benchmarks/results/training-<time>.json.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.nn.transformer import Transformer
from model.system.allocator import keep_freed_memory
from model.train.config.optimiser import OptimiserConfig
from model.train.config.presets import preset_network
from model.train.config.run import Precision, RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.data.batching import BatchStream
from model.train.loop.trainer import Trainer, build_optimiser

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY_SIZE = 10_000
NUM_PAIRS = 20_000
NUM_WARM_UP = 5
SEED = 1
MEMORY = ("as it is", "kept")
LOSSES = {"cross-entropy": 0.0, "R-Drop": 5.0}
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
Case = tuple[str, str, Precision]
"""Loss, memory and precision of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What one process measured.

    Attributes:
        tokens_per_second: Source and target tokens, each counted once.
        peak_mib: Of its memory.
    """

    tokens_per_second: float
    peak_mib: float


class RandomPairs:
    """Pairs of random ids, 4 to 40 tokens a side, most of them about 13."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)
        self.source_lengths, self.target_lengths = (self._lengths(), self._lengths())

    def __len__(self) -> int:
        return NUM_PAIRS

    def epoch_copies(self, epoch: int) -> NDArray[np.int64]:  # noqa: ARG002  # the protocol's
        """Every pair once."""
        return np.ones(NUM_PAIRS, dtype=np.int64)

    def rows(
        self,
        indices: Sequence[int],
        *,
        epoch: int,  # noqa: ARG002  # the protocol's
        number: int,  # noqa: ARG002  # the protocol's
    ) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """Ids that are new every time."""
        sources, targets = (
            [
                self._random.integers(4, VOCABULARY_SIZE, int(lengths[index]), dtype=np.int32)
                for index in indices
            ]
            for lengths in (self.source_lengths, self.target_lengths)
        )
        return sources, targets

    def _lengths(self) -> NDArray[np.int64]:
        return np.clip(self._random.lognormal(2.6, 0.35, NUM_PAIRS), 4, 40).astype(np.int64)


def measure(arguments: argparse.Namespace) -> Speed:
    """Train in this process."""
    if arguments.memory == "kept" and not keep_freed_memory():
        raise SystemExit("the C library is not glibc: there is nothing to compare")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(SEED)
    transformer = Transformer(preset_network("tiny", vocab_size=VOCABULARY_SIZE))
    optimiser = OptimiserConfig(rdrop_alpha=LOSSES[arguments.loss])
    stream = BatchStream(RandomPairs(), max_tokens=4096, seed=SEED, pad_id=0, start_id=1)
    trainer = Trainer(
        transformer,
        build_optimiser(transformer, optimiser),
        stream,
        optimiser_config=optimiser,
        schedule=ScheduleConfig(kind="constant", peak=1e-4),
        run=RunConfig(max_updates=10**6, batch_tokens=4096, precision=arguments.precision),
        clock=time.perf_counter,
    )
    for _ in range(NUM_WARM_UP):
        trainer.update([next(stream)])
    started, num_tokens = time.perf_counter(), 0
    for _ in range(arguments.updates):
        result = trainer.update([next(stream)])
        num_tokens += result.num_source_tokens + result.num_target_tokens
    seconds = time.perf_counter() - started
    return Speed(
        tokens_per_second=round(num_tokens / seconds, 1),
        peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )


def main() -> None:
    """Take turns, or be one of those that do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--updates", type=int, default=20, help="a process (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--memory", choices=MEMORY, help="measure this alone, in this process")
    parser.add_argument("--loss", choices=LOSSES, default="cross-entropy", help="with --memory")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32", help="with --memory")
    arguments = parser.parse_args()
    if arguments.memory:
        speed = measure(arguments)
        print(json.dumps([speed.tokens_per_second, speed.peak_mib]))
        return
    started = datetime.now(UTC)
    cases = list(product(LOSSES, MEMORY, PRECISIONS))
    speeds: dict[Case, list[Speed]] = {case: [] for case in cases}
    for number in range(arguments.rounds):
        for case in cases if number % 2 == 0 else reversed(cases):
            speeds[case].append(in_a_process(arguments, case))
    result = {
        "benchmark": "training",
        "command": describe_command("benchmarks.training", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "num_threads": arguments.threads,
        "num_updates": arguments.updates,
        "cases": [
            {
                "loss": loss,
                "memory": memory,
                "precision": precision,
                "tokens_per_second": [speed.tokens_per_second for speed in found],
                "peak_mib": [speed.peak_mib for speed in found],
            }
            for (loss, memory, precision), found in speeds.items()
        ],
    }
    path = write_result(arguments.results, "training", started, result)
    print(table(speeds))
    print(f"\n{path}")


def in_a_process(arguments: argparse.Namespace, case: Case) -> Speed:
    """Measure one case where no other has left anything."""
    loss, memory, precision = case
    command = [sys.executable, "-m", "benchmarks.training"]
    command += ["--memory", memory, "--loss", loss, "--precision", precision]
    command += ["--threads", str(arguments.threads), "--updates", str(arguments.updates)]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    tokens_per_second, peak_mib = json.loads(done.stdout)
    return Speed(tokens_per_second=tokens_per_second, peak_mib=peak_mib)


def table(speeds: dict[Case, list[Speed]]) -> str:
    """The medians, in Markdown."""
    lines = [
        "| loss | freed memory | precision | tokens/s | peak, MiB |",
        "| --- | --- | --- | --: | --: |",
    ]
    for (loss, memory, precision), found in speeds.items():
        rate = statistics.median(speed.tokens_per_second for speed in found)
        peak = statistics.median(speed.peak_mib for speed in found)
        lines.append(f"| {loss} | {memory} | {precision} | {rate:,.0f} | {peak:,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
