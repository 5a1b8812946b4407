"""Logs that cannot be written: the disk is full, or nobody reads them any more.

The server writes its log to standard error; where that goes is its environment's. Marks: with a
full device and with a closed pipe every request is answered, and SIGTERM leaves with 0.
"""

import os
from pathlib import Path

from benchmarks.soak.outcome import Outcome
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import closed_loop, for_seconds

NUM_CLIENTS = 8


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    with os.fdopen(full, "w") as full_device, os.fdopen(writer, "w") as closed_pipe:
        for name, errors in (("full_device", full_device), ("closed_pipe", closed_pipe)):
            with serving(folder / "unused.jsonl", errors=errors) as served:
                traffic = await closed_loop(
                    served.port,
                    sentences(500),
                    num_clients=NUM_CLIENTS,
                    is_over=for_seconds(plan.log_seconds),
                )
                status, _ = served.stop()
            statuses = traffic.statuses
            outcome.figures[name] = {
                "num_answered": statuses[200],
                "answered_per_second": round(traffic.answered_per_second, 1),
                "exit_status": status,
            }
            outcome.expect(
                holds=statuses.total() == statuses[200] > 0 and status == 0,
                otherwise=f"{name}: {dict(statuses)}, exit status {status}",
            )
    return outcome
