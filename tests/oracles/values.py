"""How good a fit is, in plain NumPy: each function writes a formula of docs/mathematics.md out, and calls nothing of `givens`.

All values are the larger, the better. A function also asserts what its formula presupposes, such as orthonormal columns: without
that a wrong fit could have a better value than the right one.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

LOOSE = 2e-4  # of orthonormal columns and unit variances, from float32


def _orthonormal(U: np.ndarray, tolerance: float = LOOSE) -> None:
    assert np.abs(U.T @ U - np.eye(U.shape[1])).max() < tolerance


def _weights(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    return w / w.sum()


def centred(X: np.ndarray, weights: np.ndarray | None = None, scale: bool = False) -> np.ndarray:
    """X less its mean; with `scale`, divided by its deviations (of n − 1, for weights of Σw − 1)."""
    X = np.asarray(X, dtype=np.float64)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    X = X - w @ X / w.sum()
    return X / np.sqrt(w @ X**2 / (w.sum() - 1)) if scale else X


def adjusted_variance(X: np.ndarray, Z: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Share of the variance of centred X: Σ R_jj² of the scores XZᵀ = QR, for unit loadings, the rows of Z (Zou et al. 2006)."""
    sizes = np.linalg.norm(Z, axis=1)
    assert np.all((np.abs(sizes - 1) < 1e-5) | (sizes == 0))
    roots = np.sqrt(_weights(X, weights))[:, None]
    R = np.linalg.qr(roots * X @ Z.T, mode="r")
    return float(np.sum(np.diag(R) ** 2) / np.sum((roots * X) ** 2))


def sparse_components(
    X: np.ndarray, Z: np.ndarray, gamma: np.ndarray, penalty: str, weights: np.ndarray | None = None
) -> float:
    """max over U of Σ_j [z_jᵀAu_j − γ_j‖z_j‖₁]₊² (l1) or Σ_j [(z_jᵀAu_j)² − γ_j‖z_j‖₀]₊ (l0), A = Xᵀ, the rows of Z of length 1.

    For each U the best Z has the value Σ_j Σ_k [|(AU)_kj| − γ_j]₊² or Σ_j Σ_k [(AU)_kj² − γ_j]₊, so the loadings of the best U
    have the value of the best U. For given Z, U ← polar(AᵀZ diag(s)), s_j the terms that are squared, ascends to the best U.
    """
    sizes = np.linalg.norm(Z, axis=1)
    assert np.abs(sizes - 1).max() < 1e-5
    w = np.ones(len(X)) if weights is None else weights
    scores = np.sqrt(w)[:, None] * X @ Z.T
    l1 = penalty == "l1"
    cost = gamma * np.abs(Z).sum(axis=1) if l1 else gamma * np.count_nonzero(Z, axis=1)
    terms = np.ones(len(Z))
    for _ in range(5000):
        P, _, Qt = np.linalg.svd(scores * terms, full_matrices=False)
        heights = np.sum(scores * (P @ Qt), axis=0)
        before, terms = terms, np.maximum(heights - cost, 0) if l1 else heights * (heights**2 > cost)
        if np.abs(terms - before).max() < 1e-13 * np.abs(terms).max():
            break
    return float(np.sum(terms**2 if l1 else np.maximum(terms**2 - cost, 0)))


def threshold(A: np.ndarray, U: np.ndarray, gamma: float | np.ndarray, penalty: str) -> float:
    """Σ_j Σ_k [|(AU)_kj| − γ_j]₊² or Σ_j Σ_k [(AU)_kj² − γ_j]₊."""
    _orthonormal(U, 1e-10)
    Y = np.abs(A @ U)
    if penalty == "l1":
        return float(np.sum(np.maximum(Y - gamma, 0) ** 2))
    return float(np.sum(np.maximum(Y**2 - gamma, 0)))


def orthomax(L: np.ndarray, kappa: float) -> float:
    """Σ_j [Σ_i l_ij⁴ − (κ/p)(Σ_i l_ij²)²] over p rows."""
    L = np.asarray(L, dtype=np.float64)
    return float(np.sum(L**4) - kappa / len(L) * np.sum(np.sum(L**2, axis=0) ** 2))


def rotated_loadings(L: np.ndarray, A: np.ndarray, kappa: float, normalize: bool) -> float:
    """The orthomax criterion of L, which must be A times an orthogonal matrix; with Kaiser's normalisation of the rows."""
    A, L = np.asarray(A, dtype=np.float64), np.asarray(L, dtype=np.float64)
    R = np.linalg.lstsq(A, L, rcond=None)[0]
    _orthonormal(R)
    assert np.abs(A @ R - L).max() < LOOSE * np.abs(L).max()
    return orthomax(L / np.linalg.norm(L, axis=1, keepdims=True) if normalize else L, kappa)


def principal_loadings(X: np.ndarray, m: int) -> np.ndarray:
    """Principal axes of centred X times the deviations of their scores: features x m."""
    _, sizes, axes = np.linalg.svd(X, full_matrices=False)
    return axes[:m].T * (sizes[:m] / np.sqrt(len(X) - 1))


def logcosh(Y: np.ndarray) -> np.ndarray:
    return np.abs(Y) + np.log1p(np.exp(-2 * np.abs(Y))) - np.log(2)


def gaussian_logcosh() -> float:
    """E[log cosh ν] of a Gaussian variable ν of variance 1, by quadrature."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(120)
    return float(shares @ logcosh(nodes) / shares.sum())


def white(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sources Y, as they are if they have mean 0 and the covariance I."""
    w = _weights(Y, weights)
    assert np.abs(w @ Y).max() < LOOSE
    assert np.abs((Y * w[:, None]).T @ Y - np.eye(Y.shape[1])).max() < LOOSE
    return Y


def sources(Y: np.ndarray, contrast: str, weights: np.ndarray | None = None) -> float:
    """The contrast of white sources per sample, summed over sources: what ICA maximises."""
    w = _weights(Y, weights)
    white(Y, weights)
    if contrast == "adaptive":
        return float(np.abs(w @ logcosh(Y) - gaussian_logcosh()).sum())
    phi = {"logcosh": lambda: -logcosh(Y), "exp": lambda: np.exp(-(Y**2) / 2), "kurtosis": lambda: Y**4}
    return float((w @ phi[contrast]()).sum())


def fourth_cumulants(Y: np.ndarray) -> float:
    """Σ_i Σ_kl cum(y_i, y_i, y_k, y_l)² of white sources: the diagonals of JADE's cumulant matrices, squared."""
    n = white(Y).shape[1]
    C = np.einsum("ti,tk,tl->ikl", Y**2, Y, Y, optimize=True) / len(Y) - np.eye(n)
    C[np.arange(n), np.arange(n), np.arange(n)] -= 2.0
    return float(np.sum(C**2))


def autocorrelations(Y: np.ndarray, lags: int) -> float:
    """Σ_τ Σ_i (Σ_t y_ti y_{t+τ,i} / (n − τ))² of white sources."""
    white(Y)
    return float(sum(np.sum(np.mean(Y[:-lag] * Y[lag:], axis=0) ** 2) for lag in range(1, lags + 1)))


def diagonals(stack: np.ndarray, U: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    """Σ_k w_k Σ_i (UᵀC_kU)_ii²."""
    _orthonormal(U, 1e-10)
    C = (stack + stack.swapaxes(1, 2)) / 2
    return float(np.sum(np.einsum("ai,kab,bi->ki", U, C, U) ** 2 * np.reshape(weights, (-1, 1))))


def cubes(T: np.ndarray, U: np.ndarray) -> float:
    """Σ_i T(u_i, u_i, u_i)."""
    _orthonormal(U, 1e-10)
    return float(np.einsum("abc,ai,bi,ci->", T, U, U, U, optimize=True))


def third_moment(Y: np.ndarray, a: np.ndarray, G: np.ndarray) -> np.ndarray:
    """(1/N) Σ y⊗y⊗y − (a⊗G, in its three placements)."""
    T = np.einsum("ni,nj,nk->ijk", Y, Y, Y, optimize=True) / len(Y)
    placed = np.einsum("i,jk->ijk", a, G)
    return T - placed - placed.transpose(1, 0, 2) - placed.transpose(1, 2, 0)


def mixture(X: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> float:
    """Mean log-likelihood of rows under a mixture of spherical Gaussians."""
    assert abs(weights.sum() - 1) < 1e-9
    X = np.asarray(X, dtype=np.float64)
    squares = np.sum((X[:, None] - means) ** 2, axis=2)
    logs = np.log(weights) - squares / (2 * variances) - X.shape[1] / 2 * np.log(2 * np.pi * variances)
    return float(np.mean(logsumexp(logs, axis=1)))


def topics(counts: np.ndarray, components: np.ndarray, alpha: np.ndarray, weights: np.ndarray) -> float:
    """Lower bound of the log-likelihood per word, for given topics; with α = 0 each document has one topic, and it is exact.

    For shares with a Dirichlet distribution, q(θ) = Dirichlet(γ) and γ = α + Σ_v c_v p_v, where p_vi ∝ β_iv exp(E_q[log θ_i]), is
    iterated until it stays.
    """
    beta = components / components.sum(axis=1, keepdims=True)
    if not alpha.any():
        logs = counts @ np.log(beta.T) + np.log(weights)
        return float(logsumexp(logs, axis=1).sum() / counts.sum())
    gamma = alpha + counts.sum(axis=1, keepdims=True) / len(alpha)
    for _ in range(2000):
        mean = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
        likely = np.exp(mean) @ beta
        before, gamma = gamma, alpha + np.exp(mean) * ((counts / likely) @ beta.T)
        if np.abs(gamma - before).max() < 1e-10 * gamma.max():
            break
    bound = np.sum(counts * np.log(likely)) + np.sum((alpha - gamma) * mean)
    bound += np.sum(gammaln(gamma)) - np.sum(gammaln(gamma.sum(axis=1)))
    return float((bound + len(counts) * (gammaln(alpha.sum()) - gammaln(alpha).sum())) / counts.sum())
