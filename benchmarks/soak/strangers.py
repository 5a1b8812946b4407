"""Strangers that send large forms to a server with keys, beside somebody who has one.

Marks: every sentence of the key's owner is answered, none slower than a second, and no stranger is
told anything but 401, while 12 of them send forms of 1 MiB of escapes, and forms as large as a body
without a key may be, as fast as they are refused.
"""

import asyncio
import hashlib
import secrets
import time
from pathlib import Path

from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import ONE_BUNDLED, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client

MAX_SECONDS = 1.0
NUM_STRANGERS = 12
FORM_BYTES = {"beyond what a stranger may send": 2**20, "as much as a stranger may send": 60_000}


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    key = secrets.token_hex(16)
    line = f'owner = {{ sha256 = "{hashlib.sha256(key.encode()).hexdigest()}" }}'
    texts = sentences(plan.num_sharing_sentences)
    log = folder / "strangers.jsonl"
    with serving(log, checkpoint=ONE_BUNDLED, log_level="error", api_keys=line) as served:
        alone, _ = await _answers(served.port, key, texts)
        outcome.figures = {"alone_seconds": spread(alone)}
        for name, num_bytes in FORM_BYTES.items():
            statuses: list[int] = []
            form = b"q=" + b"%41" * ((num_bytes - 2) // 3)
            crowd = [
                asyncio.create_task(_refused(served.port, form, statuses))
                for _ in range(NUM_STRANGERS)
            ]
            seconds, num_lost = await _answers(served.port, key, texts)
            for task in crowd:
                task.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)
            outcome.figures[name] = {
                "seconds": spread(seconds),
                "stranger_statuses": {str(one): statuses.count(one) for one in set(statuses)},
            }
            slowest = quantile(seconds, 1.0)
            outcome.expect(
                holds=slowest <= MAX_SECONDS,
                otherwise=f"beside strangers that send {name} a sentence took {slowest:.2f} s",
            )
            outcome.expect(holds=num_lost == 0, otherwise=f"{num_lost} sentences had no answer")
            outcome.expect(
                holds=set(statuses) == {401},
                otherwise=f"strangers that send {name} got {sorted(set(statuses))}, not 401 alone",
            )
    return outcome


async def _answers(port: int, key: str, texts: list[str]) -> tuple[list[float], int]:
    """Seconds of each sentence of the key's owner, and how many were not translated."""
    client = Client(port)
    seconds, statuses = [], []
    for text in texts:
        started = time.perf_counter()
        values: dict[str, object] = {"texts": text, "target": "zh-Hans"}
        statuses.append(await client.post("/v1/translate", values, key=key))
        seconds.append(time.perf_counter() - started)
    client.close()
    return seconds, sum(status != 200 for status in statuses)


async def _refused(port: int, form: bytes, statuses: list[int]) -> None:
    """Send the form over and over, on a new connection where the last one was closed."""
    client = Client(port)
    try:
        while True:
            statuses.append(await client.post_form("/translate", form))
    finally:
        client.close()
