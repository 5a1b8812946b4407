"""`python -m benchmarks.served`: how fast is the service, and does its event loop stay free?

Measures 1, 8 and 32 clients. Starts `dragoman serve` on a free loopback port, unless --url names
one, and writes benchmarks/results/served-<time>.json. Leaves with 1 if a request failed or a mark
was missed: 32 clients at least 3 times the throughput of 1, event-loop lag p99 under 25 ms.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.load import Client, Level, run_level
from benchmarks.machine import describe_command, describe_machine
from benchmarks.processes import address_of, end
from benchmarks.results_file import RESULTS, write_result

ROOT = Path(__file__).resolve().parents[1]
SENTENCES = Path(__file__).with_name("sentences.en")
SETTINGS = ("DRAGOMAN_COMPUTE_TYPE", "DRAGOMAN_NUM_THREADS", "DRAGOMAN_STOPPING")
MIN_SPEEDUP = 3.0
MAX_LAG_SECONDS = 0.025
LAG = "dragoman_event_loop_lag_seconds"

Samples = dict[tuple[str, str], float]
Measured = dict[str, Any]  # written as JSON: its readers know its shape


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that is already running, on loopback")
    parser.add_argument("--checkpoint", help="checkpoint to serve (the bundled one)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=20.0, help="per number of clients")
    parser.add_argument("--max-requests", type=int, default=5000, help="per number of clients")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


@contextmanager
def serving(arguments: argparse.Namespace) -> Iterator[str]:
    """The address of a ready server; one that was started here is stopped again."""
    if arguments.url is not None:
        yield arguments.url
        return
    command = [sys.executable, "-m", "service.cli.main", "serve", "--port", "0"]
    command += ["--device", arguments.device]
    if arguments.checkpoint is not None:
        command += ["--checkpoint", arguments.checkpoint]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            url = address_of(process)
            if url is None:
                raise SystemExit("the server did not start; try `dragoman serve` by itself")
            print(f"the server listens on {url}")
            yield url
        finally:
            end(process)


async def read_samples(url: str) -> Samples:
    """Every sample of /metrics by name and `le` label (empty without one), its pairs together."""
    client = Client(url)
    text = await client.get("/metrics")
    await client.close()
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, sample.labels.get("le", "")
            is_of_pair = "pair" in sample.labels
            samples[key] = sample.value + (samples.get(key, 0.0) if is_of_pair else 0.0)
    return samples | {("device", re.search(r'device="([^"]*)"', text)[1]): 1.0}  # type: ignore[index]  # a ready server has one


def histogram_quantile(before: Samples, after: Samples, name: str, quantile: float) -> float:
    """Upper bound of the bucket in which the quantile of the new observations lies."""
    buckets = sorted(
        (float(bound), value - before.get((key, bound), 0.0))
        for (key, bound), value in after.items()
        if key == f"{name}_bucket"
    )
    wanted = quantile * buckets[-1][1]
    return next(bound for bound, count in buckets if count >= wanted)


def percentile(values: Sequence[float], share: int) -> float:
    """A percentile of the latencies in seconds; NaN without any."""
    if len(values) < 2:
        return values[0] if values else float("nan")
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def summarise(level: Level, before: Samples, after: Samples) -> Measured:
    """What one number of clients measured, from both sides."""

    def grown(name: str) -> float:
        return after[name, ""] - before.get((name, ""), 0.0)

    latencies = level.latencies_seconds
    num_answered = level.statuses[200]
    num_steps = grown("dragoman_step_rows_count")
    padded = grown("dragoman_padded_source_tokens_total")
    return {
        "num_clients": level.num_clients,
        "num_requests": level.statuses.total(),
        "num_errors": level.statuses.total() - num_answered,
        "statuses": {str(status): count for status, count in sorted(level.statuses.items())},
        "wall_seconds": round(level.wall_seconds, 3),
        "sentences_per_second": round(num_answered / level.wall_seconds, 3),
        "target_tokens_per_second": round(
            grown("dragoman_segment_target_tokens_sum") / level.wall_seconds, 1
        ),
        "latency_seconds": {
            f"p{share}": round(percentile(latencies, share), 4) for share in (50, 95, 99)
        },
        "mean_rows_per_step": round(grown("dragoman_step_rows_sum") / max(num_steps, 1), 2),
        "mean_step_seconds": round(grown("dragoman_step_seconds_total") / max(num_steps, 1), 5),
        "encoder_share_of_busy_time": round(
            grown("dragoman_encoder_seconds_total")
            / max(
                grown("dragoman_encoder_seconds_total") + grown("dragoman_step_seconds_total"), 1e-9
            ),
            3,
        ),
        "padding_waste": round(1 - grown("dragoman_source_tokens_total") / max(padded, 1), 3),
        "event_loop_lag_p99_below_seconds": histogram_quantile(before, after, LAG, 0.99),
    }


async def measure(url: str, arguments: argparse.Namespace) -> list[Measured]:
    """All levels, one after the other, after a short warm-up."""
    texts = SENTENCES.read_text(encoding="utf-8").splitlines()
    await run_level(url, texts[-20:], num_clients=4, seconds=5.0, max_requests=20)
    levels = []
    for num_clients in arguments.clients:
        before = await read_samples(url)
        level = await run_level(
            url,
            texts,
            num_clients=num_clients,
            seconds=arguments.seconds,
            max_requests=arguments.max_requests,
        )
        levels.append(summarise(level, before, await read_samples(url)))
        print(json.dumps(levels[-1]))
    return levels


def missed_marks(levels: list[Measured]) -> list[str]:
    """What a good build would have done better."""
    missed = [
        f"{level['num_errors']} errors at {level['num_clients']} clients"
        for level in levels
        if level["num_errors"]
    ]
    speeds = {level["num_clients"]: level["sentences_per_second"] for level in levels}
    if {1, 32} <= set(speeds) and speeds[32] < MIN_SPEEDUP * speeds[1]:
        missed.append(f"32 clients are {speeds[32] / speeds[1]:.2f} times as fast as one")
    missed += [
        f"event-loop lag p99 up to {level['event_loop_lag_p99_below_seconds']} s"
        f" at {level['num_clients']} clients"
        for level in levels
        if level["event_loop_lag_p99_below_seconds"] > MAX_LAG_SECONDS
    ]
    return missed


def main() -> int:
    """Measure, write, judge."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    with serving(arguments) as url:
        samples = asyncio.run(read_samples(url))
        levels = asyncio.run(measure(url, arguments))
    missed = missed_marks(levels)
    report = {
        "benchmark": "served",
        "command": describe_command("benchmarks.served", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "device": next(label for name, label in samples if name == "device"),
        "settings": {key: value for key, value in os.environ.items() if key in SETTINGS},
        "engine_threads": samples["dragoman_engine_threads", ""],
        "num_sentences": len(SENTENCES.read_text(encoding="utf-8").splitlines()),
        "levels": levels,
        "missed_marks": missed,
    }
    path = write_result(arguments.results, "served", started, report)
    print(path)
    for mark in missed:
        print(f"missed: {mark}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
