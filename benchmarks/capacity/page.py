"""`python -m benchmarks.capacity.page NEEDS`: the figures of docs/scale.md from a run's results.

Owns the tables between the page's marks, and the sentences that have figures of theirs: all are of
one run of `benchmarks.capacity` and of what `benchmarks.capacity.needs` made of it. A test compares
the page with what this writes.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results_file import RESULTS
from benchmarks.soak.server import ROOT

PAGE = ROOT / "docs" / "scale.md"
_SHOWN_ROWS = (4, 32, 128)
Found = Mapping[str, Any]


def read(needs: Path) -> tuple[Found, Found]:
    """What a run measured, and what rates need by it."""
    told = json.loads(needs.read_text(encoding="utf-8"))
    measured = json.loads((needs.parent / told["source"]).read_text(encoding="utf-8"))
    return measured, told


def blocks(measured: Found, told: Found, needs: str) -> dict[str, str]:
    """What is between the marks of the page, by their names."""
    return {
        "run": _run(measured, told["source"], needs),
        "classes": "\n\n".join([_classes(measured, told), _threads(told), _fronts(measured, told)]),
        "check": "\n\n".join([_check(measured, told), _verdict(measured, told)]),
        "needs": "\n\n".join([_terms(told), _needs(told)]),
        "scaling": _scaling(told),
    }


def written(page: str, found: Mapping[str, str]) -> str:
    """The page with these blocks.

    Raises:
        ValueError: It has no marks of one.
    """
    for name, text in found.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin not in page or end not in page:
            raise ValueError(f"the page has no marks {begin} and {end}")
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}"
    return page


def named_needs(page: str) -> Path:
    """The results file that a page names as the source of its tables."""
    found = re.search(r"results/(needs-[0-9-]+\.json)", page)
    assert found is not None, "the page names no file of needs"
    return RESULTS / found[1]


def _run(measured: Found, source: str, needs: str) -> str:
    machine = measured["machine"]
    return (
        f"`{measured['command']}` on {machine['num_cores']} cores ({machine['processor']}; commit"
        f" {machine['commit']}; [measured](../benchmarks/results/{source}),"
        f" [computed from that](../benchmarks/results/{needs}))."
        f" Requests are single sentences of 4 to 20 words at a beam of 4,"
        f" {measured['mean_steps_of_a_sentence']:.1f} steps in the mean."
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is words and whose others are figures."""
    rule = ["---"] + ["--:"] * (len(heads) - 1)
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(rule)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _classes(measured: Found, told: Found) -> str:
    rows = []
    for one in told["capacity"]:
        steps = dict(map(tuple, measured["steps"][one["class"]]["step_seconds"]))
        rows.append(
            [
                one["class"],
                *(f"{1000 * steps[number]:.3g}" for number in _SHOWN_ROWS),
                f"{1000 * one['engine_core_seconds']:.2f}",
                f"{one['requests_per_second_a_core']:.0f}",
            ]
        )
    runs_on = "core" if measured.get("device", "cpu") == "cpu" else "GPU"
    heads = ["class", "a step of 4 rows, ms", "32 rows", "128 rows"]
    heads += [f"a sentence of a full engine, {runs_on} ms", f"requests a second and {runs_on}"]
    return _table(heads, rows)


def _threads(told: Found) -> str:
    """What two threads cost beside one, by size."""
    seconds = {one["class"]: one["engine_core_seconds"] for one in told["capacity"]}
    more = []
    for name, own in seconds.items():
        words, _, threads = name.rpartition(", ")
        if threads == "2" and f"{words}, 1" in seconds:
            part = own / seconds[f"{words}, 1"] - 1
            more.append(f"{100 * part:.0f} % more ({words.partition(',')[0]})")
    if not more:
        return "On a device threads have nothing to share."
    return (
        f"Two threads shorten steps; a sentence costs {' and '.join(more)} core time with them."
        " They are for latency, replicas are for throughput."
    )


def _fronts(measured: Found, told: Found) -> str:
    full, two = measured["checks"][1]["measured"], measured["two_fronts"]
    found = told["two_fronts"]
    return (
        f"In a full server a request takes {full['front_ms']:.2f} ms of the core of its one front,"
        f" which carries some {1000 / full['front_ms']:,.0f} requests a second. With two fronts it"
        f" takes {two['front_ms']:.2f} ms of a front and {two['owner_ms']:.2f} ms of the owner, so"
        f" an owner carries the fronts of some {1000 / two['owner_ms']:,.0f}. With engine, fronts"
        f" and clients on the same {measured['machine']['num_cores']} cores, two fronts did"
        f" {two['requests_per_second']:.0f} requests a second where one did"
        f" {full['requests_per_second']:.0f}; simulated"
        f" {found['requests_per_second']:.0f}."
    )


def _load_names(measured: Found) -> list[str]:
    """Of the loads in the order of the file, by what came of the full one."""
    levels = [check["measured"] for check in measured["checks"]]
    full = levels[1]["requests_per_second"]
    shares = [one["requests_per_second"] / full for one in levels[2:]]
    names = ["1 client", f"{measured['plan']['num_clients']} clients that wait"]
    return names + [f"{share:.0%} of that, by chance" for share in shares]


def _check(measured: Found, told: Found) -> str:
    """Measured / simulated."""
    pairs = [(check["measured"], check["simulated"]) for check in measured["checks"]]
    names = [*_load_names(measured), "the clients that wait, two fronts"]
    pairs.append((measured["two_fronts"], told["two_fronts"]))
    rows = []
    for name, both in zip(names, pairs, strict=True):
        cells = [
            " / ".join(f"{one[key]:.{digits}f}" for one in both)
            for key, digits in (("requests_per_second", 0), ("p50_ms", 1), ("p99_ms", 1))
        ]
        rows.append([name, *cells])
    return _table(["load", "requests a second", "p50, ms", "p99, ms"], rows)


def _verdict(measured: Found, told: Found) -> str:
    """How far the simulation is off, over the loads with one front, and with two."""

    def span(key: str, checks: Sequence[Found]) -> str:
        off = [100 * (check[f"{key}_factor"] - 1) for check in checks]
        return f"{min(off):+.0f} to {max(off):+.0f} %"

    simulated, real = told["two_fronts"], measured["two_fronts"]
    off = 100 * (simulated["requests_per_second"] / real["requests_per_second"] - 1)
    checks = measured["checks"]
    predicted = checks[3:]  # the others are what it was calibrated by
    return (
        f"Simulated against measured, with one front: requests a second"
        f" {span('requests_per_second', checks)}, medians {span('p50_ms', checks)}"
        f" ({span('p50_ms', predicted)} of the loads that it was not told of), p99"
        f" {span('p99_ms', checks)}. With two fronts it is {off:+.0f} % off in requests a second."
    )


def _terms(told: Found) -> str:
    terms = told["terms"]
    return (
        f"Engines, fronts and owners each busy for at most {terms['share']:.0%} of the time in the"
        f" mean; {terms['core_price']:g} a core hour and {terms['device_price']:g} a GPU hour,"
        f" whatever the currency (`--price`, `--device-price`); a network of"
        f" {terms['network_mbit']:,.0f} Mbit/s a server."
    )


def _needs(told: Found) -> str:
    heads = ["class", "requests a second", "servers × (fronts + engines)", "cores", "memory, GiB"]
    heads += ["an hour", "busy: engines (first)", "front", "owner", "p50 / p99, ms"]
    heads += ["full at", "of what"]
    rows = [[one["class"], *_cells(need)] for one in told["capacity"] for need in one["needs"]]
    return _table(heads, rows)


def _cells(need: Found) -> list[str]:
    memory = need["memory_gib"]
    devices = f" + {need['num_devices']} GPUs" if need["num_devices"] else ""
    return [
        f"{need['requests_per_second']:,.0f}",
        f"{need['num_servers']} × ({need['num_fronts']} + {need['num_engines']})",
        f"{need['num_cores']:,}{devices}",
        "not measured" if memory is None else f"{memory:.2f}",
        f"{need['per_hour']:.2f}",
        f"{need['engine_share']:.0%} ({need['busiest_engine_share']:.0%})",
        f"{need['front_share']:.0%}",
        f"{need['owner_share']:.0%}" if need["num_fronts"] > 1 else "–",
        f"{need['p50_ms']:.1f} / {need['p99_ms']:.1f}",
        f"{need['most_per_second']:,.0f}",
        need["limit"],
    ]


def _scaling(told: Found) -> str:
    """Requests a second by replicas and fronts, and how many times one replica's with one front."""
    rates = {(one["replicas"], one["fronts"]): one for one in told["scaling"]}
    replicas, fronts = (sorted({key[place] for key in rates}) for place in (0, 1))
    alone = rates[replicas[0], fronts[0]]["requests_per_second"]

    def cell(number: int, of_fronts: int) -> str:
        rate = rates[number, of_fronts]["requests_per_second"]
        return f"{rate:,.0f} ({rate / alone:.1f})"

    heads = ["replicas", *(f"{number} fronts" if number > 1 else "1 front" for number in fronts)]
    rows = [[str(number), *(cell(number, one) for one in fronts)] for number in replicas]
    return _table(heads, rows)


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("needs", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    measured, told = read(arguments.needs)
    page = arguments.page.read_text(encoding="utf-8")
    page = written(page, blocks(measured, told, arguments.needs.name))
    arguments.page.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
