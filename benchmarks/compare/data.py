"""Data of the rows, generated from fixed seeds by NumPy alone, so that both sides get the same numbers."""

from __future__ import annotations

import os
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class Mixed(NamedTuple):
    """Samples x channels, and the matrix that mixed the sources (channels x sources)."""

    X: Any
    mixing: np.ndarray


def expression(n: int, p: int, programmes: int = 20, size: int = 60) -> np.ndarray:
    """Normal noise with planted programmes of a few features each."""
    rng = np.random.default_rng(104)
    X = rng.standard_normal((n, p))
    for i in range(programmes):
        X[:, rng.choice(p, size, replace=False)] += (3 - i / 10) * rng.standard_normal((n, 1))
    return X


def tilted_expression(n: int, p: int, rank: int = 30) -> np.ndarray:
    """Correlated features of unequal variances, as real expression has: factors of falling strength, no planted zeros."""
    rng = np.random.default_rng(105)
    strengths = 6 * np.arange(1, rank + 1) ** -0.7
    factors = rng.standard_normal((n, rank)) * strengths
    X = factors @ rng.laplace(size=(rank, p)) + rng.standard_normal((n, p))
    return X * rng.gamma(2, 0.5, p)


def with_missing(X: np.ndarray, share: float) -> np.ndarray:
    X = X.copy()
    X[np.random.default_rng(106).random(X.shape) < share] = np.nan
    return X


def cells(n: int, p: int) -> sparse.csr_matrix:
    """Sparse counts of cells of eight types, logarithms of one plus them."""
    rng = np.random.default_rng(107)
    rates = (
        0.05
        * rng.gamma(0.5, 1.0, p)
        * np.exp(1.5 * rng.standard_normal((8, p)) * (rng.random((8, p)) < 0.05))
    )
    return sparse.csr_matrix(np.log1p(rng.poisson(rates[rng.integers(8, size=n)])))


def laplace(n: int, sources: int) -> Mixed:
    return _mixed(np.random.default_rng(100), lambda rng: rng.laplace(size=(n, sources)))


def mixed_tails(n: int, sources: int) -> Mixed:
    """A third each of heavy tails, light tails and nearly normal sources."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        S = rng.laplace(size=(n, sources))
        S[:, 1::3] = rng.uniform(-1, 1, size=S[:, 1::3].shape)
        S[:, 2::3] = rng.standard_t(12, size=S[:, 2::3].shape)
        return S

    return _mixed(np.random.default_rng(108), draw)


def coloured(n: int, sources: int) -> Mixed:
    """Autoregressive sources of different memory."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        S = rng.standard_normal((n, sources))
        memory = np.linspace(-0.8, 0.9, sources)
        for t in range(1, n):
            S[t] += memory * S[t - 1]
        return S

    return _mixed(np.random.default_rng(109), draw)


def _mixed(rng: np.random.Generator, draw: Any) -> Mixed:
    S = draw(rng)
    mixing = rng.standard_normal((S.shape[1], S.shape[1]))
    return Mixed(S @ mixing.T, mixing)


def white(data: Mixed) -> np.ndarray:
    """Centred samples of unit covariance."""
    X = data.X - data.X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    return np.ascontiguousarray(X @ (vectors / np.sqrt(values)))


def loadings(p: int, m: int, structured: bool = False, seed: int = 102) -> np.ndarray:
    """Normal ones, or a simple structure with noise, turned."""
    rng = np.random.default_rng(seed)
    if not structured:
        return rng.standard_normal((p, m))
    A = 0.1 * rng.standard_normal((p, m))
    A[np.arange(p), rng.integers(m, size=p)] += rng.uniform(0.5, 0.9, p)
    return A @ orthogonal(m, rng)


def field(points: int, modes: int, patterns: int) -> np.ndarray:
    """Loadings of a smooth field on a grid, of length 1, with more modes than patterns: f is nearly flat."""
    rng = np.random.default_rng(116)
    grid = np.linspace(0, 1, points)
    bumps = np.exp(-((grid[:, None] - rng.uniform(0, 1, patterns)) ** 2) / (2 * 0.05**2))
    series = rng.standard_normal((200, patterns)) @ bumps.T + 0.3 * rng.standard_normal((200, points))
    _, s, Vt = np.linalg.svd(series - series.mean(axis=0), full_matrices=False)
    A = Vt[:modes].T * s[:modes]
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def orthogonal(n: int, rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return Q * np.sign(np.diag(R))


def stack(count: int, n: int, noise: float = 1e-3, gap: float | None = None) -> np.ndarray:
    """Symmetric matrices that nearly share a basis; with a small gap between pairs of eigenvalues, f is nearly flat."""
    rng = np.random.default_rng(101)
    U = orthogonal(n, rng)
    eigenvalues = rng.standard_normal((count, n))
    if gap is not None:
        eigenvalues[:, 1::2] = eigenvalues[:, : n - n % 2 : 2] + gap * eigenvalues[:, 1::2]
    disturbance = noise * rng.standard_normal((count, n, n))
    return (U * eigenvalues[:, None, :]) @ U.T + disturbance + disturbance.swapaxes(1, 2)


def tensor(d: int, noise: float = 0.1) -> np.ndarray:
    """Orthogonal components, and symmetric noise of a share of their norm."""
    rng = np.random.default_rng(103)
    V = orthogonal(d, rng)
    T = np.einsum("i,ai,bi,ci->abc", rng.uniform(1, 2, d), V, V, V, optimize=True)
    disturbance = rng.standard_normal(T.shape)
    disturbance = sum((disturbance.transpose(order) for order in permutations(range(3))), np.zeros_like(T))
    return T + noise * np.linalg.norm(T) / np.linalg.norm(disturbance) * disturbance


def clusters(n: int, k: int, d: int, separation: float = 1.3, spread: float = 0.0) -> np.ndarray:
    """Spherical normal clusters; with a spread, of different variances."""
    rng = np.random.default_rng(110)
    means = separation * rng.standard_normal((k, d))
    deviations = np.exp(spread * rng.standard_normal(k))
    y = rng.integers(k, size=n)
    return means[y] + deviations[y, None] * rng.standard_normal((n, d))


def documents(n: int, k: int, words: int, length: int = 100, alpha: float = 0.1) -> sparse.csr_matrix:
    """Counts of words in documents of a few topics each."""
    rng = np.random.default_rng(111)
    topics = rng.dirichlet(np.full(words, 0.05), k)
    shares = rng.dirichlet(np.full(k, alpha), n)
    rows = [sparse.csr_matrix(rng.multinomial(length, theta)) for theta in shares @ topics]
    return sparse.vstack(rows, format="csr").astype(np.int64)


def blocks(X: Any, count: int) -> list[Any]:
    """The rows in a list of blocks."""
    edges = np.linspace(0, X.shape[0], count + 1).astype(int)
    return [X[first:last] for first, last in pairwise(edges)]


def dask_array(X: Any, count: int) -> Any:
    """The rows in the chunks of a dask array."""
    import dask.array as da

    rows = -(-X.shape[0] // count)
    if sparse.issparse(X):
        parts = [da.from_array(part, chunks=part.shape, asarray=False) for part in blocks(X, count)]
        return da.concatenate(parts)
    return da.from_array(X, chunks=(rows, X.shape[1]))


def real(name: str) -> Path | None:
    """A file in the folder that GIVENS_DATA names, or None."""
    folder = os.environ.get("GIVENS_DATA")
    return next(iter(sorted(Path(folder).glob(f"{name}*.npz"))), None) if folder else None
