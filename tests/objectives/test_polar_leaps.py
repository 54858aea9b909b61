"""Leaps: all columns at once, by the linearised objective."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import minimize
from givens.datasets import sparse_modules
from givens.kernels.linear import linearise
from givens.objectives import Columns, SparseColumns
from givens.objectives.polar_leaps import Features, PolarLeaps
from givens.result import Stop
from givens.rotations import determinant, random_orthogonal
from givens.solve import Leaps
from givens.solve.checkpoint import Checkpoint
from tests.properties import examples

PENALTIES = ("l1", "l0")


def modules(seed, samples=24, features=600):
    X = sparse_modules(
        samples, features, n_modules=8, module_size=features // 15, strength=1.5, random_state=seed
    ).X
    return (X - X.mean(axis=0)).T


def problem(seed, share, penalty, active=None, **shape):
    A = modules(seed, **shape)
    level = share * np.sqrt(np.max(np.sum(A**2, axis=1)))
    return SparseColumns(A, level**2 if penalty == "l0" else level, penalty, active)


def total(Y, levels, l0):
    """The sum that is maximised, written out."""
    excess = Y**2 - levels[:, None] ** 2 if l0 else np.abs(Y) - levels[:, None]
    return float(np.sum(np.maximum(excess, 0) ** (1 if l0 else 2)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("l0", [False, True])
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 50), size=st.floats(0.0, 3.0))
def test_the_linearisation_is_what_its_formula_says(l0, dtype, seed, rows, size):
    rng = np.random.default_rng(seed)
    V, B = rng.standard_normal((3, 4)).astype(dtype), rng.standard_normal((rows, 4)).astype(dtype)
    levels = (size * rng.uniform(0.5, 1.5, 3)).astype(dtype)
    T, E = V @ B.T, rng.standard_normal((3, 4)).astype(dtype)
    fine = 1e3 * np.finfo(dtype).eps
    S = np.where(np.abs(T) > levels[:, None], T if l0 else T - np.sign(T) * levels[:, None], 0.0)
    before = E.copy()
    value, nonzeros = linearise(T.copy(), levels, l0, B, E)
    assert nonzeros == np.count_nonzero(S)
    assert np.isclose(value, total(T, levels, l0), rtol=fine, atol=fine)
    assert np.allclose(E - before, S @ B, atol=fine)


@pytest.mark.parametrize("l0", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_few_and_many_non_zeros_give_the_same(share, l0, monkeypatch):
    objective = problem(2, share, "l0" if l0 else "l1", samples=40, features=1500)
    rng = np.random.default_rng(0)
    Y = objective.state(random_orthogonal(40, rng))
    levels, V = objective.contrast.levels, random_orthogonal(40, rng) + 0.1 * rng.standard_normal((40, 40))
    T = V @ Y
    S = np.where(np.abs(T) > levels[:, None], T if l0 else T - np.sign(T) * levels[:, None], 0.0)
    for few in (0.0, 1.1):
        monkeypatch.setattr("givens.objectives.polar_leaps.FEW", few)
        value, E = Features(Y, levels, l0).linearise(V)
        assert np.isclose(value, total(T, levels, l0), rtol=1e-5)
        assert np.allclose(E, S @ Y.T, atol=1e-5 * np.abs(E).max())


@pytest.mark.parametrize("penalty", PENALTIES)
@examples(10)
@given(
    seed=st.integers(0, 10_000), share=st.sampled_from([0.05, 0.2, 0.4]), active=st.sampled_from([24, 10, 1])
)
def test_a_leap_is_worth_at_least_what_it_says(penalty, seed, share, active):
    objective = problem(seed, share, penalty, active)
    levels, l0 = objective.contrast.levels, penalty == "l0"
    Y = objective.state(random_orthogonal(24, np.random.default_rng(seed), determinant=1))
    leaps = PolarLeaps(Y, levels, l0, (0.6,))
    for _ in range(4):
        Q = leaps.go()
        if Q is None:
            assert total(Y[:active], levels, l0) == 0.0
            return
        assert np.allclose(Q.T @ Q, np.eye(24), atol=1e-12)
        assert determinant(Q) == 1
        Y = Q.T @ Y
        assert total(Y[:active], levels, l0) >= leaps.reached * (1 - 1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@examples(8)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.02, 0.2, 0.4]))
def test_a_run_with_leaps_never_falls_and_stays_in_its_component(penalty, seed, share):
    objective = problem(seed, share, penalty, 24)
    start = random_orthogonal(24, np.random.default_rng(seed), determinant=-1 if seed % 2 else 1)
    result = minimize(objective, start, max_iter=12)
    assert objective.method[0] == "leaps"
    assert np.all(np.diff(result.trace.value) >= -1e-12 * objective.scale * abs(objective.factor))
    assert result.determinant == determinant(start)
    assert result.orthogonality < 1e-12


def test_leaps_find_more_than_rotations_alone_on_most_starts():
    better = []
    for seed in range(6):
        objective = problem(1, 0.3, "l1", samples=40, features=2000)
        start = random_orthogonal(40, np.random.default_rng(seed))
        leaping = minimize(objective, start, tol=3e-5).value
        plain = minimize(objective, start, tol=3e-5, method=objective.method[1]).value
        better.append(leaping >= plain * (1 - 1e-9))
    assert sum(better) >= 4


def test_one_thread_and_two_give_the_same_bits():
    objective = problem(3, 0.2, "l1", samples=40, features=3000)
    start = random_orthogonal(40, np.random.default_rng(0))
    one, two = (minimize(objective, start, max_iter=6, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.U, two.U)
    assert one.trace.value == two.trace.value


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_run_interrupted_among_its_leaps_ends_in_the_same_bits(tmp_path, every):
    objective = problem(4, 0.2, "l1", samples=40, features=2000)
    start = random_orthogonal(40, np.random.default_rng(0))
    whole = minimize(objective, start, max_iter=9, checkpoint=Checkpoint(tmp_path / "whole", every))
    place = Checkpoint(tmp_path / "part", every)
    minimize(objective, start, max_iter=3, checkpoint=place)
    resumed = minimize(objective, start, max_iter=9, checkpoint=place)
    assert np.array_equal(whole.U, resumed.U)
    assert whole.trace.value == resumed.trace.value


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**500])
def test_the_size_of_the_data_changes_nothing(factor):
    A = modules(5)
    level = 0.3 * np.sqrt(np.max(np.sum(A**2, axis=1)))
    plain = minimize(SparseColumns(A, level), max_iter=6)
    scaled = minimize(SparseColumns(A * factor, level * factor), max_iter=6)
    assert np.array_equal(plain.U, scaled.U)


def test_where_nothing_exceeds_the_threshold_there_is_no_leap():
    A = modules(6)
    objective = SparseColumns(A, 2 * np.sqrt(np.max(np.sum(A**2, axis=1))))
    assert objective.propose(objective.state(np.eye(24)), None, True) is None
    result = minimize(objective)
    assert result.converged
    assert result.value == 0.0


def test_leaps_from_an_optimum_do_not_spoil_it():
    objective = problem(7, 0.3, "l1")
    best = minimize(objective, max_iter=500)
    again = minimize(objective, best.U)
    assert again.value >= best.value * (1 - 1e-12)


class Astray(SparseColumns):
    """Its leaps lead anywhere."""

    asked = 0

    def propose(self, state, memory, first):
        self.asked += 1
        return random_orthogonal(self.n, np.random.default_rng(self.asked), determinant=1), None


def test_the_loop_takes_back_a_leap_that_loses():
    A = modules(8)
    objective = Astray(A, 0.3 * np.sqrt(np.max(np.sum(A**2, axis=1))))
    start = minimize(SparseColumns(A, objective.gamma)).U
    result = minimize(objective, start, max_iter=3)
    assert objective.asked == 2  # as a first leap and as a later one, and no more
    assert np.all(np.diff(result.trace.value) >= -1e-12 * objective.scale * abs(objective.factor))
    assert result.orthogonality < 1e-12


def test_the_phase_says_that_nothing_is_proposed():
    A = modules(8)
    run = SimpleNamespace(objective=Columns(A, "varimax"), state=None, settle=lambda: None)
    ending = Leaps().advance(run)
    assert ending.stop is Stop.LACKING
    assert "proposes no leaps" in ending.text
