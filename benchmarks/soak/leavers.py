"""Clients that go away, and clients that say little or nothing.

Marks: after all of them have gone nothing is pending, the front has no more files open and no more
tasks than before, and memory has not grown by more than 2%; beside connections that dawdle all
others are answered as before (p99 at most twice, or 50 ms more).
"""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, closed_loop, for_seconds, wait_idle

NUM_AT_ONCE = 100
TEXTS_EACH = 8
MAX_PATIENCE_SECONDS = 0.1
NUM_CLIENTS = 4
MAX_GROWTH = 0.02


def _request(texts: list[str]) -> bytes:
    body = json.dumps({"q": texts, "source": "en", "target": "zh"}).encode()
    head = "POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def _leave(port: int, chance: random.Random) -> None:
    """Ask for a few texts and go before the answer can be there, now and then in the midst."""
    data = _request(chance.sample(sentences(1_000), TEXTS_EACH))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data[: chance.choice([len(data), len(data), len(data) // 2])])
    await writer.drain()
    await asyncio.sleep(chance.uniform(0.0, MAX_PATIENCE_SECONDS))
    writer.transport.abort() if chance.random() < 0.5 else writer.close()


async def _leave_often(served: Served, num: int, chance: random.Random) -> None:
    for done in range(0, num, NUM_AT_ONCE):
        async with asyncio.TaskGroup() as group:
            for _ in range(min(NUM_AT_ONCE, num - done)):
                group.create_task(_leave(served.port, chance))


async def _dawdle(port: int, number: int, seconds: float) -> None:
    """Hold a connection: say nothing, or a byte of a head or of a body every half second."""
    data = _request(["The boat came back."])
    start = {0: 0, 1: 1, 2: data.index(b"\r\n\r\n") + 5}[number % 3]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    hung_up = asyncio.ensure_future(reader.read())
    writer.write(data[:start])
    for place in range(start, start + int(2 * seconds)):
        if number % 3:
            writer.write(data[place : place + 1])
        await asyncio.sleep(0.5)
        if writer.is_closing() or hung_up.done():  # it was sent away, which is its right end
            break
    hung_up.cancel()
    await asyncio.gather(hung_up, return_exceptions=True)
    writer.close()


async def _beside_dawdlers(served: Served, plan: Plan, outcome: Outcome) -> None:
    texts = sentences(1_000)

    async def latencies(seconds: float) -> list[float]:
        traffic = await closed_loop(
            served.port, texts, num_clients=NUM_CLIENTS, is_over=for_seconds(seconds)
        )
        refused = traffic.statuses.total() - traffic.statuses[200]
        outcome.expect(holds=not refused, otherwise=f"{refused} other clients were refused")
        return traffic.seconds_of(200)

    alone = await latencies(plan.idle_seconds / 2)
    async with asyncio.TaskGroup() as group:
        for number in range(plan.num_idlers):
            group.create_task(_dawdle(served.port, number, plan.idle_seconds))
        await asyncio.sleep(1.0)
        beside = await latencies(plan.idle_seconds / 2)
    before, after = quantile(alone, 0.99), quantile(beside, 0.99)
    outcome.figures["seconds_without_dawdlers"] = spread(alone)
    outcome.figures["seconds_beside_dawdlers"] = spread(beside)
    outcome.expect(
        holds=after <= max(2 * before, before + 0.05),
        otherwise=f"beside dawdlers p99 went from {before:.3f} to {after:.3f} s",
    )


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    chance = random.Random(7)
    # Fewer than dawdlers come, so that the server has to choose whom it keeps.
    settings: dict[str, Any] = {"max_connections": max(NUM_AT_ONCE + 10, plan.num_idlers * 5 // 6)}
    with serving(folder / "leavers.jsonl", log_level="warning", **settings) as served:
        client = Client(served.port)
        # The first few hundred warm the allocators up; what comes after must leave no trace.
        await _leave_often(served, max(NUM_AT_ONCE, plan.num_leavers // 5), chance)
        await wait_idle(client)
        files, size = served.num_files(), sum(served.resident_bytes().values())
        tasks = (await client.metrics())["event_loop_tasks"]
        await _leave_often(served, plan.num_leavers, chance)
        await wait_idle(client)
        num_files, grown = served.num_files(), sum(served.resident_bytes().values())
        num_tasks = (await client.metrics())["event_loop_tasks"]
        await _beside_dawdlers(served, plan, outcome)
        client.close()
    growth = grown / size - 1.0
    outcome.figures |= {
        "settings": settings,
        "num_leavers": plan.num_leavers,
        "num_dawdlers": plan.num_idlers,
        "num_files_before_and_after": [files, num_files],
        "num_tasks_before_and_after": [tasks, num_tasks],
        "growth": round(growth, 5),
    }
    outcome.expect(
        holds=num_files <= files, otherwise=f"open files went from {files} to {num_files}"
    )
    outcome.expect(holds=num_tasks <= tasks, otherwise=f"tasks went from {tasks} to {num_tasks}")
    outcome.expect(holds=growth < MAX_GROWTH, otherwise=f"memory grew by {growth:.1%}")
    return outcome
