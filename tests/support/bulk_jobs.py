"""Bulk jobs for tests: tables, what a job's output says, commands that are killed on their way."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint
from model.config import SearchConfig
from model.loading import automatic_compute_type
from model.offline.bulk.blocks import Columns, Sizes
from model.offline.bulk.job import Job
from model.offline.bulk.planning import Wanted, format_of_all, input_files, planned
from model.offline.bulk.task import Method, Task
from model.text.constraints.control import Control
from support.running_server import ROOT
from support.tiny_checkpoint import EN_ZH, generated_pairs


def sentences(number: int) -> list[str]:
    """English lines that the tiny network has the words of."""
    return [source for source, _ in generated_pairs(number)]


def write_json_lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def method_of(checkpoint: Path, **changes: Any) -> Method:
    """A method with the tiny network."""
    values: dict[str, Any] = {
        "checkpoint": checkpoint,
        "fingerprint": fingerprint(checkpoint),
        "device": "cpu",
        "compute_type": automatic_compute_type(read_manifest(checkpoint), "cpu"),
        "with_shortlist": False,
        "num_threads": 1,
        "max_rows": 16,
        "pair": EN_ZH,
        "search": SearchConfig(beam_size=2),
        "control": Control(),
        "max_characters": 10_000,
    }
    return Method(**{**values, **changes})


def wanted_of(source: str, *, names: Sequence[str] = (), max_rows: int = 4, **facts: Any) -> Wanted:
    files = input_files(source)
    return Wanted(
        files=files,
        format=format_of_all(files, names),
        columns=Columns(names=tuple(names), new=tuple(f"{name}_zh" for name in names) or ("",)),
        sizes=Sizes(max_rows=max_rows),
        facts=facts,
    )


def job_of(source: str, *, names: Sequence[str] = (), max_rows: int = 4, **facts: Any) -> Job:
    return planned(wanted_of(source, names=names, max_rows=max_rows, **facts))


def task_of(job: Job, output: str, method: Method) -> Task:
    return Task(job=job, output=output, method=method)


def parts_of(folder: Path) -> bytes:
    """All parts, one behind the other."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in parts_of(folder).splitlines()]


def bad_rows_of(folder: Path) -> list[tuple[int, str]]:
    lines = (folder / "_bad_rows.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["row"], row["reason"]) for row in map(json.loads, lines)]


def done_of(folder: Path) -> set[str]:
    """Blocks that are finished."""
    done = folder / "_dragoman" / "done"
    return {path.name for path in done.glob("*.json")} if done.exists() else set()


def begun_command(
    *arguments: str, environment: dict[str, str] | None = None
) -> "subprocess.Popen[str]":
    """`dragoman translate`, which tells every block on its standard error."""
    return subprocess.Popen(
        [sys.executable, "-m", "support.bulk_command", "translate", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            **(environment or {}),
        },
    )


def told_blocks(process: "subprocess.Popen[str]", number: int) -> int:
    """Read until so many blocks are told, or the process has ended; how many were."""
    assert process.stderr is not None
    told = 0
    while told < number and (line := process.stderr.readline()):
        told += " rows" in line and " of " in line
    return told
