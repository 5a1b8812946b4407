"""Run the long proofs and write what they found.

Leaves with 1 if a promise was not kept. The full run takes about 50 minutes and wants a quiet
machine; `--quick` shows in a few minutes that everything runs, and its numbers mean nothing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import write_result
from benchmarks.soak import (
    agreement,
    corruption,
    departures,
    floods,
    groups,
    leavers,
    logs,
    losses,
    overload,
    predicted,
    reloads,
    sharing,
    shutdowns,
    steady,
    strangers,
)
from benchmarks.soak.outcome import Outcome
from benchmarks.soak.plan import QUICK, Plan

_RESULTS = Path(__file__).resolve().parents[1] / "results"
_BUILD = Path(__file__).resolve().parents[2] / "build" / "soak"

_SCENARIOS: dict[str, Callable[[Plan, Path], Awaitable[Outcome]]] = {
    "agreement": agreement.run,
    "corruption": corruption.run,
    "groups": groups.run,
    "departures": departures.run,
    "floods": floods.run,
    "leavers": leavers.run,
    "logs": logs.run,
    "losses": losses.run,
    "overload": overload.run,
    "predicted": predicted.run,
    "reloads": reloads.run,
    "sharing": sharing.run,
    "shutdowns": shutdowns.run,
    "steady": steady.run,
    "strangers": strangers.run,
}


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=_SCENARIOS, metavar="SCENARIO", help="these")
    parser.add_argument("--quick", action="store_true", help="small counts; results to build/soak")
    parser.add_argument("--steady-seconds", type=float, help="of the steady load")
    parser.add_argument(
        "--trace-seconds", type=float, help="of people's traffic, which is simulated too"
    )
    parser.add_argument("--results", type=Path, help="where the results file goes")
    return parser.parse_args()


async def run_all(names: list[str], plan: Plan) -> dict[str, dict[str, object]]:
    """Run the scenarios one after the other."""
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for name in names:
            started = time.perf_counter()
            outcome = await _SCENARIOS[name](plan, Path(folder))
            seconds = round(time.perf_counter() - started, 1)
            found[name] = {"seconds": seconds, **asdict(outcome)}
            state = "; ".join(outcome.missed) or "kept"
            print(f"{name}: {state} ({seconds:.0f} s)", flush=True)
    return found


def main() -> int:
    """Run, write, judge."""
    arguments = parse_arguments()
    plan = QUICK if arguments.quick else Plan()
    if arguments.steady_seconds is not None:
        plan = replace(plan, steady_seconds=arguments.steady_seconds)
    if arguments.trace_seconds is not None:
        plan = replace(plan, trace_seconds=arguments.trace_seconds)
    started = datetime.now(UTC)
    machine = describe_machine()
    found = asyncio.run(run_all(arguments.only or list(_SCENARIOS), plan))
    report = {
        "benchmark": "soak",
        "command": describe_command("benchmarks.soak", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": machine,
        "plan": asdict(plan),
        "scenarios": found,
    }
    results = arguments.results or (_BUILD if arguments.quick else _RESULTS)
    path = write_result(results, "soak", started, report)
    print(path)
    return 1 if any(outcome["missed"] for outcome in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
