"""`python -m benchmarks.capacity`: what a core can do, what a rate needs, and whether that is so.

Measures what a decoding step costs by its rows, of a bundled small network and of one of base size,
with one and two threads, and with the instructions of an older processor. Runs a server with one
engine of one thread: one client and many that wait, then requests that come at times that chance
decides, seldom and at several shares of what it can do. Simulates exactly these arrivals with the
measured times and compares. Runs a server with two fronts, for what a request takes of the process
that owns them. Then tells, by price of a core hour, what rates need. Writes
benchmarks/results/capacity-<time>.json. Leaves with 1 if a request failed. About seven minutes on a
quiet machine; Linux.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.capacity.calibration import COLD_SECONDS, SELDOM_SHARE, Load, calibrated
from benchmarks.capacity.classes import measure_all_steps
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
from benchmarks.replicas.steps import StepTimes
from benchmarks.results_file import RESULTS, write_result
from benchmarks.soak.server import ONE_BUNDLED, serving
from benchmarks.soak.texts import sentences
from model.system.cores import usable_cores

NUM_TEXTS = 1000
NUM_CLIENTS = 64
FULL_CLIENTS = 32
"""Sentences that keep an engine full: 128 rows at a beam of 4."""
NUM_BYTES = 1200
"""Of a request of a sentence and its answer, with their heads and those of TCP."""
_Row = dict[str, object]


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--price", type=float, default=0.04, help="of a core hour (%(default)s)")
    parser.add_argument("--share", type=float, default=0.7, help="of a core's time (%(default)s)")
    parser.add_argument("--network-mbit", type=float, default=1000.0, help="of a server")
    parser.add_argument("--step-seconds", type=float, default=0.5, help="a number of sentences")
    parser.add_argument("--closed-seconds", type=float, default=15.0)
    parser.add_argument("--open-seconds", type=float, default=60.0, help="a share of the capacity")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.6, 0.8])
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


async def load_one_front(
    port: int, server: int, texts: Sequence[str], arguments: argparse.Namespace
) -> tuple[Level, Level, list[tuple[list[float], Level]], dict[str, float]]:
    """One client and many that wait; arrivals and levels, seldom ones first; memory by kind."""
    processes = Processes(server)
    gc.freeze()  # what is there now is no garbage of the load's
    await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=3.0)
    alone = await waiting_clients(
        port, processes, texts, number=1, seconds=arguments.closed_seconds
    )
    full = await waiting_clients(
        port, processes, texts, number=NUM_CLIENTS, seconds=arguments.closed_seconds
    )
    print(alone, full, sep="\n", flush=True)
    levels = []
    seldom = (SELDOM_SHARE, arguments.closed_seconds)
    others = [(share, arguments.open_seconds) for share in arguments.shares]
    for place, (share, seconds) in enumerate([seldom, *others]):
        times = arrival_times(share * full.requests_per_second, seconds, seed=place + 1)
        random = Random(len(times))
        asked = [(one, random.randrange(len(texts))) for one in times]
        level, sent = await arriving_requests(port, processes, asked, texts)
        levels.append(([one.seconds for one in sent], level))
        print(share, level, flush=True)
    return alone, full, levels, {kind: processes.own_mib(kind) for kind in ("engine", "front")}


async def load_two_fronts(port: int, server: int, texts: Sequence[str], seconds: float) -> Level:
    """Processor time of the owner and of the fronts a request, where there are two."""
    processes = Processes(server)
    while len(processes.of("front")) != 2:  # noqa: ASYNC110  # nothing tells
        await asyncio.sleep(0.1)
    await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=5.0)
    return await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=seconds)


def plan_of(
    times: StepTimes,
    alone: Level,
    full: Level,
    *,
    seldom: tuple[Sequence[float], Level],
    num_cores: int,
) -> Plan:
    """The plan of that server, by one client, by many, and by requests that come seldom."""
    arrivals, low = seldom

    def clients(number: int) -> Load:
        return lambda plan: simulate(replace(plan, num_clients=number), times)

    return calibrated(
        Plan(
            num_replicas=1,
            num_clients=NUM_CLIENTS,
            num_cores=num_cores,
            cold_seconds=COLD_SECONDS,
        ),
        low=(low, lambda plan: simulate(plan, times, arrivals=arrivals)),
        full=(full, clients(NUM_CLIENTS)),
        alone=(alone, clients(1)),
    )


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


def check_table(loads: Sequence[str], checks: Sequence[_Row]) -> str:
    """The comparison as docs/scale.md has it: measured / simulated."""
    lines = ["| load | requests a second | p50, ms | p99, ms |", "|---|--:|--:|--:|"]
    for load, check in zip(loads, checks, strict=True):
        both = check["measured"], check["simulated"]
        cells = []
        for name, digits in (("requests_per_second", 0), ("p50_ms", 1), ("p99_ms", 1)):
            values = (float(one[name]) for one in both if isinstance(one, dict))
            cells.append(" / ".join(f"{value:.{digits}f}" for value in values))
        lines.append(f"| {load} | {' | '.join(cells)} |")
    return "\n".join(lines)


def engine_seconds(times: StepTimes, segment_seconds: float) -> float:
    """A core's time that a sentence takes of an engine that is full."""
    plan = Plan(num_replicas=1, num_clients=FULL_CLIENTS, segment_seconds=segment_seconds)
    return times.num_threads / simulate(plan, times).requests_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured.

    Attributes:
        times: Of steps, by class; those of the server that was loaded first.
        alone: Of a server with one front, with one client.
        full: As much as it can do.
        levels: Of the same server: when requests were sent, and what came of them; seldom ones
            first.
        memory: Of its processes, MiB by kind.
        two: Of a server with two fronts, as much as it can do.
        shared_mib: Weights that engines share, by size.
    """

    times: dict[str, StepTimes]
    alone: Level
    full: Level
    levels: list[tuple[list[float], Level]]
    memory: dict[str, float]
    two: Level
    shared_mib: dict[str, float]

    @property
    def num_errors(self) -> int:
        """Requests that failed."""
        levels = [self.alone, self.full, self.two, *(level for _, level in self.levels)]
        return sum(level.num_errors for level in levels)


def measure(arguments: argparse.Namespace, folder: Path) -> Measured:
    """Steps, then servers."""
    texts = sentences(NUM_TEXTS)
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
        alone, full, levels, memory = asyncio.run(
            load_one_front(served.port, served.process.pid, texts, arguments)
        )
    with serve(folder / "two.jsonl", fronts=2) as served:
        two = asyncio.run(
            load_two_fronts(served.port, served.process.pid, texts, arguments.closed_seconds)
        )
    print(two, flush=True)
    return Measured(
        times=times,
        alone=alone,
        full=full,
        levels=levels,
        memory=memory,
        two=two,
        # Of the other network no server runs: its weights are as large as its file.
        shared_mib={"small": folder_mib(folder / "cache"), "base": folder_mib(folder / "base")},
    )


def capacity_of(name: str, found: Measured, plan: Plan, arguments: argparse.Namespace) -> _Row:
    """What a class costs, and what rates of it need."""
    costs = Costs(
        engine_seconds=engine_seconds(found.times[name], plan.segment_seconds),
        front_seconds=found.full.front_ms / 1000,
        shared_front_seconds=found.two.front_ms / 1000,
        owner_seconds=found.two.owner_ms / 1000,
        num_bytes=NUM_BYTES,
        engine_mib=found.memory["engine"],
        front_mib=found.memory["front"],
        shared_mib=found.shared_mib[name.partition(",")[0]],
    )
    needed = [
        needs(
            costs,
            rate,
            share=arguments.share,
            price=arguments.price,
            network_mbit=arguments.network_mbit,
        )
        for rate in arguments.rates
    ]
    return {
        "class": name,
        "costs": asdict(costs),
        "requests_per_second_a_core": round(1 / costs.engine_seconds, 1),
        "needs": list(map(asdict, needed)),
    }


def main() -> int:
    """Measure, simulate, compare, tell."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="capacity-") as name:
        found = measure(arguments, Path(name))
    served_times = next(iter(found.times.values()))
    plan = plan_of(
        served_times,
        found.alone,
        found.full,
        seldom=found.levels[0],
        num_cores=usable_cores(),
    )
    checks = [
        compared(level, simulate(replace(plan, num_clients=number), served_times))
        for level, number in ((found.alone, 1), (found.full, NUM_CLIENTS))
    ]
    checks += [
        compared(level, simulate(plan, served_times, arrivals=arrivals))
        for arrivals, level in found.levels
    ]
    report = {
        "benchmark": "capacity",
        "command": describe_command("benchmarks.capacity", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "price_of_a_core_hour": arguments.price,
        "share_of_a_core": arguments.share,
        "steps": {
            name: one.described() | {"sentences": _short(one)} for name, one in found.times.items()
        },
        "mean_steps_of_a_sentence": _mean_steps(served_times),
        "plan": asdict(plan),
        "two_fronts": asdict(found.two),
        "checks": checks,
        "capacity": [capacity_of(name, found, plan, arguments) for name in found.times],
    }
    path = write_result(arguments.results, "capacity", started, report)
    loads = ["1 client", f"{NUM_CLIENTS} clients that wait"]
    loads += [f"{share:.0%} of that, by chance" for share in (SELDOM_SHARE, *arguments.shares)]
    print(check_table(loads, checks))
    print(path)
    if found.num_errors:
        print(f"missed: {found.num_errors} requests failed", file=sys.stderr)
    return 1 if found.num_errors else 0


def _short(times: StepTimes) -> list[dict[str, int]]:
    """Some of the sentences, so that the same can be simulated again."""
    return [asdict(one) for one in times.sentences[:NUM_TEXTS]]


def _mean_steps(times: StepTimes) -> float:
    return round(sum(one.num_steps for one in times.sentences) / len(times.sentences), 2)


if __name__ == "__main__":
    sys.exit(main())
