from __future__ import annotations

import numpy as np
import pytest

from givens.rotations import rotate
from paper import ExperimentSettings
from paper.convergence import Convergence
from paper.measure import gradient_norms
from paper.measure.gradient_norms import OBJECTIVES, SCHEDULES, Procrustes, run_bound, run_limit
from paper.verdicts import FAILS, HOLDS, UNCLEAR


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


@pytest.fixture(scope="module")
def rows():
    bounds = [row for schedule in SCHEDULES for seed in range(2) for row in run_bound(schedule, seed, 6, 10)]
    return bounds + [row for name in OBJECTIVES for row in run_limit(name, 0)]


def test_the_quick_run_finds_what_the_theorems_say(rows):
    settings = ExperimentSettings(quick=True)
    assert [claim.verdict for claim in Convergence().claims(rows, settings)] == [HOLDS, HOLDS, FAILS]
    left, right = Convergence().figure(rows, settings).axes
    assert left.get_xlabel() == "rotations + 1"
    assert len(right.lines) == len(OBJECTIVES)


def test_a_limit_that_is_not_reached_yet_is_not_refuted(rows, monkeypatch):
    monkeypatch.setattr(gradient_norms, "SWEEPS", 1)
    short = [row for row in rows if "schedule" in row]
    short += [row for name in OBJECTIVES for row in run_limit(name, 0)]
    assert Convergence().claims(short, ExperimentSettings(quick=True))[0].verdict == UNCLEAR
