"""How the experiments' figures look: one style, colours that readers who do not see red or green can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from givens.support.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the light yellow left out.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7f6000", "#000000")
GIVENS, RIVAL, OTHER, TRUTH = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[6]


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure without a window, and its axes (one, or an array of them)."""
    figure_module = require("matplotlib.figure", extra="plot")
    figure = figure_module.Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in np.atleast_1d(axes).ravel():
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def band(ax: Axes, x: np.ndarray, table: np.ndarray, colour: str, label: str, **options: Any) -> None:
    """The mean of the curves in the rows of a table, and their range."""
    ax.plot(x, table.mean(axis=0), color=colour, label=label, **options)
    if len(table) > 1:
        ax.fill_between(x, table.min(axis=0), table.max(axis=0), color=colour, alpha=0.15, linewidth=0)
