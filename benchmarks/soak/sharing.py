"""Requests of very much work beside somebody who sends one sentence after the other.

Marks: every sentence is answered, none slower than a second, while another client has a request of
100,000 characters at beam 16 in work, or one of 128 long texts that claims to be interactive, or
while many clients fill the part of the queue that bulk may have and are refused for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import serving
from benchmarks.soak.texts import paragraphs, sentences
from benchmarks.soak.traffic import Client, wait_for

MAX_SECONDS = 1.0
NUM_BULK_CLIENTS = 24
PAUSE_SECONDS = 0.2
"""A client that was refused comes back after so long, sooner than it was told to."""

_SENTENCES = [line.rstrip(".") for line in sentences(500)]
_LONG = [", and ".join(_SENTENCES[start : start + 4]) for start in range(0, 500, 4)]
_BOOK = ". ".join(_LONG)[:19_900]
_PAGE = ". ".join(_LONG)[:780]

CROWDS: dict[str, tuple[int, dict[str, object]]] = {
    "a book at beam 16": (1, {"texts": [_BOOK] * 5, "target": "zh-Hans", "beam_size": 16}),
    "128 pages that claim to be interactive": (
        1,
        {"texts": [_PAGE] * 128, "target": "zh-Hans", "beam_size": 4, "priority": "interactive"},
    ),
    "a queue full of bulk": (
        NUM_BULK_CLIENTS,
        {"texts": paragraphs(100, num_sentences=2), "target": "zh-Hans", "priority": "bulk"},
    ),
}
"""How many clients send what, each again as soon as it has its answer."""


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    log = folder / "sharing.jsonl"
    texts = sentences(plan.num_sharing_sentences)
    with serving(log, log_level="error") as served:
        alone, _ = await _answers(served.port, texts)
        outcome.figures = {"alone_seconds": spread(alone)}
        for name, (num_clients, request) in CROWDS.items():
            async with _crowd(served.port, num_clients, request) as statuses:
                seconds, refused = await _answers(served.port, texts)
                crowd = sorted(statuses)
            outcome.figures[name] = {
                "seconds": spread(seconds),
                "crowd_statuses": {str(status): crowd.count(status) for status in set(crowd)},
            }
            outcome.expect(
                holds=refused == 0, otherwise=f"beside {name} {refused} sentences had no answer"
            )
            slowest = quantile(seconds, 1.0)
            outcome.expect(
                holds=slowest <= MAX_SECONDS,
                otherwise=f"beside {name} a sentence took {slowest:.2f} s",
            )
    return outcome


async def _answers(port: int, texts: Sequence[str]) -> tuple[list[float], int]:
    """Seconds of each sentence, one after the other, and how many had no translation."""
    client = Client(port)
    replies = [await client.translate(text) for text in texts]
    client.close()
    return [one.seconds for one in replies], sum(one.status != 200 for one in replies)


@contextlib.asynccontextmanager
async def _crowd(
    port: int, num_clients: int, request: dict[str, object]
) -> AsyncIterator[list[int]]:
    """Clients that send the request over and over; what they were answered."""
    statuses: list[int] = []

    async def send() -> None:
        client = Client(port)
        try:
            while True:
                statuses.append(await client.post("/v1/translate", request))
                if statuses[-1] != 200:
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            client.close()

    tasks = [asyncio.create_task(send()) for _ in range(num_clients)]
    observer = Client(port)

    async def is_at_work() -> bool:
        return (await observer.metrics())["pending_segments"] > 0

    await wait_for(is_at_work)
    observer.close()
    try:
        yield statuses
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
