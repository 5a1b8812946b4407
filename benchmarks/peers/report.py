"""`python -m benchmarks.peers.report`: docs/benchmarks.md, its figures, the README's table.

Owns the page's words and the README's markers. Every number comes from a results file.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from benchmarks.peers import notes, tables
from benchmarks.peers.marks import (
    all_marks,
    held_marks,
    offline_marks,
    point_name,
    ratio,
    speedup,
)
from benchmarks.peers.models import ROOT
from benchmarks.peers.plots import draw_all
from benchmarks.peers.results import (
    RESULTS,
    SERVED_PARTS,
    Result,
    held,
    latest,
    on_processors,
)
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_INT8, HUGGINGFACE

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
README_CLIENTS = 32

_FAIRNESS = """## How it is kept fair

Every rival has the same weights and the same two cores, in a process of its own that is started
once; they take turns within each round, another one first each time, after a warm-up; the number
shown is the median of the rounds, at least three of our int8 and of CTranslate2, and the results
file has all of them. Two engines are compared within each round, and the median of those quotients
is shown, which need not be the quotient of the numbers beside it. Sentences go in as token
ids and come out as token ids; target tokens are counted with EOS for everybody, also where an
engine stops one step earlier because its cap counts none. Every rival has its fastest settings,
chosen by a short trial within the run: what comes within 40 % of the best is run three times, and
the least time counts. While one runs, the processor time of those that wait is watched (last column
of the settings). What a result shown here does not keep of this is said beside it.

- CTranslate2 has one maximum length a call: sentences whose answers may be equally long go to it
  in calls of their own, all posted at once. Of a large file these are many batches; a small file
  has so few lengths that 16 sentences or more share a call on average.
- CTranslate2's threads within a batch may wait actively, too, in a process that is stopped while
  others are measured.
- CTranslate2 has no SSRU: in the student's place it has a network of the same size whose decoder
  has self-attention. Marian runs the student itself. Its cap is one factor of the longest source of
  a batch, for a whole file the largest that any sentence needs: it may take more steps for a
  sentence than the others do. All its tokens count.
- Both engines' searches stop when as many hypotheses are finished as there are beams. Our default,
  *exact search*, goes on until nothing better can follow, and stands beside it on real text.
- "Bundled" and "real text" are the bundled network from English as it was at the results' commit.
- Random networks have lengths that are forced: every engine takes as many steps, but for that one.
- Served, both are uvicorn with httptools and an endpoint without a framework's routing, prepare
  short texts at once and others on a thread, collect garbage as seldom, and have the same tokenizer
  and segments; the protocol below our endpoint is our own. The server around CTranslate2 has a
  queue, dynamic batches and a window, tuned in the run, and neither limits, deadlines nor metrics.
  The load generator shares the cores. Open-loop latency counts from when a request was due.
- Growth of memory is above a process of the same kind that has its libraries and no network.
"""


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    return parser.parse_args()


def page(
    results: Mapping[str, Result],
    figures: Mapping[str, str],
    by_instruction_set: Mapping[str, Result] = MappingProxyType({}),
    by_processor: Mapping[str, Result] = MappingProxyType({}),
) -> str:
    """docs/benchmarks.md.

    Args:
        results: By benchmark.
        figures: Paths beside the page, by benchmark.
        by_instruction_set: Offline, of runs in which both sides were held to one.
        by_processor: Offline, of runs on other processors.
    """
    parts = [
        "# Benchmarks",
        "Made by `make bench-report` from the results that `make bench-peers` wrote; do not edit.",
        "## Marks",
        tables.marks_table(all_marks(results)),
        *notes.family_notes(results),
    ]
    for name, write in (("offline", _offline), ("served", _served), ("memory", _memory)):
        if name in results:
            parts += write(results[name])
            parts.append(f"![{name}]({figures[name]})")
    if by_instruction_set:
        machine = next(iter(results.values()))["machine"]
        parts += _instruction_sets(by_instruction_set, machine)
    if by_processor:
        parts += _processors(by_processor)
    others = {**by_instruction_set, **by_processor}
    parts += [_FAIRNESS.rstrip(), notes.tuning_note(_with_points(results, others))]
    parts += ["## Where and when", _runs(results, others), _reproduce()]
    return "\n\n".join(part for part in parts if part) + "\n"


def readme_table(results: Mapping[str, Result]) -> str:
    """What stands between the README's markers: beam 4 of the first vocabulary, served, memory."""
    rows = [*_readme_offline(results), *_readme_served(results), *_readme_memory(results)]
    head = ["", "Dragoman int8", "CTranslate2, its best", "Hugging Face", "ours / CTranslate2"]
    files = [
        f"[{name}](benchmarks/results/{found['file']}) at `{found['machine']['commit']}`"
        for name, found in results.items()
        if name != "families"
    ]
    machine = next(iter(results.values()))["machine"]
    where = f"{machine['processor']}, {machine['num_cores']} cores"
    caption = f"{where}; results: {', '.join(files)}."
    return f"{tables.table(head, rows)}\n\n{caption}"


def _readme_offline(results: Mapping[str, Result]) -> Iterator[list[str]]:
    points = results.get("offline", {}).get("points", [])
    vocabularies = [point["vocabulary"] for point in points if point["workload"] == "file"]
    for point in points:
        if point["beam_size"] == 1 or point.get("vocabulary") not in vocabularies[:1]:
            continue
        names = (DRAGOMAN_INT8, CTRANSLATE2, HUGGINGFACE)
        yield [
            f"tokens/s, {point_name(point)}",
            *(tables.number(tables.speed(point, name)) for name in names),
            tables.times(speedup(point, DRAGOMAN_INT8, CTRANSLATE2)),
        ]


def _readme_served(results: Mapping[str, Result]) -> Iterator[list[str]]:
    for found in results.get("served", {}).get("checkpoints", []):
        levels = {
            level["rival"]: level
            for level in found["closed"]
            if level["num_clients"] == README_CLIENTS
        }
        if len(levels) < 2:
            continue
        ours, theirs = levels[DRAGOMAN_INT8], levels[CTRANSLATE2]
        place = f"{README_CLIENTS} clients, {found['checkpoint']}"
        speeds = [level["sentences_per_second"] for level in (ours, theirs)]
        tails = [level["latency_seconds"]["p99"] for level in (ours, theirs)]
        shown = [tables.number(None if tail is None else tail * 1000) for tail in tails]
        yield [
            f"sentences/s, {place}",
            *(tables.number(value, 1) for value in (*speeds, None)),
            tables.times(ratio(*speeds)),
        ]
        yield [f"p99 in ms, {place}", *shown, tables.number(None), tables.times(ratio(*tails))]


def _readme_memory(results: Mapping[str, Result]) -> Iterator[list[str]]:
    rivals = results.get("memory", {}).get("rivals", {})
    for when in ("loaded", "peak") if rivals else ():
        names = (DRAGOMAN_INT8, CTRANSLATE2, HUGGINGFACE)
        sizes = [rivals[name][f"{when}_growth_bytes"] / 2**20 for name in names]
        cells = map(tables.number, sizes)
        yield [f"memory growth in MiB, {when}", *cells, tables.times(ratio(*sizes[:2]))]


def between_markers(text: str, content: str) -> str:
    """The text with other content between the markers.

    Raises:
        ValueError: A marker is missing, or they are not one of each in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"the text must have {BEGIN} and {END} once each, in this order")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def _offline(result: Result) -> list[str]:
    points = result["points"]
    return [
        "## Offline",
        "Target tokens a second; the same sentences, beam and lengths for all.",
        tables.offline_table(points),
        tables.quality_table(points),
        tables.settings_table(points),
        *notes.thread_notes(result),
    ]


def _instruction_sets(results: Mapping[str, Result], machine: Result) -> list[str]:
    title = "## Both sides with one instruction set"
    text = "`make bench-peers ISA=…` holds both to what older processors have; offline, of "
    runs = {name: result["machine"] for name, result in sorted(results.items())}
    table = tables.compared_table(results, "instruction set", held_marks)
    return [title, f"{text}{_files(results)}.", notes.other_processors(runs, machine), table]


def _processors(results: Mapping[str, Result]) -> list[str]:
    text = "The same comparison, each side with the best of its kernels; offline, of "
    table = tables.compared_table(results, "processor", offline_marks)
    return ["## On other processors", f"{text}{_files(results)}.", table]


def _files(results: Mapping[str, Result]) -> str:
    return ", ".join(
        f"[{name}](../benchmarks/results/{result['file']})"
        for name, result in sorted(results.items())
    )


def _served(result: Result) -> list[str]:
    parts = ["## Served", "Beam 4, one sentence a request.", *notes.served_notes(result)]
    for found in result["checkpoints"]:
        parts += [f"### {found['checkpoint']}", _settings(found), *_served_tables(found)]
        for file, earlier in _by_file(found.get("earlier", {})).items():
            first = next(iter(earlier.values()))
            link = f"[an earlier run](../benchmarks/results/{file})"
            commit = first["run"]["machine"]["commit"]
            words = f"What this run left out is of {link}, at `{commit}`: {_settings(first)}"
            levels = {name: table["levels"] for name, table in earlier.items()}
            parts += [words, *_served_tables(levels)]
        if any(not found[name] and name not in found.get("earlier", {}) for name in SERVED_PARTS):
            parts.append("The rest is measured by `make bench-peers BENCH_FLAGS='--only served'`.")
    return parts


def _served_tables(levels: Mapping[str, Sequence[Result]]) -> list[str]:
    """Of the parts that were run."""
    writers = {
        "closed": tables.closed_table,
        "open": tables.open_table,
        "short_beside_long": tables.probe_table,
    }
    return [write(levels[name]) for name, write in writers.items() if levels.get(name)]


def _settings(found: Result) -> str:
    each = (f"{name}: {tables.described(own)}" for name, own in found["settings"].items())
    return "; ".join(each) + "."


def _by_file(earlier: Mapping[str, Result]) -> dict[str, dict[str, Result]]:
    """Tables of earlier runs, by their file."""
    found: dict[str, dict[str, Result]] = {}
    for name, table in earlier.items():
        found.setdefault(table["file"], {})[name] = table
    return found


def _with_points(results: Mapping[str, Result], others: Mapping[str, Result]) -> dict[str, Result]:
    """Results whose rivals chose settings, by what a sentence calls them."""
    found = {"offline": results["offline"]} if "offline" in results else {}
    found |= {f"offline of {name}": one for name, one in others.items()}
    return found | {one["family"]: one for one in results.get("families", {}).get("families", [])}


def _memory(result: Result) -> list[str]:
    what = f"vocabulary {result['vocabulary']}, {result['num_sentences']} sentences, beam 4"
    return ["## Memory", f"Resident size, {what}.", tables.memory_table(result["rivals"])]


def _runs(results: Mapping[str, Result], others: Mapping[str, Result]) -> str:
    rows = [_run(name, found) for name, found in results.items() if "families" not in found]
    rows += [_run(f"offline, {name}", found) for name, found in others.items()]
    families = results.get("families", {}).get("families", [])
    rows += [_run(one["family"], one["run"] | {"file": one["file"]}) for one in families]
    earlier = {
        table["file"]: table["run"]
        for found in results.get("served", {}).get("checkpoints", [])
        for table in found.get("earlier", {}).values()
    }
    rows += [_run("served, earlier", run | {"file": file}) for file, run in earlier.items()]
    return tables.table(
        ["results", "started", "machine", "our kernels", "versions", "commit"], rows
    )


def _run(name: str, found: Result) -> list[str]:
    machine = found["machine"]
    versions = machine["versions"]
    units = ", ".join(machine["vector_units"])
    return [
        f"[{name}](../benchmarks/results/{found['file']})",
        found["started"],
        f"{machine['processor']}, {machine['num_cores']} cores, {units}",
        found.get("instruction_set", ""),
        ", ".join(f"{one} {versions[one]}" for one in ("torch", "ctranslate2", "transformers")),
        f"`{machine['commit']}`",
    ]


def _reproduce() -> str:
    return """## Again

```
DRAGOMAN_DATA=DATA make bench-peers    # DATA/en-zh/dev/*.en and *.zh; without it there is no BLEU
make bench-report
```

`make bench-peers BENCH_FLAGS=--quick` shows in two minutes that everything runs; its numbers mean
nothing and go to build/bench-peers."""


def check_one_processor(results: Mapping[str, Result]) -> None:
    """Refuse a page about several processors; results that only name a make are taken as they are.

    Raises:
        SystemExit: There are several.
    """
    machines = (found["machine"] for found in results.values() if "families" not in found)
    processors = {one["processor"] for one in machines if "family" in one["processor"]}
    if len(processors) > 1:
        raise SystemExit(
            f"the latest results are of {' and '.join(sorted(processors))}; the page is about one,"
            " and those of another go to results/processors/NAME (--results)"
        )


def main() -> None:
    """Draw, write, refresh.

    Raises:
        SystemExit: There are no results, or they are of several processors.
    """
    arguments = parse_arguments()
    results = latest(arguments.results)
    if not results:
        raise SystemExit(f"{arguments.results} has no results; `make bench-peers` writes them")
    check_one_processor(results)
    arguments.docs.mkdir(parents=True, exist_ok=True)
    drawn = draw_all(results, arguments.docs / "figures")
    figures = {name: path.relative_to(arguments.docs).as_posix() for name, path in drawn.items()}
    path = arguments.docs / "benchmarks.md"
    content = page(results, figures, held(arguments.results), on_processors(arguments.results))
    path.write_text(content, encoding="utf-8")
    text = arguments.readme.read_text(encoding="utf-8")
    arguments.readme.write_text(between_markers(text, readme_table(results)), encoding="utf-8")
    print(path, arguments.readme, *drawn.values(), sep="\n")


if __name__ == "__main__":
    main()
