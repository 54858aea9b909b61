"""The one class of first and second moments, beside NumPy's formulas and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from givens.data.moments import TILE_FEATURES, Moments, moments_of
from givens.numerics import parallel

SHAPES = [(1, 3), (7, 1), (900, 4), (50, 300), (700, TILE_FEATURES + 5)]


def samples(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.3, rng.standard_normal((n, d)) + 2, 0.0)
    X[:, d // 2] = 0.1  # a constant that is no sum of powers of two
    return X


def scatter_of(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    w = np.ones(len(X)) if weights is None else weights
    centred = X - np.average(X, axis=0, weights=w)
    return (w * centred.T) @ centred


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_matrix, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_mean_and_scatter(shape, weighted, form):
    X = form(samples(*shape))
    plain = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    weights = np.random.default_rng(1).uniform(0.5, 2, shape[0]) if weighted else None
    expected = scatter_of(plain, weights)
    atol = 1e-12 * max(1.0, expected.max())
    full = moments_of(X, weights=weights)
    own = moments_of(X, weights=weights, products=False)
    for found in (full, own):
        np.testing.assert_allclose(found.mean, np.average(plain, axis=0, weights=weights), rtol=1e-13)
        assert found.count == shape[0]
    np.testing.assert_allclose(full.products(), np.triu(expected), atol=atol)
    np.testing.assert_allclose(own.scatter, np.diag(expected), atol=atol)
    # No variance is left of a constant.
    assert own.scatter[shape[1] // 2] == 0.0
    assert full.products()[shape[1] // 2, shape[1] // 2] == 0.0


def test_the_rows_of_csc_matrices_count_by_their_weights():
    X, weights = samples(40, 6), np.arange(1.0, 41)
    found = moments_of(sparse.csc_matrix(X), weights=weights, products=False)
    np.testing.assert_allclose(found.scatter, np.diag(scatter_of(X, weights)), atol=1e-11)


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_add_up(shape, products):
    X = samples(*shape)
    whole = moments_of(X, products=products)
    total = Moments(shape[1], products=products).begin(0)
    total.end()
    for part in np.array_split(X, min(4, len(X))):
        total.merge(moments_of(part, products=products))
    np.testing.assert_allclose(total.scatter, whole.scatter, atol=1e-12 * max(1.0, whole.scatter.max()))
    np.testing.assert_allclose(total.mean, whole.mean, rtol=1e-13)
    assert total.count == whole.count == shape[0]


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("shape", [(5000, 20), (3000, TILE_FEATURES + 40), (90, 4000)])
def test_any_number_of_threads_gives_the_same_bits(shape, products):
    if products and shape[1] > 2000:
        shape = (90, 900)
    X = samples(*shape)
    found = []
    for threads in (1, 2):
        with parallel.pool(threads):
            found.append(moments_of(X, products=products))
    np.testing.assert_array_equal(found[0].scatter, found[1].scatter)
    np.testing.assert_array_equal(found[0].mean, found[1].mean)


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("offset", [1e5, 1e8])
def test_large_means_cost_no_digits(offset, products):
    X = np.random.default_rng(3).standard_normal((400, 3)) + offset
    exact = []
    for column in X.T:
        values = [Fraction(float(x)) for x in column]
        mean = sum(values) / len(values)
        exact.append(float(sum((x - mean) ** 2 for x in values)))
    found = moments_of(X, products=products)
    scatter = np.diag(found.products()) if products else found.scatter
    np.testing.assert_allclose(scatter, exact, rtol=1e-12)


def test_chosen_features_alone():
    X = samples(60, 8)
    chosen = np.array([6, 1, 3])
    for products in (True, False):
        found = Moments(chosen, products=products).begin(0)
        found.add(X)
        found.end()
        expected = moments_of(X[:, chosen], products=products)
        np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-12)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)


def test_rows_that_overflow_in_their_unit_are_refused():
    found = moments_of(np.array([[1.0, 2.0], [1e200, 3.0]]))
    with pytest.raises(ValueError, match="some rows are too large beside the first"):
        found.covariance()
