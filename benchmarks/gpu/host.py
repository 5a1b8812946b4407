"""Time of the host a sentence of a grid: admission, launches, reading, ends.

    python -m benchmarks.gpu.host [--sentences 1024] [--rounds 5]

Owns a grid whose network does nothing and whose steps are reports prepared beforehand, so that what
is left is Python, NumPy and torch's own calls. It needs no GPU: times are those of the process's
own work, which other programs beside it change little. Garbage collection is on, as in a server.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import write_result
from model.config import ModelConfig, SearchConfig, SpecialTokens
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.grid import Grid
from model.decode.backends.cuda.network import GridNetwork
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.cuda.tables import GridTables
from model.nn.transformer import Transformer
from model.request import DecodeRequest, SessionLimits

RESULTS = Path(__file__).parents[1] / "results"
SOURCE_LENGTH, SHORTEST, LONGEST, WIDTH, VOCABULARY = 25, 16, 48, 4, 64
TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0,))


class _IdleNetwork(GridNetwork):
    """A network that encodes nothing."""

    def encode(self, ids: Tensor, lengths: Tensor, slots: Tensor, tables: GridTables) -> None:
        """Leave the tables as they are."""


class _PreparedGrid(Grid):
    """A grid whose steps have been done before."""

    prepared: Iterator[Tensor] = iter(())

    def _step(self, bucket: Bucket) -> Callable[[], Tensor]:
        return lambda: next(self.prepared)[: bucket.num_slots]


def open_grid(num_sentences: int) -> _PreparedGrid:
    """A grid for so many sentences at once, of a network that is small and does nothing."""
    config = ModelConfig(
        vocab_size=VOCABULARY,
        d_model=8,
        num_heads=1,
        d_ff=8,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    limits = SessionLimits(
        max_rows=WIDTH * num_sentences,
        max_slots=num_sentences,
        max_source_length=64,
        max_target_length=LONGEST + 1,
    )
    return _PreparedGrid(
        _IdleNetwork(Transformer(config).eval()),
        width=WIDTH,
        num_slots=num_sentences,
        tokens=TOKENS,
        limits=limits,
        recorder=Rerun(),
    )


def requests(num_sentences: int) -> list[DecodeRequest]:
    """Sentences of 25 tokens; slot s answers with 16 to 48 tokens, by its number."""
    generator = np.random.default_rng(1)
    ids = generator.integers(3, VOCABULARY, (num_sentences, SOURCE_LENGTH)).tolist()
    search = SearchConfig(beam_size=WIDTH, stopping="first", max_length=LONGEST)
    return [
        DecodeRequest(source_ids=tuple(source), prefix_ids=(0,), search=search) for source in ids
    ]


def reports(num_sentences: int) -> list[Tensor]:
    """What every step of a round says, as `search.unpack` reads it: (S, 4K + 1 + 4C) int32."""
    generator = np.random.default_rng(2)
    num_candidates = 2 * WIDTH
    lengths = SHORTEST + np.arange(num_sentences) % (LONGEST - SHORTEST + 1)
    found = []
    for position in range(LONGEST):
        tokens = generator.integers(3, VOCABULARY, (num_sentences, WIDTH))
        parents = generator.integers(0, WIDTH, (num_sentences, WIDTH))
        ends = np.zeros((num_sentences, num_candidates), dtype=np.int32)
        is_last = lengths == position + 1
        ends[is_last, :WIDTH] = 1
        ends[generator.random(num_sentences) < 0.1, 1] = 1
        beams = generator.integers(0, WIDTH, (num_sentences, num_candidates))
        best = np.where(is_last, -np.inf, -1.0)[:, None]
        scores = -np.sort(generator.random((num_sentences, num_candidates)))
        real = (-generator.random((num_sentences, WIDTH)), best, scores, scores)
        whole = (tokens, parents, np.zeros_like(tokens), ends, beams)
        packed = [part.astype(np.int32) for part in whole]
        packed += [part.astype(np.float32).view(np.int32) for part in real]
        found.append(torch.from_numpy(np.concatenate(packed, axis=1)))
    return found


def one_round(
    grid: _PreparedGrid, sentences: Sequence[DecodeRequest], prepared: Sequence[Tensor]
) -> dict[str, float]:
    """Seconds of the process by part, from the first admission to the last end."""
    seconds: dict[str, float] = dict.fromkeys(("admit", "launch", "collect"), 0.0)

    @contextmanager
    def counted(part: str) -> Iterator[None]:
        started = time.process_time()
        yield
        seconds[part] += time.process_time() - started

    grid.prepared = iter(prepared)
    num_done = 0
    with counted("admit"):
        grid.admit(range(len(sentences)), sentences)
    while not grid.is_idle:
        with counted("launch"):
            grid.launch()
        with counted("collect"):
            num_done += len(grid.collect())
    assert num_done == len(sentences)
    return seconds


def measure(num_sentences: int, num_rounds: int) -> dict[str, Any]:
    """Microseconds a sentence by part, the least of the rounds, with and without `gc.freeze`."""
    grid, prepared = open_grid(num_sentences), reports(num_sentences)
    sentences = requests(num_sentences)
    one_round(grid, sentences, prepared)
    found: dict[str, Any] = {"sentences": num_sentences}
    for name in ("collected", "frozen"):
        if name == "frozen":
            gc.collect()
            gc.freeze()
        rounds = [one_round(grid, sentences, prepared) for _ in range(num_rounds)]
        best = min(rounds, key=lambda each: sum(each.values()))
        found[name] = {part: round(1e6 * best[part] / num_sentences, 2) for part in best}
        found[name]["all"] = round(1e6 * sum(best.values()) / num_sentences, 2)
    gc.unfreeze()
    return found


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Measure what a sentence costs the host.")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with torch.inference_mode():
        found = measure(arguments.sentences, arguments.rounds)
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.gpu.host", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "microseconds_a_sentence": found,
    }
    path = write_result(arguments.output, "gpu-host", now, report)
    print(json.dumps(found, indent=1))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
