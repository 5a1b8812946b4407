"""A checkpoint is replaced by another one under load, again and again.

Two checkpoints with the same languages take turns: the bundled one, and a copy of it that goes by
another name. Marks: every request is answered rightly and every reload is done; after the last one
there is one engine, and the front has no more files open and has not grown by more than 2%.
"""

import asyncio
import json
import shutil
import signal
from itertools import cycle, islice
from pathlib import Path

from benchmarks.soak.losses import right_answers
from benchmarks.soak.outcome import Outcome, spread
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import ONE_BUNDLED, Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client, closed_loop, wait_for, wait_idle
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE

NUM_CLIENTS = 8
NUM_TEXTS = 100
MAX_GROWTH = 0.02


def _renamed_copy(original: Path, copy: Path) -> None:
    shutil.copytree(original, copy)
    config = json.loads((copy / CONFIG_FILE).read_text(encoding="utf-8"))
    (copy / CONFIG_FILE).write_text(json.dumps(config | {"name": "copy"}), encoding="utf-8")
    files = [path for path in copy.iterdir() if path.name != CHECKSUMS_FILE]
    (copy / CHECKSUMS_FILE).write_bytes(format_checksums(files))


def _point(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


async def _reload(served: Served, link: Path, target: Path) -> float:
    """Seconds until the new one is served; the old engine has left then too."""
    _point(link, target)
    num_before = served.logged("reloaded")
    served.process.send_signal(signal.SIGHUP)

    async def is_done() -> bool:
        return served.logged("reloaded") > num_before

    async def is_alone() -> bool:
        return len(served.engine_ids()) == 1

    seconds = await wait_for(is_done)
    await wait_for(is_alone)
    return seconds


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure and judge."""
    outcome = Outcome()
    texts = sentences(NUM_TEXTS)
    original = ONE_BUNDLED
    other, link = folder / "other", folder / "link"
    _renamed_copy(original, other)
    _point(link, original)
    is_over = False
    with serving(folder / "reloads.jsonl", checkpoint=link) as served:
        right = await right_answers(served, texts)
        await _reload(served, link, other)  # warms the allocators up
        files, size = served.num_files(), served.resident_bytes()["front"]
        load = asyncio.create_task(
            closed_loop(served.port, texts, num_clients=NUM_CLIENTS, is_over=lambda: is_over)
        )
        turns = islice(cycle([original, other]), plan.num_reloads)
        seconds = [await _reload(served, link, target) for target in turns]
        is_over = True
        traffic = await load
        client = Client(served.port)
        await wait_idle(client)
        client.close()
        num_files, grown = served.num_files(), served.resident_bytes()["front"]
    failed = traffic.statuses.total() - traffic.statuses[200]
    wrong = sum(one.status == 200 and one.translation != right[one.text] for one in traffic.replies)
    outcome.figures = {
        "num_reloads": plan.num_reloads,
        "reload_seconds": spread(seconds),
        "num_answered": traffic.statuses[200],
        "answer_seconds": spread(traffic.seconds_of(200)),
        "num_files_before_and_after": [files, num_files],
        "growth_of_front": round(grown / size - 1.0, 5),
    }
    outcome.expect(holds=failed == 0, otherwise=f"{failed} requests failed")
    outcome.expect(holds=wrong == 0, otherwise=f"{wrong} answers were wrong")
    outcome.expect(
        holds=num_files <= files + 1,  # the connection that has just asked
        otherwise=f"open files went from {files} to {num_files}",
    )
    outcome.expect(
        holds=grown / size - 1.0 < MAX_GROWTH,
        otherwise=f"the front went from {size} to {grown} bytes",
    )
    return outcome
