from __future__ import annotations

import numpy as np

from givens.experiments import ExperimentSettings
from givens.experiments.convergence import SCHEDULES, Convergence, Procrustes, run_one, thinned
from givens.rotations import rotate


def test_the_constants_are_the_problems_own():
    problem = Procrustes(5, seed=3)
    objective = problem.objective()
    slopes = objective.look(objective.state(problem.start)).slopes
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
    settings = ExperimentSettings(quick=True, seeds=1)
    experiment = Convergence()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    verdicts = [claim.holds for claim in experiment.claims(rows, settings)]
    assert verdicts == [True, True, False]
    axes = experiment.figure(rows, settings).axes
    assert [ax.get_title() for ax in axes] == [schedule.replace("-", " ") for schedule in SCHEDULES]
    assert axes[-1].get_xlabel() == "rotations + 1"
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == [
        "the others' means",
        "mean and range over the seeds",
        "bound of Theorem 2",
    ]


def test_a_limit_that_is_not_reached_yet_is_not_refuted():
    rows = [row for schedule in SCHEDULES for row in run_one(schedule, 0, 6, 1)]
    assert Convergence().claims(rows, ExperimentSettings(quick=True))[0].holds is None


def test_a_thinned_curve_has_both_ends_and_points_of_the_curve():
    x = np.arange(0, 5000, 3)
    few, table = thinned(x, np.sqrt(x)[None], most=40)
    assert len(few) <= 40
    assert (few[0], few[-1]) == (x[0], x[-1])
    assert np.array_equal(table[0], np.sqrt(few))


def test_runs_are_reproducible():
    assert run_one("random", 0, 4, 3) == run_one("random", 0, 4, 3)
