"""A small fit of every estimator that takes dask arrays: what it found, as one vector to be compared bit by bit."""

from __future__ import annotations

import dask.array as da
import numpy as np
from scipy import sparse

from givens import ICA, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA, TopicModel, minimize
from givens.data.moments import MOST_PRODUCT_FEATURES
from givens.datasets import make_spherical_mixture, make_topics, sparse_modules
from givens.objectives import Columns

MIXTURE = make_spherical_mixture(9000, n_components=3, n_features=6, scale=6, random_state=0).X
MODULES = sparse_modules(2000, 40, n_modules=3, module_size=8, random_state=0)
DOCUMENTS = make_topics(3000, n_components=3, n_words=40, topic_sparsity=0.5).X

SOURCES = np.random.default_rng(0).laplace(size=(9000, 4)) @ np.random.default_rng(1).normal(size=(4, 4))


def dense(X, rows):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def wide():
    """So many features that sparse PCA makes a sketch of them; each worker makes its own chunks."""
    chunks = ((40,) * 10, (MOST_PRODUCT_FEATURES + 8,))
    return da.map_blocks(_wide_chunk, chunks=chunks, dtype=float, meta=np.empty((0, 0)))


def _wide_chunk(block_info=None):
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    rows = rng.normal(size=block_info[None]["chunk-shape"])
    rows[:, :20] += 3 * rng.normal(size=(len(rows), 1))
    rows[:, 20:40] += 2 * rng.normal(size=(len(rows), 1))
    return rows


def counts(X, rows):
    """A dask array whose chunks are sparse matrices."""
    return dense(X.toarray(), rows).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0)))


def fit_mixture(X=None):
    model = SphericalMixture(3, max_iter=3, n_starts=3).fit(dense(MIXTURE, 700) if X is None else X)
    return np.concatenate([model.weights_, model.means_.ravel(), model.variances_, model.result_.trace.value])


def fit_topics(X=None):
    model = TopicModel(3, max_iter=2).fit(counts(DOCUMENTS, 401) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.alpha_, model.result_.trace.value])


def fit_sparse_pca(X=None, **options):
    model = SparsePCA(2, **(options or {"threshold": 0.3})).fit(dense(MIXTURE, 700) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.explained_variance_, model.gamma_, model.mean_])


def fit_sketched_pca(X=None):
    return fit_sparse_pca(wide() if X is None else X, n_nonzero=20)


def fit_rotated_pca(X=None, n_components=3, **options):
    model = RotatedPCA(n_components, **options).fit(dense(MIXTURE, 700) if X is None else X)
    extra = [] if model.scale_ is None else [model.scale_]
    return np.concatenate([model.loadings_.ravel(), model.explained_variance_ratio_, model.mean_, *extra])


def fit_ica(X=None, **options):
    model = ICA(3, **options).fit(dense(SOURCES, 700) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.mean_, model.kurtosis_])


def fit_stream(X=None, **options):
    model = StreamingSparsePCA(3, n_nonzero=8, **options).fit(dense(MODULES.X, 170) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.explained_variance_, model.mean_])


def fit_rotations(X=None, contrast="varimax", **options):
    """Exact rotations of pairs, by rounds over the chunks."""
    objective = Columns(dense(MIXTURE, 700) if X is None else X, contrast)
    found = minimize(objective, **(options or {"method": "tournament", "max_iter": 3}))
    return np.append(found.U.ravel(), found.value)


FITS = {
    "mixture": fit_mixture,
    "topics": fit_topics,
    "sparse PCA": fit_sparse_pca,
    "sparse PCA, sketch": fit_sketched_pca,
    "rotated PCA": fit_rotated_pca,
    "stream": fit_stream,
    "ICA": fit_ica,
    "rotations": fit_rotations,
}

DATA = {
    "mixture": lambda: dense(MIXTURE, 700),
    "topics": lambda: counts(DOCUMENTS, 401),
    "sparse PCA": lambda: dense(MIXTURE, 700),
    "sparse PCA, sketch": wide,
    "rotated PCA": lambda: dense(MIXTURE, 700),
    "stream": lambda: dense(MODULES.X, 170),
    "ICA": lambda: dense(SOURCES, 700),
    "rotations": lambda: dense(MIXTURE, 700),
}
"""The arrays that the fits are of."""
