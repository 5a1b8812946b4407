"""Outputs of the library of each checkout, found by a worker in a process of its own.

Owns the process and the searches; what is done in it is `worker`'s.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.same_outputs.compared import Compared, Deadline, Plan, at_once, compared

WORKER = Path(__file__).with_name("worker.py")
SEARCHES: Mapping[str, Mapping[str, object]] = {
    "greedy": {"beam_size": 1},
    "beam 4": {"beam_size": 4, "num_hypotheses": 4},
}
POLL_SECONDS = 1.0
"""How often it is looked whether the time is over."""

Outputs = Mapping[tuple[str, str], list[object]]
"""By direction and search."""


def compare_libraries(plan: Plan, deadline: Deadline) -> Iterator[Compared]:
    """Both libraries, a checkpoint and an arithmetic at a time."""
    for checkpoint in dict.fromkeys(direction.checkpoint for direction in plan.directions):
        own = [direction for direction in plan.directions if direction.checkpoint == checkpoint]
        asked = [{**asdict(one), "lines": plan.lines[one.language]} for one in own]
        for compute_type in plan.compute_types:
            task = {
                "checkpoint": checkpoint,
                "compute_type": compute_type,
                "num_threads": plan.num_threads,
                "searches": SEARCHES,
                "directions": asked,
            }
            found = at_once([partial(ask, root, task, deadline) for root in plan.checkouts])
            for direction in own:
                for search in SEARCHES:
                    outputs = [each[str(direction), search] for each in found]
                    yield compared("library", direction, compute_type, search, outputs)


def ask(checkout: Path, task: Mapping[str, object], deadline: Deadline) -> Outputs:
    """What a checkout's library finds.

    Args:
        checkout: Its folder, absolute.
        task: As `worker.answer` takes it, but for the checkpoint, which is named.
        deadline: When it is stopped.

    Raises:
        SystemExit: It fails, the time is over, or the library of another checkout was found.
    """
    checkpoint = checkout / "checkpoints" / str(task["checkpoint"])
    variables = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": str(task["num_threads"])}
    written: str | None = json.dumps({**task, "checkpoint": str(checkpoint)})
    with subprocess.Popen(
        [sys.executable, "-P", str(WORKER)],
        cwd=checkout,
        env=os.environ | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        answer = None
        try:
            while answer is None:
                with suppress(subprocess.TimeoutExpired):
                    seconds = min(POLL_SECONDS, deadline.seconds_left())
                    answer, complaint = process.communicate(written, timeout=seconds)
                written = None
        finally:
            process.kill()
    if process.returncode != 0:
        raise SystemExit(f"the library of {checkout} failed:\n{complaint}")
    *found, last = map(json.loads, answer.splitlines())
    if last["places"] != [str(checkout)]:
        raise SystemExit(f"the library of {checkout} was taken from {', '.join(last['places'])}")
    return {(part["direction"], part["search"]): part["outputs"] for part in found}
