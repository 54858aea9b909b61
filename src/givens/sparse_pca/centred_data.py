"""The data of sparse PCA: centred, scaled, screened, and reduced to their Gram matrix where that is smaller.

A feature whose norm is at most the threshold can never enter a component (rotations keep its norm), so it is left out
before anything is copied. The objective depends on the data A through AᵀA only: where there are more samples than features,
the root of that (`givens.numerics.gram`), summed over blocks of samples, takes the place of A. So tall data, sparse or dense, are
read in blocks and never copied. Wide sparse data stay sparse: centring is kept beside them as a matrix of rank 1
(`givens.numerics.centred_sparse`). Values are divided by a power of two, exactly, so that data of any size neither overflow
nor vanish when squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

from givens.data.summary import Summary
from givens.numerics import gram, parallel
from givens.numerics.centred_sparse import DENSE_PART, CentredSparse
from givens.numerics.scaling import binary_exponent, power_of_two
from givens.support.arguments import dense, whole

CHUNK_FEATURES = 1024  # features at a time: means and norms are found while they are in a core's cache
CANCELLED = 1e-3  # of the sum of squares: a variance below it is summed again from centred values
CACHED = 1 << 17  # entries of a block that stay in a core's cache
DENSE = 0.25  # share of non-zeros above which matrix products are faster than sums through the non-zeros
LEAST_INVERTIBLE = 2.0**-1000
FAR = 1e4  # a squared mean over the variance: beyond it the mean is subtracted before values are multiplied


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

    def original_mean(self) -> np.ndarray:
        """The means in the units of the data."""
        return self.mean * self.power

    def original_divisor(self) -> np.ndarray:
        """The divisors in the units of the data."""
        return self.divisor * self.power


def largest_entry(X: Any) -> float:
    """The largest |entry|."""
    if sparse.issparse(X):
        return float(np.max(np.abs(X.data), initial=0.0))
    return max(float(X.max()), -float(X.min()))


def moments(X: Any, scale: bool, weights: np.ndarray | None = None) -> FeatureMoments:
    """Means and norms of the features of X, samples x features, dense or sparse; a sample counts as often as its weight says."""
    mean, squares, power = _sparse_moments(X, weights) if sparse.issparse(X) else _dense_moments(X, weights)
    return scaled_moments(mean, squares, power, _amount(X, weights), scale)


def scaled_moments(
    mean: np.ndarray, squares: np.ndarray, power: float, n: float, scale: bool
) -> FeatureMoments:
    """From means and sums of squares about them, of n samples divided by `power`; features of variance 1 if `scale`."""
    norms = np.sqrt(squares)
    divisor = np.ones(len(mean))
    if scale:
        deviation = norms / np.sqrt(n - 1)
        divisor = np.where(deviation > 0, deviation, 1.0)
        norms = norms / divisor
        return FeatureMoments(mean, divisor, norms, power, 1.0)
    return FeatureMoments(mean, divisor, norms, power, power)


def _amount(X: Any, weights: np.ndarray | None) -> float:
    """How many samples there are, each as often as its weight says."""
    return X.shape[0] if weights is None else float(weights.sum())


def _sparse_moments(X: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """As `_dense_moments`, through the entries that are stored."""
    n, d = _amount(X, weights), X.shape[1]
    power = power_of_two(largest_entry(X))
    # Once more for subnormal numbers, which one power of two that has an inverse does not bring near 1.
    power *= power_of_two(largest_entry(X) / power)
    sums, stored, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    for features, values, often in _entries(X, weights):
        sums += np.bincount(features, weights=often * values / power, minlength=d)
        stored += np.bincount(features, weights=np.broadcast_to(often, len(features)), minlength=d)
    mean = sums / n
    for features, values, often in _entries(X, weights):
        rest = values / power - mean[features]
        squares += np.bincount(features, weights=often * rest**2, minlength=d)
    squares += np.maximum(n - stored, 0.0) * mean**2
    # Of a feature that is constant, rounding of the mean is all that is left.
    squares[squares <= 1e-28 * n * mean**2] = 0.0
    return mean, squares, power


def _entries(
    X: Any, weights: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | float]]:
    """The features, float64 values and samples' weights of the stored entries, some at a time."""
    by_rows = X.format == "csr"
    often = None
    if weights is not None:
        often = np.repeat(weights, np.diff(X.indptr)) if by_rows else weights[X.indices]
    for start in range(0, X.nnz, CACHED):
        stop = min(start + CACHED, X.nnz)
        if by_rows:
            features = X.indices[start:stop]
        else:
            first = int(np.searchsorted(X.indptr, start, side="right")) - 1
            last = int(np.searchsorted(X.indptr, stop, side="left"))
            edges = np.clip(X.indptr[first : last + 1], start, stop)
            features = np.repeat(np.arange(first, last), np.diff(edges))
        yield features, X.data[start:stop].astype(np.float64), 1.0 if often is None else often[start:stop]


def _dense_moments(X: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Means, sums of squares about them, both of X divided by a power of two; and that."""
    n, d = _amount(X, weights), X.shape[1]
    mean, squares, totals = np.empty(d), np.empty(d), np.empty(d)
    shares = np.full(len(X), 1.0 / n) if weights is None else weights / n

    def summed(part: np.ndarray) -> np.ndarray:
        if weights is not None:
            return np.einsum("i,ij,ij->j", weights, part, part)
        # The same sum, with the loop order that is fast for the layout of X.
        if X.flags.f_contiguous:
            return np.einsum("ij,ij->i", part.T, part.T)
        return np.einsum("ij,ij->j", part, part)

    def work(cut: slice) -> None:
        part = np.asarray(X[:, cut] if first == 1.0 else X[:, cut] / first, dtype=np.float64)
        mean[cut] = shares @ part
        totals[cut] = summed(part)
        total = totals[cut]
        squares[cut] = total - n * mean[cut] ** 2
        # A difference of nearly equal numbers is mostly rounding.
        close = np.flatnonzero((squares[cut] <= CANCELLED * total) & (total > 0))
        if len(close):
            rest = part[:, close] - mean[cut][close]
            squares[cut.start + close] = (
                np.einsum("ij,ij->j", rest, rest)
                if weights is None
                else np.einsum("i,ij,ij->j", weights, rest, rest)
            )
            squares[cut.start + close[np.all(part[:, close] == part[:1, close], axis=0)]] = 0.0

    first = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        parallel.each(work, parallel.slices(d, CHUNK_FEATURES))
    if not 2.0**-800 < totals.max() < 2.0**800:
        # Squares leave the range of numbers, or all are zero.
        first = power_of_two(largest_entry(X))
        parallel.each(work, parallel.slices(d, CHUNK_FEATURES))
    power = first * power_of_two(np.sqrt(totals.max()))
    return mean * (first / power), squares * (first / power) ** 2, power


class Centring:
    """Some features of samples as sparse PCA sees them: centred, scaled, in units of `found.unit`."""

    def __init__(self, features: np.ndarray, found: FeatureMoments) -> None:
        self.features = features
        self.mean, self.divisor = found.mean[features], found.divisor[features]
        self.constant = found.norms[features] == 0
        self.power = found.power

    def blocks(self, rows: Any, least: int, roots: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The samples, dense or csr, times `roots`: as many at a time as a block holds, but at least so many."""
        step = max(least, gram.BLOCK_ENTRIES // len(self.features))
        for part in parallel.slices(rows.shape[0], step):
            # Nothing here holds a block while the next one is made.
            yield self._block(rows[part], None if roots is None else roots[part, None])

    def _block(self, rows: Any, roots: np.ndarray | None) -> np.ndarray:
        taken = _taken(dense(rows), self.features)
        block = np.array(
            taken, dtype=np.float64, order="C", copy=None if len(self.features) < rows.shape[1] else True
        )
        block /= self.power
        block -= self.mean
        block /= self.divisor
        block[:, self.constant] = 0.0
        if roots is not None:
            block *= roots
        return block


class GramSum(Summary):
    """AᵀA of some features, summed over samples: the upper triangle of C, which is `upper` after `end`."""

    C: np.ndarray
    upper: np.ndarray

    def __init__(self, features: np.ndarray, found: FeatureMoments) -> None:
        self.centring = Centring(features, found)

    def begin(self, first: int) -> Self:
        """With sums of zero."""
        other = copy(self)
        features = len(self.centring.features)
        other.C = np.zeros((features, features))
        return other

    def add(self, rows: Any, roots: np.ndarray | None = None) -> None:
        """Take in samples, dense or csr, times `roots`: no more than a block is centred, converted or made dense at a time."""
        for block in self.centring.blocks(rows, len(self.centring.features), roots):
            gram.add_dense(self.C, block)
            del block

    def end(self) -> None:
        """Keep the upper triangle of C alone: it is sent and merged."""
        self.upper = gram.packed(self.C)
        del self.C

    def merge(self, other: Self) -> None:
        """Take in the samples of another."""
        self.upper = self.upper + other.upper


class CentredData:
    """A table, samples x features, as sparse PCA sees it: centred, scaled, in units of `found.unit`; nothing is copied.

    Parameters
    ----------
    X : array or sparse matrix of float64 or float32
    found : FeatureMoments
    weights : array, shape (samples,), optional
        How often each sample counts: centred samples are multiplied by the root of it.
    """

    def __init__(self, X: Any, found: FeatureMoments, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.found = found
        self.shape = X.shape
        self.amount = _amount(X, weights)
        self.roots = None if weights is None else np.sqrt(weights)

    def factor(
        self, features: np.ndarray, rows: int, keep_layout: bool = False, implicit: bool = False
    ) -> np.ndarray | CentredSparse:
        """These features of the data, or of R with RᵀR = AᵀA where samples are more: samples (or rank) x features, float64.

        Parameters
        ----------
        features : array of int
        rows : int
            R has at least so many rows, of zeros where the rank is less.
        keep_layout : bool, default=False
            Contiguous by features if X is, which avoids a transposed copy; else by samples.
        implicit : bool, default=False
            Whether large sparse data with few non-zeros may be returned as a `CentredSparse`, not as an array.
        """
        if len(features) < self.shape[0]:
            return gram.root(self._upper_products(features), self.found.norms[features], rows)
        if implicit and sparse.issparse(self.X) and self.shape[0] * len(features) > DENSE_PART:
            part = _taken(self.X, features)
            if part.nnz <= DENSE * self.shape[0] * len(features):
                return self._centred_sparse(part, features)
        return self._all_samples(features, keep_layout)

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """ZXᵀ, components x samples, for loadings over all features."""
        found, used = self.found, np.flatnonzero(Z.any(axis=0))
        loadings = Z[:, used] / found.divisor[used]
        product = _product(_taken(self.X, used), loadings) / found.power
        product = product - (loadings @ found.mean[used])[:, None]
        return product if self.roots is None else product * self.roots

    def columns(self, W: np.ndarray) -> np.ndarray:
        """WA over all features, from the data as they came; W is components x samples."""
        W = W if self.roots is None else W * self.roots
        product = np.asarray((self.X.T @ W.T).T if sparse.issparse(self.X) else W @ self.X, dtype=np.float64)
        product /= self.found.power
        product -= np.outer(W.sum(axis=1), self.found.mean)
        product /= self.found.divisor
        return product

    def products(self, features: np.ndarray) -> np.ndarray:
        """AᵀA of these features, both triangles."""
        return gram.completed(self._upper_products(features), self.found.norms[features])

    def _upper_products(self, features: np.ndarray) -> np.ndarray:
        """The upper triangle of AᵀA of these features, summed over blocks of samples."""
        found = self.found
        divisor, mean = found.divisor[features], found.mean[features]
        if self._through_nonzeros(features):
            C = np.zeros((len(features), len(features)))
            X = _taken(self.X, features).tocsr()
            # As many entries as the caches hold, and enough for a walk through C.
            for part in _row_blocks(X.indptr, max(CACHED, 64 * len(features))):
                block = sparse.csr_matrix(X[part])
                block.sort_indices()
                block.data = block.data.astype(np.float64) / found.power
                if self.roots is not None:
                    block.data *= np.repeat(self.roots[part], np.diff(block.indptr))
                gram.add_sparse(C, block)
            for part in parallel.slices(len(C), CHUNK_FEATURES):
                C[part] -= np.outer(self.amount * mean[part], mean)
                C[part] /= divisor
                C[part] /= divisor[part, None]
        else:
            products = GramSum(features, found).begin(0)
            products.add(self.X.tocsr() if sparse.issparse(self.X) else self.X, self.roots)
            C = products.C
        return C

    def _through_nonzeros(self, features: np.ndarray) -> bool:
        """Whether products are summed through the non-zeros: these are few, and subtracting the means loses no digits."""
        if not sparse.issparse(self.X) or self.X.nnz > DENSE * self.shape[0] * self.shape[1]:
            return False
        return not self._far(features).any()

    def _far(self, features: np.ndarray) -> np.ndarray:
        """Whether subtracting the mean after multiplication would lose digits, for each of these features."""
        found = self.found
        squares = self.amount * (found.mean[features] / found.divisor[features]) ** 2
        return (squares > FAR * found.norms[features] ** 2) & (found.norms[features] > 0)

    def _centred_sparse(self, part: Any, features: np.ndarray) -> CentredSparse:
        """`part`, these features of the data, without an array of all its zeros."""
        found = self.found
        B = sparse.csc_array(part, dtype=np.float64, copy=True)
        B.data /= found.power
        mean = found.mean[features].copy()
        far = self._far(features)
        if far.any():
            # A variance so far below the squared mean leaves hardly any zeros, so the mean is subtracted at once.
            near = np.flatnonzero(~far)
            own = sparse.csc_array(B[:, np.flatnonzero(far)].toarray() - mean[far])
            order = np.argsort(np.concatenate((near, np.flatnonzero(far))))
            B = sparse.hstack((B[:, near], own), format="csc")[:, order]
            mean[far] = 0.0
        inverse = np.where(found.norms[features] == 0, 0.0, 1.0 / found.divisor[features])
        B.data *= np.repeat(inverse, np.diff(B.indptr))
        if self.roots is not None:
            B.data *= self.roots[B.indices]
        return CentredSparse(B, np.ones(self.shape[0]) if self.roots is None else self.roots, mean * inverse)

    def _all_samples(self, features: np.ndarray, keep_layout: bool) -> np.ndarray:
        X, power = self.X, self.found.power
        mean = self.found.mean[features] / self.found.divisor[features]
        inverse = 1.0 / self.found.divisor[features]
        if power < LEAST_INVERTIBLE:
            # Its inverse would overflow.
            X, power = X / power, 1.0
        inverse /= power
        constant = self.found.norms[features] == 0
        if not sparse.issparse(X) and X.flags.f_contiguous:
            A = np.empty((len(features), len(X)))

            def centre(rows: slice) -> None:
                np.multiply(X.T[features[rows]], inverse[rows, None], out=A[rows])
                A[rows] -= mean[rows, None]
                if self.roots is not None:
                    A[rows] *= self.roots

            parallel.each(centre, parallel.slices(len(A), 512))
            A[constant] = 0.0
            return A.T if keep_layout else _transposed(A)
        X = _taken(X, features).tocsr() if sparse.issparse(X) else X
        At = np.empty((X.shape[0], len(features)))

        def work(rows: slice) -> None:
            np.multiply(_taken(dense(X[rows]), features), inverse, out=At[rows])
            At[rows] -= mean
            if self.roots is not None:
                At[rows] *= self.roots[rows, None]

        parallel.each(work, parallel.slices(len(At), max(1, 102_400 // At.shape[1])))
        At[:, constant] = 0.0
        return At


class CovarianceData:
    """A covariance matrix as data: a root of it takes the place of the centred table it came from.

    Parameters
    ----------
    root : array of float64, shape (features, features)
    found : FeatureMoments
    """

    def __init__(self, root: np.ndarray, found: FeatureMoments) -> None:
        self.root = root
        self.found = found
        self.shape = root.shape

    def factor(
        self, features: np.ndarray, rows: int, keep_layout: bool = False, implicit: bool = False
    ) -> np.ndarray:
        """These features of the root."""
        return np.ascontiguousarray(self.root[:, features])

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """ZXᵀ, in the coordinates of the root."""
        return Z @ self.root.T

    def columns(self, W: np.ndarray) -> np.ndarray:
        """WA over all features."""
        return W @ self.root


def _taken(X: Any, features: np.ndarray) -> Any:
    """These columns; X itself if they are all."""
    if len(features) == X.shape[1]:
        return X
    return X[:, features] if sparse.issparse(X) else X.take(features, axis=1)


def _row_blocks(starts: np.ndarray, entries: int) -> list[slice]:
    """The rows of a csr matrix in blocks of about so many entries."""
    last = len(starts) - 1
    edges = np.searchsorted(starts, np.arange(entries, max(int(starts[-1]), 1), entries))
    edges = np.unique(np.concatenate(([0], np.minimum(edges, last), [last])))
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]


def _product(X: Any, loadings: np.ndarray) -> np.ndarray:
    return np.asarray((X @ loadings.T).T if sparse.issparse(X) else loadings @ X.T)


def _transposed(A: np.ndarray) -> np.ndarray:
    At = np.empty(A.shape[::-1])
    parallel.each(lambda cut: At.T.__setitem__(cut, A[cut]), parallel.slices(len(A), 512))
    return At


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
