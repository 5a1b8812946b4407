"""The engine is killed and stopped under load, again and again.

Marks: every request is answered, rightly or with a 503 and Retry-After, at once: in a second, and
those of a stopped engine in the time that it may be silent and a second; the server is ready again
every time, and has no more files open in the end; each loss was counted by
`dragoman_engine_restarts_total`.
"""

import asyncio
import re
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, Traffic, closed_loop, wait_until

NUM_CLIENTS = 16
NUM_TEXTS = 100
LOAD_SECONDS = 1.0
HANG_SECONDS = 2.0
REPLY_SECONDS = 1.0
SETTINGS: dict[str, Any] = {
    "hang_seconds": HANG_SECONDS,
    "restart_window_seconds": 0.001,  # every loss is the first of its window
}


async def _lose(
    served: Served, number: signal.Signals, times: int
) -> tuple[list[float], list[float]]:
    """Seconds until readiness dropped, and until it was back, for every loss."""
    client = Client(served.port)
    noticed, recovered = [], []
    for _ in range(times):
        await asyncio.sleep(LOAD_SECONDS)
        started = time.perf_counter()
        served.signal_engine(number)
        noticed.append(await wait_until(client, "/readyz", 503))
        await wait_until(client, "/readyz", 200)
        recovered.append(time.perf_counter() - started)
    client.close()
    return noticed, recovered


async def right_answers(served: Served, texts: list[str]) -> dict[str, str]:
    """What one client gets, text by text."""
    client = Client(served.port)
    answers = {text: await client.answer(text) for text in texts}
    client.close()
    return answers


async def _restarts(served: Served, reason: str) -> int:
    client = Client(served.port)
    _, text = await client.get("/metrics")
    client.close()
    pattern = rf'dragoman_engine_restarts_total{{reason="{reason}"}} (\S+)'
    found = re.search(pattern, text)
    return int(float(found[1])) if found else 0


def _judge(outcome: Outcome, traffic: Traffic, right: dict[str, str]) -> None:
    statuses = traffic.statuses
    wrong = sum(
        reply.status == 200 and reply.translation != right[reply.text] for reply in traffic.replies
    )
    odd = statuses.total() - statuses[200] - statuses[503]
    without_header = sum(not one.retry_after for one in traffic.replies if one.status == 503)
    outcome.figures["statuses"] = {str(status): num for status, num in sorted(statuses.items())}
    outcome.figures["slowest_reply_seconds"] = round(max(r.seconds for r in traffic.replies), 3)
    outcome.figures["num_wrong"] = wrong
    outcome.expect(holds=wrong == 0, otherwise=f"{wrong} answers were wrong")
    slowest = max(reply.seconds for reply in traffic.replies)
    outcome.expect(
        holds=slowest <= HANG_SECONDS + REPLY_SECONDS,
        otherwise=f"a reply took {slowest:.1f} s",
    )
    outcome.expect(holds=odd == 0, otherwise=f"{odd} requests had neither an answer nor a 503")
    outcome.expect(
        holds=without_header == 0, otherwise=f"{without_header} of the 503 had no Retry-After"
    )


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    texts = sentences(NUM_TEXTS)
    is_over = False
    outcome.figures["settings"] = SETTINGS
    with serving(folder / "losses.jsonl", log_level="warning", **SETTINGS) as served:
        right = await right_answers(served, texts)
        files = served.num_files()
        load = asyncio.create_task(
            closed_loop(served.port, texts, num_clients=NUM_CLIENTS, is_over=lambda: is_over)
        )
        for number, reason in ((signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")):
            noticed, recovered = await _lose(served, number, plan.num_losses)
            outcome.figures[f"{number.name.lower()}_noticed_seconds"] = spread(noticed)
            outcome.figures[f"{number.name.lower()}_recovery_seconds"] = spread(recovered)
            limit = REPLY_SECONDS + (HANG_SECONDS if reason == "hang" else 0.0)
            outcome.expect(
                holds=max(noticed) <= limit,
                otherwise=f"a loss by {reason} was noticed after {max(noticed):.1f} s",
            )
            counted = await _restarts(served, reason)
            outcome.expect(
                holds=counted == plan.num_losses,
                otherwise=f"{plan.num_losses} engines were lost by {reason}; {counted} counted",
            )
        is_over = True
        traffic = await load
        again = await right_answers(served, texts)
        num_files = served.num_files()
    outcome.figures["num_losses"] = 2 * plan.num_losses
    outcome.figures["num_files_before_and_after"] = [files, num_files]
    outcome.expect(
        holds=num_files <= files, otherwise=f"open files went from {files} to {num_files}"
    )
    outcome.expect(holds=again == right, otherwise="the last engine translates otherwise")
    _judge(outcome, traffic, right)
    return outcome
