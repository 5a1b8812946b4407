"""Run every part in a process of its own, within the time there is, and write one results file.

Owns the plan and the time: how much each part may take, speed before correctness. The file is
written after every row, so that whatever ends the run, what was measured is there. A part that
fails is recorded as such and stops no other.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import ours, rivals
from benchmarks.gpu.marks import all_marks
from benchmarks.gpu.parts import run_part
from benchmarks.machine import describe_command, describe_machine
from benchmarks.peers.models import BUNDLED, ROOT, write_models

COUNTS, BEAM_SIZES, BATCHES = (1024, 1, 32, 8, 256), (4, 1), (1, 32, 8, 256)
QUICK_COUNTS, QUICK_BATCHES = (1, 3), (1, 3)
CAPS = {"speed": 150, "busy": 40, "correctness": 60, "bleu": 90}
OTHER_CAP = 120
VOCABULARY, QUICK_VOCABULARY = 58_101, 400
BUSY_COUNT = 256
Found = dict[str, Any]  # what a part measured, as JSON has it


def main() -> int:
    """Measure, write, print the marks."""
    arguments = _arguments()
    device = torch.device(arguments.device)
    deadline = time.monotonic() + 60 * arguments.minutes
    started = datetime.now(UTC)
    result: Found = {
        "benchmark": "gpu",
        "command": describe_command("benchmarks.gpu", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
    }
    path = arguments.output / f"gpu-{started:%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        vocabulary = QUICK_VOCABULARY if arguments.quick else VOCABULARY
        try:
            write_models(models, vocabulary=vocabulary)
        except subprocess.CalledProcessError as error:  # a rival that is not installed here
            result["models"] = {"error": str(error)[:200]}
        os.environ["LD_LIBRARY_PATH"] = rivals.library_path(Path(folder))  # of the parts' processes
        parts = _plan(arguments, models, device)
        names = arguments.parts or list(parts)
        for place, name in enumerate(names):
            write = partial(_write, path, result, name)
            cap = cap_of(name, deadline - time.monotonic(), num_later=len(names) - 1 - place)
            write(run_part(name, parts[name], seconds=cap, on_found=write))
    print(path)
    for mark in all_marks(result):
        print(mark)
    return 0


def cap_of(name: str, seconds_left: float, *, num_later: int) -> float:
    """Seconds that a part may take: at most half of what is left, while others come later."""
    most = seconds_left / 2 if num_later else seconds_left
    return min(CAPS.get(name, OTHER_CAP), most)


def _write(path: Path, result: Found, name: str, found: object) -> None:
    """Put what is known of a part into the file, which is whole at all times."""
    result[name] = found
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure everything on a GPU.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="a small network and few sentences")
    parser.add_argument("--minutes", type=float, default=8.5, help="all parts together")
    parser.add_argument("--parts", nargs="+", help="only these, in this order")
    parser.add_argument("--data", type=Path, help="folder with en-zh/dev, for BLEU in bfloat16")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def _plan(
    arguments: argparse.Namespace, models: Path, device: torch.device
) -> dict[str, Callable[[], object]]:
    """The parts in order of importance."""
    counts = QUICK_COUNTS if arguments.quick else COUNTS
    batches = QUICK_BATCHES if arguments.quick else BATCHES
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    text = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8")
    sentences = text.splitlines()[: 8 if arguments.quick else None]
    checkpoint = models / "checkpoint"
    rounds = 1 if arguments.quick else 5
    parts: dict[str, Callable[[], object]] = {
        "speed": partial(
            ours.speed,
            checkpoint,
            device,
            counts=counts,
            beam_sizes=BEAM_SIZES,
            num_rounds=rounds,
            dtype=dtype,
        ),
        "busy": partial(
            ours.busy, checkpoint, device, count=3 if arguments.quick else BUSY_COUNT, dtype=dtype
        ),
    }
    for name, rival in (("huggingface", rivals.huggingface), ("ctranslate2", rivals.ctranslate2)):
        parts[name] = partial(
            rival, models, device, batches=batches, beam_sizes=BEAM_SIZES, num_rounds=min(rounds, 3)
        )
    parts["correctness"] = partial(ours.correctness, BUNDLED, sentences, device)
    if arguments.data is not None:
        parts["bleu"] = partial(ours.bleu, BUNDLED, arguments.data, device)
    return parts


if __name__ == "__main__":
    sys.exit(main())
