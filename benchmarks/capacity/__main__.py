"""`python -m benchmarks.capacity`: what a core can do, what a rate needs, and whether that is so.

Measures what a decoding step costs by its rows, of a bundled small network and of one of base size,
with one and two threads, and with the instructions of an older processor. Runs a server with one
engine of one thread: one client and many that wait, then requests that come at times that chance
decides, seldom and at several shares of what it can do. Simulates exactly these arrivals with the
measured times and compares. Runs a server with two fronts, for what a request takes of the process
that owns them, and one with the larger network, for its memory. Writes
benchmarks/results/capacity-<time>.json. Then tells what rates need and cost
(`benchmarks.capacity.needs`). Leaves with 1 if a request failed. About nine minutes on a
quiet machine; Linux.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
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
from benchmarks.capacity.needs import Memory, add_flags, terms_of, write_needs
from benchmarks.load import REPLY_SECONDS
from benchmarks.load import Client as LoadClient
from benchmarks.machine import describe_command, describe_machine
from benchmarks.processes import START_SECONDS
from benchmarks.random_checkpoint import VOCABULARY_SIZE, write_random_checkpoint
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import StepTimes
from benchmarks.results_file import write_result
from benchmarks.soak.server import ONE_BUNDLED, serving
from benchmarks.soak.texts import sentences
from model.system.cores import usable_cores

NUM_TEXTS = 1000
NUM_CLIENTS = 64
_Row = dict[str, object]


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_flags(parser)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--step-seconds", type=float, default=0.5, help="a number of sentences")
    parser.add_argument("--closed-seconds", type=float, default=15.0)
    parser.add_argument("--open-seconds", type=float, default=60.0, help="a share of the capacity")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.6, 0.8])
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
    return alone, full, levels, _own_mib(processes)


async def load_two_fronts(port: int, server: int, texts: Sequence[str], seconds: float) -> Level:
    """Processor time of the owner and of the fronts a request, where there are two.

    Raises:
        TimeoutError: There were not two after `START_SECONDS`.
    """
    processes = Processes(server)
    async with asyncio.timeout(START_SECONDS):
        while len(processes.of("front")) != 2:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.1)
    await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=5.0)
    return await waiting_clients(port, processes, texts, number=NUM_CLIENTS, seconds=seconds)


async def memory_of_larger(
    url: str, server: int, texts: Sequence[str], seconds: float
) -> dict[str, float]:
    """Memory of an engine and a front of the larger network when it had as much as it can take.

    Raises:
        RuntimeError: Nothing was translated, so its memory says nothing.
    """
    processes = Processes(server)
    statuses = Counter[int]()
    deadline = time.perf_counter() + seconds

    async def ask(own: Sequence[str]) -> None:
        client = LoadClient(url, target="de")  # its only direction
        for text in cycle(own):
            try:
                async with asyncio.timeout(REPLY_SECONDS):
                    status, _ = await client.translate(text)
            except (OSError, EOFError, TimeoutError):
                status = 0
                await client.close()
            statuses[status] += 1
            if time.perf_counter() >= deadline:
                break
        await client.close()

    async with asyncio.TaskGroup() as group:
        for place in range(NUM_CLIENTS):
            group.create_task(ask(texts[place::NUM_CLIENTS]))
    if set(statuses) != {200}:
        raise RuntimeError(f"the larger network's server answered {dict(statuses)}, not 200 alone")
    return _own_mib(processes)


def _own_mib(processes: Processes) -> dict[str, float]:
    return {kind: processes.own_mib(kind) for kind in ("engine", "front")}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured.

    Attributes:
        times: Of steps, by class; those of the server that was loaded first.
        alone: Of a server with one front, with one client.
        full: As much as it can do.
        levels: Of the same server: when requests were sent, and what came of them; seldom ones
            first.
        two: Of a server with two fronts, as much as it can do.
        memory: Of processes, by size of the network.
    """

    times: dict[str, StepTimes]
    alone: Level
    full: Level
    levels: list[tuple[list[float], Level]]
    two: Level
    memory: dict[str, Memory]

    @property
    def num_errors(self) -> int:
        """Requests that failed."""
        levels = [self.alone, self.full, self.two, *(level for _, level in self.levels)]
        return sum(level.num_errors for level in levels)


def measure(arguments: argparse.Namespace, folder: Path) -> Measured:
    """Steps, then servers."""
    texts = sentences(NUM_TEXTS)
    write_random_checkpoint(folder / "base", vocab_size=VOCABULARY_SIZE, seed=1)
    times = measure_all_steps(
        folder / "base", texts, arguments.step_seconds, device=arguments.device
    )
    serve = partial(serving, log_level="warning", device=arguments.device, num_threads=1)
    caches = {size: folder / f"cache-{size}" for size in ("small", "base")}
    small = partial(serve, checkpoint=ONE_BUNDLED, cache=caches["small"])
    with small(folder / "one.jsonl") as served:
        alone, full, levels, own = asyncio.run(
            load_one_front(served.port, served.process.pid, texts, arguments)
        )
    with small(folder / "two.jsonl", fronts=2) as served:
        two = asyncio.run(
            load_two_fronts(served.port, served.process.pid, texts, arguments.closed_seconds)
        )
    print(two, flush=True)
    with serve(folder / "base.jsonl", checkpoint=folder / "base", cache=caches["base"]) as served:
        larger = asyncio.run(
            memory_of_larger(served.url, served.process.pid, texts, arguments.closed_seconds)
        )
    kinds = {"small": own, "base": larger}
    memory = {size: Memory(**mib, shared=folder_mib(caches[size])) for size, mib in kinds.items()}
    print(memory, flush=True)
    return Measured(times=times, alone=alone, full=full, levels=levels, two=two, memory=memory)


def main() -> int:
    """Measure, simulate, compare, tell."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    command = describe_command("benchmarks.capacity", sys.argv[1:])
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
        "command": command,
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "device": arguments.device,
        "steps": {
            name: one.described() | {"sentences": _short(one)} for name, one in found.times.items()
        },
        "mean_steps_of_a_sentence": _mean_steps(served_times),
        "plan": asdict(plan),
        "two_fronts": asdict(found.two),
        "checks": checks,
        "memory_mib": {size: asdict(memory) for size, memory in found.memory.items()},
    }
    path = write_result(arguments.results, "capacity", started, report)
    print(path, flush=True)
    print(
        write_needs(path, arguments.results, arguments.rates, terms_of(arguments), command=command)
    )
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
