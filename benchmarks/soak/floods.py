"""Clients that send requests by the megabyte in one piece and read no answer.

Marks: the front takes no more than 512 KiB for each of them while they are there; meanwhile a probe
on a connection of its own is answered within 3 s; the front serves as before when they have gone.
"""

import asyncio
import time
from pathlib import Path

from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.traffic import Client, wait_idle

MAX_FLOODS = 80
FLOOD_BYTES = 20 * 2**20
REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
MAX_BYTES_EACH = 512 * 1024
MAX_PROBE_SECONDS = 3.0
PAUSE_SECONDS = 0.1
TEXT = "The boat came back in the evening."


async def _flood(port: int, data: bytes) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # its protocol has no name for it
    writer.write(data)
    return writer


async def _probe(served: Served, seconds: float, outcome: Outcome) -> tuple[list[float], int]:
    """How long each probe took, and the most memory of the front meanwhile."""
    taken, most = [], 0
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        client = Client(served.port)
        started = time.perf_counter()
        status, _ = await client.get("/livez")
        taken.append(time.perf_counter() - started)
        client.close()
        outcome.expect(holds=status == 200, otherwise=f"a probe was answered with {status}")
        most = max(most, served.resident_bytes()["front"])
        await asyncio.sleep(PAUSE_SECONDS)
    return taken, most


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    num_floods = min(MAX_FLOODS, plan.num_idlers)
    data = REQUEST * (FLOOD_BYTES // len(REQUEST))
    with serving(folder / "floods.jsonl", log_level="warning") as served:
        client = Client(served.port)
        expected = await client.answer(TEXT)
        before = served.resident_bytes()["front"]
        writers = [await _flood(served.port, data) for _ in range(num_floods)]
        taken, most = await _probe(served, plan.idle_seconds, outcome)
        for writer in writers:
            writer.transport.abort()
        answer = await client.answer(TEXT)
        await wait_idle(client)
        client.close()
    grown = most - before
    outcome.figures = {
        "num_floods": num_floods,
        "flood_bytes": FLOOD_BYTES,
        "front_bytes_before": before,
        "front_bytes_grown": grown,
        "probe_seconds": spread(taken),
    }
    outcome.expect(
        holds=grown <= num_floods * MAX_BYTES_EACH,
        otherwise=f"the front grew by {grown} bytes under {num_floods} floods",
    )
    outcome.expect(
        holds=max(taken) <= MAX_PROBE_SECONDS, otherwise=f"a probe took {max(taken):.1f} s"
    )
    outcome.expect(holds=answer == expected, otherwise="a translation changed")
    return outcome
