"""Curves of a run as one PNG.

Owns how they are drawn. The points come from the journal. Needs the extra `train`.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, StrMethodFormatter

from model.train.files import whole_file
from model.train.records.journal import JournalEntry, scalars

CURVES_FILE = "curves.png"

PANELS = {
    "loss": "loss, nats a token",
    "perplexity": "dev perplexity",
    "bleu": "dev BLEU",
    "chrf": "dev chrF2",
    "learning_rate": "learning rate",
    "gradient_norm": "gradient norm before clipping",
    "tokens_per_second": "tokens a second",
}
"""Panels in the order they are drawn, with their titles."""

_TRAIN_COLOUR = "#9a9a9a"
_COLOURS = ("#1b6ca8", "#d1742f", "#3b8f5a", "#8a4f9e", "#b0413e", "#5d7083")

Series = dict[str, dict[str, list[tuple[int, float]]]]


def collect(entries: Iterable[JournalEntry]) -> Series:
    """Points (update, value) by panel and line, in the order of the journal."""
    found: defaultdict[str, dict[str, list[tuple[int, float]]]] = defaultdict(dict)
    for entry in entries:
        for tag, value in scalars(entry):
            panel, _, line = tag.partition("/")
            found[panel].setdefault(line, []).append((entry.update, value))
    return dict(found)


def draw_curves(entries: Iterable[JournalEntry], folder: Path) -> bool:
    """Draw every panel that has a point into `folder`/curves.png, which is replaced whole.

    Returns:
        Whether there was anything to draw.

    Raises:
        TrainingError: The picture cannot be written; the one before it stays.
    """
    series = collect(entries)
    panels = [panel for panel in PANELS if panel in series]
    if not panels:
        return False
    num_rows = -(-len(panels) // 2)
    figure = Figure(figsize=(10, 0.5 + 2.6 * num_rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(num_rows, 2, squeeze=False).flat
    for axes, panel in zip(grid, panels, strict=False):
        _draw_panel(axes, panel, series[panel])
    for axes in list(figure.axes)[len(panels) :]:
        axes.remove()
    with whole_file(folder / CURVES_FILE) as partial:
        figure.savefig(partial, format="png", dpi=100)
    return True


def _draw_panel(axes: Axes, panel: str, lines: dict[str, list[tuple[int, float]]]) -> None:
    colours = iter(_COLOURS * len(lines))
    for name, points in lines.items():
        colour = _TRAIN_COLOUR if name == "train" and panel == "loss" else next(colours)
        marker = "o" if len(points) < 30 else None
        label = f"{name} (smoothed)" if name == "train" and panel == "loss" else name
        updates, values = zip(*points, strict=True)
        axes.plot(
            updates, values, color=colour, marker=marker, markersize=3, linewidth=1.3, label=label
        )
    axes.set_title(PANELS[panel], fontsize=10, loc="left")
    if panel == "perplexity":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif panel == "tokens_per_second":
        axes.yaxis.set_major_formatter(EngFormatter())
        axes.set_ylim(bottom=0)
    elif panel == "learning_rate":
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_xlabel("update", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if set(lines) != {"train"}:
        axes.legend(fontsize=8, frameon=False)
