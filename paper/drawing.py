"""The style of the experiments' figures: few colours that all readers can distinguish, labels beside the lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from givens.support.imports import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of Okabe and Ito's palette. The paper's method, its rival, the library's own method, and what is known.
GIVENS, RIVAL, OURS, TRUTH = "#0072b2", "#d55e00", "#009e73", "#555555"


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure without a window, and its axes (one, or an array of them)."""
    figure_module = require("matplotlib.figure", extra="plot")
    figure = figure_module.Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in np.atleast_1d(axes).ravel():
        ax.grid(alpha=0.2, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    return figure, axes


def finish(figure: Figure, title: str) -> Figure:
    """A title above all panels; small words everywhere; no labels between the powers of ten."""
    figure.suptitle(title, fontsize=10)
    for ax in figure.axes:
        ax.title.set_fontsize(9)
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_fontsize(8.5)
            if axis.get_scale() == "log":
                axis.set_minor_formatter("")
    return figure


def key(
    ax: Axes, labels: dict[str, str], place: tuple[float, float] = (0.98, 0.04), step: float = 0.1
) -> None:
    """Names in the colours of what they name, one above the other, within the axes, the last at `place`."""
    x, y = place
    for number, (label, colour) in enumerate(reversed(labels.items())):
        ax.text(
            x,
            y + step * number,
            label,
            transform=ax.transAxes,
            color=colour,
            fontsize=8,
            fontweight="bold",
            ha="right" if x > 0.5 else "left",
            va="bottom",
        )


def emptiest_corner(ax: Axes, height: float = 0.25, width: float = 0.5) -> tuple[float, float]:
    """The place for a key of two names in the corner where the lines have the fewest points."""
    ax.autoscale_view()
    points = np.concatenate([line.get_xydata() for line in ax.get_lines()])
    x, y = ax.transAxes.inverted().transform(ax.transData.transform(points)).T
    corners = {
        (0.98, 0.04): (x > 1 - width) & (y < height),
        (0.02, 0.8): (x < width) & (y > 1 - height),
        (0.02, 0.04): (x < width) & (y < height),
        (0.98, 0.8): (x > 1 - width) & (y > 1 - height),
    }
    return min(corners, key=lambda corner: int(corners[corner].sum()))
