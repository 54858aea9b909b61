"""The memory of descent beside dense BFGS, which keeps whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from givens import minimize
from givens.objectives import Function
from givens.rotations import orthogonality, random_orthogonal
from givens.solve.quasi_newton import Memory


def pairs(rng, size, number):
    """Steps, and the changes of the slopes of a quadratic function of them."""
    A = rng.standard_normal((size, size))
    hessian = A @ A.T + 0.1 * np.eye(size)
    return [(step, hessian @ step) for step in rng.standard_normal((number, size))]


def dense(steps, weights):
    """The inverse Hessian by the product form of BFGS."""
    H = np.diag(weights)
    for s, y in steps:
        V = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        H = V @ H @ V.T + np.outer(s, s) / (s @ y)
    return H


def learned(steps):
    """The weights: the diagonal of dense BFGS for the Hessian, begun anew from a diagonal matrix with every pair."""
    s, y = steps[0]
    weights = np.full(len(s), (s @ y) / (y @ y))
    for s, y in steps:
        B = np.diag(1 / weights)
        B = B + np.outer(y, y) / (s @ y) - B @ np.outer(s, s) @ B / (s @ B @ s)
        weights = 1 / np.diag(B)
        weights *= (s @ y) / (y @ (weights * y))
    return weights


@pytest.mark.parametrize("number", [1, 4, 5, 6, 17])
@pytest.mark.parametrize("given", [False, True])
def test_it_is_dense_bfgs_of_the_last_steps(rng, number, given):
    size, most = 9, 5
    steps = pairs(rng, size, number)
    memory = Memory(size, most)
    assert all(memory.add(*pair) for pair in steps)
    assert len(memory) == min(number, most)
    weights = rng.uniform(0.1, 2.0, size) if given else learned(steps)
    g = rng.standard_normal(size)
    found = memory.solve(g, weights if given else None)
    np.testing.assert_allclose(found, dense(steps[-most:], weights) @ g, rtol=1e-8)


def test_weights_become_those_of_a_diagonal_hessian(rng):
    curvatures = np.logspace(-2, 3, 12)
    memory = Memory(12, 3)
    for step in rng.standard_normal((400, 12)):
        memory.add(step, curvatures * step)
    # Those of five decades: the largest are known, and the smallest hardly show in random steps.
    np.testing.assert_allclose(memory.weights[-5:] * curvatures[-5:], 1.0, rtol=0.05)
    assert np.ptp(np.log10(memory.weights * curvatures)) < 2.5


def test_curvature_that_is_not_positive_teaches_nothing(rng):
    step, change = pairs(rng, 6, 1)[0]
    memory = Memory(6, 4)
    assert memory.add(step, change)
    before = memory.weights.copy()
    for bad in (-change, np.zeros(6), np.full(6, np.nan)):
        assert not memory.add(step, bad)
    assert len(memory) == 1
    assert np.array_equal(memory.weights, before)
    memory.clear()
    np.testing.assert_array_equal(memory.solve(step, 0.5), 0.5 * step)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_unit_of_the_slopes_only_scales_the_step(rng, scale):
    steps, g = pairs(rng, 7, 6), rng.standard_normal(7)
    memory, other = Memory(7, 4), Memory(7, 4)
    for s, y in steps:
        memory.add(s, y)
        other.add(s, scale * y)
    np.testing.assert_allclose(other.solve(scale * g), memory.solve(g), rtol=1e-9)


@pytest.mark.parametrize("number", [0, 3, 9])
def test_it_is_restored_to_the_bit(rng, number):
    memory, again = Memory(6, 4), Memory(6, 4)
    for pair in pairs(rng, 6, number):
        memory.add(*pair)
    again.restore(memory.arrays())
    for pair in pairs(rng, 6, 3):
        g = rng.standard_normal(6)
        assert np.array_equal(memory.solve(g), again.solve(g))
        memory.add(*pair)
        again.add(*pair)


def test_curvatures_of_very_different_sizes_do_not_slow_a_descent(rng):
    """Brockett's function: the eigenvectors of CᵀC in the order of the weights."""
    n = 24
    C = rng.standard_normal((3 * n, n)) * np.logspace(0, 1, n)
    weights = np.logspace(2, 0, n)

    def f(U):
        Y = C @ U
        return float(np.sum(Y**2 * weights)), 2 * C.T @ (Y * weights)

    problem = Function(f, n, jac=True)
    start = random_orthogonal(n, rng, determinant=1)
    found = minimize(problem, start, tol=1e-10, method="descent")
    assert found.converged
    assert orthogonality(found.U) < 1e-12
    values = np.linalg.eigvalsh(C.T @ C)
    assert np.isclose(found.value, np.sort(values) @ np.sort(weights)[::-1], rtol=1e-9)
    assert found.steps < 300
