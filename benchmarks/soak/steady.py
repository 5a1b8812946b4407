"""Capacity, then a long time at 80% of it: no errors, no growth, no drift.

The load is offered whether it is answered or not, so when a machine stumbles for a second, hundreds
of requests are open at once, and the allocators keep what those took. The warm-up therefore ends
with a crowd, which is a figure of its own; what is added after it would add up.

Marks: every request is answered with a translation; memory after the warm-up grows by less than
2%; the p99 of the last third is no more than 1.5 times that of the first, or 50 ms more.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, closed_loop, for_seconds, offered, wait_idle

NUM_TEXTS = 1_000
SHARE = 0.8
MAX_GROWTH = 0.02
MAX_DRIFT = 1.5
DRIFT_SECONDS = 0.05


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


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    texts = sentences(NUM_TEXTS)
    with serving(folder / "steady.jsonl", log_level="warning") as served:
        capacity = await measure_capacity(served, plan, texts)
        before = served.resident_bytes()
        crowd = await closed_loop(
            served.port,
            texts,
            num_clients=plan.crowd_clients,
            is_over=for_seconds(plan.crowd_seconds),
        )
        after = served.resident_bytes()
        windows: list[dict[str, object]] = []
        p99s: list[float] = []
        sizes: list[int] = []
        num_requests = num_failed = 0
        for _ in range(max(6, round(plan.steady_seconds / plan.window_seconds))):
            traffic = await offered(
                served.port,
                texts,
                rate=SHARE * capacity,
                seconds=plan.window_seconds,
            )
            failed = traffic.statuses.total() - traffic.statuses[200]
            num_requests += traffic.statuses.total()
            num_failed += failed
            resident = served.resident_bytes()
            p99s.append(quantile(traffic.seconds_of(200), 0.99))
            sizes.append(sum(resident.values()))
            windows.append(
                {
                    "latency_seconds": spread(traffic.seconds_of(200)),
                    "num_failed": failed,
                    "resident_bytes": resident,
                    "num_files": served.num_files(),
                }
            )
        client = Client(served.port)
        await wait_idle(client)
        client.close()
    third = len(p99s) // 3
    first, last = (statistics.median(part) for part in (p99s[:third], p99s[-third:]))
    warm = len(sizes) // 6
    growth = sizes[-1] / sizes[warm] - 1.0
    outcome.figures = {
        "capacity_per_second": round(capacity, 1),
        "rate_per_second": round(SHARE * capacity, 1),
        "crowd": {
            "num_clients": plan.crowd_clients,
            "statuses": {str(status): number for status, number in sorted(crowd.statuses.items())},
            "grown_bytes": {name: after[name] - before[name] for name in after},
        },
        "num_requests": num_requests,
        "num_failed": num_failed,
        "growth_after_warm_up": round(growth, 5),
        "first_p99_seconds": round(first, 4),
        "last_p99_seconds": round(last, 4),
        "windows": windows,
    }
    outcome.expect(
        holds=num_failed == 0, otherwise=f"{num_failed} of {num_requests} requests failed"
    )
    outcome.expect(holds=growth < MAX_GROWTH, otherwise=f"memory grew by {growth:.1%}")
    outcome.expect(
        holds=last <= max(MAX_DRIFT * first, first + DRIFT_SECONDS),
        otherwise=f"p99 went from {first:.3f} to {last:.3f} s",
    )
    return outcome
