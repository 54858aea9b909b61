"""Theorem 2, seen: the norm of the gradient against the number of rotations, beside the bound, for each schedule.

The objective is linear, f(U) = −tr(UᵀM), the orthogonal Procrustes problem: its minimum is known from the singular values σ
of M, and along a rotation g(θ) = −(A cos θ + B sin θ) + const with √(A² + B²) ≤ σ₁ + σ₂, so that L = σ₁ + σ₂. What is proved,
with the constant corrected, is

    min_{t ≤ T} E‖∇f(U_t)‖² ≤ 2 L d(d−1) (f(U₀) − f_min) / (T + 1)        for pairs drawn uniformly at random.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from givens.experiments.drawing import COLOURS, band, new_figure
from givens.experiments.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from givens.experiments.recorded import Recorded
from givens.minimize import minimize
from givens.objectives import Function
from givens.rotations import random_orthogonal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEDULES = ("random", "without-replacement", "cyclic", "shuffled", "tournament", "gradient")


class Procrustes:
    """f(U) = −tr(UᵀM) on the rotations, with its constants."""

    def __init__(self, d: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.M = rng.standard_normal((d, d))
        self.start = random_orthogonal(d, rng, determinant=1)
        u, sizes, vt = np.linalg.svd(self.M)
        last = sizes[-1] if np.linalg.det(u) * np.linalg.det(vt) > 0 else -sizes[-1]
        self.minimum = -(sizes[:-1].sum() + last)
        self.L = sizes[0] + sizes[1]
        self.gap = -float(np.sum(self.start * self.M)) - self.minimum
        self.d = d

    def objective(self) -> Function:
        """As the loop takes it."""
        return Function(lambda U: -float(np.sum(U * self.M)), self.d, degree=1, jac=lambda U: -self.M)

    def squared_norm(self, U: np.ndarray) -> float:
        """‖∇f‖² by the paper's definition."""
        product = self.M.T @ U
        return float(np.sum((product - product.T) ** 2))


def run_one(schedule: str, seed: int, d: int, sweeps: int) -> list[Row]:
    """‖∇f‖² after every rotation of one run."""
    problem = Procrustes(d, seed)
    norms = [problem.squared_norm(problem.start)]
    watched = Recorded(problem.objective(), lambda U, rotations, flops: norms.append(problem.squared_norm(U)))
    minimize(
        watched, problem.start, schedule=schedule, max_sweeps=sweeps, tol=0.0, random_state=seed, threads=1
    )
    bound = 2 * problem.L * d * (d - 1) * problem.gap
    last = len(norms) - 1
    # All of the first ones, then fewer and fewer: the axis is logarithmic.
    kept = sorted({min(round(k), last) for k in np.geomspace(1, last + 1, 160) - 1})
    return [
        {
            "schedule": schedule,
            "seed": seed,
            "rotations": t,
            "squared_norm": norms[t],
            "bound": bound / (t + 1),
        }
        for t in kept
    ]


class Convergence(Experiment):
    """The bound of Theorem 2."""

    name = "convergence"
    title = "Theorem 2: how fast the gradient vanishes"
    about = (
        "The squared norm of the gradient of a linear function of a rotation, whose constants are known, after every "
        "rotation, for each order of pairs; beside it the bound of Theorem 2 with its constant corrected."
    )

    def source(self, settings: ExperimentSettings) -> str:
        """A random problem per seed."""
        return f"orthogonal Procrustes problems of order {self._order(settings)}"

    def _order(self, settings: ExperimentSettings) -> int:
        return 8 if settings.quick else 12

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A run per schedule and seed."""
        seeds = settings.seeds or (4 if settings.quick else 20)
        sweeps = 40 if settings.quick else 120
        order = self._order(settings)
        return [
            Task(f"{schedule}-{seed}", partial(run_one, schedule, seed, order, sweeps))
            for schedule in SCHEDULES
            for seed in range(seeds)
        ]

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """A panel per schedule: mean and range over the seeds, the other schedules' means behind it, and the bound."""
        figure, axes = new_figure(10, 5.8, 2, 3, sharex=True, sharey=True)
        drawn = {schedule: thinned(*curves(rows, schedule, "squared_norm")) for schedule in SCHEDULES}
        x, table = thinned(*curves(rows, "random", "bound"))
        for ax, colour, schedule in zip(axes.ravel(), COLOURS, SCHEDULES):
            for t, norms in drawn.values():
                ax.plot(t + 1, norms.mean(axis=0), color="0.75", linewidth=0.8, label="the others' means")
            t, norms = drawn[schedule]
            band(ax, t + 1, norms, colour, "mean and range over the seeds", linewidth=2)
            ax.plot(x + 1, table.mean(axis=0), "k--", linewidth=1.2, label="bound of Theorem 2")
            ax.set(xscale="log", yscale="log", title=schedule.replace("-", " "))
            handles, labels = ax.get_legend_handles_labels()
            once = dict(zip(labels, handles))
            ax.legend(once.values(), once.keys(), fontsize="x-small", loc="lower left")
        axes[0, 0].set_ylim(bottom=max(1e-14 * table.max(), 1e-10))
        for ax in axes[-1]:
            ax.set_xlabel("rotations + 1")
        for ax in axes[:, 0]:
            ax.set_ylabel("squared gradient norm, ‖∇f‖²")
        seeds = len({row["seed"] for row in rows})
        figure.suptitle(f"{self.source(settings)}; {seeds} seeds", fontsize="medium")
        return figure

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Theorems 1 and 2, as proved and as printed."""
        x, norms = curves(rows, "random", "squared_norm")
        _, bounds = curves(rows, "random", "bound")
        lowest = np.minimum.accumulate(norms.mean(axis=0))
        tightest = float(np.max(lowest / bounds.mean(axis=0)))
        d = self._order(settings)
        printed = bounds.mean(axis=0) * d / (2 * (d - 1))
        highest = np.maximum.accumulate(norms.mean(axis=0))
        before = float(np.sqrt(norms[:, 0].mean()))
        ends = {
            schedule: float(np.sqrt(curves(rows, schedule, "squared_norm")[1][:, -1].max()))
            for schedule in SCHEDULES
        }
        worst = max(ends, key=lambda schedule: ends[schedule])
        return [
            Claim(
                "Theorem 1: the norm of the gradient goes to 0.",
                f"from {before:.1f} at the start to at most {ends[worst]:.1e} after {int(x[-1])} rotations ({worst}, the worst "
                "of the seeds)",
                # A limit is not refuted by what is not reached yet.
                True if ends[worst] < 1e-3 * before else None,
            ),
            Claim(
                "Theorem 2, as proved: the least mean squared norm is at most 2L d(d−1)(f(U₀) − f_min)/(T+1).",
                f"at most {tightest:.3f} of the bound, over T up to {int(x[-1])}",
                tightest <= 1,
            ),
            Claim(
                "Theorem 2, as printed: the greatest mean squared norm is at most L d²(f(U₀) − f_min)/(T+1).",
                f"{float(np.max(highest / printed)):.3g} times that bound at T = {int(x[-1])}",
                bool(np.all(highest <= printed)),
            ),
        ]


def thinned(x: np.ndarray, table: np.ndarray, most: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """At most so many of the columns, evenly on a logarithmic axis: a figure shows no more, and its file is smaller."""
    at = np.unique(np.searchsorted(x, np.geomspace(1, x[-1] + 1, most) - 1).clip(max=len(x) - 1))
    return x[at], table[:, at]


def curves(rows: list[Row], schedule: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The seeds' curves of one schedule at common numbers of rotations: (rotations, seeds x rotations).

    Where a schedule made fewer rotations in one run than in another (it skipped pairs), the last value stands.
    """
    chosen = [row for row in rows if row["schedule"] == schedule]
    x = np.unique([row["rotations"] for row in chosen])
    table = []
    for seed in sorted({row["seed"] for row in chosen}):
        own = sorted((row["rotations"], row[column]) for row in chosen if row["seed"] == seed)
        at = np.searchsorted([t for t, _ in own], x, side="right") - 1
        table.append(np.array([value for _, value in own])[at])
    return x, np.array(table)
