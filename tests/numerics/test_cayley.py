"""Cayley's transform beside the same function of the eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from givens.numerics.cayley import turned
from givens.rotations import random_orthogonal

SIZES = [1, 2, 5, 60]


def antisymmetric(n, size, seed=0):
    """An antisymmetric matrix with entries of that size."""
    K = np.random.default_rng(seed).standard_normal((n, n))
    return size * (K - K.T)


def by_eigenvalues(K):
    """K = V diag(iλ) Vᴴ with real λ, and its transform is V diag((1 + iλ/2) / (1 − iλ/2)) Vᴴ."""
    values, V = np.linalg.eigh(-1j * K)
    transformed = (V * ((1 + 0.5j * values) / (1 - 0.5j * values))) @ V.conj().T
    assert np.abs(transformed.imag).max() < 1e-12
    return transformed.real


@pytest.mark.parametrize("size", [0.0, 1e-8, 0.1, 3.0])
@pytest.mark.parametrize("n", SIZES)
def test_it_is_the_function_of_the_eigenvalues(n, size):
    Q = random_orthogonal(n, np.random.default_rng(1))
    K = antisymmetric(n, size)
    for factor in (1.0, -0.4):
        found = turned(Q, K, factor)
        np.testing.assert_allclose(found, Q @ by_eigenvalues(factor * K), atol=1e-12)
        np.testing.assert_allclose(found.T @ found, np.eye(n), atol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_it_agrees_with_the_exponential_to_second_order(n):
    K = antisymmetric(n, 1.0)
    K /= max(float(np.linalg.norm(K)), 1.0)
    apart = [
        np.linalg.norm(turned(np.eye(n), step * K) - scipy.linalg.expm(step * K)) for step in (0.1, 0.05)
    ]
    assert apart[0] <= 0.1**3
    assert apart[1] <= apart[0] / 7 + 1e-14  # of third order, a half of the step leaves an eighth


@pytest.mark.parametrize("n", SIZES)
def test_it_reads_any_layout_and_changes_nothing(n):
    Q, K = random_orthogonal(n, np.random.default_rng(2)), antisymmetric(n, 0.2, seed=3)
    expected, before = turned(Q, K), (Q.copy(), K.copy())
    np.testing.assert_array_equal(turned(np.asfortranarray(Q), np.asfortranarray(K)), expected)
    np.testing.assert_array_equal(
        turned(np.repeat(Q, 2, axis=1)[:, ::2], np.repeat(K, 2, axis=0)[::2]), expected
    )
    np.testing.assert_array_equal(Q, before[0])
    np.testing.assert_array_equal(K, before[1])


def test_many_steps_stay_orthogonal():
    Q, K = np.eye(40), antisymmetric(40, 0.1)
    for _ in range(500):
        Q = turned(Q, K)
    np.testing.assert_allclose(Q.T @ Q, np.eye(40), atol=1e-14)
