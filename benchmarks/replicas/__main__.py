"""`python -m benchmarks.replicas`: how far replicas carry on this machine, in one go.

Measures what a step costs (`steps`), servers with 1, 2, 4, … replicas up to all cores or GPUs, and
the most of them with several fronts, at several numbers of clients (`served`), and simulates more
replicas than there are with what was measured (`simulated`). Writes
benchmarks/results/replicas-<time>.json. Leaves with 1 if a request failed. On a machine with many
cores or GPUs it needs no flag.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.replicas.served import Variant, measure
from benchmarks.replicas.simulation import Plan, knee, simulate
from benchmarks.replicas.steps import StepTimes, measure_steps
from benchmarks.results_file import RESULTS, write_result
from benchmarks.served import ROOT, SENTENCES
from model.system.cores import usable_cores
from model.system.gpu_count import num_gpus

_Row = dict[str, object]
_SIMULATED = (1, 2, 4, 8, 16, 32, 64)
_FRONTS = (2, 4, 8)
_MOST_REQUESTS = 12_000


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--checkpoint", default=str(ROOT / "checkpoints" / "en-zh-small"))
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], help="%(default)s")
    parser.add_argument("--most", type=int, help="replicas, at most (all cores or GPUs)")
    parser.add_argument("--seconds", type=float, default=8.0, help="a number of clients")
    parser.add_argument("--rounds", type=int, default=2, help="%(default)s")
    parser.add_argument("--step-seconds", type=float, default=1.5, help="a number of sentences")
    parser.add_argument("--processes", type=int, help="of clients (a quarter of the cores)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def variants(most: int, *, device: str) -> list[Variant]:
    """The servers that are measured: one engine on all, then more and more of them.

    On processors also a replica that is filled with four sentences before the next gets any, which
    shows what that costs there; and the most replicas behind several fronts.
    """
    numbers = [number for number in _SIMULATED if number < most] + [most]
    found = [Variant(replicas=number) for number in numbers]
    if device == "cpu":
        found[:0] = [Variant(replicas=1, num_threads=number) for number in sorted({1, most})]
        found += [Variant(replicas=most, fill_rows=16)] if most > 1 else []
    if most > 1:
        found += [Variant(replicas=most, fronts=number) for number in _FRONTS if number <= most]
    return [one for one in found if one != Variant(replicas=1) or device != "cpu"]  # it has threads


def numbers_of_clients(clients: Sequence[int], replicas: int) -> list[int]:
    """The numbers of clients of one server: those that are asked for, and as many a replica.

    One client alone stays one.
    """
    return sorted({*clients, *(number * replicas for number in clients if number > 1)})


def front_seconds(rows: Sequence[_Row]) -> float:
    """Processor time of one front a request: the least that a number of clients had."""
    alone = [row for row in rows if row["fronts"] is None]
    return min(float(str(row["front_ms_a_request"])) for row in alone) / 1000


def simulated(times: Sequence[StepTimes], *, front: float, clients: Sequence[int]) -> list[_Row]:
    """More replicas than there are, of one thread each, and so many clients for each."""
    rows = []
    one = times[0]
    for number in _SIMULATED:
        for a_replica in (1, *clients):
            plan = Plan(
                num_replicas=number,
                num_clients=max(1, number * a_replica),
                num_requests=min(_MOST_REQUESTS, 1000 + 100 * number * a_replica),
                front_seconds=front,
            )
            rows.append(asdict(plan) | _rounded(asdict(simulate(plan, one))))
    return rows


def _rounded(outcome: dict[str, object]) -> _Row:
    shares = outcome.pop("replica_shares")
    for name in ("latencies", "steady"):  # of each request, of each process
        outcome.pop(name)
    assert isinstance(shares, tuple)
    rounded: _Row = {name: round(float(str(value)), 5) for name, value in outcome.items()}
    return rounded | {"replica_share": round(sum(shares) / len(shares), 4)}


def front_limit(times: StepTimes, *, front: float) -> int | None:
    """Replicas at which the front has no time left, with eight clients each."""
    outcomes = [
        (
            number,
            simulate(
                Plan(
                    num_replicas=number,
                    num_clients=8 * number,
                    num_requests=1000 * number,
                    front_seconds=front,
                ),
                times,
            ),
        )
        for number in range(1, 17)
    ]
    return knee(outcomes)


def main() -> int:
    """Measure, simulate, write."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    on_cpu = arguments.device == "cpu"
    most = arguments.most or (usable_cores() if on_cpu else max(1, num_gpus()))
    texts = SENTENCES.read_text(encoding="utf-8").splitlines()
    times = [
        measure_steps(
            Path(arguments.checkpoint),
            texts,
            num_threads=number,
            seconds_each=arguments.step_seconds,
        )
        for number in (sorted({1, min(2, most)}) if on_cpu else ())
    ]
    for one in times:
        print(one.num_threads, one.step_seconds, one.encode_seconds, flush=True)
    rows = [
        row
        for _ in range(arguments.rounds)
        for variant in variants(most, device=arguments.device)
        for row in measure(
            variant,
            clients=numbers_of_clients(arguments.clients, variant.replicas),
            seconds=arguments.seconds,
            num_processes=arguments.processes or max(1, usable_cores() // 4),
            device=arguments.device,
            checkpoint=arguments.checkpoint,
        )
    ]
    front = front_seconds(rows)
    report = {
        "benchmark": "replicas",
        "command": describe_command("benchmarks.replicas", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "device": arguments.device,
        "checkpoint": Path(arguments.checkpoint).name,
        "rows_that_cost_little": [one.rows_that_cost_little() for one in times],
        "steps": [one.described() for one in times],
        "served": rows,
        "front_seconds_a_request": front,
        "front_limit_replicas": front_limit(times[0], front=front) if times else None,
        "simulated": simulated(times, front=front, clients=(8, 32)) if times else [],
    }
    path = write_result(arguments.results, "replicas", started, report)
    print(path)
    num_errors = sum(int(str(row["num_errors"])) for row in rows)
    if num_errors:
        print(f"missed: {num_errors} requests failed", file=sys.stderr)
    return 1 if num_errors else 0


if __name__ == "__main__":
    sys.exit(main())
