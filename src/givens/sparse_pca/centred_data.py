"""The data of sparse PCA: centred, scaled, screened, and reduced to their Gram matrix where that is smaller.

A feature whose norm is at most the threshold can never enter a component (rotations keep its norm), so it is left out
before anything is copied. The objective depends on the data A through AᵀA only: where there are more samples than features,
the root of that (`givens.numerics.gram`), summed over blocks of samples, takes the place of A. So tall data, sparse or dense, are
read in blocks and never copied. Wide sparse data stay sparse: centring is kept beside them as a matrix of rank 1
(`givens.numerics.centred_sparse`). Values are divided by a power of two, exactly, so that data of any size neither overflow
nor vanish when squared.

Of samples in chunks the products of the features that count are summed where the chunks are. Of more features than
`MOST_PRODUCT_FEATURES` a sketch of the centred and scaled samples takes their place: few columns Y with 0 ≼ AᵀA − YᵀY ≼ δ·I,
where δ is known when the pass is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from givens.data.moments import MOST_PRODUCT_FEATURES, Moments, too_large
from givens.data.rows import Rows
from givens.data.sketch import Frequent, Sketch, sendable_rule
from givens.numerics import gram, parallel
from givens.numerics.centred_sparse import DENSE_PART, CentredSparse
from givens.numerics.scaling import binary_exponent, power_of_two
from givens.support.arguments import Samples, counted, dense, whole

MAX_NONZERO_SHARE = 0.25
"""Above it matrix products are faster than sums through the non-zeros."""
CACHED_ENTRIES = 1 << 17
"""Non-zeros of a block of rows: those that stay in a core's cache."""


@dataclass
class FeatureMoments:
    """Per feature: mean, divisor and norm. A value x becomes (x/power − mean)/divisor; `norms` are the norms of these columns.

    `power` is a power of two, so that no square overflows or vanishes; `unit` is what those values have to be multiplied by to
    be in the units of the data: `power`, or 1 for standardised features.
    """

    mean: np.ndarray
    divisor: np.ndarray
    norms: np.ndarray
    power: float
    unit: float

    def products_of(self, features: np.ndarray) -> Moments:
        """The sums of products of these features, still empty."""
        # A smaller power has no reciprocal.
        return Moments(features, 1.0 / max(self.power, 2.0**-1000))


def feature_moments(sums: Moments, scale: bool) -> FeatureMoments:
    """From the sums over samples; features of variance 1 if `scale`."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = sums.scatter + sums.weight * sums.mean**2
    if not np.isfinite(total).all():
        raise too_large(sums.unit, "samples")
    power = power_of_two(np.sqrt(total.max()))
    norms, divisor = np.sqrt(sums.scatter / power**2), np.ones(len(total))
    if scale:
        deviation = norms / np.sqrt(sums.weight - 1)
        divisor = np.where(deviation > 0, deviation, 1.0)
    unit = power / sums.unit
    return FeatureMoments(sums.mean / power, divisor, norms / divisor, unit, 1.0 if scale else unit)


class Centring:
    """Some features of samples as sparse PCA sees them: centred, scaled, in units of `moments.unit`."""

    def __init__(self, features: np.ndarray, moments: FeatureMoments) -> None:
        self.features = features
        self.mean, self.divisor = moments.mean[features], moments.divisor[features]
        self.constant = moments.norms[features] == 0
        self.power, self.scaled = moments.power, bool(np.any(self.divisor != 1.0))

    def block(self, rows: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Samples, dense or csr, in a new array or in `out`."""
        block = np.divide(_taken(dense(rows), self.features), self.power, out=out, dtype=np.float64)
        block -= self.mean
        if self.scaled:
            block /= self.divisor
        block[:, self.constant] = 0.0
        return block


def scaled_products(sums: Moments, features: np.ndarray, moments: FeatureMoments) -> np.ndarray:
    """AᵀA of these features, in the upper triangle, from the products of the samples as they came."""
    C = sums.products()
    inverse = 1.0 / (moments.divisor[features] * (moments.power * sums.unit))
    C *= inverse
    C *= inverse[:, None]
    return C


class CentredData:
    """A table, samples x features, as sparse PCA sees it: centred, scaled, in units of `moments.unit`; nothing is copied.

    Parameters
    ----------
    X : array or sparse matrix of float64 or float32
    moments : FeatureMoments
    weights : array, shape (samples,), optional
        How often each sample counts: centred samples are multiplied by the root of it.
    """

    def __init__(self, X: Samples, moments: FeatureMoments, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.moments = moments
        self.shape = X.shape
        self.weights = weights
        self.amount = X.shape[0] if weights is None else float(weights.sum())
        self.roots = None if weights is None else np.sqrt(weights)

    def factor(self, features: np.ndarray, rows: int, implicit: bool = False) -> np.ndarray | CentredSparse:
        """These features of the data, or of R with RᵀR = AᵀA where samples are more: samples (or rank) x features, float64.

        Parameters
        ----------
        features : array of int
        rows : int
            R has at least so many rows, of zeros where the rank is less.
        implicit : bool, default=False
            Whether large sparse data with few non-zeros may be returned as a `CentredSparse`, not as an array.
        """
        if len(features) < self.shape[0]:
            return gram.root(self._upper_products(features), self.moments.norms[features], rows)
        if implicit and sparse.issparse(self.X) and self.shape[0] * len(features) > DENSE_PART:
            part = _taken(self.X, features)
            if part.nnz <= MAX_NONZERO_SHARE * self.shape[0] * len(features):
                return self._centred_sparse(part, features)
        return self._all_samples(features)

    def images(self, Z: np.ndarray) -> np.ndarray:
        """ZAᵀA over all features, for loadings over all features, from the data as they came."""
        moments, used = self.moments, np.flatnonzero(Z.any(axis=0))
        loadings = Z[:, used] / moments.divisor[used]
        E = np.asarray(_taken(self.X, used) @ loadings.T, dtype=np.float64).T / moments.power
        E -= (loadings @ moments.mean[used])[:, None]
        if self.weights is not None:
            E *= self.weights
        images = np.asarray((self.X.T @ E.T).T, dtype=np.float64) / moments.power
        images -= np.outer(E.sum(axis=1), moments.mean)
        images /= moments.divisor
        return images

    def products(self, features: np.ndarray) -> np.ndarray:
        """AᵀA of these features, both triangles."""
        return gram.completed(self._upper_products(features), self.moments.norms[features])

    def _upper_products(self, features: np.ndarray) -> np.ndarray:
        """The upper triangle of AᵀA of these features, summed over blocks of samples."""
        moments = self.moments
        divisor, mean = moments.divisor[features], moments.mean[features]
        if self._through_nonzeros(features):
            C = np.zeros((len(features), len(features)))
            X = _taken(self.X, features).tocsr()
            # About as many entries as the caches hold, and enough for a walk through C.
            entries = max(CACHED_ENTRIES, 64 * len(features))
            for part in parallel.slices(X.shape[0], max(1, entries * X.shape[0] // max(X.nnz, 1))):
                block = sparse.csr_matrix(X[part])
                block.sort_indices()
                block.data = block.data.astype(np.float64) / moments.power
                if self.roots is not None:
                    block.data *= np.repeat(self.roots[part], np.diff(block.indptr))
                gram.add_sparse(C, block)
            for part in parallel.slices(len(C), 1024):
                C[part] -= np.outer(self.amount * mean[part], mean)
                C[part] /= divisor
                C[part] /= divisor[part, None]
        else:
            sums = moments.products_of(features).begin(0)
            sums.add(self.X.tocsr() if sparse.issparse(self.X) else self.X, self.weights)
            sums.end()
            C = scaled_products(sums, features, moments)
        return C

    def _through_nonzeros(self, features: np.ndarray) -> bool:
        """Whether products are summed through the non-zeros: these are few, and subtracting the means loses no digits."""
        if not sparse.issparse(self.X) or self.X.nnz > MAX_NONZERO_SHARE * self.shape[0] * self.shape[1]:
            return False
        return not self._far(features).any()

    def _far(self, features: np.ndarray) -> np.ndarray:
        """Whether subtracting the mean after multiplication would lose digits, for each of these features."""
        moments = self.moments
        squares = self.amount * (moments.mean[features] / moments.divisor[features]) ** 2
        return (squares > 1e4 * moments.norms[features] ** 2) & (moments.norms[features] > 0)

    def _centred_sparse(self, part: Any, features: np.ndarray) -> CentredSparse:
        """`part`, these features of the data, without an array of all its zeros."""
        moments = self.moments
        B = sparse.csc_array(part, dtype=np.float64, copy=True)
        B.data /= moments.power
        mean = moments.mean[features].copy()
        far = self._far(features)
        if far.any():
            # A variance so far below the squared mean leaves hardly any zeros, so the mean is subtracted at once.
            near = np.flatnonzero(~far)
            own = sparse.csc_array(B[:, np.flatnonzero(far)].toarray() - mean[far])
            order = np.argsort(np.concatenate((near, np.flatnonzero(far))))
            B = sparse.hstack((B[:, near], own), format="csc")[:, order]
            mean[far] = 0.0
        inverse = np.where(moments.norms[features] == 0, 0.0, 1.0 / moments.divisor[features])
        B.data *= np.repeat(inverse, np.diff(B.indptr))
        if self.roots is not None:
            B.data *= self.roots[B.indices]
        return CentredSparse(B, np.ones(self.shape[0]) if self.roots is None else self.roots, mean * inverse)

    def _all_samples(self, features: np.ndarray) -> np.ndarray:
        X, centring = self.X, Centring(features, self.moments)
        if sparse.issparse(X):
            X, centring.features = _taken(X, features).tocsr(), np.arange(len(features))
        At = np.empty((X.shape[0], len(features)))

        def work(rows: slice) -> None:
            centring.block(X[rows], At[rows])
            if self.roots is not None:
                At[rows] *= self.roots[rows, None]

        parallel.each(work, parallel.slices(len(At), max(1, 102_400 // At.shape[1])))
        return At


class CovarianceData:
    """The products of features as data: a root of them takes the place of the centred samples, which may lie in chunks.

    Parameters
    ----------
    root : array of float64, shape (rank, features)
    moments : FeatureMoments
    features : array of int, optional
        Those that can count, if the root is of these only: `factor` is then asked for no others.
    """

    def __init__(self, root: np.ndarray, moments: FeatureMoments, features: np.ndarray | None = None) -> None:
        self.root = root
        self.moments = moments
        self.features = features
        self.shape = root.shape

    def factor(self, features: np.ndarray, rows: int, implicit: bool = False) -> np.ndarray:
        """These features of the root."""
        if self.features is not None:
            return self.root
        return np.ascontiguousarray(self.root[:, features])

    def images(self, Z: np.ndarray) -> np.ndarray:
        """ZAᵀA over all features."""
        return Z @ self.root.T @ self.root


def _taken(X: Samples, features: np.ndarray) -> Any:
    """These columns; X itself if they are all."""
    if len(features) == X.shape[1]:
        return X
    return X[:, features] if sparse.issparse(X) else X.take(features, axis=1)


def factor_covariance(R: np.ndarray, n_obs: int, scale: bool) -> tuple[np.ndarray, FeatureMoments]:
    """A matrix whose sums of squares and products are (n_obs − 1)·R, as if it were centred data."""
    n_obs = whole(n_obs, "n_obs", 2)
    if R.shape[0] != R.shape[1]:
        raise ValueError(f"R must be square, a row and a column per feature, got shape {R.shape}")
    R = np.asarray(R, dtype=np.float64)
    size = float(np.max(np.abs(R)))
    if size == 0:
        raise ValueError("every entry of R is zero, so there is no variance to explain")
    if np.max(np.abs(R - R.T)) > 1e-6 * size:
        raise ValueError("R must be symmetric, as covariance and correlation matrices are")
    unit = float(2.0 ** (binary_exponent(size) // 2))
    C = (R / unit / unit + (R / unit / unit).T) / 2
    divisor = np.ones(len(R))
    if scale:
        deviation = np.sqrt(np.maximum(np.diagonal(C), 0.0))
        divisor = np.where(deviation > 0, deviation, 1.0)
        C = C / np.outer(divisor, divisor)
    values, vectors = np.linalg.eigh(C)
    if values[0] < -1e-6 * np.max(np.abs(values)):
        raise ValueError(
            "R must have no negative eigenvalue, but its smallest is "
            f"{values[0] / np.max(np.abs(values)):.3g} of the largest in size"
        )
    factor = np.sqrt(np.maximum(values, 0.0) * (n_obs - 1))[:, None] * vectors.T
    factor = np.ascontiguousarray(factor[::-1])
    norms = np.linalg.norm(factor, axis=0)
    return factor, FeatureMoments(np.zeros(len(R)), divisor, norms, unit, 1.0 if scale else unit)


class CentredSketch(Sketch):
    """A sketch of some features of samples, centred and scaled by known means and deviations."""

    def __init__(self, features: np.ndarray, moments: FeatureMoments, rule: Frequent) -> None:
        super().__init__(len(features), rule, np.float64)
        self.centring = Centring(features, moments)

    def add(self, rows: Any, weights: np.ndarray | None = None) -> None:
        """Take in samples, dense or csr."""
        for part in parallel.slices(rows.shape[0], max(1, gram.BLOCK_ENTRIES // self.features)):
            # Nothing here holds a block while the next one is made.
            super().add(self.centring.block(rows[part]), weights)


def chunked_root(
    rows: Rows, moments: FeatureMoments, features: np.ndarray, least: int
) -> tuple[np.ndarray, str]:
    """R with RᵀR = AᵀA of these features, or with RᵀR ≼ AᵀA from a sketch if they are many; and what it comes from, in words.

    R has at least so many rows, which is how many components are asked for.
    """
    if len(features) <= MOST_PRODUCT_FEATURES:
        empty = moments.products_of(features)
        C = scaled_products(rows.total(empty, "sparse-pca-products"), features, moments)
        chunks = counted(rows.parts, "chunk", "chunks")
        return gram.root(C, moments.norms[features], least), (
            f"the products of features, summed over {chunks} of samples"
        )
    rule = sendable_rule(least, len(features))
    sketch = rows.total(CentredSketch(features, moments, rule), "sparse-pca-sketch")
    return sketch.columns() * sketch.unit, sketch.in_words(rows.parts)
