"""The data of sparse PCA, made ready: centred, scaled, screened, dense only where features are kept.

A feature whose norm is at most the threshold can never enter a component (MATH: rotations keep its norm), so it is
dropped before a sparse matrix is made dense. Values are divided by a power of two, exactly, so that data of any size neither
overflow nor vanish when squared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from givens import parallel
from givens.objectives.tiles import scores

CHUNK = 1024  # features at a time: means and norms are found while they are in a core's cache


@dataclass
class Moments:
    """Per feature: mean, divisor and norm of the centred, scaled and unit-free values; and what everything was divided by."""

    mean: np.ndarray
    divisor: np.ndarray
    norms: np.ndarray
    unit: float


def largest(X: Any) -> float:
    """The largest |entry|."""
    if sparse.issparse(X):
        return float(np.max(np.abs(X.data), initial=0.0))
    return max(float(X.max()), -float(X.min()))


def moments(X: Any, scale: bool) -> Moments:
    """Means and norms of the features of X, samples x features, dense or sparse."""
    size = largest(X)
    exponent = float(2.0 ** np.frexp(size)[1]) if size > 0 else 1.0
    n, d = X.shape
    if sparse.issparse(X):
        Xc = sparse.csc_matrix(X, dtype=np.float64)
        Xc.data = Xc.data / exponent
        mean = np.asarray(Xc.mean(axis=0)).ravel()
        squares = np.asarray(Xc.multiply(Xc).sum(axis=0)).ravel() - n * mean**2
        # What is left of a difference of equal numbers is rounding, not variance.
        squares[squares <= 1e-13 * n * mean**2] = 0.0
    else:
        mean, squares = np.empty(d), np.empty(d)
        # Dividing by a power of two first is needed only where squares would leave the range of numbers.
        first = exponent if not 2.0**-400 < exponent < 2.0**400 else 1.0

        def work(cut: slice) -> None:
            part = X[:, cut] if first == 1.0 else X[:, cut] / first
            mean[cut] = np.full(n, 1.0 / n) @ part
            part = np.subtract(part, mean[cut], dtype=np.float64)
            squares[cut] = np.einsum("ij,ij->j", part, part)
            # The mean of equal numbers may be off by a rounding error.
            flat = cut.start + np.flatnonzero(squares[cut] <= 1e-24 * n * mean[cut] ** 2)
            squares[flat[np.all(X[:, flat] == X[:1, flat], axis=0)]] = 0.0

        parallel.each(work, _chunks(d, CHUNK))
        mean *= first / exponent
        squares *= (first / exponent) ** 2
    norms = np.sqrt(squares)
    divisor = np.ones(d)
    if scale:
        deviation = norms / np.sqrt(n - 1)
        divisor = np.where(deviation > 0, deviation, 1.0)
        norms = norms / divisor
        return Moments(mean * exponent, divisor * exponent, norms, 1.0)
    return Moments(mean * exponent, divisor, norms, exponent)


def _chunks(length: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, length)) for first in range(0, length, step)]


def dense(X: Any, features: np.ndarray, found: Moments) -> np.ndarray:
    """The chosen features, centred, scaled and divided by the unit: samples x features, contiguous float64."""
    all_of_them = len(features) == X.shape[1]
    if sparse.issparse(X):
        X = X if all_of_them else sparse.csc_matrix(X)[:, features]
        part = X.toarray()
    else:
        part = X if all_of_them else X[:, features]
    divisor = found.divisor[features] * found.unit
    mean = found.mean[features] / divisor
    At = np.empty(part.shape)
    inverse = 1.0 / divisor
    if not part.flags.c_contiguous:
        whole = part
        part = At
        parallel.each(lambda cut: At.T.__setitem__(cut, whole[:, cut].T), _chunks(At.shape[1], 512))

    def work(rows: slice) -> None:
        np.multiply(part[rows], inverse, out=At[rows])
        At[rows] -= mean

    parallel.each(work, _chunks(len(At), max(1, 102_400 // At.shape[1])))
    constant = found.norms[features] == 0
    if constant.any():
        At[:, constant] = 0.0
    return At


def reduced(At: np.ndarray) -> np.ndarray:
    """R of At = QR where there are more samples than features: f depends on RᵀR only."""
    return np.ascontiguousarray(np.linalg.qr(At, mode="r")) if len(At) > At.shape[1] else At


def principal_start(At: np.ndarray, m: int) -> np.ndarray:
    """The m leading left singular vectors of At, samples x m."""
    n = len(At)
    if n <= 1500 or 5 * m > n:
        return np.ascontiguousarray(np.linalg.eigh(scores(At, At, few=False)[0])[1][:, ::-1][:, :m])
    return _leading(n, m, lambda v: At @ (At.T @ v))


def _leading(n: int, m: int, matvec: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    from scipy.sparse.linalg import LinearOperator, eigsh

    # Not from the vector of ones, which centred data take to zero.
    first = np.random.default_rng(0).standard_normal(n)
    vectors = eigsh(LinearOperator((n, n), matvec=matvec, dtype=np.float64), k=m, which="LA", v0=first)[1]
    return np.ascontiguousarray(vectors[:, ::-1])


def countable(X: Any, counts: np.ndarray, found: Moments) -> np.ndarray:
    """Of a sparse X, the features that may be among the counts[j] largest entries of column j; nothing is made dense.

    At the principal axes V, which cost products with sparse X only, each column of AV has a level that its counted entries
    exceed. A feature whose norm is below all levels is not among them at any V that has the same levels: a fifth below the lowest
    leaves room for them to fall.
    """
    n, m = X.shape[0], len(counts)
    if m + 1 >= n:
        return np.flatnonzero(found.norms > 0)
    divisor = found.divisor * found.unit
    mean = found.mean / divisor
    B = sparse.csr_matrix(X, dtype=np.float64) @ sparse.diags_array(1.0 / divisor)

    def columns(v: np.ndarray) -> np.ndarray:
        return B.T @ v - mean * v.sum(axis=0)

    def product(v: np.ndarray) -> np.ndarray:
        y = columns(v.ravel())
        return B @ y - mean @ y

    V = _leading(n, m, product)
    lowest = np.inf
    for j, count in enumerate(counts):
        sizes = np.sort(np.abs(columns(V[:, j])))[::-1]
        lowest = min(lowest, sizes[count - 1])
    return np.flatnonzero((found.norms > 0) & (found.norms >= 0.8 * lowest))
