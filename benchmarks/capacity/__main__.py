"""`python -m benchmarks.capacity`: what a core can do, what a rate needs, and whether that is so.

Measures what a decoding step costs by its rows, of a bundled small network and of one of base size,
with one and two threads. Runs a server with one engine of one thread: clients that wait, then
requests that come at times that chance decides, at several shares of what it can do. Simulates
exactly these arrivals with the measured times and compares. Runs a server with two fronts, for what
a request takes of the process that owns them. Then tells, by price of a core hour, what rates need.
Writes benchmarks/results/capacity-<time>.json. Leaves with 1 if a request failed. About eight
minutes on a quiet machine; Linux.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.capacity.load import (
    Level,
    Processes,
    arrival_times,
    arriving_requests,
    folder_mib,
    waiting_clients,
)
from benchmarks.capacity.needs import Costs, needs
from benchmarks.machine import describe_command, describe_machine
from benchmarks.random_checkpoint import VOCABULARY_SIZE, write_random_checkpoint
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import StepTimes, measure_steps
from benchmarks.served import ROOT
from benchmarks.soak.server import ONE_BUNDLED, serving
from benchmarks.soak.texts import sentences

NUM_TEXTS = 1000
NUM_CLIENTS = 64
FULL_CLIENTS = 32
"""Sentences that keep an engine full: 128 rows at a beam of 4."""
_Row = dict[str, object]


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--price", type=float, default=0.04, help="of a core hour (%(default)s)")
    parser.add_argument("--share", type=float, default=0.7, help="of a core's time (%(default)s)")
    parser.add_argument("--network-mbit", type=float, default=1000.0, help="of a server")
    parser.add_argument("--step-seconds", type=float, default=0.5, help="a number of sentences")
    parser.add_argument("--closed-seconds", type=float, default=25.0)
    parser.add_argument("--open-seconds", type=float, default=80.0, help="a share of the capacity")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.6, 0.8])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def measure_all_steps(base: Path, texts: Sequence[str], seconds: float) -> dict[str, StepTimes]:
    """Times by size and threads; sentences are as long as the bundled network makes them."""
    found: dict[str, StepTimes] = {}
    for name, folder in (("small", ONE_BUNDLED), ("base", base)):
        for threads in (1, 2):
            times = measure_steps(folder, texts, num_threads=threads, seconds_each=seconds)
            lengths = found.get("small, 1", times).sentences
            found[f"{name}, {threads}"] = replace(times, sentences=lengths)
            print(name, threads, times.step_seconds, times.encode_seconds, flush=True)
    return found


async def load_one_front(
    port: int, server: int, texts: Sequence[str], arguments: argparse.Namespace
) -> tuple[Level, list[tuple[list[float], Level]], dict[str, float]]:
    """What it can do; its arrivals and levels at shares of that; memory by kind of process."""
    processes = Processes(server)
    await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=3.0)
    full = await waiting_clients(
        port, processes, texts, number=NUM_CLIENTS, seconds=arguments.closed_seconds
    )
    print(full, flush=True)
    levels = []
    for place, share in enumerate(arguments.shares):
        rate = share * full.requests_per_second
        times = arrival_times(rate, arguments.open_seconds, seed=place + 1)
        levels.append((times, await arriving_requests(port, processes, texts, times)))
        print(share, levels[-1][1], flush=True)
    return full, levels, {kind: processes.own_mib(kind) for kind in ("engine", "front")}


async def load_two_fronts(port: int, server: int, texts: Sequence[str], seconds: float) -> Level:
    """Processor time of the owner and of the fronts a request, where there are two."""
    processes = Processes(server)
    while len(processes.of("front")) != 2:  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.1)
    await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=5.0)
    return await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=seconds)


def calibrated(times: StepTimes, full: Level) -> Plan:
    """The plan of that server: what an engine does beside steps is what is left of its time."""
    plan = Plan(
        num_replicas=1,
        num_clients=NUM_CLIENTS,
        front_seconds=(full.front_ms + full.client_ms) / 1000,  # they share a core here
    )
    modelled = simulate(plan, times)
    busy = modelled.replica_shares[0] / modelled.requests_per_second
    return replace(plan, segment_seconds=max(0.0, full.engine_ms / 1000 - busy))


def compared(measured: Level, simulated: Outcome) -> _Row:
    """Both, and by which factor they differ."""
    own = {
        "requests_per_second": round(simulated.requests_per_second, 1),
        "p50_ms": round(1000 * simulated.p50_seconds, 2),
        "p99_ms": round(1000 * simulated.p99_seconds, 2),
    }
    factors = {
        f"{name}_factor": round(value / max(float(getattr(measured, name)), 1e-9), 3)
        for name, value in own.items()
    }
    return {"measured": asdict(measured), "simulated": own, **factors}


def engine_seconds(times: StepTimes, segment_seconds: float) -> float:
    """A core's time that a sentence takes of an engine that is full."""
    plan = Plan(num_replicas=1, num_clients=FULL_CLIENTS, segment_seconds=segment_seconds)
    return times.num_threads / simulate(plan, times).requests_per_second


def main() -> int:
    """Measure, simulate, compare, tell."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    texts = sentences(NUM_TEXTS)
    with tempfile.TemporaryDirectory(prefix="capacity-") as name:
        folder = Path(name)
        write_random_checkpoint(folder / "base", vocab_size=VOCABULARY_SIZE, seed=1)
        times = measure_all_steps(folder / "base", texts, arguments.step_seconds)
        serve = partial(
            serving,
            checkpoint=ONE_BUNDLED,
            log_level="warning",
            device="cpu",
            num_threads=1,
            cache=folder / "cache",
        )
        with serve(folder / "one.jsonl") as served:
            full, levels, memory = asyncio.run(
                load_one_front(served.port, served.process.pid, texts, arguments)
            )
        with serve(folder / "two.jsonl", fronts=2) as served:
            two = asyncio.run(
                load_two_fronts(served.port, served.process.pid, texts, arguments.closed_seconds)
            )
        # Of the other network no server runs: its weights are as large as its file.
        shared = {"small": folder_mib(folder / "cache"), "base": folder_mib(folder / "base")}
    print(two, flush=True)
    plan = calibrated(times["small, 1"], full)
    checks = [compared(full, simulate(plan, times["small, 1"]))]
    checks += [
        compared(level, simulate(plan, times["small, 1"], arrivals=arrivals))
        for arrivals, level in levels
    ]
    rows = []
    for name, one in times.items():
        costs = Costs(
            engine_seconds=engine_seconds(one, plan.segment_seconds),
            front_seconds=full.front_ms / 1000,
            owner_seconds=two.owner_ms / 1000,
            num_bytes=1200,
            engine_mib=memory["engine"],
            front_mib=memory["front"],
            shared_mib=shared[name.partition(",")[0]],
        )
        rows.append(
            {
                "class": name,
                "costs": asdict(costs),
                "requests_per_second_a_core": round(1 / costs.engine_seconds, 1),
                "needs": [
                    asdict(
                        needs(
                            costs,
                            rate,
                            share=arguments.share,
                            price=arguments.price,
                            network_mbit=arguments.network_mbit,
                        )
                    )
                    for rate in arguments.rates
                ],
            }
        )
    report = {
        "benchmark": "capacity",
        "command": describe_command("benchmarks.capacity", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "price_of_a_core_hour": arguments.price,
        "share_of_a_core": arguments.share,
        "steps": {name: one.described() | {"sentences": []} for name, one in times.items()},
        "mean_steps_of_a_sentence": _mean_steps(times["small, 1"]),
        "plan": asdict(plan),
        "two_fronts": asdict(two),
        "checks": checks,
        "capacity": rows,
    }
    path = arguments.results / f"capacity-{started:%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(checks, indent=1))
    print(path)
    num_errors = two.num_errors + full.num_errors + sum(one.num_errors for _, one in levels)
    if num_errors:
        print(f"missed: {num_errors} requests failed", file=sys.stderr)
    return 1 if num_errors else 0


def _mean_steps(times: StepTimes) -> float:
    return round(sum(one.num_steps for one in times.sentences) / len(times.sentences), 2)


if __name__ == "__main__":
    sys.exit(main())
