"""Theorems 1 (2) and 3, and the number of evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import sparse_modules
from paper import ExperimentSettings
from paper.evaluations import Evaluations
from paper.measure import critical_points, tables
from paper.measure.critical_points import (
    LINEAR,
    TENSOR,
    least_curvature,
    linear,
    run_points,
    tensor,
)
from paper.measure.pair_evaluations import EVALUATIONS, STATES
from paper.optima import Optima
from paper.verdicts import FAILS, HOLDS


def test_curvatures_are_those_of_the_theory():
    """At U = P D Qᵀ the Hessian of −tr(UᵀM) has the eigenvalues d_i σ_i + d_j σ_j; X counts each entry twice."""
    _, f, P, Qt = linear(np.random.default_rng(0))
    M = np.array([[-f(np.outer(a, b)) for b in np.eye(4)] for a in np.eye(4)])
    sizes = np.linalg.svd(M)[1]
    for signs in ([1, 1, 1, 1], [1, 1, 1, -1], [1, -1, 1, 1]):
        signed = sizes * signs
        expected = min(signed[i] + signed[j] for i in range(4) for j in range(i))
        assert least_curvature(f, (P * signs) @ Qt) == pytest.approx(expected, rel=1e-4)


def test_the_reversed_smallest_component_is_a_strict_local_maximum():
    _, f, V, _ = tensor(np.random.default_rng(1))
    assert least_curvature(f, V) > 0
    assert least_curvature(f, V * [1, 1, 1, -1]) > 0
    assert least_curvature(f, V * [-1, 1, 1, 1]) < 0
    assert f(V) < f(V * [1, 1, 1, -1])


def test_algorithm_1_comes_back_to_minima_of_linear_functions_only():
    rows = run_points(LINEAR, 0)
    assert len(rows) == 8, "one component of O(4)"
    for row in rows:
        assert (row["distance"] < 1e-2) == (row["curvature"] > 0)


def test_claims_and_figure_of_the_optima():
    settings = ExperimentSettings(quick=True, seeds=1)
    experiment = Optima()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    assert [claim.verdict for claim in experiment.claims(rows, settings)] == [HOLDS, FAILS, FAILS, HOLDS]
    assert [ax.get_title() for ax in experiment.figure(rows, settings).axes] == [
        "linear function",
        "orthogonal tensor",
    ]
    assert {row["problem"] for row in rows} == {LINEAR, TENSOR, critical_points.STARTS}


def test_evaluations_are_judged(monkeypatch):
    X = sparse_modules(20, 300, n_modules=4, module_size=15, random_state=0).X
    monkeypatch.setattr(tables, "prostate", lambda settings: tables.Data(X, "small data"))
    settings = ExperimentSettings(quick=True, seeds=2)
    experiment = Evaluations()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    assert len(rows) == 2 * len(STATES) * len(EVALUATIONS)
    assert all(0 <= row["gain"] <= 1 + 1e-9 for row in rows)
    five, ten = experiment.claims(rows, settings)
    assert "5 evaluations" in five.statement
    assert "10 evaluations" in ten.statement
    assert len(experiment.figure(rows, settings).axes) == 1
