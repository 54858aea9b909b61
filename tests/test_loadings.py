"""Refitting on a pattern, and counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.loadings import keep_largest, order_and_sign, polar, recount, refit, unit_rows
from givens.metrics import adjusted_variance


@given(seed=st.integers(0, 1000))
def test_refitting_never_lowers_the_trace(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 30))
    Z = unit_rows(rng.standard_normal((4, 30)) * (rng.uniform(size=(4, 30)) < 0.2))
    refitted = refit(X, Z)

    def trace(Z):
        return np.linalg.svd(X @ Z.T)[1].sum()

    assert trace(refitted) >= trace(Z) - 1e-9
    assert np.all((refitted != 0) <= (Z != 0))
    some = Z.any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(refitted[some], axis=1), 1.0)


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


@pytest.mark.parametrize("seed", range(4))
def test_recounting_never_lowers_what_the_counted_entries_hold(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(15, 60))
    X -= X.mean(axis=0)
    counts = np.array([9, 4, 1])
    V = np.linalg.svd(X, full_matrices=False)[0][:, :3]
    held = []
    Y = V.T @ X
    for _ in range(12):
        S = np.where(keep_largest(Y, counts), Y, 0.0)
        held.append(np.sum(S**2))
        Y = polar(S @ X.T) @ X
    assert np.all(np.diff(held) >= -1e-12 * held[0])
    found = recount(X, V.T @ X, counts)
    np.testing.assert_array_equal((found.Z != 0).sum(axis=1), counts)
    np.testing.assert_allclose(np.linalg.norm(found.Z, axis=1), 1.0)
    np.testing.assert_allclose(found.scores, found.Z @ X.T, atol=1e-12)
    start = unit_rows(np.where(keep_largest(V.T @ X, counts), V.T @ X, 0.0))

    def adjusted(Z):
        Z = Z[np.argsort(-np.linalg.norm(X @ Z.T, axis=0))]
        return adjusted_variance(X, Z).sum()

    assert found.explained == pytest.approx(adjusted(found.Z))
    assert adjusted(found.Z) >= adjusted(start)


def test_recounting_finds_the_best_pair_of_features_of_all():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 8)) * np.arange(1, 9)
    X -= X.mean(axis=0)
    best = max(np.linalg.norm(X[:, [i, j]], ord=2) ** 2 / 19 for i in range(8) for j in range(i + 1, 8))
    starts = np.linalg.qr(rng.standard_normal((20, 20)))[0].T
    found = max(recount(X, v[None] @ X, [2]).explained for v in starts)
    assert found == pytest.approx(best, rel=1e-6)
