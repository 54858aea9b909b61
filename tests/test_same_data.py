"""The same data give the same model, however large their mean is, dense or sparse, also if entries share a place."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from givens import (
    ICA,
    JADE,
    SOBI,
    FactorRotation,
    RotatedPCA,
    SparsePCA,
    SphericalMixture,
    StreamingSparsePCA,
    TopicModel,
)

MODELS = {
    "SparsePCA, threshold": SparsePCA(3, threshold=0.1),
    "SparsePCA, threshold, scaled": SparsePCA(3, threshold=0.1, scale=True),
    "SparsePCA, all components": SparsePCA(threshold=0.05),
    "SparsePCA, n_nonzero": SparsePCA(3, n_nonzero=3),
    "SparsePCA, a total": SparsePCA(3, n_nonzero=("total", 9)),
    "StreamingSparsePCA, threshold": StreamingSparsePCA(3, threshold=0.1),
    "StreamingSparsePCA, n_nonzero": StreamingSparsePCA(3, n_nonzero=3),
    "StreamingSparsePCA, scaled": StreamingSparsePCA(3, threshold=0.1, scale=True),
    "ICA": ICA(),
    "ICA, kurtosis": ICA(contrast="kurtosis"),
    "JADE": JADE(),
    "SOBI": SOBI(lags=5),
    "RotatedPCA": RotatedPCA(3),
    "RotatedPCA, scaled": RotatedPCA(3, scale=True),
    "SphericalMixture": SphericalMixture(3),
}
MEANS = {"float64": 1e8, "float32": 1e3}


def signals(seed, n=600, d=6):
    """Heavy-tailed sources with different spectra and variances, mixed."""
    rng = np.random.default_rng(seed)
    S = rng.laplace(size=(n, d))
    S[1:] += 0.6 * S[:-1] * np.linspace(-1, 1, d)
    return S * np.linspace(3, 1, d) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))


def clusters(seed, n=600, d=6):
    rng = np.random.default_rng(seed)
    return 6 * np.eye(d)[rng.integers(0, 3, n)] + rng.standard_normal((n, d))


def with_mean(X, dtype):
    """X with a mean, and the data that are then left if it is subtracted; both of one type."""
    Y = (X + MEANS[dtype] * np.linspace(0.5, 1, X.shape[1])).astype(dtype)
    mean = Y.mean(axis=0, dtype=np.longdouble)
    return Y, (Y - mean).astype(dtype), mean.astype(np.float64)


def assert_close(found, expected, dtype):
    """As close as rounding leaves numbers to which the mean was added."""
    rounding = 4 * np.finfo(dtype).eps * MEANS[dtype]
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding * np.abs(expected).max())


@pytest.mark.parametrize("dtype", MEANS)
@pytest.mark.parametrize("name", MODELS)
def test_a_large_mean_is_subtracted_before_anything_is_squared(name, dtype):
    model = MODELS[name]
    Y, centred, mean = with_mean((clusters if name == "SphericalMixture" else signals)(seed=1), dtype)
    if name == "SphericalMixture":
        expected = model.fit(centred).means_
        found = model.fit(Y).means_ - mean
        assert_close(found[np.lexsort(found.round().T)], expected[np.lexsort(expected.round().T)], dtype)
        return
    expected, scores = model.fit(centred).components_, model.transform(centred)
    assert_close(model.fit(Y).components_, expected, dtype)
    assert_close(model.transform(Y), scores, dtype)


@pytest.mark.parametrize("dtype", MEANS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rotated_components_are_those_of_a_singular_value_decomposition(dtype, form):
    """LAPACK's, of the centred data, followed by the same rotation: 48 generated problems in all."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(20, 400)), int(rng.integers(3, 9))
        m = int(rng.integers(2, d))
        Y, centred, _ = with_mean(signals(seed, n, d), dtype)
        _, sizes, axes = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
        variances = sizes**2 / (n - 1)
        axes = axes[:m] * np.sign(axes[np.arange(m), np.abs(axes[:m]).argmax(axis=1)])[:, None]
        expected = FactorRotation().fit(axes.T * np.sqrt(variances[:m])).loadings_
        model = RotatedPCA(m).fit(form(Y))
        assert_close(model.pca_.explained_variance_, variances[:m], dtype)
        assert_close(model.loadings_, expected, dtype)
        assert_close(model.explained_variance_ratio_, np.sum(expected**2, axis=0) / variances.sum(), dtype)


def counts_with_repeated_places(seed):
    """A csr or csc matrix of counts, in any order, some of them split into several entries; and the same as an array."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 80)), int(rng.integers(5, 12))
    X = rng.poisson(rng.gamma(1.0, 1.0, (n, 2)) @ rng.gamma(0.5, 2.0, (2, d)) + 0.2)
    X[:, 0] += 1  # no document is empty
    i, j = np.nonzero(X)
    part = rng.integers(0, X[i, j] + 1)
    entries = np.concatenate((X[i, j] - part, part)).astype(np.float64)
    places = np.concatenate((i, i)), np.concatenate((j, j))
    shuffled = rng.permutation(len(entries))
    entries, places = entries[shuffled], (places[0][shuffled], places[1][shuffled])
    by_columns = bool(rng.integers(2))
    order = np.argsort(places[by_columns], kind="stable")
    starts = np.searchsorted(places[by_columns][order], np.arange((d if by_columns else n) + 1))
    kind = sparse.csc_array if by_columns else sparse.csr_array
    return kind((entries[order], places[1 - by_columns][order], starts), shape=(n, d)), X.astype(np.float64)


@pytest.mark.parametrize(
    ("model", "problems"),
    [
        (SparsePCA(2, threshold=0.1), 20),
        (RotatedPCA(2), 20),
        (SparsePCA(2, n_nonzero=3, scale=True), 8),
        (StreamingSparsePCA(2, n_nonzero=3), 8),
        (TopicModel(2), 4),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::givens.support.arguments.DominantFeatureWarning")
def test_entries_at_the_same_place_are_summed(model, problems):
    """60 generated problems in all."""
    for seed in range(problems):
        X, dense = counts_with_repeated_places(seed)
        entries, places = X.data.copy(), X.indices.copy()
        expected, scores = model.fit(dense).components_, model.transform(dense)
        found = model.fit(X).components_
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_allclose(model.transform(X), scores, rtol=1e-6, atol=1e-9 * np.abs(scores).max())
        np.testing.assert_array_equal(X.data, entries)  # the matrix of the caller is as it was
        np.testing.assert_array_equal(X.indices, places)


@pytest.mark.parametrize(("shape", "scale"), [((8200, 4), True), ((8200, 4), False), ((20, 8200), False)])
def test_rotated_components_of_large_sparse_tables_are_those_of_dense_ones(shape, scale):
    """Read in blocks: products of few features, a sketch of many."""
    rng = np.random.default_rng(0)
    few = (
        rng.standard_normal((shape[0], 5)),
        rng.standard_normal((5, shape[1])),
    )  # a sketch keeps all of rank 7
    dense = np.where(rng.random(shape[0]) < 0.3, few[0].T, 0.0).T @ np.where(
        rng.random(few[1].shape) < 0.3, few[1], 0.0
    )
    dense[: shape[0] // 2, :2] += 9.0  # two modules of features
    dense[shape[0] // 4 :, 2:4] += 7.0
    model = RotatedPCA(2, scale=scale, normalize=False)
    expected, scores = model.fit(dense).loadings_, model.transform(dense)
    found = model.fit(sparse.csc_matrix(dense))
    assert found.result_.method.startswith("principal components from")
    np.testing.assert_allclose(found.loadings_, expected, atol=1e-8)
    np.testing.assert_allclose(found.transform(sparse.csr_array(dense)), scores, atol=1e-8)
    if shape[1] < 10:
        assert found.score(sparse.csr_array(dense)) == pytest.approx(found.score(dense), rel=1e-12)
