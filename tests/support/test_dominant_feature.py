"""One feature with nearly all of the variance is named, by every estimator whose components it would be."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse

from givens import RotatedPCA, SparsePCA, StreamingSparsePCA
from givens.support.arguments import DominantFeatureWarning

FITS = {
    "SparsePCA, alpha": lambda X, **options: SparsePCA(2, threshold=1e-4, **options).fit(X),
    "SparsePCA, n_nonzero": lambda X, **options: SparsePCA(2, n_nonzero=3, **options).fit(X),
    "SparsePCA, sparse": lambda X, **options: SparsePCA(2, threshold=1e-4, **options).fit(sparse.csr_matrix(X)),
    "SparsePCA, covariance": lambda X, **options: SparsePCA(2, threshold=1e-4, **options).fit_covariance(np.cov(X.T), len(X)),
    "StreamingSparsePCA": lambda X, **options: StreamingSparsePCA(2, threshold=1e-4, **options).fit(X),
    "RotatedPCA": lambda X, **options: RotatedPCA(2, normalize=False, **options).fit(X),
}  # fmt: skip
CHUNKED = {
    "SparsePCA": lambda X: SparsePCA(2, threshold=1e-4).fit(X),
    "RotatedPCA": lambda X: RotatedPCA(2).fit(X),
}


def counts(columns=60):
    """Samples of very different depth, as counts are."""
    rng = np.random.default_rng(0)
    return rng.poisson(rng.uniform(1, 9, (60, 1)) * rng.uniform(5, 15, columns)).astype(float)


def totalled(X):
    return np.column_stack([X[:, :7], X.sum(axis=1), X[:, 7:]])


@pytest.mark.parametrize("name", FITS)
def test_a_total_is_named_unless_features_are_scaled(name):
    fit, X = FITS[name], counts()
    with pytest.warns(DominantFeatureWarning, match=r"^feature 7 has 9\d\.\d % of the variance.*scale=True"):
        fit(totalled(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DominantFeatureWarning)
        fit(X)
        fit(totalled(X), scale=True)
        # Of few features one often has nearly all of the variance, and constant ones do not make them more.
        few = np.column_stack([1000 * X[:, 0], X[:, 1:3], np.ones((60, 9))])
        fit(few)


@pytest.mark.parametrize("name", CHUNKED)
def test_samples_in_chunks(name):
    array = pytest.importorskip("dask.array")
    with pytest.warns(DominantFeatureWarning, match="^feature 7 has"):
        CHUNKED[name](array.from_array(totalled(counts()), chunks=(20, -1)))


@pytest.mark.parametrize(
    "model", [SparsePCA(2, threshold=1e-4), StreamingSparsePCA(2, threshold=1e-4), RotatedPCA(2)]
)
def test_the_name_of_the_feature(model):
    frame = pandas.DataFrame(counts(), columns=[f"v{k}" for k in range(60)])
    frame["library size"] = frame.sum(axis=1)
    with pytest.warns(DominantFeatureWarning, match="^feature 'library size' has"):
        model.fit(frame)
