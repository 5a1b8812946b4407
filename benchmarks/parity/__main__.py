"""`python -m benchmarks.parity`: is what was imported what its reference is?

A random network of every family, made by its reference at a reduced size (Marian's were trained by
Marian), is converted in float32 and in int8 and asked the same sentences as the reference. Prints a
table: largest differences of the encoder's output and of the logits (of log-probabilities of given
tokens where the reference shows no more), hypotheses of a beam of 4 that are equal, tied within
1e-4 or differ, what int8 adds, and what the exports' engines say. Writes
benchmarks/results/parity-families-<time>.json; leaves with 1 if one family is not its reference,
or its int8 is further from float32 than the reference's own (`INT8_FACTOR` of `figures`).

Text: 500 lines from the folder that DRAGOMAN_DATA names, else the bundled sentences, varied.
Of Marian's networks the ten sentences of the fixtures, unless `--marian` names an interpreter with
pymarian: then Marian is asked all lines, of its own files and of our export of them. `--full` adds
networks of released sizes. Generators are the tests': PYTHONPATH must hold `tests`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch
from transformers.utils import logging

from benchmarks.machine import describe_command, describe_machine
from benchmarks.parity.exported import compare_exports
from benchmarks.parity.families import FULL, REDUCED, Family
from benchmarks.parity.figures import COLUMNS, HEAD, Distance, Figures
from benchmarks.parity.marian import compare_live, exported_families, marian_families
from benchmarks.parity.references import COMPARISONS
from benchmarks.parity.subject import converted
from benchmarks.parity.text import read_lines, text_facts
from benchmarks.results_file import RESULTS, write_result


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.parity", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--sentences", type=int, default=500, help="of each family (%(default)s)")
    parser.add_argument("--full", action="store_true", help="released sizes too; takes minutes")
    parser.add_argument(
        "--full-sentences", type=int, default=16, help="of released sizes (%(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="FAMILY", help="those of the table's names")
    parser.add_argument("--marian", metavar="PYTHON", help="an interpreter with pymarian")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(words)
    if min(arguments.sentences, arguments.full_sentences) < 1:
        parser.error("at least one sentence is needed")
    plan = (*reduced_families(arguments.marian), *full_families(arguments.marian, None))
    known = {family.name for family in plan}
    unknown = sorted({*(arguments.only or ())} - known)
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(sorted(known))}")
    return arguments


def reduced_families(marian: str | None) -> list[Family]:
    """Those of reduced sizes; with Marian there, also what it makes of our own networks."""
    return [*REDUCED, *(() if marian is None else exported_families())]


def full_families(marian: str | None, data: str | None) -> list[Family]:
    """Those of released sizes; with Marian's own where an interpreter with pymarian is named."""
    return [*FULL, *(() if marian is None else marian_families(marian, data))]


def measured(family: Family, lines: Sequence[str], *, marian: str | None = None) -> Figures:
    """A family's line; its files are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="dragoman-parity-") as folder:
        subject = converted(family, Path(folder))
        samples = list(subject.samples(lines))
        figures = Figures(family=family.name, reference=family.reference, num_sentences=len(lines))
        if family.reference == "marian" and marian is not None:
            compare_live(subject, lines, figures, Path(folder), python=marian)
        else:
            COMPARISONS[family.reference](subject, samples, figures)
        for sample in samples:
            figures.int8.add_lists(subject.int8_log_probs(sample), subject.log_probs(sample))
        compare_exports(subject, samples, figures, Path(folder))
    return figures


def described(figures: Figures, seconds: float) -> dict[str, object]:
    """A line for the results file."""
    distances = {
        "encoder": figures.encoder,
        "logits": figures.logits,
        "int8": figures.int8,
        "int8_beside": figures.int8_beside,
        "int8_defined": figures.int8_defined,
        "int8_alike": figures.int8_alike,
        "reference_int8": figures.reference_int8,
    }
    return {
        **asdict(figures),
        **{name: _figures_of(distance) for name, distance in distances.items()},
        "exported": {name: _figures_of(distance) for name, distance in figures.exported.items()},
        "int8_verdict": figures.int8_verdict,
        "alike_verdict": figures.alike_verdict,
        "is_parity": figures.is_parity,
        "wall_seconds": round(seconds, 1),
    }


def _figures_of(distance: Distance | None) -> dict[str, float] | None:
    if distance is None:
        return None
    return {
        "largest": distance.largest,
        "mean": distance.mean,
        "num": distance.num,
        "largest_number": distance.scale,
    }


def main(words: Sequence[str]) -> int:
    """Compare, print, write, judge."""
    arguments = parse_arguments(words)
    started, clock = datetime.now(UTC), time.monotonic()
    data = os.environ.get("DRAGOMAN_DATA")
    plan = [(family, arguments.sentences) for family in reduced_families(arguments.marian)]
    if arguments.full or arguments.only:
        full = full_families(arguments.marian, data)
        plan += [(family, arguments.full_sentences) for family in full]
    if arguments.only:
        plan = [(family, count) for family, count in plan if family.name in arguments.only]
    print(COLUMNS.format(*HEAD))
    rows, num_failed = [], 0
    for family, count in plan:
        begun = time.monotonic()
        figures = measured(family, read_lines(data, count), marian=arguments.marian)
        print(figures.row(), flush=True)
        rows.append(described(figures, time.monotonic() - begun))
        num_failed += not figures.is_parity
    result = {
        "benchmark": "parity-families",
        "command": describe_command("benchmarks.parity", words),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.monotonic() - clock, 1),
        "machine": describe_machine(),
        "references": {name: version(name) for name in ("transformers", "ctranslate2")},
        "text": text_facts(data),
        "rows": rows,
    }
    path = write_result(arguments.results, "parity-families", started, result)
    print(f"\n{len(rows) - num_failed} of {len(rows)} networks are their references'\n{path}")
    return 1 if num_failed else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    sys.exit(main(sys.argv[1:]))
