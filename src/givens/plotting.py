"""Four figures: convergence, the path of variance against non-zeros, a component, the scores.

Each function draws on the axes it is given, or on the current ones, and returns them. Colours can be told apart by readers who do
not see red or green, and groups also differ in their markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from givens.result import Result
from givens.sparse_pca.path import SparsePath
from givens.support.imports import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["components", "convergence", "path", "scores"]

PLUS = "#0f7c86"  # the colour of curves and of positive weights


def _axes(ax: Axes | None, across: str, up: str, grid: bool = True) -> Axes:
    """The axes to draw on, with their labels."""
    ax = require("matplotlib.pyplot", extra="plot").gca() if ax is None else ax
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    if grid:
        ax.grid(alpha=0.25)
    return ax


def convergence(result: Any, *, gradient: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the objective, or the norm of its gradient, after each step.

    Parameters
    ----------
    result : Result, or an estimator or decomposition that holds one
        What to draw, such as the result of `minimize` or a fitted estimator.
    gradient : bool, default=False
        Draw the gradient norm instead, on a logarithmic scale.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize, plotting
    >>> from givens.objectives import JointDiagonal
    >>> A = np.random.default_rng(0).standard_normal((8, 8))
    >>> ax = plotting.convergence(minimize(JointDiagonal(A + A.T)))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('steps', 'objective')
    """
    for name in ("result_", "result"):
        result = getattr(result, name, result)
    if not isinstance(result, Result):
        raise TypeError(f"result must be a Result, or hold one, got {type(result).__name__}")
    values = result.trace.gradient_norm if gradient else result.trace.value
    ax = _axes(ax, "steps", "gradient norm" if gradient else "objective")
    ax.plot(result.trace.step, values, marker="o", markersize=4, color=PLUS)
    if gradient and np.nanmax(values) > 0:
        ax.set_yscale("log")
    return ax


def path(curve: Any, *, ax: Axes | None = None) -> Axes:
    """Draw explained variance against the number of non-zeros along a path, to choose a threshold.

    Parameters
    ----------
    curve : SparsePath
        As `sparse_pca_path` returns it.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from givens import plotting, sparse_pca_path
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(40, 100, n_modules=2, module_size=10, random_state=0)
    >>> plotting.path(sparse_pca_path(data.X, 2, n_thresholds=4)).get_ylabel()
    'explained variance (adjusted)'
    """
    if not isinstance(curve, SparsePath):
        raise TypeError(f"curve must be what sparse_pca_path returns, got {type(curve).__name__}")
    counts = np.asarray(curve.n_nonzero).sum(axis=1)
    shares = np.asarray(curve.explained_variance_ratio).sum(axis=1)
    order = np.argsort(counts, kind="stable")
    ax = _axes(ax, "non-zero weights, all components together", "explained variance (adjusted)")
    ax.plot(counts[order], shares[order], marker="o", markersize=4, color=PLUS)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(require("matplotlib.ticker", extra="plot").PercentFormatter(1.0))
    return ax


def components(
    model: Any,
    component: int = 0,
    *,
    names: Sequence[str] | None = None,
    most: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest weights of one component as bars.

    Parameters
    ----------
    model : fitted estimator
        Anything with `components_`, or an array of components x variables.
    component : int, default=0
        Index of the component, from 0.
    names : sequence of str, optional
        Names of the variables. By default those that the model was fitted with, if any.
    most : int, default=30
        Maximum number of bars.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from givens import plotting
    >>> ax = plotting.components(np.array([[0.8, 0.0, -0.6]]), names=["KLK3", "TP53", "AMACR"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['KLK3', 'AMACR']
    """
    rows = np.asarray(getattr(model, "components_", model))
    if rows.ndim != 2:
        raise TypeError(f"model must be fitted, or an array of components, got {type(model).__name__}")
    if not -len(rows) <= component < len(rows):
        raise ValueError(f"there are {len(rows)} components, counted from 0, and so no component {component}")
    weights = rows[component]
    if names is None:
        names = getattr(model, "feature_names_in_", [f"variable {k + 1}" for k in range(len(weights))])
    if len(names) != len(weights):
        raise ValueError(f"there are {len(names)} names for {len(weights)} variables")
    order = np.argsort(-np.abs(weights), kind="stable")
    order = order[weights[order] != 0][:most]
    ax = _axes(ax, f"weight in component {component % len(rows) + 1}", "", grid=False)
    places = np.arange(len(order))
    ax.barh(places, weights[order], color=["#d2691e" if value < 0 else PLUS for value in weights[order]])
    # Names of variables may contain dollar signs, which do not mean formulas.
    ax.set_yticks(places, [str(names[k]) for k in order], parse_math=False)
    ax.invert_yaxis()
    ax.axvline(0, color="#5a6675", linewidth=0.8)
    return ax


def scores(
    values: np.ndarray,
    *,
    labels: Sequence[Any] | None = None,
    axes: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw samples by two of their scores, coloured by label.

    Parameters
    ----------
    values : array of shape (samples, components)
        As `transform` returns it.
    labels : sequence, optional
        One for each sample.
    axes : (int, int), default=(0, 1)
        Indices of the components on the horizontal and the vertical axis, from 0.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from givens import plotting
    >>> ax = plotting.scores(np.eye(3), labels=["a", "b", "a"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    values = np.asarray(values)
    if values.ndim != 2:
        raise TypeError(f"values must be scores, samples x components, got shape {values.shape}")
    across, up = axes
    if not max(across, up) < values.shape[1]:
        raise ValueError(f"there are {values.shape[1]} components, counted from 0, and so no axes {axes}")
    if labels is not None and len(labels) != len(values):
        raise ValueError(f"there are {len(labels)} labels for {len(values)} samples")
    ax = _axes(ax, f"component {across + 1}", f"component {up + 1}")
    colours = (
        "#0072b2", "#d55e00", "#009e73", "#b0559a", "#8c6d1f", "#3fa0dc", "#7a3b1d", "#5b5bd6", "#c23b57", "#5f8a1f",
    )  # fmt: skip
    markers = "o^sDv"
    if labels is None:
        ax.scatter(values[:, across], values[:, up], color=colours[0], s=18, alpha=0.8)
    else:
        marks = np.asarray([str(label) for label in labels])
        for k, label in enumerate(sorted(set(marks.tolist()))):
            rows = marks == label
            colour, marker = colours[k % len(colours)], markers[k % len(markers)]
            x, y = values[rows, across], values[rows, up]
            ax.scatter(x, y, s=20, alpha=0.8, color=colour, marker=marker, label=label)
        legend = ax.legend(frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return ax
