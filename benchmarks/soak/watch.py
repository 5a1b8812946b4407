"""Processor time of each second of a load, which tells the machine's stalls from ours."""

import asyncio
import math
import statistics
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.machine import CoreTime, fixed_work_seconds
from benchmarks.soak.server import Served

INTERVAL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """One look at the machine.

    Attributes:
        stolen: Share of the cores' time that other guests had since the last look.
        others: Share that processes had which are neither the server nor the load generator.
        work_seconds: Of a fixed piece of work on a core.
        late_seconds: How much later than asked for this look came; what the load generator's
            own event loop was held up.
    """

    stolen: float
    others: float
    work_seconds: float
    late_seconds: float


@asynccontextmanager
async def watching(served: Served) -> AsyncIterator[list[Second]]:
    """Look once a second while the context lasts; the list grows meanwhile."""
    seconds: list[Second] = []
    async with asyncio.TaskGroup() as group:
        polling = group.create_task(_poll(served, seconds))
        yield seconds
        polling.cancel()


async def _poll(served: Served, seconds: list[Second]) -> None:
    loop = asyncio.get_running_loop()
    times = CoreTime(lambda: [served.process.pid, *served.engine_ids()])
    while True:
        due = loop.time() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        late = loop.time() - due
        taken = times.taken()
        seconds.append(
            Second(
                stolen=round(taken.stolen, 3),
                others=round(taken.others, 3),
                work_seconds=round(fixed_work_seconds(), 7),
                late_seconds=round(late, 3),
            )
        )


def mean(seconds: Sequence[Second], part: Callable[[Second], float]) -> float:
    """Of one of the figures; NaN if nobody looked."""
    return statistics.fmean(map(part, seconds)) if seconds else math.nan
