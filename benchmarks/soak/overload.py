"""Five times what the server can do: it does nearly as much as ever, and refuses the rest at once.

Marks: goodput at least 90% of the capacity; everything else is a 429 with Retry-After, in 50 ms
(p99); a request is answered normally, and nothing is pending, within 5 s of the end.

A text is a paragraph of eight sentences: what is overloaded is the engine. With single sentences
five times its rate is about what the generator and the front can move on the one core it leaves.
"""

import time
from pathlib import Path

from benchmarks.soak.outcome import Outcome, quantile, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import serving
from benchmarks.soak.steady import measure_capacity
from benchmarks.soak.texts import paragraphs
from benchmarks.soak.traffic import Client, offered, wait_idle

FACTOR = 5.0
MIN_GOODPUT = 0.9
MAX_REFUSAL_SECONDS = 0.05
MAX_RECOVERY_SECONDS = 5.0
NUM_TEXTS = 500
NUM_SENTENCES = 8


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    log = folder / "overload.jsonl"
    texts = paragraphs(NUM_TEXTS, num_sentences=NUM_SENTENCES)
    with serving(log, log_level="error") as served:
        capacity = await measure_capacity(served, plan, texts)
        traffic = await offered(
            served.port,
            texts,
            rate=FACTOR * capacity,
            seconds=plan.overload_seconds,
            count_from_due=False,
        )
        client = Client(served.port)
        reply = await client.translate("The boat came back in the evening.")
        await wait_idle(client)
        recovery = time.perf_counter() - traffic.ended
        client.close()
    statuses = traffic.statuses
    goodput = traffic.answered_per_second / capacity
    refusals = traffic.seconds_of(429)
    refusal_p99 = quantile(refusals, 0.99)
    others = statuses.total() - statuses[200] - statuses[429]
    without_header = sum(not one.retry_after for one in traffic.replies if one.status == 429)
    outcome.figures = {
        "capacity_per_second": round(capacity, 1),
        "offered_per_second": round(statuses.total() / traffic.wall_seconds, 1),
        "goodput_of_capacity": round(goodput, 3),
        "statuses": {str(status): number for status, number in sorted(statuses.items())},
        "refusal_seconds": spread(refusals),
        "answer_seconds": spread(traffic.seconds_of(200)),
        "recovery_seconds": round(recovery, 3),
    }
    outcome.expect(
        holds=goodput >= MIN_GOODPUT, otherwise=f"goodput was {goodput:.0%} of the capacity"
    )
    outcome.expect(holds=bool(refusals), otherwise="nothing was refused: it was no overload")
    outcome.expect(
        holds=refusal_p99 <= MAX_REFUSAL_SECONDS,
        otherwise=f"the p99 of a 429 was {refusal_p99 * 1000:.0f} ms",
    )
    outcome.expect(holds=others == 0, otherwise=f"{others} requests were neither 200 nor 429")
    outcome.expect(
        holds=without_header == 0, otherwise=f"{without_header} of the 429 had no Retry-After"
    )
    outcome.expect(
        holds=reply.status == 200 and recovery <= MAX_RECOVERY_SECONDS,
        otherwise=f"after the overload a {reply.status} came, and rest after {recovery:.1f} s",
    )
    return outcome
