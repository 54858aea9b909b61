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

from givens.numerics import parallel
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import scores

CHUNK = 1024  # features at a time: means and norms are found while they are in a core's cache
CLOSE = 1e-3  # of the sum of squares: a variance below it is summed again from centred values


@dataclass
class FeatureMoments:
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


def moments(X: Any, scale: bool) -> FeatureMoments:
    """Means and norms of the features of X, samples x features, dense or sparse."""
    n, d = X.shape
    if sparse.issparse(X):
        exponent = power_of_two(largest(X))
        Xc = sparse.csc_matrix(X, dtype=np.float64)
        Xc.data = Xc.data / exponent
        mean = np.asarray(Xc.mean(axis=0)).ravel()
        squares = np.asarray(Xc.multiply(Xc).sum(axis=0)).ravel() - n * mean**2
        # What is left of a difference of equal numbers is rounding, not variance.
        squares[squares <= 1e-13 * n * mean**2] = 0.0
    else:
        mean, squares, exponent = _dense_moments(X)
    norms = np.sqrt(squares)
    divisor = np.ones(d)
    if scale:
        deviation = norms / np.sqrt(n - 1)
        divisor = np.where(deviation > 0, deviation, 1.0)
        norms = norms / divisor
        return FeatureMoments(mean * exponent, divisor * exponent, norms, 1.0)
    return FeatureMoments(mean * exponent, divisor, norms, exponent)


def _dense_moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Means, sums of squares about them, both of X divided by a power of two; and that."""
    n, d = X.shape
    mean, squares, totals, weights = np.empty(d), np.empty(d), np.empty(d), np.full(n, 1.0 / n)

    def work(cut: slice) -> None:
        part = np.asarray(X[:, cut] if first == 1.0 else X[:, cut] / first, dtype=np.float64)
        mean[cut] = weights @ part
        # Both are the same sum, each of them fast where what it sums lies together.
        totals[cut] = (
            np.einsum("ij,ij->i", part.T, part.T)
            if X.flags.f_contiguous
            else np.einsum("ij,ij->j", part, part)
        )
        total = totals[cut]
        squares[cut] = total - n * mean[cut] ** 2
        # A difference of nearly equal numbers is mostly rounding.
        close = np.flatnonzero((squares[cut] <= CLOSE * total) & (total > 0))
        if len(close):
            rest = part[:, close] - mean[cut][close]
            squares[cut.start + close] = np.einsum("ij,ij->j", rest, rest)
            squares[cut.start + close[np.all(part[:, close] == part[:1, close], axis=0)]] = 0.0

    first = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        parallel.each(work, _chunks(d, CHUNK))
    if not 2.0**-800 < totals.max() < 2.0**800:
        # Squares leave the range of numbers, or all are zero.
        first = power_of_two(largest(X))
        parallel.each(work, _chunks(d, CHUNK))
    exponent = first * power_of_two(np.sqrt(totals.max()))
    return mean * (first / exponent), squares * (first / exponent) ** 2, exponent


def _chunks(length: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, length)) for first in range(0, length, step)]


def dense(X: Any, features: np.ndarray, found: FeatureMoments, as_they_lie: bool = False) -> np.ndarray:
    """The chosen features, centred, scaled and divided by the unit: samples x features, float64.

    Contiguous by samples; or, `as_they_lie`, by features if X is, which saves turning them round.
    """
    divisor = found.divisor[features] * found.unit
    mean = found.mean[features] / divisor
    inverse = 1.0 / divisor
    constant = found.norms[features] == 0
    if not sparse.issparse(X) and X.flags.f_contiguous:
        A = np.empty((len(features), len(X)))

        def centre(rows: slice) -> None:
            np.multiply(X.T[features[rows]], inverse[rows, None], out=A[rows])
            A[rows] -= mean[rows, None]

        parallel.each(centre, _chunks(len(A), 512))
        A[constant] = 0.0
        return A.T if as_they_lie else _turned_round(A)
    all_of_them = len(features) == X.shape[1]
    if sparse.issparse(X):
        part = (X if all_of_them else sparse.csc_matrix(X)[:, features]).toarray()
    else:
        part = X if all_of_them else X.take(features, axis=1)
    At = np.empty(part.shape)

    def work(rows: slice) -> None:
        np.multiply(part[rows], inverse, out=At[rows])
        At[rows] -= mean

    parallel.each(work, _chunks(len(At), max(1, 102_400 // At.shape[1])))
    At[:, constant] = 0.0
    return At


def _turned_round(A: np.ndarray) -> np.ndarray:
    At = np.empty(A.shape[::-1])
    parallel.each(lambda cut: At.T.__setitem__(cut, A[cut]), _chunks(len(A), 512))
    return At


def reduced(At: np.ndarray) -> np.ndarray:
    """R of At = QR where there are more samples than features: f depends on RᵀR only."""
    return np.ascontiguousarray(np.linalg.qr(At, mode="r")) if len(At) > At.shape[1] else At


def principal_axes(At: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The m leading left singular vectors of At, samples x m, and the squares of their singular values."""
    n = len(At)
    if n <= 1500 or 5 * m > n:
        squares, vectors = np.linalg.eigh(scores(At, At, few=False)[0])
        return np.ascontiguousarray(vectors[:, ::-1][:, :m]), np.maximum(squares[::-1][:m], 0.0)
    return _leading(n, m, lambda v: At @ (At.T @ v))


def _leading(n: int, m: int, matvec: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse.linalg import LinearOperator, eigsh

    # Not from the vector of ones, which centred data take to zero.
    first = np.random.default_rng(0).standard_normal(n)
    squares, vectors = eigsh(
        LinearOperator((n, n), matvec=matvec, dtype=np.float64), k=m, which="LA", v0=first
    )
    return np.ascontiguousarray(vectors[:, ::-1]), np.maximum(squares[::-1], 0.0)


def columns(X: Any, Wt: np.ndarray, found: FeatureMoments) -> np.ndarray:
    """(AW)ᵀ over all features, from the data as they came: nothing is centred, copied or made dense."""
    divisor = found.divisor * found.unit
    product = (X.T @ Wt.T).T if sparse.issparse(X) else Wt @ X
    product -= np.outer(Wt.sum(axis=1), found.mean)
    product /= divisor
    return product
