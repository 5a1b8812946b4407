"""Many clients at once get, text by text, exactly what one client gets.

Marks: every concurrent translation is the serial one, character by character.
"""

import asyncio
from pathlib import Path

from benchmarks.soak.outcome import Outcome
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, Reply


async def _translate_all(port: int, texts: list[str], *, num_clients: int) -> list[Reply]:
    """The replies in the order of the texts, which the clients take one by one."""
    replies: dict[str, Reply] = {}
    supply = iter(texts)

    async def work() -> None:
        client = Client(port)
        for text in supply:
            replies[text] = await client.translate(text)
        client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(num_clients):
            group.create_task(work())
    return [replies[text] for text in texts]


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    texts = sentences(plan.num_texts)
    with serving(folder / "agreement.jsonl", log_level="warning") as served:
        serial = await _translate_all(served.port, texts, num_clients=1)
        concurrent = await _translate_all(served.port, texts, num_clients=plan.num_text_clients)
    failed = sum(reply.status != 200 for reply in (*serial, *concurrent))
    pairs = zip(serial, concurrent, strict=True)
    different = sum(one.translation != other.translation for one, other in pairs)
    outcome.figures = {
        "num_texts": len(texts),
        "num_clients": plan.num_text_clients,
        "num_distinct_translations": len({reply.translation for reply in serial}),
        "num_different": different,
    }
    outcome.expect(holds=failed == 0, otherwise=f"{failed} requests failed")
    outcome.expect(holds=different == 0, otherwise=f"{different} translations were different")
    return outcome
