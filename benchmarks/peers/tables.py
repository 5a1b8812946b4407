"""Results as Markdown tables: pure, JSON in and text out.

Owns what columns there are and how numbers are rounded. Where they are put is
`benchmarks.peers.report`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.peers.marks import Mark, point_name, speedup
from benchmarks.peers.offline import EXACT_SUFFIX
from benchmarks.peers.results import Result
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_FLOAT32, DRAGOMAN_INT8, HUGGINGFACE

COLUMNS = (
    DRAGOMAN_INT8,
    DRAGOMAN_INT8 + EXACT_SUFFIX,
    DRAGOMAN_FLOAT32,
    CTRANSLATE2,
    HUGGINGFACE,
)
_MISSING = "–"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    line = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, line, *rows])


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separated, or a dash."""
    return _MISSING if value is None else f"{value:,.{digits}f}"


def times(value: float | None) -> str:
    """A quotient."""
    return _MISSING if value is None else f"{value:.2f}×"


def speed(point: Result, name: str) -> float | None:
    """Tokens a second of a rival, if it took part."""
    found = point["rivals"].get(name)
    return None if found is None else found["tokens_per_second"]


def offline_table(points: Sequence[Result]) -> str:
    """Tokens a second of everybody, and our int8 by CTranslate2 and Hugging Face."""
    names = [name for name in COLUMNS if any(name in point["rivals"] for point in points)]
    rows = [
        [
            point_name(point),
            *(number(speed(point, name)) for name in names),
            times(speedup(point, DRAGOMAN_INT8, CTRANSLATE2)),
            times(speedup(point, DRAGOMAN_INT8, HUGGINGFACE)),
        ]
        for point in points
    ]
    return table(["tokens/s", *names, "int8 / CTranslate2", "int8 / Hugging Face"], rows)


def compared_table(
    results: Mapping[str, Result], column: str, marks: Callable[[Result], Sequence[Mark]]
) -> str:
    """Tokens a second of our int8 and of CTranslate2 at every point, run by run.

    Args:
        results: Offline results, by the name of what they differ in.
        column: What that is.
        marks: Of a result; first those of its points, in order.
    """
    names = (DRAGOMAN_INT8, CTRANSLATE2)
    rows = [
        [
            point_name(point),
            name,
            *(number(speed(point, rival)) for rival in names),
            times(mark.value),
            f"≥ {mark.target:g}×",
            "yes" if mark.is_reached else "no",
        ]
        for name, result in sorted(results.items())
        for point, mark in zip(
            result["points"], marks(result)[: len(result["points"])], strict=True
        )
    ]
    head = ["tokens/s", column, *names, "int8 / CTranslate2", "target", "reached"]
    return table(head, rows)


def settings_table(points: Sequence[Result]) -> str:
    """What CTranslate2 and our int8 chose at every point, and how many rounds were run."""
    rows = []
    for point in points:
        found = point["rivals"]
        rows.append(
            [
                point_name(point),
                *(described(found[name]["settings"]) for name in (DRAGOMAN_INT8, CTRANSLATE2)),
                str(len(found[CTRANSLATE2]["rounds"])),
                number(max(idle_share(rival) for rival in found.values()) * 100, 1),
            ]
        )
    head = ["settings", DRAGOMAN_INT8, CTRANSLATE2, "rounds", "idle rivals' processor time, %"]
    return table(head, rows)


def idle_share(rival: Result) -> float:
    """The most processor time that one waiting rival used, by the time of the runs."""
    rounds = rival["rounds"]
    idle_seconds = sum(float(run["idle_cpu_seconds"]) for run in rounds)
    return idle_seconds / sum(float(run["seconds"]) for run in rounds)


def described(settings: Mapping[str, object]) -> str:
    """Settings in a cell."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def quality_table(points: Sequence[Result]) -> str:
    """BLEU of everybody on real text; empty without references."""
    chosen = [p for p in points if any(r["bleu"] is not None for r in p["rivals"].values())]
    if not chosen:
        return ""
    names = [name for name in COLUMNS if any(name in point["rivals"] for point in chosen)]
    rows = []
    for point in chosen:
        scores = [(point["rivals"].get(name) or {}).get("bleu") for name in names]
        cells = [number(None if bleu is None else bleu["score"], 2) for bleu in scores]
        rows.append([point_name(point), *cells])
    return table(["BLEU", *names], rows)


def latency_cells(found: Result) -> list[str]:
    """Percentiles in milliseconds."""
    seconds = found["latency_seconds"].values()
    return [number(None if value is None else value * 1000) for value in seconds]


def closed_table(levels: Sequence[Result]) -> str:
    """Closed loop by number of clients."""
    rows = [
        [
            f"{level['num_clients']} × {level['rival']}",
            number(level["sentences_per_second"], 1),
            *latency_cells(level),
            str(level["num_errors"]),
        ]
        for level in levels
    ]
    return table(
        ["clients × server", "sentences/s", "p50, ms", "p95, ms", "p99, ms", "errors"], rows
    )


def open_table(levels: Sequence[Result]) -> str:
    """Open loop by rate."""
    rows = [
        [
            f"{level['rate_per_second']:.1f}/s to {level['rival']}",
            f"{level['share_of_capacity']:.0%}",
            number(level["sentences_per_second"], 1),
            *latency_cells(level),
            str(level["num_errors"]),
        ]
        for level in levels
    ]
    head = ["open loop", "of its capacity", "answered/s", "p50, ms", "p95, ms", "p99, ms", "errors"]
    return table(head, rows)


def probe_table(probes: Sequence[Result]) -> str:
    """Short sentences beside long ones."""
    rows = [[p["rival"], *latency_cells(p), str(p["num_latencies"])] for p in probes]
    return table(["short beside long", "p50, ms", "p95, ms", "p99, ms", "sentences"], rows)


def memory_table(rivals: Mapping[str, Result]) -> str:
    """Resident size in MiB."""
    names = ("empty_bytes", "loaded_bytes", "peak_bytes", "loaded_growth_bytes")
    rows = [
        [name, *(number(found[size] / 2**20) for size in (*names, "peak_growth_bytes"))]
        for name, found in rivals.items()
    ]
    head = ["MiB", "libraries only", "loaded", "peak", "growth, loaded", "growth, peak"]
    return table(head, rows)


def marks_table(marks: Sequence[Mark]) -> str:
    """Every mark, its target and whether it is reached."""
    rows = [
        [
            mark.name,
            _MISSING if mark.value is None else f"{mark.value:.2f}{mark.unit}",
            f"{'≥' if mark.is_minimum else '≤'} {mark.target:g}{mark.unit}",
            "yes" if mark.is_reached else "no",
        ]
        for mark in marks
    ]
    return table(["mark", "measured", "target", "reached"], rows)
