"""SIGTERM under load: whatever was accepted is answered, and the process leaves with 0.

Marks: the front's log has a translation for every 200 that clients saw and no more; every other
answer is a 503 that says `draining`; the exit status is 0 every time.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import NO_REPLY, Client, Traffic, closed_loop, wait_for

NUM_CLIENTS = 32
NUM_TEXTS = 500
MIN_RECEIVED = 200


Stop = Callable[[Served], tuple[int, float]]
"""Ends a server; the exit status and the seconds that leaving took."""


async def _under_load(served: Served, stop: Stop) -> tuple[Traffic, int, float]:
    """What clients saw, the exit status and the seconds that leaving took."""
    has_left = False
    load = asyncio.create_task(
        closed_loop(
            served.port,
            sentences(NUM_TEXTS),
            num_clients=NUM_CLIENTS,
            is_over=lambda: has_left,
        )
    )
    client = Client(served.port)
    await wait_for(lambda: _has_received(client))
    client.close()
    status, seconds = await asyncio.to_thread(stop, served)
    has_left = True
    return await load, status, seconds


async def _has_received(client: Client) -> bool:
    return (await client.metrics()).get("received_segments_total", 0.0) >= MIN_RECEIVED


def _logged_statuses(log: Path) -> dict[int, int]:
    """Translation requests by status, as the server saw them."""
    statuses: dict[int, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["event"] == "request" and entry["route"] == "/translate":
            statuses[entry["status"]] = statuses.get(entry["status"], 0) + 1
    return statuses


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    return await shut_down(plan.num_shutdowns, folder, "shutdown", Served.stop)


async def shut_down(num_shutdowns: int, folder: Path, name: str, stop: Stop) -> Outcome:
    """End so many servers under load, each in this way, and judge what clients and logs have."""
    outcome = Outcome()
    leaving, num_answered, num_draining, num_unheard = [], 0, 0, 0
    for number in range(num_shutdowns):
        log = folder / f"{name}-{number}.jsonl"
        with serving(log) as served:
            traffic, status, seconds = await _under_load(served, stop)
        leaving.append(seconds)
        statuses, logged = traffic.statuses, _logged_statuses(log)
        num_answered += statuses[200]
        num_draining += statuses[503]
        num_unheard += statuses[NO_REPLY]
        odd = [reply for reply in traffic.replies if reply.status not in (200, 503, NO_REPLY)]
        odd += [one for one in traffic.replies if one.status == 503 and one.code != "draining"]
        outcome.expect(holds=status == 0, otherwise=f"{name} {number} left with {status}")
        outcome.expect(
            holds=not odd, otherwise=f"{name} {number} lost {len(odd)} accepted requests"
        )
        outcome.expect(
            holds=logged.get(200) == statuses[200] and set(logged) <= {200, 503},
            otherwise=f"{name} {number}: clients saw {dict(statuses)}, the log has {logged}",
        )
    outcome.figures = {
        "num_shutdowns": num_shutdowns,
        "num_answered": num_answered,
        "num_refused_while_draining": num_draining,
        "num_never_received": num_unheard,
        "leaving_seconds": spread(leaving),
    }
    return outcome
