"""Descent: quasi-Newton steps of all columns at once."""

from __future__ import annotations

import numpy as np
import pytest

from givens import minimize
from givens.objectives import Function
from givens.rotations import random_orthogonal
from tests.cases import CASES

N = 6
SMOOTH = [name for name in CASES if not name.startswith("sparse")]


@pytest.mark.parametrize("case", SMOOTH)
def test_descent_ends_where_sweeps_find_no_slope(case):
    objective = CASES[case](2)
    result = minimize(objective, random_state=0, method="descent", certify=False)
    assert result.converged, result.message
    size = objective.scale * abs(objective.factor)
    assert result.gradient_norm <= 1e-8 * size
    assert result.orthogonality <= 1e-13
    assert set(result.trace.phase[1:]) == {"descent"}
    values = np.sign(objective.factor) * np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values).max())
    # A sweep from there, each pair exact, confirms that small angles gain nothing.
    again = minimize(CASES[case](2), result.U, method="tournament", max_iter=1)
    assert again.trace.gradient_norm[0] <= 1e-7 * size or np.isnan(again.trace.gradient_norm[0])


def brockett(n, with_jac):
    """Σ j (UᵀAU)_jj: its minimum sorts the eigenvalues of A."""
    A, weights = np.diag(np.arange(1.0, n + 1)), np.arange(1.0, n + 1)

    def f(U):
        return float(np.sum(np.diag(U.T @ A @ U) * weights))

    best = float(np.sum(np.arange(1.0, n + 1)[::-1] * weights))
    return Function(f, n, jac=(lambda U: 2 * A @ U * weights) if with_jac else None), best


@pytest.mark.parametrize("with_jac", [True, False])
def test_a_start_without_slopes_is_left(with_jac):
    """The identity is the maximum: every slope vanishes."""
    f, best = brockett(4, with_jac)
    result = minimize(f, np.eye(4))
    assert result.trace.gradient_norm[0] == pytest.approx(0, abs=1e-7)
    assert result.value == pytest.approx(best, rel=1e-12)
    assert result.converged


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_orders(n):
    M = np.arange(1.0, 1 + n * n).reshape(n, n)
    result = minimize(
        lambda U: -float(np.sum(U * M)), n=n, jac=lambda U: -M, determinant="both", random_state=0
    )
    assert -result.value == pytest.approx(np.linalg.svd(M)[1].sum(), rel=1e-12)


def test_order_150_from_slopes_alone():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((150, 150))
    result = minimize(lambda U: -float(np.sum(U * M)), n=150, jac=lambda U: -M, determinant="both", tol=1e-6)
    assert result.converged
    assert result.orthogonality < 1e-11
    assert -result.value == pytest.approx(np.linalg.svd(M)[1].sum(), rel=1e-9)


@pytest.mark.parametrize("phase", ["descent", "sweeps"])
@pytest.mark.parametrize("where", ["f", "jac"])
def test_a_run_that_meets_nan_keeps_its_last_good_matrix(phase, where):
    A = np.random.default_rng(1).standard_normal((10, 4))
    calls = [0]

    def trouble(which):
        calls[0] += which == where
        return np.nan if calls[0] == (60 if phase == "sweeps" else 14) and which == where else 1.0

    def f(U):
        return float(np.sum(np.log(np.cosh(A @ U)))) * trouble("f")

    def jac(U):
        return A.T @ np.tanh(A @ U) * trouble("jac")

    result = minimize(f, n=4, jac=jac, method=phase, random_state=0)
    if phase == "sweeps" and where == "jac":
        # One gradient a sweep: the run had converged before the trouble.
        assert result.converged or "jac must be finite" in result.message
        return
    assert not result.converged
    assert result.message.startswith(f"stopped in step {result.steps + 1}, of the phase {phase!r}: ")
    assert "finite" in result.message
    assert result.orthogonality < 1e-13
    good = float(np.sum(np.log(np.cosh(A @ result.U))))
    assert good <= result.trace.value[0]
    if phase == "descent":
        assert good == pytest.approx(result.value, rel=1e-13)


def test_a_gradient_that_disagrees_with_f_is_refused():
    A = np.random.default_rng(1).standard_normal((10, 4))

    def f(U):
        return float(np.sum((A @ U) ** 4))

    for wrong in (
        lambda U: 3 * A.T @ (A @ U) ** 3,
        lambda U: (4 * A.T @ (A @ U) ** 3).T,
        lambda U: -4 * A.T @ (A @ U) ** 3,
    ):
        with pytest.raises(ValueError, match="jac disagrees with f: along one direction the slope is"):
            minimize(f, n=4, jac=wrong, random_state=0)
    unchecked = Function(f, 4, jac=lambda U: 3 * A.T @ (A @ U) ** 3, check=False)
    assert minimize(unchecked, random_state=0, max_iter=2).steps == 2
    right = minimize(f, n=4, jac=lambda U: 4 * A.T @ (A @ U) ** 3, random_state=0)
    both = minimize(lambda U: (f(U), 4 * A.T @ (A @ U) ** 3), n=4, jac=True, random_state=0)
    assert np.array_equal(right.U, both.U)
    with pytest.raises(TypeError, match="with jac=True f must return the value and the gradient"):
        minimize(f, n=4, jac=True)
    with pytest.raises(TypeError, match="jac must be a function of U, or True"):
        minimize(f, n=4, jac=3)
    with pytest.raises(ValueError, match="jac belongs to a plain function"):
        minimize(CASES["varimax"](0), jac=True)


def test_a_kinked_function_is_finished_by_sweeps():
    """|·| has kinks at its minima, where differences are no slopes; the best U is a signed permutation."""
    result = minimize(lambda U: float(np.sum(np.abs(U))), n=3, random_state=1)
    assert result.converged
    assert result.value == pytest.approx(3.0, abs=1e-9)


def test_directions_flatter_than_all_steps_are_found():
    """One curvature of 1e11 beside others of 1: the steps along the first say nothing of the others."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((6, 6))
        A += A.T
        stiff = A + 1e10 * np.diag([1.0, 0, 0, 0, 0, 0])
        for m in (1, 6):
            first = np.eye(m)[0]
            result = minimize(
                lambda V, A=A: V[:, 0] @ A @ V[:, 0] + 1e10 * V[0, 0] ** 2,
                n=(6, m),
                jac=lambda V, stiff=stiff, first=first: 2 * (stiff @ V) * first,
                random_state=seed,
            )
            assert result.converged
            assert result.value == pytest.approx(np.linalg.eigvalsh(stiff)[0], abs=1e-6)


@pytest.mark.parametrize("m", [1, 4])
def test_kinks_are_not_called_converged(m):
    M = np.random.default_rng(2).standard_normal((20, 5))
    result = minimize(
        lambda V: np.abs(M @ V).sum(), n=(5, m), jac=lambda V: M.T @ np.sign(M @ V), random_state=0
    )
    assert not result.converged
    assert "no step of the phase 'descent' lowers f any more" in result.message


@pytest.mark.parametrize("n", [3, 10, 40])
def test_a_function_that_is_constant_but_for_rounding_ends_at_once(n):
    B = np.random.default_rng(0).standard_normal((n, n))
    B += B.T
    result = minimize(lambda U: np.trace(U.T @ B @ U), n=n, jac=lambda U: 2 * B @ U, random_state=0)
    assert result.converged
    assert result.steps <= 2
    assert result.gradient_norm < 1e-12


@pytest.mark.parametrize(("n", "m"), [(8, 8), (30, 4)])
def test_an_exact_fit_is_converged_though_its_gradient_vanishes(n, m):
    rng = np.random.default_rng(n)
    A, V = rng.standard_normal((2 * n, n)), random_orthogonal(n, rng, columns=m)
    B = A @ V
    result = minimize(
        lambda U: np.sum((A @ U - B) ** 2),
        n=(n, m),
        jac=lambda U: 2 * A.T @ (A @ U - B),
        determinant="both" if m == n else None,
        random_state=1,
    )
    assert result.converged
    assert result.value < 1e-12
    assert result.evaluations < 120


@pytest.mark.parametrize("jac", [None, lambda v: np.eye(3)[:, :1]])
def test_a_start_at_the_maximum_is_left(jac):
    result = minimize(lambda v: v[0, 0], np.eye(3)[:, :1], jac=jac)
    assert result.value == pytest.approx(-1.0, abs=1e-12)
    assert result.converged


@pytest.mark.parametrize(("n", "m"), [(30, 4), (6, 1)])
def test_a_killed_run_that_began_anew_ends_in_the_same_bits(n, m, tmp_path):
    """An exact fit, whose gradient vanishes with the slopes: descent begins anew at its end, but once only."""
    rng = np.random.default_rng(n)
    A, start = rng.standard_normal((2 * n, n)), random_orthogonal(n, 1, columns=m)
    B = A @ random_orthogonal(n, rng, columns=m)

    def f(V):
        return np.sum((A @ V - B) ** 2), 2 * A.T @ (A @ V - B)

    whole = minimize(f, start, jac=True, checkpoint=tmp_path / "whole.npz")
    for last in range(whole.steps - 3, whole.steps + 1):
        path = tmp_path / f"{last}.npz"
        minimize(
            f, start, jac=True, checkpoint=path, callback=lambda snapshot, last=last: snapshot.step == last
        )
        resumed = minimize(f, start, jac=True, checkpoint=path)
        assert resumed.trace.value == whole.trace.value
        assert np.array_equal(resumed.U, whole.U)
