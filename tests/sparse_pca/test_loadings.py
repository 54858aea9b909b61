"""Refitting on a pattern, and counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.metrics import adjusted_from_scores
from givens.numerics.polar import polar
from givens.sparse_pca.loadings import keep_largest, order_and_sign, refit, unit_rows


def adjusted(X, Z):
    E = X @ Z.T
    return adjusted_from_scores(E[:, np.argsort(-np.linalg.norm(E, axis=0))]).sum()


@given(seed=st.integers(0, 1000))
def test_refitting_never_lowers_the_adjusted_variance(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 30))
    Z = unit_rows(rng.standard_normal((4, 30)) * (rng.uniform(size=(4, 30)) < 0.2))
    refitted = refit(X, Z)
    assert adjusted(X, refitted) >= adjusted(X, Z) * (1 - 1e-12)
    assert np.all((refitted != 0) <= (Z != 0))
    some = Z.any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(refitted[some], axis=1), 1.0)


@pytest.mark.parametrize("m", [1, 3, 6])
def test_refitted_without_a_zero_any_basis_of_the_principal_subspace_becomes_principal_components(rng, m):
    X = rng.standard_normal((25, 12)) * 1.5 ** -np.arange(12)
    Vt = np.linalg.svd(X)[2][:m]
    turned = polar(rng.standard_normal((m, m))) @ Vt
    refitted = refit(X, turned, tol=1e-15, max_iter=3000)
    assert adjusted(X, refitted) == pytest.approx(adjusted(X, Vt), rel=1e-6)


def test_one_component_refitted_is_the_best_on_its_pattern(rng):
    X = rng.standard_normal((20, 10))
    pattern = np.zeros((1, 10), dtype=bool)
    pattern[0, [1, 4, 7]] = True
    Z = refit(X, unit_rows(np.where(pattern, 1.0, 0.0)), tol=1e-14, max_iter=2000)
    best = np.linalg.eigvalsh(X[:, [1, 4, 7]].T @ X[:, [1, 4, 7]])[-1]
    np.testing.assert_allclose(np.sum((X @ Z[0]) ** 2), best, rtol=1e-6)


def test_rows_of_zeros_stay_zero(rng):
    Z = np.zeros((2, 5))
    Z[0, 2] = 1.0
    refitted = refit(rng.standard_normal((6, 5)), Z)
    np.testing.assert_allclose(np.abs(refitted), Z)
    assert not refit(rng.standard_normal((6, 5)), np.zeros((2, 5))).any()
    assert not unit_rows(np.zeros((2, 3))).any()


def test_unit_rows_bear_any_size():
    Z = unit_rows(np.array([[3e200, 4e200], [3e-200, 4e-200]]))
    np.testing.assert_allclose(Z, [[0.6, 0.8], [0.6, 0.8]])


def test_order_and_signs(rng):
    Z = np.array([[0.0, -1.0], [1.0, 0.0]])
    ordered, order = order_and_sign(Z, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(order, [1, 0])
    np.testing.assert_array_equal(ordered, [[1.0, 0.0], [0.0, 1.0]])
    kept, _ = order_and_sign(Z, np.array([1.0, 2.0]), keep_order=True)
    np.testing.assert_array_equal(kept, [[0.0, 1.0], [1.0, 0.0]])


def test_counts(rng):
    Y = rng.standard_normal((3, 20))
    pattern = keep_largest(Y, [1, 5, 30])
    np.testing.assert_array_equal(pattern.sum(axis=1), [1, 5, 20])
    assert np.abs(Y[1][pattern[1]]).min() >= np.abs(Y[1][~pattern[1]]).max()
    Q = polar(rng.standard_normal((5, 3)))
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)


def test_no_zero_is_negative_after_the_signs_are_set():
    Z, _ = order_and_sign(np.array([[0.0, -1.0, 0.5], [0.0, 2.0, -0.0]]), np.array([2.0, 1.0]))
    assert np.array_equal(Z, [[0.0, 1.0, -0.5], [0.0, 2.0, 0.0]])
    assert not np.signbit(Z[Z == 0]).any()
