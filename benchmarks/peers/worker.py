"""A rival's process: one engine, asked over a pipe, one JSON object a line.

Owns the conversation and the clock around `Job.run`. It ends when its input does. What libraries
print goes to standard error, so that answers stand alone.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO, cast

from benchmarks.peers.engines import Engine, make_engine
from benchmarks.peers.work import count_tokens, read_work

Message = dict[str, object]
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def resident_bytes() -> dict[str, int]:
    """Resident size of this process: now, and the highest there was."""
    names = {"VmRSS": "resident_bytes", "VmHWM": "peak_bytes"}
    found = {}
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name in names:
            found[names[name]] = int(value.split()[0]) * 1024
    return found


def answer(engine: Engine, question: Mapping[str, object]) -> Message:
    """What the engine says.

    Raises:
        ValueError: The command is unknown.
    """
    command = question["command"]
    settings = cast("Mapping[str, int | str]", question.get("settings", {}))
    if command == "memory":
        return {**resident_bytes()}
    if command == "load":
        started = time.perf_counter()
        engine.load(settings)
        return {"seconds": time.perf_counter() - started}
    if command == "translate":
        work = read_work(cast("Mapping[str, object]", question["work"]))
        job = engine.prepare(work, settings)
        started = time.perf_counter()
        job.run()
        seconds = time.perf_counter() - started
        targets = job.targets()
        reply: Message = {"seconds": seconds, "num_tokens": count_tokens(targets)}
        return reply | ({"targets": targets} if question.get("with_targets") else {})
    raise ValueError(f"command is {command!r}; it must be 'load', 'memory' or 'translate'")


def end_with_parent() -> None:
    """Be killed when the process that asks ends: one that is stopped sees no end of its input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def converse(engine: Engine, questions: TextIO, answers: TextIO) -> None:
    """Answer every line until there is none."""
    for line in questions:
        answers.write(json.dumps(answer(engine, json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Read the flags, import the engine, say so, converse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("dragoman", "ctranslate2", "huggingface"))
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--compute-type", choices=("int8", "float32"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    end_with_parent()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        engine = make_engine(
            arguments.engine,
            models=arguments.models,
            compute_type=arguments.compute_type,
            num_threads=arguments.threads,
        )
        answers.write(json.dumps({"ready": arguments.engine}) + "\n")
        answers.flush()
        converse(engine, sys.stdin, answers)


if __name__ == "__main__":
    main()
