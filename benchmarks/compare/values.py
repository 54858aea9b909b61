"""How good an answer is, by plain NumPy: smaller is better."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def unexplained(X: Any, components: np.ndarray) -> float:
    """One minus the adjusted variance of the components (components x features) as a share of the total."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    X = X - X.mean(axis=0)
    R = np.linalg.qr(X @ components.T, mode="r")
    return 1 - float(np.sum(np.diag(R) ** 2) / np.sum(X**2))


def unexplained_covariance(S: np.ndarray, components: np.ndarray) -> float:
    """The same, of a covariance: the scores' QR factor is the Cholesky factor of their covariance."""
    Z = components[np.linalg.norm(components, axis=1) > 0]
    factor = np.linalg.cholesky(Z @ S @ Z.T)
    return 1 - float(np.sum(np.diag(factor) ** 2) / np.trace(S))


def amari(unmixing: np.ndarray, mixing: np.ndarray) -> float:
    """Amari's distance of their product from a scaled permutation, between 0 and 1."""
    P = np.abs(unmixing @ mixing)
    rows, columns = P / P.max(axis=1, keepdims=True), P / P.max(axis=0)
    n = len(P)
    return float((rows.sum() + columns.sum() - 2 * n) / (2 * n * (n - 1)))


def dependence(X: np.ndarray, unmixing: np.ndarray) -> float:
    """Entropies of the sources by histograms, less log |det W|: mutual information but for a constant."""
    S = (X - X.mean(axis=0)) @ unmixing.T
    total = -float(np.linalg.slogdet(unmixing)[1])
    for s in S.T:
        density, edges = np.histogram(s, bins=200, density=True)
        shares = density * np.diff(edges)
        used = shares > 0
        total -= float(np.sum(shares[used] * np.log(density[used])))
    return total


def orthomax(L: np.ndarray, kappa: float, normalize: bool = False) -> float:
    """Minus the orthomax criterion of rotated loadings, in units of the sum of their fourth powers."""
    if normalize:
        L = L / np.linalg.norm(L, axis=1, keepdims=True)
    squares = L**2
    criterion = np.sum(squares**2) - kappa / len(L) * np.sum(squares.sum(axis=0) ** 2)
    return -float(criterion / np.sum(squares.sum(axis=1) ** 2))


def off_diagonal(matrices: np.ndarray, U: np.ndarray) -> float:
    """The share of the squares that lie off the diagonals."""
    turned = U.T @ matrices @ U
    diagonal = np.sum(np.diagonal(turned, axis1=1, axis2=2) ** 2)
    return float((np.sum(turned**2) - diagonal) / np.sum(turned**2))


def residual(T: np.ndarray, weights: np.ndarray, factors: np.ndarray) -> float:
    """The norm that a decomposition leaves, as a share of that of the tensor; factors by columns."""
    d, k = factors.shape
    products = (factors[:, None, :] * factors[None, :, :]).reshape(d * d, k) * weights
    return float(np.linalg.norm(T.reshape(d * d, d) - products @ factors.T) / np.linalg.norm(T))


def cubic(T: np.ndarray, U: np.ndarray) -> float:
    """−Σ T(u_i, u_i, u_i)."""
    return -sum(float(u @ (T @ u) @ u) for u in U.T)


def minus_log_likelihood(
    X: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> float:
    """Of a row on average, in a mixture of spherical Gaussians."""
    total = 0.0
    for part in np.array_split(X, max(len(X) // 5000, 1)):
        squares = ((part**2).sum(axis=1)[:, None] - 2 * part @ means.T) + (means**2).sum(axis=1)
        logs = np.log(weights) - squares / (2 * variances) - X.shape[1] / 2 * np.log(2 * np.pi * variances)
        largest = logs.max(axis=1)
        total += float(np.sum(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))))
    return -total / len(X)


def perplexity(X: sparse.csr_matrix, components: np.ndarray, steps: int = 30) -> float:
    """Of the words of documents whose topic shares are fitted to them by expectation maximisation."""
    topics = components / components.sum(axis=1, keepdims=True)
    X = X[:1000].tocsr()
    document = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    words = np.maximum(topics[:, X.indices], 1e-300).T
    shares = np.full((X.shape[0], len(topics)), 1 / len(topics))
    for _ in range(steps):
        weighted = shares[document] * words
        weighted *= (X.data / weighted.sum(axis=1))[:, None]
        shares = np.add.reduceat(weighted, X.indptr[:-1], axis=0) + 1e-6
        shares /= shares.sum(axis=1, keepdims=True)
    logs = np.log(np.sum(shares[document] * words, axis=1))
    return float(np.exp(-np.sum(X.data * logs) / X.data.sum()))


def pointwise(Y: np.ndarray, contrast: str) -> float:
    """The contrast of ICA summed over all entries of Y, as it is minimised, for heavy tails."""
    entries = {
        "kurtosis": lambda: -np.sum(Y**4),
        "logcosh": lambda: np.sum(np.logaddexp(Y, -Y) - np.log(2)),
        "exp": lambda: -np.sum(np.exp(-(Y**2) / 2)),
    }
    return float(entries[contrast]()) / Y.size


def thresholded(Y: np.ndarray, gamma: float, penalty: str) -> float:
    """Minus sparse PCA's sum over the entries above the threshold, as a share of all squares."""
    size = np.abs(Y)
    kept = np.maximum(size - gamma, 0) ** 2 if penalty == "l1" else np.maximum(size**2 - gamma, 0)
    return -float(np.sum(kept) / np.sum(Y**2))
