"""Explained variance of loadings that are not orthogonal, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from givens import metrics
from givens.datasets import pitprops, sparse_modules


@pytest.fixture
def X(rng):
    return rng.standard_normal((30, 8)) @ rng.standard_normal((8, 8)) + 5.0


@pytest.fixture
def Z(rng):
    Z = rng.standard_normal((3, 8)) * (rng.uniform(size=(3, 8)) < 0.6)
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def test_adjusted_variance_is_what_earlier_scores_leave(X, Z):
    Xc = X - X.mean(axis=0)
    scores = Xc @ Z.T
    expected = []
    for j in range(3):
        earlier = scores[:, :j]
        left = scores[:, j] - earlier @ np.linalg.lstsq(earlier, scores[:, j], rcond=None)[0]
        expected.append(left @ left / 29)
    np.testing.assert_allclose(metrics.adjusted_variance(X, Z), expected, rtol=1e-10)
    C = Xc.T @ Xc / 29
    np.testing.assert_allclose(metrics.adjusted_from_gram(Z @ C @ Z.T), expected, rtol=1e-8)


def test_projected_variance_is_least_squares_and_never_smaller(X, Z):
    Xc = X - X.mean(axis=0)
    fitted = Xc @ np.linalg.pinv(Z) @ Z
    projected = metrics.projected_variance(X, Z)
    assert projected == pytest.approx(np.sum(fitted**2) / 29, rel=1e-10)
    assert projected >= metrics.adjusted_variance(X, Z).sum() - 1e-12


def test_principal_components_have_their_eigenvalues(X):
    Xc = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(Xc.T @ Xc / 29)
    np.testing.assert_allclose(metrics.adjusted_variance(X, vectors.T[::-1]), values[::-1], rtol=1e-8)
    assert metrics.total_variance(X) == pytest.approx(values.sum())
    assert metrics.loading_overlap(vectors.T) < 1e-12
    assert metrics.score_correlation(X, vectors.T) < 1e-6
    assert metrics.orthogonality_defect(vectors) < 1e-12


def test_zero_and_repeated_loadings_add_nothing(X, Z):
    more = np.vstack((Z, Z[0], np.zeros(8)))
    np.testing.assert_allclose(metrics.adjusted_variance(X, more)[3:], 0.0, atol=1e-10)
    assert metrics.projected_variance(X, more) == pytest.approx(metrics.projected_variance(X, Z))
    assert metrics.loading_overlap(more) == pytest.approx(1.0)
    assert metrics.score_correlation(X, more) == pytest.approx(1.0)


def test_pitprops_has_its_published_eigenvalues_and_patterns():
    table = pitprops()
    shares = np.cumsum(np.linalg.eigvalsh(table.R)[::-1])[:6] / 13 * 100
    np.testing.assert_allclose(shares, [32.5, 50.7, 65.2, 73.7, 80.7, 87.0], atol=0.06)
    np.testing.assert_array_equal(table.R, table.R.T)


def test_planted_modules_are_what_was_asked_for():
    data = sparse_modules(50, 300, n_modules=4, module_size=12, spread=0.5, background=0.3, random_state=1)
    np.testing.assert_allclose(data.components @ data.components.T, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal((data.components != 0).sum(axis=1), 12)
    again = sparse_modules(50, 300, n_modules=4, module_size=12, spread=0.5, background=0.3, random_state=1)
    np.testing.assert_array_equal(data.X, again.X)
    with pytest.raises(ValueError, match="do not fit"):
        sparse_modules(10, 20, n_modules=3, module_size=10)


@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 1, 0, 2]])
def test_projected_variance_from_scores_alone(rng, rows):
    X = rng.standard_normal((12, 6))
    X -= X.mean(axis=0)
    Z = rng.standard_normal((3, 6))[rows]
    Z[:, 4] = 0.0
    found = metrics.projected_from_scores(X @ Z.T, Z) / 11
    assert found == pytest.approx(metrics.projected_variance(X, Z))
    assert metrics.projected_from_scores(np.zeros((12, 2)), np.zeros((2, 6))) == 0.0


def test_the_reduction_of_gaussians_is_what_the_covariance_tells():
    rng = np.random.default_rng(0)
    A = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [0.3, -0.7, 0.8]])
    X = rng.standard_normal((200_000, 3)) @ A.T
    C = A @ A.T
    expected = 0.5 * (np.log(np.diag(C)).sum() - np.linalg.slogdet(C)[1])
    assert abs(metrics.mutual_information_reduction(X, np.linalg.inv(A)) - expected) < 0.02
    assert abs(metrics.mutual_information_reduction(X, np.eye(3))) < 1e-12
    W = np.diag([3.0, -0.1, 1e-3]) @ np.linalg.inv(A)
    assert abs(metrics.mutual_information_reduction(X, W) - expected) < 0.02


LAWS = {
    "normal": stats.norm,
    "Laplace": stats.laplace,
    "t3": stats.t(3),
    "t2": stats.t(2),
    "uniform": stats.uniform,
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_entropies_are_those_of_the_distribution_also_with_heavy_tails(law, scale):
    signal = law.rvs(size=30_000, random_state=0)
    expected = float(law.entropy()) + np.log(scale)
    assert abs(metrics._entropy(scale * signal) - expected) < 0.05
    # Digitised: in steps of a tenth of the interquartile range, each of which occurs a thousand times.
    step = np.subtract(*np.quantile(signal, [0.75, 0.25])) / 10
    assert abs(metrics._entropy(scale * step * np.round(signal / step)) - expected) < 0.05


def test_the_reduction_is_refused_where_it_is_not_defined():
    X = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.raises(ValueError, match="as many components as channels"):
        metrics.mutual_information_reduction(X, np.ones((2, 3)))
    with pytest.raises(ValueError, match="singular"):
        metrics.mutual_information_reduction(X, np.ones((3, 3)))
    X[:, 1] = 4.0
    with pytest.raises(ValueError, match="constant"):
        metrics.mutual_information_reduction(X, np.eye(3))


def test_amaris_error_ignores_order_sign_and_scale():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    W = np.diag([2.0, -1.0, 0.1, 5.0]) @ np.linalg.inv(A)[[2, 0, 3, 1]]
    assert metrics.amari(W, A) < 1e-12
    assert 0.05 < metrics.amari(rng.standard_normal((4, 4)), A) <= 1
    with pytest.raises(ValueError, match="must be square"):
        metrics.amari(W[:2], A)
