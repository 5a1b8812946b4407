"""`python -m benchmarks.front`: how much processor time the front takes for a request.

Starts `dragoman serve` on a free loopback port, lets 1, 8 and 32 clients ask `/translate` and
`/v1/translate` for the bundled sentences, and reads the processor time of the front's process,
which the engine's is no part of, from /metrics before and after. Writes
benchmarks/results/front-<time>.json with every round, and prints medians. Leaves with 1 if a
request failed or one costs more than the mark. A busy neighbour moves processor time too, though
less than a clock.
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.load import Client, run_level
from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from benchmarks.served import SENTENCES, serving

PATHS = ("/translate", "/v1/translate")
MAX_MILLISECONDS = 0.4
"""Of the front's processor time that a request may take."""
_CPU_SECONDS = "process_cpu_seconds_total "
_Row = dict[str, object]


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a server that is already running, on loopback")
    parser.add_argument("--checkpoint", help="checkpoint to serve (the bundled ones)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="cpu")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=1000, help="a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="%(default)s")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


async def cpu_seconds(url: str) -> float:
    """Processor time of the front until now."""
    client = Client(url)
    text = await client.get("/metrics")
    await client.close()
    line = next(line for line in text.splitlines() if line.startswith(_CPU_SECONDS))
    return float(line.removeprefix(_CPU_SECONDS))


async def measure(url: str, *, num_clients: int, path: str, num_requests: int) -> _Row:
    """One round: the front's milliseconds a request, without those of reading them."""
    texts = SENTENCES.read_text(encoding="utf-8").splitlines()
    first, before = await cpu_seconds(url), await cpu_seconds(url)
    level = await run_level(
        url, texts, num_clients=num_clients, seconds=120.0, max_requests=num_requests, path=path
    )
    spent = await cpu_seconds(url) - before - (before - first)
    num_answered = level.statuses[200]
    return {
        "path": path,
        "num_clients": num_clients,
        "num_requests": level.statuses.total(),
        "num_errors": level.statuses.total() - num_answered,
        "requests_per_second": round(num_answered / level.wall_seconds, 1),
        "front_milliseconds": round(1000 * spent / max(num_answered, 1), 4),
    }


async def measure_all(url: str, arguments: argparse.Namespace) -> list[_Row]:
    """Every round, after a short warm-up."""
    await measure(url, num_clients=4, path=PATHS[0], num_requests=50)
    return [
        await measure(url, num_clients=number, path=path, num_requests=arguments.requests)
        for _ in range(arguments.rounds)
        for number in arguments.clients
        for path in PATHS
    ]


def medians(rows: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """Milliseconds a request, by path and number of clients."""
    found: dict[str, list[float]] = {}
    for row in rows:
        name = f"{row['path']}, clients: {row['num_clients']}"
        found.setdefault(name, []).append(float(str(row["front_milliseconds"])))
    return {name: statistics.median(values) for name, values in found.items()}


def missed_marks(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """What a good build would have done better."""
    num_errors = sum(int(str(row["num_errors"])) for row in rows)
    missed = [f"{num_errors} requests failed"] if num_errors else []
    return missed + [
        f"{name}: {value:.2f} ms, at most {MAX_MILLISECONDS:g} ms"
        for name, value in medians(rows).items()
        if value > MAX_MILLISECONDS
    ]


def main() -> int:
    """Measure, write, judge."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    with serving(arguments) as url:
        rows = asyncio.run(measure_all(url, arguments))
    report = {
        "benchmark": "front",
        "command": describe_command("benchmarks.front", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "rounds": rows,
        "medians": medians(rows),
        "missed_marks": missed_marks(rows),
    }
    path = write_result(arguments.results, "front", started, report)
    for name, value in medians(rows).items():
        print(f"{name}: {value:.3f} ms")
    print(path)
    for mark in missed_marks(rows):
        print(f"missed: {mark}", file=sys.stderr)
    return 1 if missed_marks(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
