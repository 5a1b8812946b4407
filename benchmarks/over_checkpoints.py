"""Benchmarks that translate dev sets with every checkpoint of a folder: their flags and their end.

Owns the command line, the file of results and the order of things; what is measured is theirs.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROOT = Path(__file__).resolve().parents[1]

RowT = TypeVar("RowT", bound="DataclassInstance")


def measure_all(
    name: str,
    words: str,
    measure: Callable[[Path, Path, int], Iterable[RowT]],
    table: Callable[[Sequence[RowT]], str],
) -> None:
    """Measure with each checkpoint, write, print.

    Args:
        name: Of the benchmark's module.
        words: What it is, for `--help`.
        measure: Rows of a checkpoint's folder, the folder of dev sets, and a number of sentences.
        table: All rows in Markdown.
    """
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("data", type=Path, help="folder that holds en-de/ and en-zh/")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    parser.add_argument("--sentences", type=int, default=300, help="a direction (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    rows: list[RowT] = []
    for path in sorted(arguments.checkpoints.glob("*/config.json")):
        rows += measure(path.parent, arguments.data, arguments.sentences)
        print(f"{path.parent.name}: done", file=sys.stderr)
    result = {
        "benchmark": name,
        "command": describe_command(f"benchmarks.{name}", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "rows": [asdict(row) for row in rows],
    }
    path = write_result(arguments.results, name, started, result)
    print(f"\n{table(rows)}\n\n{path}")
