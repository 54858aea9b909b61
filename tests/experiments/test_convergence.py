from __future__ import annotations

import numpy as np

from givens.experiments import Settings
from givens.experiments.convergence import Convergence, Procrustes, run_one
from givens.rotations import rotate


def test_the_constants_are_the_problems_own():
    problem = Procrustes(5, seed=3)
    objective = problem.objective()
    objective.prepare(problem.start)
    slopes = objective.gradient(objective.state(problem.start))
    assert np.isclose(problem.squared_norm(problem.start), 2 * np.sum(np.triu(slopes, 1) ** 2))
    # L bounds the second difference along every pair, at random points.
    rng = np.random.default_rng(0)
    h = 1e-3
    for _ in range(50):
        U = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        i, j = rng.choice(5, 2, replace=False)
        g = [-np.sum(rotate(U, i, j, t) * problem.M) for t in (-h, 0, h)]
        assert abs(g[0] - 2 * g[1] + g[2]) / h**2 <= problem.L * (1 + 1e-4)
    assert problem.gap > 0


def test_the_quick_run_finds_what_the_theorem_says():
    settings = Settings(quick=True, seeds=1)
    experiment = Convergence()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    verdicts = [claim.holds for claim in experiment.claims(rows, settings)]
    assert verdicts == [True, True, False]
    axes = experiment.figure(rows, settings).axes[0]
    assert axes.get_xlabel() == "rotations + 1"
    assert len(axes.get_legend().get_texts()) == 7


def test_runs_are_reproducible():
    assert run_one("random", 0, 4, 3) == run_one("random", 0, 4, 3)
