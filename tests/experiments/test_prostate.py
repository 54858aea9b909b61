from __future__ import annotations

import numpy as np
import pytest

from givens import minimize
from givens.datasets import sparse_modules
from givens.experiments import ExperimentSettings, tables
from givens.experiments.prostate import METHODS, Prostate, run_one
from givens.experiments.recorded import Recorded
from givens.metrics import adjusted_variance, total_variance
from givens.objectives import SparseColumns
from givens.schedules import Random


@pytest.fixture
def small(monkeypatch):
    X = sparse_modules(20, 300, n_modules=4, module_size=15, random_state=0).X
    monkeypatch.setattr(tables, "prostate", lambda settings: tables.Data(X, "small data"))
    return X


def test_every_method_ends_where_the_objective_says(small):
    settings = ExperimentSettings(quick=True, seeds=1)
    rows = [row for task in Prostate().tasks(settings) for row in task.run()]
    assert {row["method"] for row in rows} == set(METHODS)
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        values = np.array([row["value"] for row in own])
        assert np.all(np.diff(values) >= -1e-9 * values[-1]), "the objective never falls"
        assert np.all(np.diff([row["flops"] for row in own]) >= 0)
        assert 0 < own[-1]["variance"] <= 1
    claims = Prostate().claims(rows, settings)
    assert len(claims) == 3 * (len(METHODS) - 1)
    figure = Prostate().figure(rows, settings)
    assert [ax.get_ylabel() for ax in figure.axes] == ["explained variance (%)", "non-zeros (%)"]


def test_a_goal_that_is_never_reached_is_said_so():
    def run(method, seed, value, flops):
        return {
            "method": method,
            "seed": seed,
            "value": value,
            "flops": flops,
            "variance": 0.5,
            "nonzeros": 0.1,
        }

    pairs, blocks, leaps, power = METHODS
    rows = [run(power, seed, 10.0, 100.0) for seed in range(3)]
    rows += [run(blocks, seed, 10.0, 50.0) for seed in range(3)]
    rows += [run(pairs, 0, 10.0, 50.0), run(pairs, 1, 9.0, 50.0), run(pairs, 2, 9.0, 50.0)]
    rows += [run(leaps, 0, 10.0, 10.0), run(leaps, 1, 10.0, 10.0), run(leaps, 2, 9.0, 10.0)]
    claims = {claim.statement: claim for claim in Prostate().claims(rows, ExperimentSettings())}
    never = claims["Givens, one pair at a time: and does so faster."]
    assert "in 1 of 3 starts" in never.measured
    assert never.holds is False
    always = claims["Givens, in blocks: and does so faster."]
    assert "in 3 of 3 starts, after 0.50 times" in always.measured
    assert always.holds is True
    mostly = claims["Givens, leaps and blocks: and does so faster."]
    assert "in 2 of 3 starts, after 0.10 times" in mostly.measured
    assert mostly.holds is False


def test_the_measure_is_zous_variance(small):
    from givens.experiments.prostate import Problem
    from givens.sparse_pca.loadings import shrink, unit_rows

    problem = Problem(ExperimentSettings())
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]
    Z = unit_rows(shrink(U.T @ problem.X, problem.gamma))
    order = np.argsort(-np.sum((problem.X @ Z.T) ** 2, axis=0))
    expected = adjusted_variance(small, Z[order]).sum() / total_variance(small)
    assert problem.measure(U)["variance"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("schedule", [None, Random()])
def test_a_recorded_run_is_the_same_run_and_counts_the_same_flops(small, schedule):
    A = (small - small.mean(axis=0)).T
    seen = []
    plain = minimize(SparseColumns(A, 8.0), schedule=schedule, random_state=0, max_sweeps=5, threads=1)
    watched = Recorded(SparseColumns(A, 8.0), lambda U, rotations, flops: seen.append(flops))
    recorded = minimize(watched, schedule=schedule, random_state=0, max_sweeps=5, threads=1)
    assert np.array_equal(plain.U, recorded.U)
    assert watched.flops == plain.flops == recorded.flops
    assert seen[-1] <= watched.flops


def test_runs_are_reproducible(small):
    assert run_one(ExperimentSettings(quick=True), list(METHODS)[1], 0) == run_one(
        ExperimentSettings(quick=True), list(METHODS)[1], 0
    )
