"""Every damage to a checkpoint is refused by a reload while the old one serves on.

Each file of a copy of the bundled checkpoint is removed, emptied, cut, and changed in one bit at
several places; then the same with checksums that were made anew, for damage that deeper checks have
to find. Marks: every reload is refused, and the same texts have the same translations after it.
"""

import asyncio
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from benchmarks.soak.outcome import Outcome
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import ONE_BUNDLED, Served, serving
from benchmarks.soak.texts import sentences
from benchmarks.soak.traffic import Client
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums

NUM_TEXTS = 5
CHANGED_AT = (0.0, 0.31, 0.77, 0.999)
REFUSED_SECONDS = 60.0


def _damages(original: Path) -> Iterator[tuple[str, str, bytes | None]]:
    """A name, a file and its new bytes (None: it is gone)."""
    for file in sorted(original.iterdir()):
        data = file.read_bytes()
        yield "gone", file.name, None
        yield "empty", file.name, b""
        yield "cut", file.name, data[: len(data) // 2]
        for share in CHANGED_AT:
            changed = bytearray(data)
            changed[int(share * len(data))] ^= 1
            yield f"changed at {share:.1%}", file.name, bytes(changed)


def _deeper_damages(original: Path) -> Iterator[tuple[str, str, bytes | None]]:
    """Damage that no checksum shows, as the checksums are made to fit."""
    for file in sorted(original.iterdir()):
        if file.name in (CHECKSUMS_FILE, "card.md"):  # any card is a good card
            continue
        data = file.read_bytes()
        yield "gone", file.name, None
        yield "empty", file.name, b""
        yield "cut", file.name, data[: len(data) // 2]


async def _refused(served: Served, num_before: int) -> bool:
    """Ask for a reload; whether it is refused."""
    num_reloaded = served.logged("reloaded")
    served.process.send_signal(signal.SIGHUP)
    async with asyncio.timeout(REFUSED_SECONDS):
        while served.logged("reload_failed") == num_before:
            if served.logged("reloaded") > num_reloaded:
                return False
            await asyncio.sleep(0.02)
    return True


async def run(plan: Plan, folder: Path) -> Outcome:  # noqa: ARG001  # every scenario has it
    """Measure and judge."""
    outcome = Outcome()
    original = ONE_BUNDLED
    texts = sentences(NUM_TEXTS)
    checkpoint = folder / "damaged"
    shutil.copytree(original, checkpoint)
    num_refused = 0
    with serving(folder / "corruption.jsonl", checkpoint=checkpoint) as served:
        client = Client(served.port)
        right = [await client.answer(text) for text in texts]
        cases = [(False, case) for case in _damages(original)]
        cases += [(True, case) for case in _deeper_damages(original)]
        for is_sealed, (damage, name, data) in cases:
            shutil.rmtree(checkpoint)
            shutil.copytree(original, checkpoint)
            if data is None:
                (checkpoint / name).unlink()
            else:
                (checkpoint / name).write_bytes(data)
            if is_sealed:
                files = [path for path in checkpoint.iterdir() if path.name != CHECKSUMS_FILE]
                (checkpoint / CHECKSUMS_FILE).write_bytes(format_checksums(files))
            is_refused = await _refused(served, num_refused)
            found = [(await client.translate(text)).translation for text in texts]
            what = f"{name}, {damage}{', checksums made to fit' if is_sealed else ''}"
            outcome.expect(holds=is_refused, otherwise=f"{what}: it was loaded")
            outcome.expect(holds=found == right, otherwise=f"{what}: it translates otherwise")
            num_refused += is_refused
        client.close()
    outcome.figures = {"num_damages": len(cases), "num_refused": num_refused}
    return outcome
