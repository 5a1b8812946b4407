"""`python -m benchmarks.peers`: measure, write results, print the marks.

Owns the flags, and one directory of networks for everything that is measured.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import families, isa, marks, memory, offline, results, served
from benchmarks.peers.models import BUNDLED, write_models
from benchmarks.peers.plan import FULL, HELD, INT8, QUICK, FamilyPlan, Plan
from benchmarks.peers.rivals import MAX_THREADS, pin


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shows that it works, no more")
    parser.add_argument(
        "--only", action="append", choices=results.BENCHMARKS, help="may be given several times"
    )
    parser.add_argument(
        "--results",
        type=Path,
        help="directory (benchmarks/results; build/bench-peers of a quick run)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        choices=(1, 2),
        help="of every rival (one a core, at most 2); 1 to try things beside other work",
    )
    parser.add_argument(
        "--int8", action="store_true", help="without float32, offline in less than ten minutes"
    )
    parser.add_argument(
        "--isa",
        choices=sorted(isa.INSTRUCTION_SETS),
        help="the instruction set of every rival that can be told; without it each chooses",
    )
    parser.add_argument(
        "--marian",
        metavar="PYTHON",
        help="an interpreter with pymarian, for the families; without it Marian is left out",
    )
    parser.add_argument(
        "--family",
        action="append",
        choices=[family.shape for family in FULL.families],
        help="this one of the families; may be given several times",
    )
    parser.add_argument(
        "--clients",
        type=int,
        nargs="+",
        help="of `--only served`, these closed-loop levels and nothing else, such as 32 for one run"
        " of several; such results go where those of a quick run do, unless --results says where",
    )
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIRECTORY",
        help="where networks are kept; those that `benchmarks.peers.models` wrote there, by their"
        " shapes, are taken as they are",
    )
    return parser.parse_args()


def chosen_plan(arguments: argparse.Namespace) -> Plan:
    """How much is measured, and of which families."""
    plan = _plan_of(arguments)
    if arguments.clients:
        levels = tuple(arguments.clients)
        served = replace(plan.served, clients=levels, open_shares=(), probe_seconds=0.0)
        plan = replace(plan, served=served)
    families = [family for family in plan.families if _is_wanted(family, arguments)]
    return replace(plan, families=tuple(families))


def _is_wanted(family: FamilyPlan, arguments: argparse.Namespace) -> bool:
    """Whether a family is among those that are named, or needs no naming."""
    if arguments.family:
        return family.shape in arguments.family
    return family.is_in_every_run or bool(arguments.only)


def measure(
    benchmark: str,
    models: Mapping[str, Path],
    plan: Plan,
    num_threads: int,
    *,
    marian: str | None = None,
) -> dict[str, object]:
    """What one benchmark adds to the header."""
    if benchmark == "families":
        found = families.measure(models, plan.families, num_threads, marian=marian)
        return {"families": found}
    if benchmark == "offline":
        return {"points": offline.measure(models, plan.offline, num_threads)}
    if benchmark == "served":
        return {
            "parts": served.parts(plan.served),
            "ctranslate2_server": served.BARE,
            "checkpoints": served.measure(models, plan.served, num_threads),
        }
    return {
        "vocabulary": plan.memory.vocabulary,
        "num_sentences": plan.memory.num_sentences,
        "rivals": memory.measure(models, plan.memory, num_threads),
    }


def main() -> None:
    """Measure what is asked for, one file each; the marks are those of the latest files."""
    arguments = parse_arguments()
    plan = chosen_plan(arguments)
    is_whole = not (plan.is_quick or arguments.clients)
    directory = arguments.results or (results.RESULTS if is_whole else results.QUICK_RESULTS)
    os.environ.update(isa.environment(arguments.isa))  # the rivals' processes inherit it
    num_threads = min(arguments.threads or MAX_THREADS, len(pin()))
    with tempfile.TemporaryDirectory() as folder:
        wanted = arguments.only or results.BENCHMARKS
        kept = arguments.models or Path(folder)
        models = _write_networks(kept, wanted, plan, marian=arguments.marian)
        for benchmark in wanted:
            found = results.header(
                benchmark,
                is_quick=plan.is_quick,
                num_threads=num_threads,
                instruction_set=arguments.isa,
            )
            if found["busy_percent_before"] > results.MAX_BUSY_PERCENT:
                print(f"others use {found['busy_percent_before']} % of the processors", flush=True)
            started = time.perf_counter()
            found |= measure(benchmark, models, plan, num_threads, marian=arguments.marian)
            found["seconds"] = round(time.perf_counter() - started)
            print(results.write(found, directory), flush=True)
    for mark in marks.all_marks(results.latest(directory)):
        print(mark)


def _plan_of(arguments: argparse.Namespace) -> Plan:
    if arguments.quick:
        return QUICK
    if arguments.isa:
        return HELD
    return INT8 if arguments.int8 else FULL


def _write_networks(
    folder: Path, benchmarks: Sequence[str], plan: Plan, *, marian: str | None
) -> dict[str, Path]:
    """The networks that these benchmarks need, by name."""
    models = {}
    if set(benchmarks) - {"families"}:
        models["bundled"] = folder / "bundled"
        if not models["bundled"].exists():
            write_models(models["bundled"], checkpoint=BUNDLED)
        for vocabulary in _vocabularies(plan):
            name = str(vocabulary)
            models[name] = folder / name
            if not models[name].exists():
                write_models(models[name], vocabulary=vocabulary)
    for family in plan.families if "families" in benchmarks else ():
        models[family.shape] = folder / family.shape
        interpreter = marian if family.has_marian else None
        if not models[family.shape].exists():
            write_models(models[family.shape], family=family.shape, marian=interpreter)
    return models


def _vocabularies(plan: Plan) -> list[int]:
    return sorted({*plan.offline.vocabularies, plan.memory.vocabulary})


if __name__ == "__main__":
    main()
