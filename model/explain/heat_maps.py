"""Attention weights as heat maps: a figure a layer, a panel a head, and an overview.

Owns how they look: one colour scale everywhere, from 0 to 1, with its square root on the colours
because most weights are small; grey where a mask forbids to attend. Needs the extra `train`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import east_asian_width

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage

from model.explain.labels import SPACE_MARK, Label
from model.explain.sentence import Weights

_INCHES_A_PIECE = 0.2
_MIN_PANEL_INCHES = 1.5
_MAX_FIGURE_INCHES = 24.0
_FONT_SIZE = 8
_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKind:
    """One of the three attentions of a network.

    Attributes:
        title: For people.
        maps: Per layer (H, Q, K).
        rows: Labels of the queries.
        columns: Labels of the keys.
        row_title: What rows are.
        column_title: What columns are.
        is_causal: Whether keys behind a query's own place are masked.
    """

    title: str
    maps: Sequence[Weights]
    rows: Sequence[Label]
    columns: Sequence[Label]
    row_title: str
    column_title: str
    is_causal: bool = False


def draw_layer(kind: AttentionKind, layer: int, path: Path) -> None:
    """Draw all heads of one layer, numbered from 1."""
    weights = kind.maps[layer]
    num_heads = len(weights)
    width, height = _panel_size(kind)
    num_columns = _num_columns(num_heads, width)
    num_rows = -(-num_heads // num_columns)
    figure = _new_figure(1.6 + width * num_columns, 1.5 + (height + 0.25) * num_rows)
    grid = figure.subplots(num_rows, num_columns, squeeze=False, sharex=True, sharey=True)
    image = None
    for head in range(num_heads):
        axes = grid[head // num_columns][head % num_columns]
        image = draw_map(axes, weights[head], kind)
        axes.set_title(f"head {head + 1}", fontsize=9)
    for place in range(num_heads, num_rows * num_columns):
        grid[place // num_columns][place % num_columns].remove()
    figure.suptitle(f"{kind.title}, layer {layer + 1} of {len(kind.maps)}", fontsize=11)
    figure.supxlabel(kind.column_title, fontsize=9)
    figure.supylabel(kind.row_title, fontsize=9)
    _finish(figure, image, path)


def draw_overview(kinds: Sequence[AttentionKind], path: Path) -> None:
    """Draw the mean over heads of every layer: a row of panels for each kind of attention."""
    num_columns = max(len(kind.maps) for kind in kinds)
    sizes = [_panel_size(kind) for kind in kinds]
    widest = max(width for width, _ in sizes)
    figure = _new_figure(
        2.4 + (widest + 0.9) * num_columns, 0.8 + sum(height + 1.3 for _, height in sizes)
    )
    grid = figure.subplots(
        len(kinds), num_columns, squeeze=False, height_ratios=[height for _, height in sizes]
    )
    image = None
    for kind, row in zip(kinds, grid, strict=True):
        for layer, axes in enumerate(row):
            if layer >= len(kind.maps):
                axes.remove()
                continue
            image = draw_map(axes, kind.maps[layer].mean(axis=0), kind)
            axes.set_title(f"{kind.title}, layer {layer + 1}", fontsize=9)
            axes.set_xlabel(kind.column_title, fontsize=8)
        row[0].set_ylabel(kind.row_title, fontsize=8)
    figure.suptitle("Mean over the heads of every layer", fontsize=11)
    _finish(figure, image, path)


def draw_map(axes: Axes, weights: Weights, kind: AttentionKind) -> AxesImage:
    """Draw one map (Q, K) with its labels."""
    masked = np.ma.masked_array(weights, mask=_forbidden(weights.shape, kind))
    image = axes.imshow(masked, cmap=_colours(), norm=PowerNorm(0.5, 0.0, 1.0), aspect="equal")
    axes.set_xticks(range(len(kind.columns)), [_upright(label.text) for label in kind.columns])
    axes.set_yticks(range(len(kind.rows)), [label.text for label in kind.rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    # Panels inside a grid with shared axes have no labels.
    for tick, label in zip(axes.get_yticklabels(), kind.rows, strict=False):
        tick.set_fontproperties(_font(label))
    for tick, label in zip(axes.get_xticklabels(), kind.columns, strict=False):
        tick.set_fontproperties(_font(label))
        tick.set_rotation(0 if _is_wide(label.text) else 90)
        tick.set_linespacing(1.0)
    return image


def _font(label: Label) -> FontProperties:
    return FontProperties(fname=str(label.font), size=_FONT_SIZE)


def _is_wide(text: str) -> bool:
    """Whether a text is Chinese, or another script whose characters are as wide as high."""
    characters = text.removeprefix(SPACE_MARK)
    return bool(characters) and all(east_asian_width(item) in "WF" for item in characters)


def _upright(text: str) -> str:
    """Chinese below an axis is written downwards; anything else is turned."""
    return "\n".join(text.removeprefix(SPACE_MARK)) if _is_wide(text) else text


def _forbidden(
    shape: tuple[int, ...], kind: AttentionKind
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    everything = np.ones(shape, dtype=np.bool_)
    return np.triu(everything, k=1) if kind.is_causal else ~everything


def _colours() -> Colormap:
    return colormaps["Blues"].with_extremes(bad="#e4e4e4")


def _panel_size(kind: AttentionKind) -> tuple[float, float]:
    """Width and height in inches that leave every piece its place."""
    width, height = (_INCHES_A_PIECE * len(side) for side in (kind.columns, kind.rows))
    return max(_MIN_PANEL_INCHES, width), max(_MIN_PANEL_INCHES, height)


def _num_columns(num_heads: int, width: float) -> int:
    """As square as may be, no wider than a page."""
    fitting = max(1, int(_MAX_FIGURE_INCHES / (width + 0.2)))
    return min(fitting, math.ceil(math.sqrt(num_heads)) if num_heads > 3 else num_heads)


def _new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="compressed")
    FigureCanvasAgg(figure)
    return figure


def _finish(figure: Figure, image: AxesImage | None, path: Path) -> None:
    if image is not None:
        bar = figure.colorbar(image, ax=figure.axes, fraction=0.03, aspect=30, ticks=list(_TICKS))
        bar.ax.set_yticklabels([f"{tick:g}" for tick in _TICKS], fontsize=_FONT_SIZE)
        bar.set_label("attention weight", fontsize=_FONT_SIZE)
        bar.outline.set_visible(False)
    figure.savefig(path, dpi=110, bbox_inches="tight", pil_kwargs={"optimize": True})
