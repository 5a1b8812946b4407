"""`python -m benchmarks.same_outputs OLD NEW`: do two checkouts give the same outputs, bit for bit?

The same sentences go through both: through the library (token ids, scores and log-probabilities of
every hypothesis) and through `POST /v1/translate` of a server of each (whole bodies). The bundled
checkpoints run in all their directions on a CPU, in int8 and float32, greedy and with a beam of 4.
Prints a table, writes benchmarks/results/same-outputs-<time>.json, and leaves with 1 if one output
differs.

Text: `--text FILE…`, whose suffixes are their languages; else, from the folder that DRAGOMAN_DATA
names, 2,000 lines of each language; else the bundled English sentences. Directions without text
are left out, and it is said which.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import get_args

from benchmarks.machine import describe_command, describe_commit, describe_machine
from benchmarks.results_file import RESULTS, write_result
from benchmarks.same_outputs.compared import (
    Compared,
    ComputeType,
    Deadline,
    Lines,
    Plan,
    Way,
    bundled_directions,
)
from benchmarks.same_outputs.library import compare_libraries
from benchmarks.same_outputs.served import compare_servers
from benchmarks.same_outputs.text import chosen_files, read_text, shown_name

COLUMNS = "{:8}  {:12}  {:12}  {:8}  {:6}  {:>9}  {:>9}"
HEAD = ("way", "direction", "checkpoint", "numbers", "search", "sentences", "differing")
CALLS: Mapping[Way, Callable[[Plan, Deadline], Iterator[Compared]]] = {
    "library": compare_libraries,
    "http": compare_servers,
}
NUM_NAMED = 20
"""Differing lines of a setting whose numbers are written down."""


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.same_outputs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="folder of a checkout")
    parser.add_argument("new", type=Path, metavar="NEW", help="folder of another")
    parser.add_argument(
        "--text", type=Path, nargs="+", default=[], metavar="FILE", help="lines; FILE.en is English"
    )
    parser.add_argument("--limit", type=int, help="lines of each language, spread over its text")
    parser.add_argument("--ways", nargs="+", choices=get_args(Way), default=get_args(Way))
    parser.add_argument(
        "--compute-types",
        nargs="+",
        choices=get_args(ComputeType),
        default=get_args(ComputeType),
    )
    parser.add_argument("--threads", type=int, default=1, help="of each checkout (%(default)s)")
    parser.add_argument("--max-minutes", type=float, default=180.0, help="then it ends, with 1")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(words)


def made_plan(arguments: argparse.Namespace, lines: Lines) -> Plan:
    """What both checkouts are asked.

    Raises:
        SystemExit: They have other directions, or there is text for none.
    """
    old, new = arguments.old.resolve(), arguments.new.resolve()
    directions = bundled_directions(old)
    if bundled_directions(new) != directions:
        raise SystemExit("the checkouts' bundled checkpoints have other names or directions")
    chosen = tuple(direction for direction in directions if lines.get(direction.language))
    if not chosen:
        raise SystemExit(f"there is text in {', '.join(lines)}, which no checkpoint translates")
    for direction in directions:
        if direction not in chosen:
            print(f"{direction}: left out, there is no text in {direction.language}")
    return Plan(
        checkouts=(old, new),
        directions=chosen,
        lines=lines,
        compute_types=tuple(arguments.compute_types),
        num_threads=arguments.threads,
    )


def table_row(row: Compared) -> str:
    """A line of the table."""
    return COLUMNS.format(
        row.way,
        row.direction,
        row.checkpoint,
        row.compute_type,
        row.search,
        row.num_sentences,
        len(row.differing),
    )


def described(row: Compared) -> dict[str, object]:
    """A line of the table for the results file, with the first differing lines' numbers."""
    return {
        **asdict(row),
        "num_differing": len(row.differing),
        "differing": list(row.differing[:NUM_NAMED]),
    }


def compare(arguments: argparse.Namespace, words: Sequence[str], deadline: Deadline) -> int:
    """Compare, print, write, judge.

    Args:
        arguments: What `parse_arguments` makes of the words.
        words: As they were typed.
        deadline: When it is stopped.

    Returns:
        1 if an output differs, else 0.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    files = chosen_files(arguments.text, os.environ.get("DRAGOMAN_DATA"))
    lines = read_text(files, arguments.limit)
    plan = made_plan(arguments, lines)
    print(COLUMNS.format(*HEAD))
    rows = []
    for row in chain.from_iterable(CALLS[way](plan, deadline) for way in arguments.ways):
        print(table_row(row), flush=True)
        rows.append(row)
    result = {
        "benchmark": "same-outputs",
        "command": describe_command("benchmarks.same_outputs", words),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.monotonic() - clock, 1),
        "machine": describe_machine(),
        "commits": dict(zip(("old", "new"), map(describe_commit, plan.checkouts), strict=True)),
        "num_threads": plan.num_threads,
        "text": list(map(shown_name, files)),
        "num_lines": {language: len(own) for language, own in lines.items()},
        "rows": [described(row) for row in rows],
    }
    path = write_result(arguments.results, "same-outputs", started, result)
    num_differing = sum(len(row.differing) for row in rows)
    print(f"\n{num_differing} of {sum(row.num_sentences for row in rows)} outputs differ\n{path}")
    return 1 if num_differing else 0


def main(words: Sequence[str]) -> int:
    """Compare until it is done, or a signal comes."""
    arguments = parse_arguments(words)
    deadline = Deadline(60 * arguments.max_minutes)
    for number in (signal.SIGTERM, signal.SIGINT):  # servers and workers are not left behind
        signal.signal(number, deadline.stop)
    return compare(arguments, words, deadline)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
