"""Figure 1, shown and judged: sparse PCA with as many components as samples; see `measure.all_components` for what is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS, RIVAL, finish, key, new_figure
from paper.drawing import OURS as OURS_COLOUR
from paper.experiment import LIBRARY, PAPER, Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import all_components, tables
from paper.measure.all_components import ALGORITHM_2, OURS, POWER
from paper.verdicts import Interval, better, interval, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {ALGORITHM_2: GIVENS, POWER: RIVAL, OURS: OURS_COLOUR}
CLOSE = 1e-4  # of the lower of two final values
MARGINS = {"nonzeros": 0.01, "variance": 0.01, "operations": 0.05}
LABELS = {"variance": "explained variance (%)", "nonzeros": "non-zeros (%)"}

Run = list[Row]


class Prostate(Experiment):
    """Figure 1 of the paper."""

    name = "prostate"
    title = "Figure 1: sparse PCA of prostate cancer data, m = n = 102"
    about = (
        "Explained variance (Zou's, of all components) and share of non-zeros against floating-point operations, for as many "
        "components as samples, at three γ (shares of the largest feature norm), from the same random rotations. All "
        "methods see the same screened features, stop by the same rule (a pass that gains no more than 1e-4 of the "
        "value), and get their loadings by pattern filling. A thin line is one start."
    )
    measured = all_components.__name__

    def table(self, settings: ExperimentSettings) -> tables.Data:
        """The gene expression of prostate tumours."""
        return tables.prostate(settings)

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A run per method, γ and start."""
        return all_components.tasks(settings)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """The two panels of the paper's figure for each γ, and below them the library's own search."""
        shares = sorted({row["share"] for row in rows})
        figure, axes = new_figure(10, 8.4, 3, len(shares), squeeze=False)
        lines = (
            ("variance", (ALGORITHM_2, POWER)),
            ("nonzeros", (ALGORITHM_2, POWER)),
            ("variance", (OURS, POWER)),
        )
        for line, (column, methods) in zip(axes, lines):
            for ax, share in zip(line, shares):
                for method in methods:
                    _draw(ax, runs(rows, method, share), column, COLOURS[method])
                ax.set(xscale="log", title=f"γ = {share:g} of the largest norm")
            line[0].set_ylabel(LABELS[column])
            corner = 0.04 if column == "variance" else 0.72
            key(line[0], {method: COLOURS[method] for method in methods}, (0.98, corner))
        for ax in axes[-1]:
            ax.set_xlabel("additions and multiplications")
        starts = len({row["seed"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {starts} starts")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """The claims about non-zeros, variance and operations."""
        paper, ours = _claims(rows, ALGORITHM_2, PAPER), _claims(rows, OURS, LIBRARY)
        return [*paper, *ours]


def _draw(ax: Axes, found: dict[int, Run], column: str, colour: str) -> None:
    for run in found.values():
        seen = [row for row in run if row.get(column) is not None and row["flops"] > 0]
        ax.plot(
            [row["flops"] for row in seen],
            [100 * row[column] for row in seen],
            color=colour,
            alpha=0.35,
            linewidth=0.9,
        )
        ax.plot(seen[-1]["flops"], 100 * seen[-1][column], ".", color=colour, markersize=4)


def runs(rows: list[Row], method: str, share: float) -> dict[int, Run]:
    """The rows of one method at one γ, by seed."""
    own: dict[int, Run] = {}
    for row in rows:
        if (row["method"], row["share"]) == (method, share):
            own.setdefault(row["seed"], []).append(row)
    return own


def operations(run: Run, value: float) -> float:
    """Operations until the objective has reached a value."""
    return next(row["flops"] for row in run if row["value"] >= value and row["flops"] > 0)


def compared(rows: list[Row], method: str, share: float) -> dict[str, Interval]:
    """Logarithms of ratios to GPower at one γ: non-zeros, variance, and operations until both have the lower final value."""
    ours, theirs = runs(rows, method, share), runs(rows, POWER, share)
    logs: dict[str, list[float]] = {"nonzeros": [], "variance": [], "operations": [], "value": []}
    for seed in sorted(ours.keys() & theirs.keys()):
        one, other = ours[seed], theirs[seed]
        for column in ("nonzeros", "variance", "value"):
            logs[column].append(np.log(one[-1][column] / other[-1][column]))
        goal = min(one[-1]["value"], other[-1]["value"]) * (1 - CLOSE)
        logs["operations"].append(np.log(operations(one, goal) / operations(other, goal)))
    return {name: interval(values) for name, values in logs.items()}


def _claims(rows: list[Row], method: str, about: str) -> list[Claim]:
    found = {share: compared(rows, method, share) for share in sorted({row["share"] for row in rows})}
    pairs = min(parts["value"].pairs for parts in found.values())
    statements = {
        "nonzeros": ("finds a sparser solution", -1, "times GPower's non-zeros"),
        "variance": ("with better explained variance", 1, "times its variance"),
        "operations": ("and does so faster", -1, "times its operations to an equal value"),
    }
    claims = []
    for name, (statement, sign, words) in statements.items():
        margin = float(np.log1p(MARGINS[name]))
        verdicts, parts = [], []
        for share, figures in found.items():
            figure = figures[name]
            verdicts.append(better(figure if sign > 0 else figure.reversed(), margin))
            parts.append(f"γ = {share:g}: {figure.ratio()} {words}, {verdicts[-1]}")
        claims.append(
            Claim(
                f"{method}, m = n: {statement} than GPower (tie: within {MARGINS[name]:.0%}).",
                f"{pairs} starts, by γ; " + "; ".join(parts),
                together(verdicts),
                about,
            )
        )
    return claims
