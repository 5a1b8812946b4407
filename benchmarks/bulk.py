"""`python -m benchmarks.bulk`: bulk jobs of both engines and Ray Data against `dragoman translate`.

The same lines, as often as they are wanted, are translated by commands as anybody gives them: line
by line into a file, by `--engine local`, by `--engine ray` and by a pipeline of Ray Data
(`benchmarks.ray_pipeline`) with one and with two workers, each of one thread, and the first two
with two threads. Both kinds of Ray have the same cluster, which is there before. Each does a short
and a long file, so that the difference is free of what starting costs; the starts are in the
results too. Rounds take turns, as a machine is not equally fast all day. Prints lines and source
tokens a second and a worker, against `--engine local` with as many threads, and writes
benchmarks/results/bulk-<time>.json.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.loading import load_for_decoding
from model.offline.bulk.ray_data import translation_method
from model.text.pipeline import TextPipeline

ROOT = Path(__file__).resolve().parents[1]
_DRAGOMAN = [sys.executable, "-m", "service.cli.main", "translate"]
_PIPELINE = [sys.executable, "-m", "benchmarks.ray_pipeline"]
_TIMEOUT_SECONDS = 600
_BLOCK_ROWS = 250
_CORES_BESIDE = 1
"""Of the cluster, for what reads and writes of a pipeline; it counts cores and does not pin."""
_OBJECT_STORE_BYTES = 200 * 2**20
_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "PYTHONPATH": str(ROOT),
}


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

    @property
    def is_on_ray(self) -> bool:
        """Whether it has a cluster."""
        return self.name.startswith("ray")

    def command(self, source: Path, output: Path, address: str) -> list[str]:
        """What anybody would give.

        Args:
            source: A file of lines.
            output: A file, or a folder.
            address: Of the cluster.
        """
        blocks = ["--block-rows", str(_BLOCK_ROWS)]
        on_ray = ["--ray-address", address, "--workers", str(self.num_workers)]
        if self.name == "ray-data":
            return [*_PIPELINE, str(source), str(output), *on_ray, *blocks]
        where = [str(output)] if self.flags else ["--output", str(output)]
        command = [*_DRAGOMAN, str(source), *where, "--from", "en", "--to", "de"]
        command += ["--threads", str(self.num_threads), *self.flags]
        return command + (blocks if self.flags else []) + (on_ray if self.is_on_ray else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a way took.

    Attributes:
        way: It.
        seconds: Of the short and of the long file in each round, starts included.
        num_lines: By which the long file is longer.
    """

    way: Way
    seconds: tuple[tuple[float, float], ...]
    num_lines: int

    @property
    def lines_per_second(self) -> float:
        """By the differences of all rounds."""
        taken = sum(long - short for short, long in self.seconds)
        return self.num_lines * len(self.seconds) / taken

    @property
    def per_worker(self) -> float:
        """Lines a second and a worker."""
        return self.lines_per_second / self.way.num_workers


WAYS = (
    Way(name="lines", num_workers=1, num_threads=1),
    Way(name="local", num_workers=1, num_threads=1, flags=("--engine", "local")),
    Way(name="ray", num_workers=1, num_threads=1, flags=("--engine", "ray")),
    Way(name="ray", num_workers=2, num_threads=1, flags=("--engine", "ray")),
    Way(name="ray-data", num_workers=1, num_threads=1),
    Way(name="ray-data", num_workers=2, num_threads=1),
    Way(name="lines", num_workers=1, num_threads=2),
    Way(name="local", num_workers=1, num_threads=2, flags=("--engine", "local")),
)


def measured(
    ways: Sequence[Way], sizes: tuple[int, int], folder: Path, *, rounds: int = 1, address: str = ""
) -> list[Row]:
    """Every way with both files, round by round."""
    lines = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8").splitlines()
    files = []
    for size in sizes:
        files.append(folder / f"{size}.txt")
        text = "".join(f"{line}\n" for line in islice(cycle(lines), size))
        files[-1].write_text(text, encoding="utf-8")
    seconds: list[list[tuple[float, float]]] = [[] for _ in ways]
    for turn in range(rounds):
        for number, way in enumerate(ways):
            short, long = (
                _seconds(way.command(file, folder / f"{turn}-{number}-{file.stem}", address))
                for file in files
            )
            seconds[number].append((short, long))
            print(f"{way.name} {way.num_workers}: {short:.1f} {long:.1f} s", file=sys.stderr)
    num_lines = sizes[1] - sizes[0]
    return [
        Row(way=way, seconds=tuple(own), num_lines=num_lines)
        for way, own in zip(ways, seconds, strict=True)
    ]


def _seconds(command: Sequence[str]) -> float:
    """What one command takes."""
    started = time.perf_counter()
    subprocess.run(
        command, check=True, timeout=_TIMEOUT_SECONDS, cwd=ROOT, env={**os.environ, **_RAY}
    )
    return time.perf_counter() - started


@contextmanager
def _cluster(ways: Sequence[Way]) -> Iterator[str]:
    """Address of a cluster that has room for all workers; empty if nobody wants one."""
    most = max((way.num_workers for way in ways if way.is_on_ray), default=0)
    if not most:
        yield ""
        return
    os.environ.update(_RAY)  # read when ray is imported
    import ray  # noqa: PLC0415  # large, and not everybody's

    ray.init(
        address="local",
        num_cpus=most + _CORES_BESIDE,
        include_dashboard=False,
        object_store_memory=_OBJECT_STORE_BYTES,
        log_to_driver=False,
        logging_level="ERROR",
    )
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()


def _tokens_a_line() -> float:
    """Source tokens of a line, in the mean; every way has the same lines."""
    runnable = load_for_decoding(ROOT / "checkpoints" / "en-de-small", num_threads=1)
    pipeline = TextPipeline(runnable.tokenizer, runnable.manifest.limits)
    lines = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8").splitlines()
    pair = translation_method(ROOT / "checkpoints" / "en-de-small", target="de").pair
    segments = [one for line in lines for one in pipeline.prepare(line, pair).network_segments]
    return sum(len(one.source_ids) for one in segments) / len(lines)


def table(rows: Sequence[Row], tokens_a_line: float) -> str:
    """The rows as Markdown, each worker against `--engine local` with as many threads."""
    lines = [
        "| way | workers | threads | lines/s | a worker | tokens/s a worker | of `local` |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    local = {row.way.num_threads: row.per_worker for row in rows if row.way.name == "local"}
    for row in rows:
        way = row.way
        base = local.get(way.num_threads)
        share = f"{row.per_worker / base:.2f}" if base else ""
        cells = [way.name, way.num_workers, way.num_threads, f"{row.lines_per_second:.1f}"]
        cells += [f"{row.per_worker:.1f}", f"{row.per_worker * tokens_a_line:.0f}", share]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the results."""
    names = sorted({way.name for way in WAYS})
    parser = argparse.ArgumentParser(description="bulk jobs against lines")
    parser.add_argument("--short", type=int, default=4_000, help="lines of the short file")
    parser.add_argument("--long", type=int, default=40_000, help="lines of the long file")
    parser.add_argument("--rounds", type=int, default=1, help="of all ways, in turns")
    parser.add_argument("--ways", nargs="+", choices=names, default=names, metavar="WAY")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="ways with so many")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    ways = [one for one in WAYS if one.name in options.ways and one.num_threads in options.threads]
    sizes = (options.short, options.long)
    tokens = _tokens_a_line()
    with tempfile.TemporaryDirectory() as folder, _cluster(ways) as address:
        rows = measured(ways, sizes, Path(folder), rounds=options.rounds, address=address)
    print(table(rows, tokens))
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.bulk", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "checkpoint": "en-de-small",
        "block_rows": _BLOCK_ROWS,
        "lines": sizes,
        "source_tokens_a_line": round(tokens, 2),
        "rows": [
            asdict(row)
            | {
                "lines_per_second": row.lines_per_second,
                "lines_per_second_and_worker": row.per_worker,
                "tokens_per_second_and_worker": row.per_worker * tokens,
            }
            for row in rows
        ],
    }
    path = write_result(options.results, "bulk", now, report)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
