"""`python -m benchmarks.bulk`: bulk jobs of both engines and Ray Data against `dragoman translate`.

The same lines, as often as they are wanted, are translated by commands as anybody gives them: line
by line into a file, by `--engine local`, by `--engine ray` and by a pipeline of Ray Data
(`benchmarks.ray_pipeline`) with one and with two workers, each of one thread, and the first two
with two threads. Two workers of `--engine local` are two commands side by side, each with half of
the lines: what two processes reach here that nobody coordinates. Both kinds of Ray have the same
cluster, which is there before. Each does a short and a long file, so that the difference is free of
what starting costs; the starts are in the results too. Rounds go forth and back, as a machine is
not equally fast all day, and the median counts. Prints lines and source tokens a second and a
worker, against `--engine local` with as many threads, then who had the cores meanwhile (where
`others` is not small, the machine was not quiet), and writes benchmarks/results/bulk-<time>.json.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from benchmarks.bulk_rows import Row, Taken, Way, table, times_table
from benchmarks.machine import describe_command, describe_machine
from benchmarks.process_times import ProcessTimes, kind_of_process
from benchmarks.results_file import RESULTS, write_result
from model.loading import load_for_decoding
from model.offline.bulk.ray_data import translation_method
from model.offline.bulk.ray_engine import OWN_CLUSTER
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
    **OWN_CLUSTER,  # what `--engine ray` gives a cluster that it begins itself
    "RAY_AUTH_MODE": "disabled",
    "PYTHONPATH": str(ROOT),
}
_COMMANDS = ("service.cli.main", "benchmarks.ray_pipeline")


WAYS = (
    Way(name="lines", num_workers=1, num_threads=1),
    Way(name="local", num_workers=1, num_threads=1, flags=("--engine", "local")),
    Way(name="local", num_workers=2, num_threads=1, flags=("--engine", "local")),
    Way(name="ray", num_workers=1, num_threads=1, flags=("--engine", "ray")),
    Way(name="ray", num_workers=2, num_threads=1, flags=("--engine", "ray")),
    Way(name="ray-data", num_workers=1, num_threads=1),
    Way(name="ray-data", num_workers=2, num_threads=1),
    Way(name="lines", num_workers=1, num_threads=2),
    Way(name="local", num_workers=1, num_threads=2, flags=("--engine", "local")),
)


def command_of(way: Way, source: Path, output: Path, address: str) -> list[str]:
    """What anybody would give.

    Args:
        way: It.
        source: A file of lines.
        output: A file, or a folder.
        address: Of the cluster.
    """
    blocks = ["--block-rows", str(_BLOCK_ROWS)]
    on_ray = ["--ray-address", address, "--workers", str(way.num_workers)]
    if way.name == "ray-data":
        return [*_PIPELINE, str(source), str(output), *on_ray, *blocks]
    where = [str(output)] if way.flags else ["--output", str(output)]
    command = [*_DRAGOMAN, str(source), *where, "--from", "en", "--to", "de"]
    command += ["--threads", str(way.num_threads), *way.flags]
    return command + (blocks if way.flags else []) + (on_ray if way.is_on_ray else [])


def measured(
    ways: Sequence[Way], sizes: tuple[int, int], folder: Path, *, rounds: int = 1, address: str = ""
) -> list[Row]:
    """Every way with both files, round by round."""
    runs: list[list[tuple[Taken, Taken]]] = [[] for _ in ways]
    for turn in range(rounds):
        order = list(enumerate(ways))
        for number, way in order if turn % 2 == 0 else reversed(order):
            output = folder / f"{turn}-{number}"
            short, long = (_taken(way, size, folder, output, address) for size in sizes)
            runs[number].append((short, long))
            seconds = f"{short.seconds:.1f} {long.seconds:.1f} s"
            print(f"{way.name} {way.num_workers}: {seconds}", file=sys.stderr)
    num_lines = sizes[1] - sizes[0]
    return [
        Row(way=way, runs=tuple(own), num_lines=num_lines)
        for way, own in zip(ways, runs, strict=True)
    ]


def _taken(way: Way, size: int, folder: Path, output: Path, address: str) -> Taken:
    """What a way takes for so many lines, its commands side by side."""
    commands = []
    for part in range(way.num_commands):
        share = size * (part + 1) // way.num_commands - size * part // way.num_commands
        source = _lines_file(share, folder)
        commands.append(command_of(way, source, Path(f"{output}-{part}-{size}"), address))
    times = ProcessTimes(os.getpid(), _kind_of) if sys.platform == "linux" else None
    with nullcontext() if times is None else times.watched():
        seconds = _seconds(commands, None if times is None else times.look)
    return Taken(seconds=seconds, used=None if times is None else times.used())


def _seconds(commands: Sequence[Sequence[str]], look: Callable[[], object] | None) -> float:
    """What commands take side by side; `look` sees them as they begin and before they are gone.

    Raises:
        CalledProcessError: One leaves with something else than 0.
        TimeoutExpired: One takes too long.
    """
    started = time.perf_counter()
    running = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, **_RAY}) for command in commands
    ]
    try:
        if look is not None:
            look()  # the command line of a process that has ended cannot be read
        for process in running:
            _await_end(process)
        seconds = time.perf_counter() - started
        if look is not None:
            look()
        for process in running:
            if status := process.wait(_TIMEOUT_SECONDS):
                raise subprocess.CalledProcessError(status, process.args)
    finally:
        for process in running:
            process.kill()
            process.wait()
    return seconds


def _await_end(process: "subprocess.Popen[bytes]") -> None:
    """Wait until a process has ended, and leave what the system tells of it, where it can be.

    Raises:
        TimeoutExpired: It takes too long.
    """
    if sys.platform != "linux":
        process.wait(_TIMEOUT_SECONDS)
        return
    descriptor = os.pidfd_open(process.pid)
    try:
        has_ended, _, _ = select.select([descriptor], [], [], _TIMEOUT_SECONDS)
    finally:
        os.close(descriptor)
    if not has_ended:
        raise subprocess.TimeoutExpired(process.args, _TIMEOUT_SECONDS)


def _kind_of(words: Sequence[str]) -> str:
    """What a process is here."""
    kind = kind_of_process(words)
    return "command" if kind in _COMMANDS else kind


def _lines_file(size: int, folder: Path) -> Path:
    """A file of so many lines."""
    path = folder / f"{size}.txt"
    if not path.exists():
        lines = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8").splitlines()
        text = "".join(f"{line}\n" for line in islice(cycle(lines), size))
        path.write_text(text, encoding="utf-8")
    return path


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
    print(table(rows, tokens), times_table(rows), sep="\n\n")
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
                "core_ms_a_line": row.core_ms_a_line(),
                "own_ms_a_line": row.own_ms_a_line,
            }
            for row in rows
        ],
    }
    path = write_result(options.results, "bulk", now, report)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
