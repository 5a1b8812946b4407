"""`python -m benchmarks.bulk`: bulk jobs of both engines against the lines of `dragoman translate`.

The same lines, as often as they are wanted, are translated by commands as anybody gives them: line
by line into a file, by `--engine local`, by `--engine ray` with one and with two workers, each of
one thread, and the first two with two threads. Each does a short and a long file, so that the
difference is free of what starting costs; the starts are in the results too. Prints lines a second
and a worker, and writes benchmarks/results/bulk-<time>.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine

ROOT = Path(__file__).resolve().parents[1]
_DRAGOMAN = [sys.executable, "-m", "service.cli.main", "translate"]
_TIMEOUT_SECONDS = 600
_BLOCK_ROWS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to translate a file.

    Attributes:
        name: It.
        num_workers: Processes that hold a network.
        num_threads: Of each.
        flags: Besides input and output.
    """

    name: str
    num_workers: int
    num_threads: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a way took.

    Attributes:
        way: It.
        seconds: Of the short and of the long file, starts included.
        lines_per_second: By the difference.
    """

    way: Way
    seconds: tuple[float, float]
    lines_per_second: float

    @property
    def per_worker(self) -> float:
        """Lines a second and a worker."""
        return self.lines_per_second / self.way.num_workers


WAYS = (
    Way(name="lines", num_workers=1, num_threads=1),
    Way(name="local", num_workers=1, num_threads=1, flags=("--engine", "local")),
    Way(name="ray", num_workers=1, num_threads=1, flags=("--engine", "ray", "--workers", "1")),
    Way(name="ray", num_workers=2, num_threads=1, flags=("--engine", "ray", "--workers", "2")),
    Way(name="lines", num_workers=1, num_threads=2),
    Way(name="local", num_workers=1, num_threads=2, flags=("--engine", "local")),
)


def measured(ways: Sequence[Way], sizes: tuple[int, int], folder: Path) -> Iterator[Row]:
    """Every way, with both files."""
    lines = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8").splitlines()
    files = []
    for size in sizes:
        files.append(folder / f"{size}.txt")
        text = "".join(f"{line}\n" for line in islice(cycle(lines), size))
        files[-1].write_text(text, encoding="utf-8")
    for number, way in enumerate(ways):
        short, long = (_seconds(way, file, folder / f"{number}-{file.stem}") for file in files)
        speed = (sizes[1] - sizes[0]) / (long - short)
        yield Row(way=way, seconds=(short, long), lines_per_second=speed)


def _seconds(way: Way, source: Path, output: Path) -> float:
    """What one command takes."""
    where = [str(output)] if way.flags else ["--output", str(output)]
    command = [*_DRAGOMAN, str(source), *where, "--from", "en", "--to", "de"]
    command += ["--threads", str(way.num_threads), *way.flags]
    command += ["--block-rows", str(_BLOCK_ROWS)] if way.flags else []
    started = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        timeout=_TIMEOUT_SECONDS,
        cwd=ROOT,
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(ROOT)},
    )
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the results."""
    parser = argparse.ArgumentParser(description="bulk jobs against lines")
    parser.add_argument("--short", type=int, default=4_000, help="lines of the short file")
    parser.add_argument("--long", type=int, default=40_000, help="lines of the long file")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args(arguments)
    rows = []
    print("| way | workers | threads of each | lines/s | lines/s and worker |")
    print("|:--|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(WAYS, (options.short, options.long), Path(folder)):
            rows.append(row)
            cells = [row.way.name, row.way.num_workers, row.way.num_threads]
            cells += [f"{row.lines_per_second:.1f}", f"{row.per_worker:.1f}"]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.bulk", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "checkpoint": "en-de-small",
        "block_rows": _BLOCK_ROWS,
        "lines": [options.short, options.long],
        "rows": [asdict(row) | {"lines_per_second_and_worker": row.per_worker} for row in rows],
    }
    path = options.results / f"bulk-{now:%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
