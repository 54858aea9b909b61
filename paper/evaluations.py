"""How many evaluations a rotation of Algorithm 2 takes, shown and judged; see `measure.pair_evaluations` for what is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS, RIVAL, finish, key, new_figure
from paper.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import pair_evaluations, tables
from paper.measure.pair_evaluations import STATES
from paper.verdicts import FAILS, HOLDS, UNCLEAR, Interval, interval, together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = dict(zip(STATES, (GIVENS, RIVAL)))
ENOUGH = 0.95  # of the best gain


class Evaluations(Experiment):
    """Five to ten evaluations for a rotation."""

    name = "evaluations"
    title = "Algorithm 2: how many evaluations a rotation takes"
    about = (
        "How much of the gain of the best angle, over random pairs of columns, Brent's bounded search finds in so "
        "many evaluations of g: mean over the starts, and the range of them."
    )
    measured = pair_evaluations.__name__

    def table(self, settings: ExperimentSettings) -> tables.Data:
        """The gene expression of prostate tumours."""
        return tables.prostate(settings)

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """Pairs from one start."""
        return pair_evaluations.tasks(settings)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Gain against evaluations."""
        figure, ax = new_figure(6, 3.8)
        for state, colour in COLOURS.items():
            numbers = sorted({row["evaluations"] for row in rows})
            table = 100 * np.array([gains(rows, state, number) for number in numbers])
            ax.plot(numbers, table.mean(axis=1), "o-", color=colour, markersize=4)
            ax.fill_between(
                numbers, table.min(axis=1), table.max(axis=1), color=colour, alpha=0.15, linewidth=0
            )
        ax.set_xticks(numbers)
        ax.axvspan(5, 10, color="0.93", zorder=0)
        ax.set(xlabel="evaluations", ylabel="share of the best gain (%)", ylim=(0, 104))
        key(ax, COLOURS, step=0.08)
        seeds = len({row["seed"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {seeds} starts")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """The claims about five and about ten evaluations."""
        return [_claim(rows, number) for number in (5, 10)]


def gains(rows: list[Row], state: str, evaluations: int) -> list[float]:
    """One per start."""
    return [row["gain"] for row in rows if (row["state"], row["evaluations"]) == (state, evaluations)]


def _judged(found: Interval) -> str:
    if found.low >= ENOUGH:
        return HOLDS
    return FAILS if found.high < ENOUGH else UNCLEAR


def _claim(rows: list[Row], evaluations: int) -> Claim:
    verdicts, words = [], []
    for state in STATES:
        found = interval(gains(rows, state, evaluations))
        verdicts.append(_judged(found))
        words.append(f"{state}: {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}], {verdicts[-1]}")
    return Claim(
        f"{evaluations} evaluations suffice for the angle of a rotation (at least {ENOUGH:.0%} of the best gain).",
        f"{found.pairs} starts; " + "; ".join(words),
        together(verdicts),
    )
