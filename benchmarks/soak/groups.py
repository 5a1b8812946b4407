"""Signals that meet every process of the server: SIGTERM under load, and a front that is killed.

Service managers send SIGTERM to the whole group. Marks: those of `shutdowns`, whoever is signalled;
and of a server whose front is killed while its engine, or itself, is stopped, nothing is left.
"""

import os
import select
import signal
import time
from pathlib import Path

from benchmarks.processes import STOP_SECONDS
from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.shutdowns import shut_down

LEAVE_SECONDS = 10.0
STOPPED = ("nobody", "the front", "the engine")


def _stop_all(served: Served) -> tuple[int, float]:
    """SIGTERM to every process, and again to the engine; the exit status and the seconds."""
    started = time.perf_counter()
    served.process.send_signal(signal.SIGTERM)
    served.signal_engine(signal.SIGTERM)
    served.signal_engine(signal.SIGTERM)
    return served.process.wait(STOP_SECONDS), time.perf_counter() - started


def _seconds_after_the_front(log: Path, stopped: str) -> float:
    """Seconds that the engine outlives a front that is killed; infinity if it does not leave."""
    with serving(log) as served:
        (engine_id,) = served.engine_ids()
        engine = os.pidfd_open(engine_id)
        try:
            ids = {"the front": served.process.pid, "the engine": engine_id}
            if stopped in ids:
                os.kill(ids[stopped], signal.SIGSTOP)
            served.process.kill()
            served.process.wait(STOP_SECONDS)
            started = time.perf_counter()
            has_left, _, _ = select.select([engine], [], [], LEAVE_SECONDS)
            if has_left:
                return time.perf_counter() - started
            signal.pidfd_send_signal(engine, signal.SIGKILL)
            return float("inf")
        finally:
            os.close(engine)


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = await shut_down(plan.num_shutdowns, folder, "group", _stop_all)
    outliving = []
    for stopped in STOPPED:
        seconds = _seconds_after_the_front(folder / "killed.jsonl", stopped)
        outliving.append(seconds)
        outcome.expect(
            holds=seconds <= LEAVE_SECONDS,
            otherwise=f"the engine outlived a front that was killed while {stopped} was stopped",
        )
    outcome.figures["outliving_seconds"] = spread(outliving)
    return outcome
