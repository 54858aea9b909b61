"""How much of a pair's best gain a one-dimensional search finds in 5 to 10 evaluations, measured.

Pairs of columns of AU on the prostate data, at a random U and where GPower has come after ten iterations from there. The
search is Brent's, bounded to one period of g, (−π/4, π/4); the best gain is that of the exact search over sorted breakpoints.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from givens.rotations import random_orthogonal
from paper.baselines import gpower
from paper.measure.all_components import Problem
from paper.measure.task import ExperimentSettings, Row, Task
from tests.oracles.breakpoints import breakpoint_search, pair_value

SHARE = 0.1
EVALUATIONS = (3, 5, 7, 10, 15, 20)
STATES = ("random U", "after ten iterations of GPower")
PAIRS = 40


def brent_gain(x: np.ndarray, y: np.ndarray, gamma: float, evaluations: int) -> float:
    """What a bounded search of so many evaluations gains; nothing, if it ends below where it began."""
    levels = (gamma, gamma)
    found = minimize_scalar(
        lambda theta: -float(pair_value(x, y, theta, levels)),
        bounds=(-np.pi / 4, np.pi / 4),
        method="bounded",
        options={"maxiter": evaluations, "xatol": 1e-10},
    )
    return max(-float(found.fun) - float(pair_value(x, y, 0.0, levels)), 0.0)


def run_one(settings: ExperimentSettings, seed: int) -> list[Row]:
    """Some pairs from one start."""
    problem = Problem(settings, SHARE)
    rng = np.random.default_rng(seed)
    U = random_orthogonal(problem.n, rng)
    later = gpower(problem.A, problem.n, problem.gamma, start=U, max_iter=10, tol=0.0, threads=1).U
    rows = []
    for state, at in zip(STATES, (U, later)):
        Y = at.T @ problem.X
        pairs = []
        for _ in range(PAIRS):
            x, y = Y[rng.choice(problem.n, 2, replace=False)]
            some = np.hypot(x, y) > problem.gamma
            pairs.append((x[some], y[some]))
        best = np.array([breakpoint_search(x, y, (problem.gamma, problem.gamma))[1] for x, y in pairs])
        for evaluations in EVALUATIONS:
            gains = np.array([brent_gain(x, y, problem.gamma, evaluations) for x, y in pairs])
            rows.append(
                {
                    "seed": seed,
                    "state": state,
                    "evaluations": evaluations,
                    "gain": float(gains.sum() / best.sum()),
                    "pairs": float(np.mean(gains >= 0.99 * best)),
                }
            )
    return rows


def tasks(settings: ExperimentSettings) -> list[Task]:
    """Pairs from one start."""
    seeds = settings.seeds or (4 if settings.quick else 20)
    return [Task(f"start-{seed}", partial(run_one, settings, seed)) for seed in range(seeds)]
