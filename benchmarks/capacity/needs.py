"""`python -m benchmarks.capacity.needs RESULT`: what rates need, by a results file of the capacity.

Owns what rates need: the smallest shape that carries each (`benchmarks.capacity.shape`), its cores,
devices, memory and money, and what it would be full of first. Measures nothing: times of steps,
costs beside them and memory are those of the file, and their simulation takes a minute or two.
Writes benchmarks/results/needs-<time>.json, which names the file.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.capacity.calibration import calibrated_fronts
from benchmarks.capacity.load import Level
from benchmarks.capacity.scaling import scaling
from benchmarks.capacity.shape import Kind, Shape, engine_seconds, smallest_shape
from benchmarks.machine import describe_command
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import StepTimes
from benchmarks.results_file import RESULTS, write_result
from service.placement import FILL_ROWS, FILL_ROWS_ON_DEVICES

NUM_BYTES = 1200
"""Of a request of a sentence and its answer, with their heads and those of TCP."""
_BITS = 8
_MEGA = 1e6
Found = Mapping[str, Any]
"""What JSON has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of processes, MiB.

    Attributes:
        engine: Of an engine alone; None: it was not measured.
        front: Of a front.
        shared: Weights that all engines of a server share.
    """

    engine: float | None
    front: float
    shared: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is asked for, and what it costs.

    Attributes:
        share: Of the time of a process, at most.
        core_price: Of a core hour.
        device_price: Of an hour of a GPU.
        network_mbit: What one server's network carries.
    """

    share: float = 0.7
    core_price: float = 0.04
    device_price: float = 2.0
    network_mbit: float = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a rate needs.

    Attributes:
        requests_per_second: The rate.
        num_servers: Servers side by side.
        num_fronts: Of each of them.
        num_engines: Likewise.
        num_cores: Of all processes of all servers.
        num_devices: GPUs, likewise.
        memory_gib: Likewise; None: it was not measured.
        network_mbit: Megabits a second, likewise.
        per_hour: Money.
        engine_share: Of the time, that engines are at work in the mean.
        busiest_engine_share: Of the one that gets a sentence first.
        front_share: Of the busiest front.
        owner_share: Of the owner of several fronts.
        p50_ms: Median of the latencies.
        p99_ms: What one of a hundred takes longer than.
        rows_a_step: In the mean.
        most_per_second: What this shape does when it is full.
        limit: What is full first then.
    """

    requests_per_second: float
    num_servers: int
    num_fronts: int
    num_engines: int
    num_cores: int
    num_devices: int
    memory_gib: float | None
    network_mbit: float
    per_hour: float
    engine_share: float
    busiest_engine_share: float
    front_share: float
    owner_share: float
    p50_ms: float
    p99_ms: float
    rows_a_step: float
    most_per_second: float
    limit: str


def needs(kind: Kind, memory: Memory, rate: float, terms: Terms, *, on_device: bool) -> Needs:
    """What a rate needs, by the smallest shape that carries it.

    Args:
        kind: What servers are made of.
        memory: What their processes take of it.
        rate: Requests a second.
        terms: What is asked for.
        on_device: Each engine has a GPU, and a core beside it.
    """
    network_mbit = rate * NUM_BYTES * _BITS / _MEGA
    shape, outcome = smallest_shape(
        kind,
        rate,
        share=terms.share,
        fewest_servers=max(1, math.ceil(network_mbit / (terms.share * terms.network_mbit))),
    )
    num_owners = 0 if shape.num_fronts == 1 else 1
    threads = 1 if on_device else kind.times.num_threads
    num_cores = shape.num_servers * (shape.num_engines * threads + shape.num_fronts + num_owners)
    num_devices = shape.num_servers * shape.num_engines if on_device else 0
    most = _most_per_second(kind, shape, terms.network_mbit)
    limit = min(most, key=lambda name: most[name])
    steady = outcome.steady
    return Needs(
        requests_per_second=rate,
        num_servers=shape.num_servers,
        num_fronts=shape.num_fronts,
        num_engines=shape.num_engines,
        num_cores=num_cores,
        num_devices=num_devices,
        memory_gib=_memory_gib(memory, shape, num_owners),
        network_mbit=round(network_mbit, 2),
        per_hour=round(num_cores * terms.core_price + num_devices * terms.device_price, 3),
        engine_share=round(sum(steady.replica_shares) / shape.num_engines, 3),
        busiest_engine_share=round(max(steady.replica_shares), 3),
        front_share=round(max(steady.front_shares), 3),
        owner_share=round(steady.owner_share, 3),
        p50_ms=round(1000 * outcome.p50_seconds, 2),
        p99_ms=round(1000 * outcome.p99_seconds, 2),
        rows_a_step=round(outcome.mean_rows, 2),
        most_per_second=round(most[limit], 1),
        limit=limit,
    )


def _most_per_second(kind: Kind, shape: Shape, network_mbit: float) -> dict[str, float]:
    """Requests a second at which each kind of process of all servers is full."""
    plan = kind.plan(shape)
    most = {
        "engine": shape.num_engines / engine_seconds(kind.times, plan),
        "front": shape.num_fronts / max(plan.front_seconds, 1e-9),
        "network": network_mbit * _MEGA / _BITS / NUM_BYTES,
    }
    if shape.num_fronts > 1:
        most["owner"] = 1 / max(plan.owner_seconds, 1e-9)
    return {name: shape.num_servers * rate for name, rate in most.items()}


def _memory_gib(memory: Memory, shape: Shape, num_owners: int) -> float | None:
    """Memory of all servers; an owner has as much as a front."""
    if memory.engine is None:
        return None
    own = (
        shape.num_engines * memory.engine
        + (shape.num_fronts + num_owners) * memory.front
        + memory.shared
    )
    return round(shape.num_servers * own / 1024, 2)


def kind_of(result: Found, name: str) -> Kind:
    """What servers of a class are made of, by what was measured."""
    times = StepTimes.read(result["steps"][name])
    fill_rows = FILL_ROWS if result.get("device", "cpu") == "cpu" else FILL_ROWS_ON_DEVICES
    plan = replace(Plan(**result["plan"]), fill_rows=fill_rows)
    return Kind(times=times, one_front=plan, several_fronts=_two_fronts(result, plan)[0])


def _two_fronts(result: Found, plan: Plan) -> tuple[Plan, Outcome]:
    """The plan of the server with two fronts, and what comes of it in the load that it had."""
    served = StepTimes.read(next(iter(result["steps"].values())))
    shared = calibrated_fronts(
        replace(plan, num_fronts=2),
        full=(Level(**result["two_fronts"]), lambda one: simulate(one, served)),
    )
    return shared, simulate(shared, served)


def memory_of(result: Found, size: str) -> Memory:
    """Memory by the size of the network.

    Files from before an engine of the larger network was run have the smaller one's for both.
    """
    if "memory_mib" in result:
        return Memory(**result["memory_mib"][size])
    costs = next(one["costs"] for one in result["capacity"] if one["class"].startswith(size))
    engine = costs["engine_mib"] if size == "small" else None
    return Memory(engine=engine, front=costs["front_mib"], shared=costs["shared_mib"])


def capacity_of(result: Found, name: str, rates: Sequence[float], terms: Terms) -> dict[str, Any]:
    """What a class costs, and what rates of it need."""
    kind, on_device = kind_of(result, name), result.get("device", "cpu") != "cpu"
    memory = memory_of(result, name.partition(",")[0])
    seconds = engine_seconds(kind.times, kind.one_front)
    threads = 1 if on_device else kind.times.num_threads
    return {
        "class": name,
        "engine_core_seconds": seconds * threads,
        "requests_per_second_a_core": round(1 / (seconds * threads), 1),
        "memory_mib": asdict(memory),
        "needs": [asdict(needs(kind, memory, rate, terms, on_device=on_device)) for rate in rates],
    }


def report(source: Path, rates: Sequence[float], terms: Terms) -> dict[str, Any]:
    """What the rates need in every class of a results file."""
    result = json.loads(source.read_text(encoding="utf-8"))
    plan, outcome = _two_fronts(result, Plan(**result["plan"]))
    capacity = []
    for name in result["steps"]:
        capacity.append(capacity_of(result, name, rates, terms))
        print(name, capacity[-1]["requests_per_second_a_core"], flush=True)
    return {
        "source": source.name,
        "terms": asdict(terms),
        "two_fronts": {
            "front_seconds": plan.front_seconds,
            "owner_seconds": plan.owner_seconds,
            "requests_per_second": round(outcome.requests_per_second, 1),
            "p50_ms": round(1000 * outcome.p50_seconds, 2),
            "p99_ms": round(1000 * outcome.p99_seconds, 2),
        },
        "capacity": capacity,
        "scaling": scaling(kind_of(result, next(iter(result["steps"])))),
    }


def write_needs(
    source: Path, folder: Path, rates: Sequence[float], terms: Terms, *, command: str
) -> Path:
    """Tell what rates need, in a results file of its own."""
    started = datetime.now(UTC)
    head = {
        "benchmark": "needs",
        "command": command,
        "started": started.isoformat(timespec="seconds"),
    }
    return write_result(folder, "needs", started, head | report(source, rates, terms))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of what is asked for."""
    terms = Terms()
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 100, 10_000])
    parser.add_argument(
        "--price", type=float, default=terms.core_price, help="of a core hour (%(default)s)"
    )
    parser.add_argument(
        "--device-price", type=float, default=terms.device_price, help="of a GPU hour (%(default)s)"
    )
    parser.add_argument(
        "--share", type=float, default=terms.share, help="of a process' time (%(default)s)"
    )
    parser.add_argument("--network-mbit", type=float, default=terms.network_mbit, help="a server")
    parser.add_argument("--results", type=Path, default=RESULTS)


def terms_of(arguments: argparse.Namespace) -> Terms:
    """What is asked for, as the flags have it."""
    return Terms(
        share=arguments.share,
        core_price=arguments.price,
        device_price=arguments.device_price,
        network_mbit=arguments.network_mbit,
    )


def main() -> int:
    """Read, simulate, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("result", type=Path)
    add_flags(parser)
    arguments = parser.parse_args()
    path = write_needs(
        arguments.result,
        arguments.results,
        arguments.rates,
        terms_of(arguments),
        command=describe_command("benchmarks.capacity.needs", sys.argv[1:]),
    )
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
