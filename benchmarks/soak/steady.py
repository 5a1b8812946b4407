"""A long time at 80% of the capacity: no errors, no growth, no drift.

The load is offered whether it is answered or not, so when a machine stumbles for a second, hundreds
of requests are open at once, and the allocators keep what those took. The warm-up therefore ends
with a crowd, which is a figure of its own; what is added after it would add up. On a shared machine
the capacity itself comes and goes: it is measured again before each window, and where it is less
than at first, less is offered; never more, or latencies could not be compared. A window in which
other guests and other processes took more than a tenth of the cores had not the capacity that was
measured; it is written down, not judged, and another one follows. Of a window in which a request
failed every second is written down.

Marks: every request is answered with a translation; memory after the warm-up grows by less than
2%; the p99 of the last third is no more than 1.5 times that of the first, or 50 ms more.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, closed_loop, for_seconds, offered, wait_idle
from benchmarks.soak.watch import Second, mean, watching

NUM_TEXTS = 1_000
SHARE = 0.8
MAX_GROWTH = 0.02
MAX_DRIFT = 1.5
DRIFT_SECONDS = 0.05
MAX_TAKEN = 0.1


async def measure_capacity(served: Served, plan: Plan, texts: Sequence[str]) -> float:
    """Translated texts a second in a closed loop, after a fifth of its time as warm-up."""
    for seconds in (plan.capacity_seconds / 5, plan.capacity_seconds):
        traffic = await closed_loop(
            served.port,
            texts,
            num_clients=plan.capacity_clients,
            is_over=for_seconds(seconds),
        )
    return traffic.answered_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A piece of the steady load.

    Attributes:
        capacity_per_second: Measured right before.
        num_requests: That were sent.
        num_failed: Of them, those without a translation.
        latency_seconds: Median, p99 and maximum of the others, from when they were due.
        resident_bytes: At the end, by process.
        num_files: Open in the front at the end.
        stolen: Share of the cores' time that other guests took.
        others: And that other processes of this machine took.
        slowness: Mean time of a fixed piece of work on a core, over that while the capacity was
            measured.
        seconds: The whole of it, if a request failed.
    """

    capacity_per_second: float
    num_requests: int
    num_failed: int
    latency_seconds: dict[str, float]
    resident_bytes: dict[str, int]
    num_files: int
    stolen: float
    others: float
    slowness: float
    seconds: tuple[Second, ...] = ()

    @property
    def is_judged(self) -> bool:
        """The machine was ours, more or less."""
        return self.stolen + self.others <= MAX_TAKEN


async def _crowd(served: Served, plan: Plan, texts: Sequence[str]) -> dict[str, object]:
    """More clients than may be served at once, and what they leave behind."""
    before = served.resident_bytes()
    traffic = await closed_loop(
        served.port,
        texts,
        num_clients=plan.crowd_clients,
        is_over=for_seconds(plan.crowd_seconds),
    )
    after = served.resident_bytes()
    return {
        "num_clients": plan.crowd_clients,
        "statuses": {str(status): number for status, number in sorted(traffic.statuses.items())},
        "grown_bytes": {name: after[name] - before[name] for name in after},
    }


async def _window(
    served: Served, plan: Plan, texts: Sequence[str], *, first_capacity: float
) -> Window:
    async with watching(served) as before:
        capacity = await closed_loop(
            served.port,
            texts,
            num_clients=plan.capacity_clients,
            is_over=for_seconds(plan.window_capacity_seconds),
        )
    async with watching(served) as during:
        traffic = await offered(
            served.port,
            texts,
            rate=SHARE * min(first_capacity, capacity.answered_per_second),
            seconds=plan.window_seconds,
        )
    num_failed = traffic.statuses.total() - traffic.statuses[200]
    works = [mean(seconds, lambda one: one.work_seconds) for seconds in (during, before)]
    return Window(
        capacity_per_second=round(capacity.answered_per_second, 1),
        num_requests=traffic.statuses.total(),
        num_failed=num_failed,
        latency_seconds=spread(traffic.seconds_of(200)),
        resident_bytes=served.resident_bytes(),
        num_files=served.num_files(),
        stolen=round(mean(during, lambda one: one.stolen), 3),
        others=round(mean(during, lambda one: one.others), 3),
        slowness=round(works[0] / works[1], 3),
        seconds=tuple(during) if num_failed else (),
    )


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    texts = sentences(NUM_TEXTS)
    num_windows = max(6, round(plan.steady_seconds / plan.window_seconds))
    with serving(folder / "steady.jsonl", log_level="warning") as served:
        capacity = await measure_capacity(served, plan, texts)
        crowd = await _crowd(served, plan, texts)
        windows: list[Window] = []
        while len(windows) < 2 * num_windows and num_windows > sum(
            window.is_judged for window in windows
        ):
            windows.append(await _window(served, plan, texts, first_capacity=capacity))
        client = Client(served.port)
        await wait_idle(client)
        client.close()
    outcome.figures = {"capacity_per_second": round(capacity, 1), "crowd": crowd}
    judge(outcome, windows, num_windows)
    return outcome


def judge(outcome: Outcome, windows: Sequence[Window], num_windows: int) -> None:
    """Hold the undisturbed windows to the marks, of which there are to be `num_windows`."""
    judged = [window for window in windows if window.is_judged]
    third = max(1, len(judged) // 3)
    p99s = [window.latency_seconds.get("p99", math.inf) for window in judged] or [math.inf]
    first, last = (statistics.median(part) for part in (p99s[:third], p99s[-third:]))
    sizes = [sum(window.resident_bytes.values()) for window in windows]
    growth = sizes[-1] / sizes[num_windows // 6] - 1.0
    num_requests = sum(window.num_requests for window in judged)
    num_failed = sum(window.num_failed for window in judged)
    outcome.figures |= {
        "num_windows": len(windows),
        "num_judged": len(judged),
        "num_requests": num_requests,
        "num_failed": num_failed,
        "growth_after_warm_up": round(growth, 5),
        "first_p99_seconds": round(first, 4),
        "last_p99_seconds": round(last, 4),
        "windows": [asdict(window) for window in windows],
    }
    outcome.expect(
        holds=len(judged) == num_windows,
        otherwise=f"only {len(judged)} windows were undisturbed, not {num_windows}",
    )
    outcome.expect(
        holds=num_failed == 0, otherwise=f"{num_failed} of {num_requests} requests failed"
    )
    outcome.expect(holds=growth < MAX_GROWTH, otherwise=f"memory grew by {growth:.1%}")
    outcome.expect(
        holds=last <= max(MAX_DRIFT * first, first + DRIFT_SECONDS),
        otherwise=f"p99 went from {first:.3f} to {last:.3f} s",
    )
