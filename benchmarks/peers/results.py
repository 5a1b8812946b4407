"""Results files: what they say of their run, where they go, which is the latest.

Owns the names `peers-<benchmark>-<time>.json` and everything common in them. Of a run with an
instruction set that was asked for the name begins with it: such a run is the latest of that
instruction set alone. Those of other processors than the page is about have folders of their own.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import describe_command, describe_machine
from benchmarks.peers.models import ROOT
from benchmarks.results_file import write_result
from model.native import kernels

RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / "build" / "bench-peers"
BENCHMARKS = ("offline", "served", "memory", "families")
Result = dict[str, Any]  # read from JSON: its readers know its shape
MAX_BUSY_PERCENT = 10.0
"""What others may use of the processors just before a run that is to be quiet."""
SERVED_PARTS = ("closed", "open", "short_beside_long")
_POLL_SECONDS = 1.0  # at what others do while this process sleeps
_PACKAGES = ("ctranslate2", "transformers", "numpy", "psutil")


def header(
    benchmark: str, *, is_quick: bool, num_threads: int, instruction_set: str | None = None
) -> Result:
    """What a results file begins with, taken before anything is measured."""
    machine = describe_machine()
    versions = machine["versions"]
    assert isinstance(versions, dict)
    return {
        "benchmark": f"peers-{benchmark}",
        "command": describe_command("benchmarks.peers", sys.argv[1:]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "is_quick": is_quick,
        "machine": machine | {"versions": versions | {name: version(name) for name in _PACKAGES}},
        "busy_percent_before": psutil.cpu_percent(interval=_POLL_SECONDS),
        "num_threads": num_threads,
        "instruction_set": instruction_set or kernels.chosen({}),
        "is_instruction_set_asked_for": instruction_set is not None,
    }


def write(result: Mapping[str, object], directory: Path) -> Path:
    """Write a result under the time it was started."""
    started = datetime.fromisoformat(str(result["started"]))
    asked = f"{result['instruction_set']}-" if result.get("is_instruction_set_asked_for") else ""
    return write_result(directory, f"{asked}{result['benchmark']}", started, result)


def latest(directory: Path) -> dict[str, Result]:
    """The latest result of every benchmark that has one, with its file's name as "file".

    Families are measured one by one: each is that of the latest file that has it, which it names,
    with what that file says of its run as "run". So it is of each table of served checkpoints: one
    that a partial run does not have is that of the latest run with it, with that whole checkpoint's
    settings and its file in "earlier", by table.
    """
    found: dict[str, Result] = {}
    for benchmark in BENCHMARKS:
        for path in sorted(directory.glob(f"peers-{benchmark}-*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            before = found.get(benchmark, {})
            found[benchmark] = content | {"file": path.name}
            if "families" in content:
                found[benchmark]["families"] = _joined(before.get("families", []), content, path)
            if "checkpoints" in content:
                earlier = before.get("checkpoints", [])
                found[benchmark]["checkpoints"] = _completed(content, earlier, path)
    return found


def on_processors(directory: Path, benchmark: str = "offline") -> dict[str, Result]:
    """The latest result of a benchmark on each other processor, by the name of its folder.

    `directory` has those of one processor, so that its latest can be read beside each other, and
    below `processors/` a folder for each further one. Each has its path from `directory` as "file".
    """
    found = {}
    for folder in sorted((directory / "processors").glob("*/")):
        if (result := latest(folder).get(benchmark)) is not None:
            path = (folder / result["file"]).relative_to(directory)
            found[folder.name] = result | {"file": path.as_posix()}
    return found


def _joined(before: Sequence[Result], content: Result, path: Path) -> list[Result]:
    by_family = {entry["family"]: entry for entry in before}
    run = {name: value for name, value in content.items() if name != "families"}
    for entry in content["families"]:
        by_family[entry["family"]] = entry | {"file": path.name, "run": run}
    return list(by_family.values())


def _completed(content: Result, before: Sequence[Result], path: Path) -> list[Result]:
    """A run's checkpoints, with the latest of each table that it has not."""
    run = {name: value for name, value in content.items() if name != "checkpoints"}
    by_name = {entry["checkpoint"]: entry for entry in before}
    found = []
    for entry in content["checkpoints"]:
        last = by_name.get(entry["checkpoint"], {})
        earlier = {}
        if last:
            own = {"settings": last["settings"], "run": last["run"], "file": last["file"]}
            earlier = {name: own | {"levels": last[name]} for name in SERVED_PARTS if last[name]}
            earlier |= last["earlier"]  # what the last one had not, or in part
        levels = {level["num_clients"] for level in entry["closed"]}
        kept = {
            name: table
            for name, table in earlier.items()
            if not entry[name] or (name == "closed" and not levels >= _clients(table["levels"]))
        }
        found.append(entry | {"file": path.name, "run": run, "earlier": kept})
    return found


def _clients(levels: Sequence[Result]) -> set[int]:
    return {level["num_clients"] for level in levels}


def held(directory: Path, benchmark: str = "offline") -> dict[str, Result]:
    """The latest result of a benchmark for every instruction set that was asked for, by its name.

    Each has its file's name as "file".
    """
    found = {}
    for path in sorted(directory.glob(f"*-peers-{benchmark}-*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found[content["instruction_set"]] = content | {"file": path.name}
    return found
