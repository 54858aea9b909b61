"""Figure 2, shown and judged: few components of many samples; see `measure.stream_fronts` for what is run.

A panel is a number of components and a limit of non-zeros; a point, one threshold. Methods are compared by the Pareto front of
their points within the limit: the *dominated area* is the mean, over the logarithm of the operations spent (from the cheapest
point of either method to twice the most expensive one), of the best variance that the method has for no more than that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS, RIVAL, emptiest_corner, finish, key, new_figure
from paper.drawing import OURS as OURS_COLOUR
from paper.experiment import LIBRARY, PAPER, Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import stream_fronts, tables
from paper.measure.stream_fronts import (
    ALGORITHM_5,
    CONVERGENCE,
    EARLY_STOP,
    OURS,
    POWER,
    SIZES,
    STOPS,
)
from paper.verdicts import FAILS, HOLDS, Interval, at_least, better, interval, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMITS = (0.05, 0.10, 0.20)
COLOURS = {ALGORITHM_5: GIVENS, POWER: RIVAL, OURS: OURS_COLOUR}
MARGIN = 0.05
CLOSE = 0.98  # of the lower of the two best variances: what both must reach

Points = np.ndarray
"""Operations and variance, one row per point, by operations."""


def points(rows: list[Row], method: str, m: int, stop: str, limit: float, split: int) -> Points:
    """The points of one method in one panel of one split."""
    own = [
        (row["flops"], row["variance"])
        for row in rows
        if (row["method"], row["m"], row["stop"], row["split"]) == (method, m, stop, split)
        and 0 < row["nonzeros"] <= limit
    ]
    return np.array(sorted(own)).reshape(-1, 2)


def area(found: Points, low: float, high: float) -> float:
    """The mean over log(operations) from low to high of the best variance for no more operations."""
    if len(found) == 0:
        return 0.0
    front = np.maximum.accumulate(found[:, 1])
    edges = np.log(np.append(found[:, 0], high))
    return float(np.sum(front * np.diff(edges)) / np.log(high / low))


def front(found: Points) -> Points:
    """The points that no other point dominates."""
    best = np.maximum.accumulate(found[:, 1]) if len(found) else np.zeros(0)
    return found[found[:, 1] > np.append(-np.inf, best[:-1])] if len(found) else found


def compared(
    rows: list[Row], method: str, m: int, stop: str, limit: float
) -> tuple[Interval, Interval, Interval] | None:
    """Beside GPower, over the splits: relative difference of areas, logarithms of ratios of best variance, and of operations."""
    areas, best, spent = [], [], []
    for split in sorted({row["split"] for row in rows}):
        ours, theirs = (points(rows, name, m, stop, limit, split) for name in (method, POWER))
        if len(ours) == 0 or len(theirs) == 0:
            continue
        low, high = min(ours[0, 0], theirs[0, 0]), 2 * max(ours[-1, 0], theirs[-1, 0])
        a, b = area(ours, low, high), area(theirs, low, high)
        areas.append((a - b) / max(a, b, 1e-300))
        tops = [max(found[:, 1].max(), 1e-9) for found in (ours, theirs)]
        best.append(np.log(tops[0] / tops[1]))
        goal = CLOSE * min(tops)
        spent.append(np.log(ours[ours[:, 1] >= goal][0, 0] / theirs[theirs[:, 1] >= goal][0, 0]))
    return (interval(areas), interval(best), interval(spent)) if len(areas) > 1 else None


class Streams(Experiment):
    """Figure 2 of the paper, on one data set."""

    about = (
        "Adjusted variance of held-out samples against floating-point operations. Columns: the number of components. "
        "Rows: the most non-zeros allowed; the last row is the library's own stream. A point is one threshold, the mean "
        "over the splits: filled for a run to the end, open for one stopped at 14 %; lines join the points of a Pareto "
        "front."
    )
    measured = stream_fronts.__name__
    data: str

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A method on a split."""
        return stream_fronts.tasks(settings, self.data)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Three by three panels, and a row of ours."""
        figure, axes = new_figure(10, 11, 4, 3, sharex="col", sharey="col")
        lines = [(limit, ALGORITHM_5) for limit in LIMITS] + [(LIMITS[1], OURS)]
        for line, (limit, method) in zip(axes, lines):
            for ax, m in zip(line, SIZES):
                for name in (POWER, method):
                    for stop in STOPS:
                        _draw(ax, averaged(rows, name, m, stop, limit), COLOURS[name], stop)
                ax.set(xscale="log", title=f"{m} components, at most {limit:.0%} non-zeros")
            line[0].set_ylabel("test variance (%)")
        for line, (_, method) in zip(axes, lines):  # when all panels are drawn, since they share their axes
            key(line[0], {method: COLOURS[method], POWER: RIVAL}, emptiest_corner(line[0]))
        for ax in axes[-1]:
            ax.set_xlabel("additions and multiplications")
        splits = len({row["split"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {splits} splits")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Faster where sparse, at similar or better variance; GPower comparable where not."""
        found = [claim for method in (ALGORITHM_5, OURS) for claim in _claims(rows, method)]
        return [*found, _rotated(rows)]


class Cells(Streams):
    """Figure 2 on blood cells: as many samples as the paper has."""

    name = "cells"
    title = "Figure 2, on blood cells: variance against operations, for few components of many samples"
    data = stream_fronts.CELLS

    def table(self, settings: ExperimentSettings) -> tables.Data:
        """The gene expression of blood cells."""
        return tables.cells(settings)


class Brain(Streams):
    """Figure 2 on the brain atlas, by region."""

    name = "brain"
    title = "Figure 2, on the brain atlas: variance against operations, for few components"
    data = stream_fronts.REGIONS

    def table(self, settings: ExperimentSettings) -> tables.Data:
        """The gene expression of brain samples."""
        return tables.brain(settings)


def averaged(rows: list[Row], method: str, m: int, stop: str, limit: float) -> Points:
    """The thresholds whose non-zeros keep to the limit on average: mean variance in %, geometric mean of the operations."""
    found = []
    for share in sorted({row["share"] for row in rows if row["method"] == method}):
        own = [
            row
            for row in rows
            if (row["method"], row["m"], row["stop"], row["share"]) == (method, m, stop, share)
        ]
        if own and 0 < np.mean([row["nonzeros"] for row in own]) <= limit:
            flops = np.exp(np.mean(np.log([row["flops"] for row in own])))
            found.append((flops, 100 * np.mean([row["variance"] for row in own])))
    return np.array(sorted(found)).reshape(-1, 2)


def _draw(ax: Axes, found: Points, colour: str, stop: str) -> None:
    edge = front(found)
    ax.plot(edge[:, 0], edge[:, 1], color=colour, linewidth=0.9, alpha=0.6, drawstyle="steps-post")
    face = colour if stop == CONVERGENCE else "white"
    ax.plot(found[:, 0], found[:, 1], "o", color=colour, markerfacecolor=face, markersize=4.5)


def _claims(rows: list[Row], method: str) -> list[Claim]:
    about = PAPER if method == ALGORITHM_5 else LIBRARY
    claims = []
    for stop in STOPS:
        panels = [
            (f"m = {m}, {limit:.0%}", compared(rows, method, m, stop, limit))
            for limit in LIMITS[:2]
            for m in SIZES
        ]
        known = [(name, found) for name, found in panels if found is not None]
        when = "run to the end" if stop == CONVERGENCE else "both stopped at 14 %"
        for number, (statement, judge) in enumerate(
            (
                ("its front dominates more area than GPower's", partial(better, margin=MARGIN)),
                ("its best variance is similar or better", partial(at_least, margin=MARGIN)),
                ("an equal variance takes fewer operations", partial(better, margin=MARGIN)),
            )
        ):
            verdicts, words = [], []
            for name, found in known:
                figure = found[number]
                verdicts.append(judge(figure.reversed() if number == 2 else figure))
                shown = figure.percent() if number == 0 else f"{figure.ratio()} times"
                words.append(f"{name}: {shown}, {verdicts[-1]}")
            claims.append(
                Claim(
                    f"{method}, 5 % and 10 % non-zeros, {when}: {statement} (margin {MARGIN:.0%}).",
                    "; ".join(words) or "no panel in which both methods have a point",
                    together(verdicts),
                    about,
                )
            )
    return [*claims, _dense_claim(rows, method, about)]


def _dense_claim(rows: list[Row], method: str, about: str) -> Claim:
    verdicts, words = [], []
    for stop in STOPS:
        for m in SIZES[:2]:
            found = compared(rows, method, m, stop, LIMITS[2])
            if found is not None:
                verdicts.append(at_least(found[0].reversed(), MARGIN))
                words.append(f"m = {m}, {stop}: {found[0].percent()} area beside GPower, {verdicts[-1]}")
    return Claim(
        f"{method}: at 20 % non-zeros and few components, GPower's front is comparable or better (margin {MARGIN:.0%}).",
        "; ".join(words) or "no panel in which both methods have a point",
        together(verdicts),
        about,
    )


def _rotated(rows: list[Row]) -> Claim:
    """Whether the library's stream owes its loadings to rotations at all."""
    own = [row for row in rows if row["method"] == OURS and 0 < row["nonzeros"] <= LIMITS[2]]
    share = float(np.mean([row["rotated"] for row in own])) if own else 0.0
    early = [row["rotated"] for row in own if row["stop"] == EARLY_STOP]
    return Claim(
        f"{OURS}: its loadings are rotated columns, not principal axes that were cut.",
        f"rotated in {share:.0%} of {len(own)} fits within 20 % non-zeros; stopped at 14 %: {np.mean(early) if early else 0:.0%}",
        HOLDS if share > 0.5 else FAILS,
        LIBRARY,
    )
