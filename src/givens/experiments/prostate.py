"""Figure 1: sparse PCA with as many components as samples, explained variance and non-zeros against flops.

Givens rotations, one pair at a time (the paper's Algorithm 2), in blocks, and in blocks after leaps (as `SparsePCA` does), beside
the block form of the Generalized Power Method: the same objective, the same γ, the same random starts. Loadings are taken from AU
as the paper does, variance is Zou's adjusted variance.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from givens.baselines import gpower
from givens.experiments import tables
from givens.experiments.drawing import COLOURS, GIVENS, OTHER, RIVAL, new_figure
from givens.experiments.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from givens.experiments.recorded import Recorded
from givens.metrics import adjusted_from_scores
from givens.minimize import minimize
from givens.objectives import SparseColumns
from givens.rotations import random_orthogonal
from givens.schedules import Random
from givens.sparse_pca.loadings import order_and_sign, shrink, unit_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARE = 0.1  # γ as a share of the largest feature norm
METHODS = {
    "Givens, one pair at a time (Algorithm 2)": OTHER,
    "Givens, in blocks": COLOURS[3],
    "Givens, leaps and blocks (SparsePCA)": GIVENS,
    "GPower, block form": RIVAL,
}
PAIRS, BLOCKS, LEAPS, POWER = METHODS


class Problem:
    """The data, centred, and how good the loadings at some U are."""

    def __init__(self, settings: ExperimentSettings) -> None:
        X = tables.prostate(settings).X
        self.X = X - X.mean(axis=0)
        self.A = np.ascontiguousarray(self.X.T)
        self.n = len(X)
        self.gamma = SHARE * float(np.sqrt(np.max(np.sum(self.X**2, axis=0))))
        self.total = float(np.sum(self.X**2)) / (self.n - 1)

    def measure(self, U: np.ndarray) -> Row:
        """Objective, explained variance and non-zeros of the loadings at U."""
        S = shrink(U.T @ self.X, self.gamma)
        Z = unit_rows(S)
        scores = self.X @ Z.T
        order = order_and_sign(Z, np.sum(scores**2, axis=0))[1]
        variance = adjusted_from_scores(scores[:, order]).sum() / self.total
        return {
            "value": float(np.sum(S**2)),
            "variance": float(variance),
            "nonzeros": float(np.count_nonzero(Z) / Z.size),
        }


def run_givens(problem: Problem, method: str, start: np.ndarray, seed: int, sweeps: int) -> list[Row]:
    """Measure along a run, at flops that grow by a quarter each."""
    rows = [{"flops": 0.0, **problem.measure(start)}]

    def watch(U: np.ndarray, rotations: int, flops: float) -> None:
        if len(rows) == 1 or flops > 1.25 * rows[-1]["flops"]:
            rows.append({"flops": flops, **problem.measure(U)})

    watched = Recorded(SparseColumns(problem.A, problem.gamma), watch)
    schedule = Random() if method == PAIRS else replace(watched.plan().schedule, leaps=method == LEAPS)
    result = minimize(
        watched, start, schedule=schedule, tol=1e-6, max_sweeps=sweeps, random_state=seed, threads=1
    )
    return [*rows, {"flops": watched.flops, **problem.measure(result.U)}]


def run_power(problem: Problem, start: np.ndarray) -> list[Row]:
    """Measure after some of the iterations, each time from the start."""
    rows, iterations = [{"flops": 0.0, **problem.measure(start)}], 1
    while True:
        found = gpower(
            problem.A, problem.n, problem.gamma, start=start, tol=1e-6, max_iter=iterations, threads=1
        )
        rows.append({"flops": found.flops[-1], **problem.measure(found.U)})
        if found.converged or iterations > 2000:
            return rows
        iterations = max(iterations + 1, round(1.25 * iterations))


def run_one(settings: ExperimentSettings, method: str, seed: int) -> list[Row]:
    """One method from one start."""
    problem = Problem(settings)
    start = random_orthogonal(problem.n, np.random.default_rng(seed), determinant=1)
    if method == POWER:
        rows = run_power(problem, start)
    else:
        rows = run_givens(problem, method, start, seed, sweeps=12 if settings.quick else 40)
    return [{"method": method, "seed": seed, **row} for row in rows]


class Prostate(Experiment):
    """Figure 1 of the paper."""

    name = "prostate"
    title = "Figure 1: sparse PCA of prostate cancer data, m = n = 102"
    about = (
        "Explained variance (Zou's, of all components) and share of non-zeros against floating-point operations, for as many "
        f"components as samples, at γ = {SHARE:g} of the largest feature norm, from the same random starts."
    )

    def source(self, settings: ExperimentSettings) -> str:
        """The data used."""
        return tables.prostate(settings).source

    def file(self, settings: ExperimentSettings) -> str | None:
        """The file used."""
        return tables.prostate(settings).file

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A run per method and start."""
        seeds = settings.seeds or (1 if settings.quick else 5)
        return [
            Task(f"{number}-{seed}", partial(run_one, settings, method, seed))
            for number, method in enumerate(METHODS)
            for seed in range(seeds)
        ]

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """The two panels of the paper's figure; a thin line per start."""
        figure, axes = new_figure(10, 4.2, 1, 2)
        for ax, column, label in zip(
            axes, ("variance", "nonzeros"), ("explained variance (%)", "non-zeros (%)")
        ):
            for method, colour in METHODS.items():
                for seed in sorted({row["seed"] for row in rows}):
                    own = runs(rows, method)[seed]
                    ax.plot(
                        [row["flops"] for row in own[1:]],
                        [100 * row[column] for row in own[1:]],
                        color=colour,
                        alpha=0.8,
                        linewidth=1.3,
                        label=method if seed == 0 else None,
                    )
            ax.set(
                xscale="log", xlabel="floating-point operations (additions and multiplications)", ylabel=label
            )
        axes[0].legend(fontsize="small")
        starts = len({row["seed"] for row in rows})
        lines = f"a line for each of {starts} starts" if starts > 1 else "one start"
        figure.suptitle(f"{self.source(settings)}; {lines}", fontsize="medium")
        return figure

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Sparser, better, faster."""
        return [claim for method in (PAIRS, BLOCKS, LEAPS) for claim in _claims(rows, method)]


def _claims(rows: list[Row], method: str) -> list[Claim]:
    ours, theirs = runs(rows, method), runs(rows, POWER)

    def final(column: str) -> np.ndarray:
        """At the end, in %: starts x (ours, theirs)."""
        return 100 * np.array([[ours[seed][-1][column], theirs[seed][-1][column]] for seed in ours])

    nonzeros, variance = final("nonzeros"), final("variance")
    ratios = []
    for seed, own in ours.items():
        goal = theirs[seed][-1]
        reached = [row["flops"] for row in own if row["value"] >= goal["value"] * (1 - 1e-4)]
        ratios.append(reached[0] / goal["flops"] if reached else np.inf)
    faster, arrived = float(np.median(ratios)), int(np.sum(np.isfinite(ratios)))
    name, starts = method.split(" (")[0], f"of {len(ours)} starts"
    return [
        Claim(
            f"{name}: it finds a sparser solution.",
            f"{nonzeros[:, 0].mean():.3f} % non-zeros, GPower {nonzeros[:, 1].mean():.3f} %; "
            f"fewer in {np.sum(nonzeros[:, 0] < nonzeros[:, 1])} {starts}",
            bool(nonzeros[:, 0].mean() < nonzeros[:, 1].mean()),
        ),
        Claim(
            f"{name}: with better explained variance.",
            f"{variance[:, 0].mean():.2f} %, GPower {variance[:, 1].mean():.2f} %; "
            f"more in {np.sum(variance[:, 0] > variance[:, 1])} {starts}",
            bool(variance[:, 0].mean() > variance[:, 1].mean()),
        ),
        Claim(
            f"{name}: and does so faster.",
            f"GPower's final objective, to 1e-4, reached in {arrived} {starts}"
            + (f", after {faster:.2f} times GPower's operations (median)" if np.isfinite(faster) else ""),
            faster < 1 and arrived == len(ours),
        ),
    ]


def runs(rows: list[Row], method: str) -> dict[int, list[Row]]:
    """The rows of one method, by seed."""
    own: dict[int, list[Row]] = {}
    for row in rows:
        if row["method"] == method:
            own.setdefault(row["seed"], []).append(row)
    return own
