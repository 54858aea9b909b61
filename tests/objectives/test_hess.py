"""Second derivatives of plain functions: products with antisymmetric matrices, checks, and minima that are nearly flat."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from givens import minimize
from givens.objectives import Function
from givens.rotations import random_orthogonal


class Problem:
    """A function with its derivatives, and how far matrices are from its minimum, in value and in entries."""

    def __init__(self, value, gradient, hess, start, gap=None, distance=None):
        self.value, self.gradient, self.hess, self.start = value, gradient, hess, start
        self.gap, self.distance = gap, distance
        self.n = len(start)

    def __call__(self, U):
        return self.value(U), self.gradient(U)


def spectrum(n, decades, rng):
    return 10.0 ** -np.linspace(0, decades, n) * rng.uniform(1, 1.3, n)


def brockett(n, decades, seed):
    """−tr(UᵀAUM), whose minimum makes the eigenvectors of A those of M; curvatures are products of two gaps of eigenvalues."""
    rng = np.random.default_rng(seed)
    Q, P = random_orthogonal(n, rng), random_orthogonal(n, rng)
    a, b = np.sort(spectrum(n, decades, rng)), np.sort(spectrum(n, decades, rng))
    A, M = (Q * a) @ Q.T, (P * b) @ P.T

    def gap(U):
        W = np.asarray(Q, np.longdouble).T @ U @ P
        return float(a @ b - a @ W**2 @ b) / (a @ b)

    return Problem(
        lambda U: -float(np.vdot(U @ M, A @ U)),
        lambda U: -2 * A @ U @ M,
        lambda U, V: -2 * A @ V @ M,
        random_orthogonal(n, rng, determinant=1),
        gap,
        lambda U: np.abs(np.abs(Q.T @ U @ P) - np.eye(n)).max(),
    )


def procrustes(n, decades, seed, angle=0.3):
    """‖AUB − C‖², which is 0 at a rotation that is at most this angle away from the start."""
    rng = np.random.default_rng(seed)
    A, B = (
        random_orthogonal(n, rng) * spectrum(n, decades, rng) @ random_orthogonal(n, rng) for _ in range(2)
    )
    planted, K = random_orthogonal(n, rng, determinant=1), rng.standard_normal((n, n))
    C = A @ planted @ B

    def gap(U):
        return float(np.sum((A @ (U - planted) @ B) ** 2) / np.sum(C**2))

    return Problem(
        lambda U: float(np.sum((A @ U @ B - C) ** 2)),
        lambda U: 2 * A.T @ (A @ U @ B - C) @ B.T,
        lambda U, V: 2 * A.T @ (A @ V @ B) @ B.T,
        planted @ expm(angle / np.abs(K - K.T).max() * (K - K.T)),
        gap,
        lambda U: np.abs(U - planted).max(),
    )


def quartic(n, seed=0, scale=1.0):
    A = np.random.default_rng(seed).standard_normal((3 * n, n))
    return Problem(
        lambda U: -scale * float(np.sum((A @ U) ** 4)),
        lambda U: -4 * scale * A.T @ (A @ U) ** 3,
        lambda U, V: -12 * scale * A.T @ ((A @ U) ** 2 * (A @ V)),
        random_orthogonal(n, seed, determinant=1),
    )


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_second_derivatives_against_differences_of_values(rng, scale):
    problem = quartic(5, scale=scale)
    function = Function(problem, 5, jac=True, hess=problem.hess)
    U, Q = random_orthogonal(5, rng), random_orthogonal(5, rng)
    product = function.second(function.state(U), Q)
    for _ in range(4):
        K = rng.standard_normal((5, 5))
        K, h = K - K.T, 1e-3
        low, here, high = (function(U @ Q @ expm(t * K)) / function.factor for t in (-h, 0.0, h))
        assert 0.5 * np.vdot(K, product(K)) == pytest.approx((low - 2 * here + high) / h**2, rel=1e-4)
    one, other = rng.standard_normal((2, 5, 5))
    one, other = one - one.T, other - other.T
    assert np.vdot(one, product(other)) == pytest.approx(np.vdot(other, product(one)), rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [brockett, procrustes])
def test_nearly_flat_minima_are_reached(make, seed):
    """Curvatures differ by 1e14, where quasi-Newton steps end far above the minimum."""
    problem = make(8, 7.0 if make is brockett else 3.5, seed)
    result = minimize(problem, problem.start, jac=True, hess=problem.hess)
    assert result.converged, result.message
    assert "Newton's next step would gain" in result.message
    assert problem.gap(result.U) <= 4e-15
    assert problem.distance(result.U) <= 1e-3
    assert result.orthogonality <= 1e-13


def test_a_saddle_point_at_the_start_is_left():
    A = np.diag([1.0, 2.0, 3.0, 4.0])

    def f(U):
        return -float(np.vdot(U @ A, A @ U)), -2 * A @ U @ A

    result = minimize(f, np.eye(4)[[1, 0, 3, 2]], jac=True, hess=lambda U, V: -2 * A @ V @ A)
    assert result.converged
    assert result.value == pytest.approx(-30.0, rel=1e-12)


def test_orders_above_32_take_conjugate_gradients():
    problem = quartic(34)
    result = minimize(problem, problem.start, jac=True, hess=problem.hess)
    assert result.converged
    assert "Newton" in result.method
    assert result.gradient_norm <= 1e-9 * abs(result.value)


def test_killed_runs_end_in_the_same_bits(tmp_path):
    problem = brockett(6, 4.0, 1)
    options = {"jac": True, "hess": problem.hess}
    whole = minimize(problem, problem.start, checkpoint=tmp_path / "whole.npz", **options)
    path, stop = tmp_path / "killed.npz", len(whole.trace.value) - 4
    minimize(
        problem, problem.start, checkpoint=path, callback=lambda snapshot: snapshot.step == stop, **options
    )
    resumed = minimize(problem, problem.start, checkpoint=path, **options)
    assert resumed.trace.value == whole.trace.value
    assert np.array_equal(resumed.U, whole.U)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"hess": lambda U, V: 12 * V, "jac": True}, ValueError, "hess disagrees with jac"),
        ({"hess": lambda U, V: 12 * V}, ValueError, "hess needs the gradient too: give jac"),
        ({"hess": 3, "jac": True}, TypeError, "hess must be a function of U and a direction"),
        ({"hess": lambda U, V: V[:2], "jac": True}, ValueError, "hess must return a matrix of shape"),
        (
            {"hess": lambda U, V: None, "jac": True},
            TypeError,
            "hess must return a matrix of 4 x 4 real numbers",
        ),
    ],
)
def test_what_is_wrong_with_hess_is_said(arguments, error, sentence):
    problem = quartic(4)
    f = problem if "jac" in arguments else problem.value
    with pytest.raises(error, match=sentence):
        minimize(f, problem.start, **arguments)


def test_few_columns_take_no_hess():
    with pytest.raises(ValueError, match="hess is for square matrices"):
        Function(lambda V: (float(V[0, 0]), np.eye(4)[:, :2]), (4, 2), jac=True, hess=lambda U, V: 0 * V)


def test_second_derivatives_that_are_not_finite_end_a_run():
    problem = quartic(4)
    result = minimize(
        Function(problem, 4, jac=True, hess=lambda U, V: np.full((4, 4), np.nan), check=False), problem.start
    )
    assert not result.converged
    assert "second derivatives must be finite" in result.message
