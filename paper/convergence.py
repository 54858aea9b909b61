"""Theorems 1 (1) and 2, shown and judged: how the gradient vanishes; see `measure.gradient_norms` for what is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS, OURS, RIVAL, TRUTH, finish, key, new_figure
from paper.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import gradient_norms
from paper.measure.gradient_norms import OBJECTIVES, SCHEDULES, order
from paper.verdicts import FAILS, HOLDS, UNCLEAR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VANISHED = 1e-6  # of the gradient's norm at the start
COLOURS = dict(zip(SCHEDULES, (GIVENS, OURS, RIVAL, "#cc79a7")))
LIMITS = dict(zip(OBJECTIVES, (GIVENS, RIVAL, OURS)))


class Convergence(Experiment):
    """Theorems 1 (1) and 2."""

    name = "convergence"
    title = "Theorems 1 and 2: the gradient vanishes, and how fast"
    about = (
        "Left: the mean squared norm of the gradient of a linear function of a rotation, whose constants are known, after every "
        "rotation, for some orders of pairs; beside it the bound of Theorem 2 with its constant corrected. Right: the "
        "norm of the gradient, over its first, along Algorithm 1 on three objectives, a line for each seed."
    )
    measured = gradient_norms.__name__

    def source(self, settings: ExperimentSettings) -> str:
        """A random problem per seed."""
        return f"linear functions of order {order(settings.quick)}; linear functions, tensors and sparse PCA of order 6 to 10"

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A run per schedule or objective, and seed."""
        return gradient_norms.tasks(settings)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """The bound, and the limit."""
        figure, (left, right) = new_figure(10, 4.2, 1, 2)
        x, bounds = curves(rows, "random", "bound")
        left.plot(x + 1, bounds.mean(axis=0), "--", color=TRUTH, linewidth=1.2)
        for schedule, colour in COLOURS.items():
            t, norms = curves(rows, schedule, "squared_norm")
            left.plot(t + 1, norms.mean(axis=0), color=colour, linewidth=1.4)
        left.set(
            xscale="log", yscale="log", xlabel="rotations + 1", ylabel="mean squared norm of the gradient"
        )
        left.set_ylim(bottom=1e-6)
        key(left, {"bound of Theorem 2": TRUTH, **COLOURS}, (0.02, 0.04), 0.07)
        for row_name, colour in LIMITS.items():
            for seed in sorted({row["seed"] for row in rows if row.get("objective") == row_name}):
                own = [row for row in rows if (row.get("objective"), row["seed"]) == (row_name, seed)]
                right.plot(
                    [row["sweeps"] + 1 for row in own],
                    [max(row["norm"], 1e-12) for row in own],
                    color=colour,
                    linewidth=0.8,
                    alpha=0.5,
                )
        right.set(
            xscale="log", yscale="log", xlabel="sweeps of random pairs + 1", ylabel="norm over its first"
        )
        key(right, LIMITS, (0.02, 0.04), 0.07)
        seeds = len({row["seed"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {seeds} seeds")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Theorems 1 and 2, as proved and as printed."""
        x, norms = curves(rows, "random", "squared_norm")
        _, bounds = curves(rows, "random", "bound")
        lowest = np.minimum.accumulate(norms.mean(axis=0))
        highest = np.maximum.accumulate(norms.mean(axis=0))
        tightest = float(np.max(lowest / bounds.mean(axis=0)))
        d = order(settings.quick)
        printed = bounds.mean(axis=0) * d / (2 * (d - 1))
        return [
            _limit_claim(rows),
            Claim(
                "Theorem 2, as proved: the least mean squared norm is at most 2L d(d−1)(f(U₀) − f_min)/(T+1).",
                f"at most {tightest:.3f} of the bound, over T up to {int(x[-1])}, {len(norms)} seeds",
                HOLDS if tightest <= 1 else FAILS,
            ),
            Claim(
                "Theorem 2, as printed: the greatest mean squared norm is at most L d²(f(U₀) − f_min)/(T+1).",
                f"{float(np.max(highest / printed)):.3g} times that bound at T = {int(x[-1])}",
                HOLDS if np.all(highest <= printed) else FAILS,
            ),
        ]


def _limit_claim(rows: list[Row]) -> Claim:
    words, reached = [], []
    for name in OBJECTIVES:
        own = [row for row in rows if row.get("objective") == name]
        ends = [
            min(row["norm"] for row in own if row["seed"] == seed)
            for seed in sorted({r["seed"] for r in own})
        ]
        reached += [end <= VANISHED for end in ends]
        sweeps = max(row["sweeps"] for row in own)
        words.append(f"{name}: at most {max(ends):.0e} in {len(ends)} runs of up to {sweeps} sweeps")
    return Claim(
        f"Theorem 1 (1): the norm of the gradient goes to 0 (seen to fall below {VANISHED:g} of its first).",
        "; ".join(words),
        # A run that has not converged yet does not refute a limit.
        HOLDS if all(reached) else UNCLEAR,
    )


def curves(rows: list[Row], schedule: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The seeds' curves of one schedule at common numbers of rotations: (rotations, seeds x rotations).

    Where a schedule made fewer rotations in one run than in another (it skipped pairs), the last value stands.
    """
    chosen = [row for row in rows if row.get("schedule") == schedule]
    x = np.unique([row["rotations"] for row in chosen])
    x = x[np.unique(np.searchsorted(x, np.geomspace(1, x[-1] + 1, 80) - 1).clip(max=len(x) - 1))]
    table = []
    for seed in sorted({row["seed"] for row in chosen}):
        own = sorted((row["rotations"], row[column]) for row in chosen if row["seed"] == seed)
        at = np.searchsorted([t for t, _ in own], x, side="right") - 1
        table.append(np.array([value for _, value in own])[at])
    return x, np.array(table)
