"""The data of sparse PCA, made ready: centred, scaled, screened, dense only where features are kept.

A feature whose norm is at most the threshold can never enter a component (MATH: rotations keep its norm), so it is
dropped before a sparse matrix is made dense. Values are divided by a power of two, exactly, so that data of any size neither
overflow nor vanish when squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


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
        for start in range(0, d, 512):
            part = np.asarray(X[:, start : start + 512], dtype=np.float64) / exponent
            mean[start : start + 512] = part.mean(axis=0)
            part -= mean[start : start + 512]
            # The mean of equal numbers may be off by a rounding error.
            part[:, np.all(part == part[0], axis=0)] = 0.0
            squares[start : start + 512] = np.einsum("ij,ij->j", part, part)
    norms = np.sqrt(squares)
    divisor = np.ones(d)
    if scale:
        deviation = norms / np.sqrt(n - 1)
        divisor = np.where(deviation > 0, deviation, 1.0)
        norms = norms / divisor
        return Moments(mean * exponent, divisor * exponent, norms, 1.0)
    return Moments(mean * exponent, divisor, norms, exponent)


def dense(X: Any, features: np.ndarray, found: Moments) -> np.ndarray:
    """The chosen features, centred, scaled and divided by the unit: samples x features, contiguous float64."""
    columns = features if len(features) < X.shape[1] else slice(None)
    part = sparse.csc_matrix(X)[:, features].toarray() if sparse.issparse(X) else X[:, columns]
    At = np.array(part, dtype=np.float64, order="C")
    divisor = found.divisor[features] * found.unit
    At /= divisor
    At -= found.mean[features] / divisor
    At[:, found.norms[features] == 0] = 0.0
    return At


def reduced(At: np.ndarray) -> np.ndarray:
    """R of At = QR where there are more samples than features: f depends on RᵀR only."""
    return np.ascontiguousarray(np.linalg.qr(At, mode="r")) if len(At) > At.shape[1] else At


def principal_start(At: np.ndarray, m: int) -> np.ndarray:
    """The m leading left singular vectors of At, samples x m."""
    n = len(At)
    if n <= 1500 or 5 * m > n:
        return np.ascontiguousarray(np.linalg.eigh(At @ At.T)[1][:, ::-1][:, :m])
    from scipy.sparse.linalg import LinearOperator, eigsh

    gram = LinearOperator((n, n), matvec=lambda v: At @ (At.T @ v), dtype=np.float64)
    vectors = eigsh(gram, k=m, which="LA", v0=np.ones(n))[1]
    return np.ascontiguousarray(vectors[:, ::-1])
