"""SIGTERM while bodies still arrive and other connections are idle.

Marks: every request whose body is not there gets a 503 `draining` as JSON, with Connection: close,
within 2 s; the process leaves with 0, well before the time of a body is over.
"""

import asyncio
import time
from pathlib import Path

from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import serving
from benchmarks.soak.traffic import Client, wait_for

NUM_BODIES = 20
MAX_ANSWER_SECONDS = 2.0
MAX_LEAVING_SECONDS = 8.0
BODY_SECONDS = 30
HEAD = (
    b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, float]:
    """Everything that comes until the end, and when."""
    try:
        content = await reader.read()
    except OSError:
        content = b""
    return content, time.perf_counter()


def _is_right(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    is_503 = head.startswith(b"HTTP/1.1 503 ") and b"\r\nconnection: close" in head
    return is_503 and b'"code":"draining"' in body


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    leaving, answering = [], []
    for number in range(plan.num_shutdowns):
        log = folder / f"departure-{number}.jsonl"
        with serving(log, body_timeout_seconds=BODY_SECONDS) as served:
            streams = [
                await asyncio.open_connection("127.0.0.1", served.port) for _ in range(NUM_BODIES)
            ]
            for _, writer in streams:
                writer.write(HEAD)
            client = Client(served.port)

            async def are_there(client: Client = client) -> bool:
                return (await client.metrics())["requests_in_progress"] > NUM_BODIES

            await wait_for(are_there)
            answers = [asyncio.create_task(_answer(reader)) for reader, _ in streams]
            started = time.perf_counter()
            status, seconds = await asyncio.to_thread(served.stop)
            found = await asyncio.gather(*answers)
            for _, writer in streams:
                writer.close()
            client.close()
        leaving.append(seconds)
        answering += [ended - started for _, ended in found]
        num_wrong = sum(not _is_right(answer) for answer, _ in found)
        outcome.expect(
            holds=num_wrong == 0, otherwise=f"departure {number}: {num_wrong} wrong answers"
        )
        outcome.expect(holds=status == 0, otherwise=f"departure {number} left with {status}")
    outcome.figures = {
        "num_departures": plan.num_shutdowns,
        "num_bodies": NUM_BODIES,
        "answer_seconds": spread(answering),
        "leaving_seconds": spread(leaving),
    }
    outcome.expect(
        holds=max(answering) <= MAX_ANSWER_SECONDS,
        otherwise=f"an answer came after {max(answering):.1f} s",
    )
    outcome.expect(
        holds=max(leaving) <= MAX_LEAVING_SECONDS,
        otherwise=f"it left after {max(leaving):.1f} s",
    )
    return outcome
