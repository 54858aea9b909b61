"""The second derivatives of columns that a descent learns: right where f is quadratic, and of no use to others."""

from __future__ import annotations

import numpy as np
import pytest

from givens import minimize
from givens.checkpoint import Checkpoint
from givens.kernels import column_model as compiled
from givens.numerics.cayley import turned
from givens.objectives import Function
from givens.objectives.base import Look
from givens.phases.column_model import ColumnModel
from givens.rotations import orthogonality, random_orthogonal


def quadratic(n, rng):
    """½ Σ u_j·B_j u_j + ⟨C, U⟩ with its gradient, and the B_j."""
    B = rng.standard_normal((n, n, n))
    B += B.transpose(0, 2, 1)
    C = rng.standard_normal((n, n))

    def f(U):
        bent = np.einsum("jab,bj->aj", B, U)
        return 0.5 * float(np.sum(U * bent)) + float(np.sum(C * U)), bent + C

    return f, B


def coupled(U):
    """No sum over columns."""
    A = np.arange(36.0).reshape(6, 6) / 36
    inner = U @ A @ U.T
    return float(np.sum(inner**2)), 2 * (inner @ U @ A.T + inner.T @ U @ A)


def looks(before, after):
    """The looks at the two ends of a step, with these gradients."""
    return Look(0.0, gradient=before), Look(0.0, gradient=after)


def test_matrices_take_every_step_to_the_change_of_the_gradient(rng):
    n = 6
    f, B = quadratic(n, rng)
    model = ColumnModel(n)
    for _ in range(60):
        U, V = random_orthogonal(n, rng), random_orthogonal(n, rng)
        move, change = (V - U).T.copy(), f(V)[1] - f(U)[1]
        model.learn(move, *looks(f(U)[1], f(V)[1]))
        assert np.allclose(np.einsum("jab,jb->ja", model.matrices, move), change.T, atol=1e-6)
        assert np.allclose(model.matrices, model.matrices.transpose(0, 2, 1), atol=1e-6)
    assert np.allclose(model.matrices, B, atol=1e-4)


@pytest.mark.parametrize("radius", [1e-3, 10.0])
def test_a_step_is_the_minimum_of_the_quadratic_function(rng, radius):
    n = 5
    U = random_orthogonal(n, rng, determinant=1)
    f, B = quadratic(n, rng)
    B[:] += 40 * np.eye(n)
    E = f(U)[1] - 40 * U  # small slopes, and a large positive curvature
    K, promised, bounded, _ = compiled.bounded_step(B, U.T.copy(), E, radius, 1e-12, 500)
    assert np.allclose(K, -K.T)

    def model(K):
        X, M = U @ K, U.T @ E
        return np.sum(M * K) + 0.5 * np.einsum("aj,jab,bj->", X, B, X) + 0.5 * np.sum(M * (K @ K))

    assert np.isclose(promised, -model(K), rtol=1e-9)
    length = np.sqrt(0.5 * np.sum(K * K))
    assert bounded == (radius < 1)
    assert np.isclose(length, radius) if bounded else length < radius
    if not bounded:
        for _ in range(20):
            other = rng.standard_normal((n, n))
            assert model(K + 1e-3 * (other - other.T)) > model(K)


def test_the_quadratic_function_is_that_of_f_along_rotations(rng):
    n = 5
    f, B = quadratic(n, rng)
    U = random_orthogonal(n, rng, determinant=1)
    K, promised, _, _ = compiled.bounded_step(B, U.T.copy(), f(U)[1], 1e-3, 1e-12, 500)
    fall = f(U)[0] - f(turned(U, K))[0]
    assert promised > 0
    assert np.isclose(fall, promised, rtol=1e-2)


@pytest.mark.parametrize("n", [3, 4, 9, 10])
def test_sums_over_columns_are_told_from_others(rng, n):
    f, _ = quadratic(n, rng)
    assert Function(f, n, jac=True).by_columns
    assert not Function(coupled, 6, jac=True).by_columns


def test_fewer_steps_are_needed_than_without_and_they_end_as_low(rng):
    n = 9
    f, _ = quadratic(n, rng)
    starts = [random_orthogonal(n, rng, determinant=1) for _ in range(5)]
    steps, values = {}, {}
    for known in (True, False):
        problem = Function(f, n, jac=True)
        problem.by_columns = known
        found = [minimize(problem, start, tol=1e-24, phases=("descent",)) for start in starts]
        assert all(result.converged and orthogonality(result.U) < 1e-12 for result in found)
        steps[known] = sum(result.steps for result in found)
        values[known] = np.mean([result.value for result in found])
    assert steps[True] < 0.7 * steps[False]
    assert values[True] <= values[False] + 0.05 * abs(values[False])


def test_values_never_rise(rng):
    f, _ = quadratic(8, rng)
    trace = minimize(f, n=8, jac=True, random_state=0).trace
    rise = np.diff(np.array(trace.value))
    assert rise.max() <= 1e-12 * np.abs(trace.value).max()


def test_what_was_learned_is_restored_to_the_bit(rng):
    n = 5
    f, _ = quadratic(n, rng)
    model, again = ColumnModel(n), ColumnModel(n)
    U, V = random_orthogonal(n, rng), random_orthogonal(n, rng)
    model.learn((V - U).T.copy(), *looks(f(U)[1], f(V)[1]))
    again.restore(model.arrays())
    assert np.array_equal(model.matrices, again.matrices)
    assert (again.steps, again.radius) == (model.steps, model.radius)


def test_gradients_that_are_not_finite_teach_nothing(rng):
    n = 4
    model, nothing, infinite = ColumnModel(n), np.zeros((n, n)), np.full((n, n), np.inf)
    model.learn(rng.standard_normal((n, n)), *looks(nothing, rng.standard_normal((n, n))))
    before = model.matrices.copy()
    model.learn(rng.standard_normal((n, n)), *looks(nothing, infinite))
    assert np.array_equal(model.matrices, before)
    first = ColumnModel(n)
    first.learn(rng.standard_normal((n, n)), *looks(nothing, infinite))
    assert not first.matrices.any()


def test_a_run_that_was_interrupted_ends_in_the_same_bits(rng, tmp_path):
    f, _ = quadratic(8, rng)
    problem = Function(f, 8, jac=True)
    start = random_orthogonal(8, rng, determinant=1)
    whole = minimize(problem, start, checkpoint=Checkpoint(tmp_path / "a", every=5))
    minimize(problem, start, checkpoint=Checkpoint(tmp_path / "b", every=5), max_steps=20)
    rest = minimize(problem, start, checkpoint=Checkpoint(tmp_path / "b", every=5))
    assert np.array_equal(whole.U, rest.U)
    assert whole.trace.value == rest.trace.value
