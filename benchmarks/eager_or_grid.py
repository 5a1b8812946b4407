"""`python -m benchmarks.eager_or_grid`: the two backends in PyTorch on a CPU, side by side.

Decodes random ids with a bundled network in float32 by the eager backend and by the grid without
recording, which take turns, on one and two threads. Prints a table of medians and writes
benchmarks/results/eager-or-grid-<time>.json. The decision it serves is in ARCHITECTURE.md.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.config import SearchConfig, SpecialTokens
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.loading import Runnable, load_for_decoding
from model.nn.transformer import Transformer

ROOT = Path(__file__).resolve().parents[1]
CHECKPOINT = ROOT / "checkpoints" / "en-zh-small"
LIMITS = SessionLimits(max_rows=128, max_slots=32, max_source_length=64, max_target_length=64)
SHAPES = ((1, 1), (1, 32), (4, 1), (4, 8), (4, 32))
"""Beams and sentences."""
SOURCE_LENGTH, TARGET_LENGTH = 21, 41
NUM_ROUNDS = 5


def _eager(transformer: Transformer, *, tokens: SpecialTokens, limits: SessionLimits) -> Backend:
    return EagerBackend(transformer, tokens=tokens, limits=limits)


def _grid(transformer: Transformer, *, tokens: SpecialTokens, limits: SessionLimits) -> Backend:
    return GridBackend(transformer, tokens=tokens, limits=limits, recorder=Rerun())


OPENERS: dict[str, Callable[..., Backend]] = {"eager": _eager, "grid": _grid}


def _requests(loaded: Runnable, *, beam_size: int, num_sentences: int) -> list[DecodeRequest]:
    tokens, source = loaded.manifest.tokens, random.Random(num_sentences)
    size = loaded.manifest.network.vocab_size
    return [
        DecodeRequest(
            source_ids=(*source.choices(range(10, size), k=SOURCE_LENGTH - 1), tokens.eos_id),
            prefix_ids=(tokens.start_id,),
            search=SearchConfig(beam_size=beam_size, max_length=TARGET_LENGTH),
        )
        for _ in range(num_sentences)
    ]


def _seconds(loaded: Runnable, requests: list[DecodeRequest], opener: str) -> float:
    """Seconds of a second run in the same session; the first one warms up."""
    session = DecodingSession(
        loaded.network, tokens=loaded.manifest.tokens, limits=LIMITS, opener=OPENERS[opener]
    )
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        session.admit(requests)
        while not session.is_idle:
            session.step()
        seconds = time.perf_counter() - started
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the results."""
    parser = argparse.ArgumentParser(description="eager and grid backends on a CPU")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    loaded = load_for_decoding(CHECKPOINT, compute_type="float32")
    rows = []
    print("| threads | beam | sentences | eager, s | grid, s | grid / eager |")
    print("|--:|--:|--:|--:|--:|--:|")
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        for beam_size, num_sentences in SHAPES:
            requests = _requests(loaded, beam_size=beam_size, num_sentences=num_sentences)
            rounds = [
                {name: _seconds(loaded, requests, name) for name in OPENERS}
                for _ in range(NUM_ROUNDS)
            ]
            median = {name: statistics.median(one[name] for one in rounds) for name in OPENERS}
            ratio = statistics.median(one["grid"] / one["eager"] for one in rounds)
            print(
                f"| {num_threads} | {beam_size} | {num_sentences} | {median['eager']:.3f}"
                f" | {median['grid']:.3f} | {ratio:.2f} |"
            )
            shape = {"num_threads": num_threads, "beam_size": beam_size}
            rows.append(shape | {"num_sentences": num_sentences, "rounds": rounds, "ratio": ratio})
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.eager_or_grid", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "checkpoint": CHECKPOINT.name,
        "rows": rows,
    }
    write_result(options.results, "eager-or-grid", now, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
