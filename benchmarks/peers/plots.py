"""Results as figures, SVG, the same bytes for the same results.

Owns how they look.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.peers.results import Result
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_FLOAT32, DRAGOMAN_INT8, HUGGINGFACE
from benchmarks.peers.tables import speed

COLOURS = {
    DRAGOMAN_INT8: "#1b6ca8",
    DRAGOMAN_FLOAT32: "#8fbbdd",
    CTRANSLATE2: "#d1742f",
    HUGGINGFACE: "#9a9a9a",
}
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "dragoman",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def save(figure: Figure, path: Path) -> Path:
    """Write an SVG that names no time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    return path


def new_figure(num_axes: int, *, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """Axes side by side."""
    figure = Figure(figsize=(4.2 * num_axes, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(1, num_axes, squeeze=False)[0])


def bars(
    axes: Axes, labels: Sequence[str], values: dict[str, list[float | None]], *, unit: str
) -> None:
    """A group of bars a label, one colour a rival."""
    width = 0.8 / max(len(values), 1)
    for place, (name, heights) in enumerate(values.items()):
        offsets = [index + width * (place - (len(values) - 1) / 2) for index in range(len(labels))]
        shown = axes.bar(offsets, [h or 0 for h in heights], width, label=name, color=COLOURS[name])
        axes.bar_label(
            shown, [f"{h:,.0f}" if h else "" for h in heights], fontsize=6, rotation=90, padding=2
        )
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylabel(unit)
    axes.margins(y=0.2)


def add_legend(figure: Figure, axes: Axes) -> None:
    """One for the whole figure, below it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)


def offline_figure(points: Sequence[Result]) -> Figure:
    """Tokens a second on the first vocabulary that has the file, beam and greedy."""
    random_points = [point for point in points if point["workload"] != "text"]
    files = [point["vocabulary"] for point in random_points if point["workload"] == "file"]
    vocabulary = files[0] if files else random_points[0]["vocabulary"]
    beams = sorted({point["beam_size"] for point in random_points}, reverse=True)
    figure, all_axes = new_figure(len(beams))
    for axes, beam_size in zip(all_axes, beams, strict=True):
        chosen = [
            point
            for point in random_points
            if (point["vocabulary"], point["beam_size"]) == (vocabulary, beam_size)
        ]
        labels = [
            f"file of {p['num_sentences']:,}"
            if p["workload"] == "file"
            else str(p["num_sentences"])
            for p in chosen
        ]
        values = {name: [speed(point, name) for point in chosen] for name in COLOURS}
        bars(axes, labels, values, unit="target tokens/s")
        axes.set_title("greedy" if beam_size == 1 else f"beam {beam_size}")
        axes.set_xlabel("sentences at once")
    add_legend(figure, all_axes[0])
    return figure


def served_figure(checkpoints: Sequence[Result]) -> Figure:
    """Throughput and p99 by clients, two panels a checkpoint."""
    figure, all_axes = new_figure(2 * len(checkpoints))
    for number, found in enumerate(checkpoints):
        speeds, latencies = all_axes[2 * number : 2 * number + 2]
        for name in (DRAGOMAN_INT8, CTRANSLATE2):
            levels = [level for level in found["closed"] if level["rival"] == name]
            clients = [str(level["num_clients"]) for level in levels]
            drawn: dict[str, Any] = {"color": COLOURS[name], "marker": "o", "label": name}
            speeds.plot(clients, [level["sentences_per_second"] for level in levels], **drawn)
            tails = [(level["latency_seconds"]["p99"] or 0) * 1000 for level in levels]
            latencies.plot(clients, tails, **drawn)
        speeds.set_ylabel("sentences/s")
        latencies.set_ylabel("p99, ms")
        for axes in (speeds, latencies):
            axes.set_title(found["checkpoint"])
            axes.set_xlabel("clients, closed loop")
            axes.set_ylim(bottom=0)
    add_legend(figure, all_axes[0])
    return figure


def memory_figure(rivals: dict[str, Result]) -> Figure:
    """Growth above an empty process."""
    figure, (axes,) = new_figure(1)
    values: dict[str, list[float | None]] = {
        name: [found[f"{when}_growth_bytes"] / 2**20 for when in ("loaded", "peak")]
        for name, found in rivals.items()
    }
    bars(axes, ["loaded", "peak"], values, unit="MiB above an empty process")
    add_legend(figure, axes)
    return figure


def draw_all(results: dict[str, Result], directory: Path) -> dict[str, Path]:
    """One figure for every benchmark that has results."""
    paths = {}
    with mpl.rc_context(_STYLE):
        if "offline" in results:
            figure = offline_figure(results["offline"]["points"])
            paths["offline"] = save(figure, directory / "peers-offline.svg")
        if "served" in results:
            figure = served_figure(results["served"]["checkpoints"])
            paths["served"] = save(figure, directory / "peers-served.svg")
        if "memory" in results:
            figure = memory_figure(results["memory"]["rivals"])
            paths["memory"] = save(figure, directory / "peers-memory.svg")
    return paths
