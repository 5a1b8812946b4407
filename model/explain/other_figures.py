"""Positions and learning rates as figures.

Owns how they look. The figures are computed by the very code that runs: `model.nn.positions` and
`model.train.config.schedule`. Needs the extra `train`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from model.nn.positions import NoPositions, RotaryPositions
from model.nn.transformer import Transformer
from model.train.config.schedule import ScheduleConfig, learning_rate

NUM_POSITIONS = 64

_COLOURS = ("#1b6ca8", "#d1742f", "#3b8f5a", "#8a4f9e", "#b0413e", "#5d7083")


def draw_positions(transformer: Transformer, path: Path) -> None:
    """Draw how the network knows the order of the source's first positions.

    A table that is added to embeddings is drawn with the dot products of its rows; biases on
    scores a panel a head; rotations as the cosines of their angles.
    """
    table = transformer.source_positions
    kind = transformer.config.position
    bias = transformer.encoder.position_bias
    like = torch.zeros(1)
    if not isinstance(table, NoPositions):
        length = min(NUM_POSITIONS, getattr(table, "max_length", NUM_POSITIONS))
        rows = table.table(length, like).detach().double().numpy()
        figure = _table_figure(rows, kind)
    elif bias is not None:
        with torch.no_grad():
            heads = bias(NUM_POSITIONS, NUM_POSITIONS, like.device).double().numpy()
        figure = _bias_figure(heads, kind)
    else:
        width = transformer.config.query_width
        figure = _rotation_figure(_rotation_cosines(width), kind)
    figure.savefig(path, dpi=110, pil_kwargs={"optimize": True})


def draw_schedules(
    schedules: Mapping[str, ScheduleConfig], path: Path, *, num_updates: int, d_model: int
) -> None:
    """Draw the learning rate of every update of a run under some schedules, by their names."""
    figure = _new_figure(8.0, 4.0)
    axes = figure.subplots()
    updates = range(1, num_updates + 1)
    for (name, config), colour in zip(
        schedules.items(), _COLOURS * (1 + len(schedules) // len(_COLOURS)), strict=False
    ):
        rates = [
            learning_rate(
                config, update=update, fraction=(update - 1) / num_updates, d_model=d_model
            )
            for update in updates
        ]
        # Noam's curve is that of the inverse root when both have one peak: it shines through.
        width, alpha = (6.0, 0.4) if config.kind == "noam" else (1.6, 1.0)
        axes.plot(updates, rates, color=colour, label=name, linewidth=width, alpha=alpha)
    axes.set_title(f"learning rate, d_model {d_model}", fontsize=11)
    axes.set_xlabel("update", fontsize=9)
    axes.set_xlim(0, num_updates)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(visible=True, linewidth=0.4, alpha=0.5)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=110, pil_kwargs={"optimize": True})


def example_schedules(
    *, warmup_updates: int, d_model: int, own: ScheduleConfig | None = None
) -> dict[str, ScheduleConfig]:
    """One schedule of every kind, all with the peak of Noam's, and an experiment's own first."""
    noam = ScheduleConfig(kind="noam", warmup_updates=warmup_updates)
    peak = learning_rate(noam, update=warmup_updates, d_model=d_model)
    if own is not None:
        peak = learning_rate(own, update=own.warmup_updates, d_model=d_model)
        noam = ScheduleConfig(
            kind="noam",
            warmup_updates=warmup_updates,
            factor=peak / learning_rate(noam, update=warmup_updates, d_model=d_model),
        )
    falling = ScheduleConfig(kind="inverse-sqrt", peak=peak, warmup_updates=warmup_updates)
    found = {
        "noam": noam,
        "inverse-sqrt": falling,
        "inverse-sqrt, tail over the last 0.4": replace(falling, tail_fraction=0.4),
        "cosine": replace(falling, kind="cosine"),
        "constant": replace(falling, kind="constant"),
    }
    return found if own is None else {"this experiment": own, **found}


def _table_figure(rows: NDArray[np.float64], kind: str) -> Figure:
    """A table (T, D) beside the cosines of the angles between its rows (T, T)."""
    figure = _new_figure(12.0, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    limit = float(np.abs(rows).max())
    image = left.imshow(rows, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    _name_axes(left, f"{kind}: what is added to the embedding", "column of the embedding")
    figure.colorbar(image, ax=left, fraction=0.04)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
    cosines = rows @ rows.T / np.outer(lengths, lengths)
    image = right.imshow(cosines, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    _name_axes(right, "how alike two positions are (cosine)", "position")
    figure.colorbar(image, ax=right, fraction=0.04)
    return figure


def _bias_figure(heads: NDArray[np.float64], kind: str) -> Figure:
    """Biases (H, Q, K) of the encoder's scores, a panel a head."""
    num_columns = min(4, len(heads))
    num_rows = -(-len(heads) // num_columns)
    figure = _new_figure(1.0 + 2.8 * num_columns, 0.8 + 2.8 * num_rows)
    grid = figure.subplots(num_rows, num_columns, squeeze=False)
    limit = float(np.abs(heads).max()) or 1.0
    image = None
    for head, axes in enumerate(grid.flat):
        if head >= len(heads):
            axes.remove()
            continue
        scale = SymLogNorm(limit / 50, vmin=-limit, vmax=limit)  # weak heads are to be seen too
        image = axes.imshow(heads[head], cmap="RdBu_r", norm=scale)
        _name_axes(axes, f"head {head + 1}", "position of the key")
    figure.suptitle(f"{kind}: what is added to the encoder's scores", fontsize=11)
    if image is not None:
        figure.colorbar(image, ax=figure.axes, fraction=0.03)
    return figure


def _rotation_figure(cosines: NDArray[np.float64], kind: str) -> Figure:
    figure = _new_figure(7.0, 4.6)
    axes = figure.subplots()
    image = axes.imshow(cosines, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
    _name_axes(axes, f"{kind}: cosine of the angle a pair is turned by", "pair of a head's columns")
    figure.colorbar(image, ax=axes, fraction=0.04)
    return figure


def _rotation_cosines(width: int) -> NDArray[np.float64]:
    """(T, d_k / 2), read off the rotation itself: what (1, 0) becomes in every pair."""
    ones = torch.zeros(1, 1, NUM_POSITIONS, width, dtype=torch.float64)
    ones[..., 0::2] = 1.0
    turned: NDArray[np.float64] = RotaryPositions(width)(ones)[0, 0, :, 0::2].numpy()
    return turned


def _name_axes(axes: Axes, title: str, column_title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(column_title, fontsize=8)
    axes.set_ylabel("position", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
