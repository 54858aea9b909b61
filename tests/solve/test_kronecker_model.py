"""The second derivatives of quadratic functions that a descent learns as a product of two matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from givens import minimize
from givens.objectives import Function
from givens.objectives.base import Look
from givens.rotations import orthogonality, random_orthogonal
from givens.solve import trust_region
from givens.solve.checkpoint import Checkpoint
from givens.solve.kronecker_model import KEPT_STEPS, KroneckerModel
from givens.solve.trust_region import Truncated


def weighted(n, rng, spread=1.0):
    """‖AUB − C‖² with its gradient, and AᵀA and BBᵀ."""
    A = rng.standard_normal((2 * n, n)) * np.logspace(0, spread, n)
    B, C = rng.standard_normal((n, n)), 5 * rng.standard_normal((2 * n, n))

    def f(U):
        left = A @ U @ B - C
        return float(np.sum(left**2)), 2 * A.T @ left @ B.T

    return f, A.T @ A, B @ B.T


def look(f, U):
    value, E = f(U)
    return Look(value, E.T @ U - U.T @ E, gradient=E)


def near(U, rng, size=0.3):
    K = rng.standard_normal(U.shape)
    return U @ expm(size / np.abs(K).max() * (K - K.T))


def teach(model, f, U, rng, steps):
    for _ in range(steps):
        V = near(U, rng)
        model.learn((V - U).T, look(f, U), look(f, V))
        U = V
    return U


def test_the_two_matrices_are_found(rng):
    n = 6
    f, H, R = weighted(n, rng)
    model = KroneckerModel(n)
    teach(model, f, random_orthogonal(n, rng), rng, 200)
    assert model.error < 1e-5
    # Only their product is known.
    np.testing.assert_allclose(np.kron(model.H, model.R), 2 * np.kron(H, R), atol=1e-4 * np.linalg.norm(H))
    for matrix in (model.H, model.R):
        np.testing.assert_array_equal(matrix, matrix.T)


def test_one_step_tells_all_where_the_columns_have_common_second_derivatives(rng):
    n = 8
    A, B = rng.standard_normal((2, 20, n))

    def f(U):
        return float(np.sum((A @ U - B) ** 2)), 2 * A.T @ (A @ U - B)

    model = KroneckerModel(n)
    teach(model, f, random_orthogonal(n, rng), rng, 2)
    assert model.error < 1e-9
    np.testing.assert_allclose(model.H, 2 * A.T @ A, atol=1e-7)


def test_a_step_is_the_minimum_of_the_second_order_expansion_of_f(rng, monkeypatch):
    monkeypatch.setattr(trust_region, "LEFT", 1e-20)
    n = 5
    f, H, R = weighted(n, rng)
    model = KroneckerModel(n)
    model.H, model.R, model.error = 2 * H, R, 0.0
    U = minimize(f, n=n, jac=True, random_state=0).U
    U = near(U, rng, 1e-4)
    here = look(f, U)
    step = model.minimum(np.ascontiguousarray(U.T), here)
    assert not step.bounded
    np.testing.assert_allclose(step.step, -step.step.T, atol=1e-14)
    # Of the expansion by differences of f: its value at the step, and no slope there.
    fall = here.value - f(U @ expm(step.step))[0]
    assert fall == pytest.approx(step.promised, rel=1e-3)
    after = look(f, U @ expm(step.step))
    assert np.linalg.norm(after.slopes) < 1e-3 * np.linalg.norm(here.slopes)


def test_conjugate_gradients_stop_at_the_radius_and_at_negative_curvature(rng, monkeypatch):
    monkeypatch.setattr(trust_region, "LEFT", 1e-20)
    n = 6
    slopes = rng.standard_normal((n, n))
    slopes -= slopes.T
    ones = np.ones((n, n))
    inside = Truncated(lambda K: 4 * K, ones).minimum(slopes, 10.0)
    np.testing.assert_allclose(inside.step, slopes / 4)  # K_ji is the angle of the pair (i, j)
    assert not inside.bounded
    assert inside.promised == pytest.approx(np.vdot(slopes, slopes) / 16)
    for bend in (4.0, -4.0):
        found = Truncated(lambda K, bend=bend: bend * K, ones).minimum(slopes, 1e-3)
        assert found.bounded
        assert np.abs(found.step).max() == pytest.approx(1e-3)


@pytest.mark.parametrize("n", [3, 21, 45])
def test_weighted_procrustes_problems_take_few_evaluations(rng, n):
    f, _, _ = weighted(n, rng)
    calls = []

    def counted(U):
        calls.append(1)
        return f(U)

    problem = Function(counted, n, jac=True)
    for _ in range(3):
        calls.clear()
        found = minimize(problem, random_orthogonal(n, rng, determinant=1), tol=1e-12, method="descent")
        assert found.converged
        assert len(calls) < 100
        assert orthogonality(found.U) < 1e-12
        assert np.diff(found.trace.value).max() <= 1e-12 * abs(found.trace.value[0])


def test_a_run_ends_at_the_rounding_errors_of_a_badly_scaled_function(rng):
    n = 30
    f, _, _ = weighted(n, rng, spread=3.0)
    found = minimize(
        f,
        random_orthogonal(n, rng, determinant=1),
        jac=True,
        tol=1e-13,
        method="descent",
    )
    assert found.converged
    assert "rounding" in found.message
    assert found.steps < 1000  # without the rule, ten times as many


def test_a_procrustes_problem_ends_at_its_closed_form(rng):
    n = 50
    A, B = rng.standard_normal((2, 120, n))
    left, _, right = np.linalg.svd(A.T @ B)
    exact = np.sum((A @ left @ right - B) ** 2)
    found = minimize(
        lambda U: (float(np.sum((A @ U - B) ** 2)), 2 * A.T @ (A @ U - B)),
        n=n,
        jac=True,
        determinant="both",
        random_state=0,
        method="descent",
    )
    # The second determinant's run ends elsewhere; the better one is the closed form.
    assert found.value == pytest.approx(exact, rel=1e-12)


def test_a_function_may_return_the_same_array_every_time(rng):
    n = 24
    f, _, _ = weighted(n, rng)
    start = random_orthogonal(n, rng, determinant=1)
    E = np.empty((n, n))

    def reusing(U):
        value, E[:] = f(U)
        return value, E

    again = minimize(reusing, start, jac=True, method="descent")
    assert again.trace.value == minimize(f, start, jac=True, method="descent").trace.value


def test_functions_that_are_not_quadratic_are_told_at_the_first_step(rng):
    n = 6
    A = rng.standard_normal((20, n))

    def quartic(U):
        Y = A @ U
        return float(np.sum(Y**4)), 4 * A.T @ Y**3

    model = KroneckerModel(n)
    U = random_orthogonal(n, rng)
    V = near(U, rng)
    model.learn((V - U).T, look(quartic, U), look(quartic, V))
    assert model.dropped
    assert model.propose(V.T, look(quartic, V)) is None


def test_a_quadratic_function_that_is_no_product_is_given_up_and_minimised_all_the_same(rng):
    n = 24
    B = rng.standard_normal((n, n, n))
    B += B.transpose(0, 2, 1)

    def f(U):
        bent = np.einsum("jab,bj->aj", B, U)
        return 0.5 * float(np.sum(U * bent)), bent

    model = KroneckerModel(n)
    teach(model, f, random_orthogonal(n, rng), rng, 40)
    assert model.dropped
    problem = Function(f, n, jac=True)
    found = minimize(problem, random_orthogonal(n, rng, determinant=1), method="descent")
    assert found.converged


def test_gradients_that_are_not_finite_or_do_not_change_teach_nothing(rng):
    n = 4
    U, V = random_orthogonal(n, rng), random_orthogonal(n, rng)
    constant = Look(1.0, gradient=np.ones((n, n)))
    model = KroneckerModel(n)
    model.learn((U - U).T, constant, constant)
    assert (model.steps, model.dropped) == (0, False)
    for wrong in (np.full((n, n), np.inf), np.full((n, n), np.nan), np.full((n, n), 1e200)):
        model = KroneckerModel(n)
        with np.errstate(invalid="ignore", over="ignore"):
            model.learn((V - U).T, constant, Look(1.0, gradient=wrong))
        assert model.dropped


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e100])
def test_the_size_of_f_does_not_matter(rng, scale):
    n = 24
    f, _, _ = weighted(n, rng)
    start = random_orthogonal(n, rng, determinant=1)
    steps = []
    for factor in (1.0, scale):
        problem = Function(lambda U, factor=factor: tuple(factor * part for part in f(U)), n, jac=True)
        steps.append(minimize(problem, start, method="descent").steps)
    assert abs(steps[0] - steps[1]) <= 0.3 * steps[0] + 3


def test_what_was_learned_is_restored_to_the_bit(rng):
    n = 5
    f, _, _ = weighted(n, rng)
    model, again = KroneckerModel(n), KroneckerModel(n)
    U = teach(model, f, random_orthogonal(n, rng), rng, KEPT_STEPS + 2)
    again.restore(model.arrays())
    for one in (model, again):
        teach(one, f, U, np.random.default_rng(0), 2)
    np.testing.assert_array_equal(model.H, again.H)
    np.testing.assert_array_equal(model.R, again.R)
    assert (model.error, model.steps, model.radius) == (again.error, again.steps, again.radius)


def test_a_run_that_was_interrupted_ends_in_the_same_bits(rng, tmp_path):
    f, _, _ = weighted(24, rng)
    problem = Function(f, 24, jac=True)
    start = random_orthogonal(24, rng, determinant=1)
    whole = minimize(problem, start, checkpoint=Checkpoint(tmp_path / "a", every=5))
    minimize(problem, start, checkpoint=Checkpoint(tmp_path / "b", every=5), max_iter=20)
    rest = minimize(problem, start, checkpoint=Checkpoint(tmp_path / "b", every=5))
    assert np.array_equal(whole.U, rest.U)
    assert whole.trace.value == rest.trace.value
