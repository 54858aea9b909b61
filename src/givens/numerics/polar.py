"""Polar factors: the orthonormal matrix nearest to a given one.

| function | by | when |
|---|---|---|
| `polar` | singular values | always right, also where the matrix has lost rank (then one of several) |
| `polar_by_products` | Newton and Schulz, X ← X(3I − XᵀX)/2 | square matrices that are nearly orthogonal |
| `rough_polar` | three weighted steps of Halley's iteration, two of them in single precision | proposals |

Halley's iteration, weighted for singular values between L and 1 (Nakatsukasa, Bai and Gygi 2010), makes all of them 1:

    X ← (b/c)·X + (a − b/c)·(I + c·XXᵀ)⁻¹X,

by one product and one Cholesky factorisation. The least of them, L = 1e-7, is 0.01, 0.5 and 0.996 after one, two and three steps.
The first step takes the square of L and needs double precision, for the others single precision will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv, sposv

from givens.numerics import flop_counts


def polar(M: np.ndarray) -> np.ndarray:
    """The orthonormal matrix nearest to M."""
    P, _, Qt = np.linalg.svd(M, full_matrices=False)
    return P @ Qt


def polar_by_products(W: np.ndarray) -> np.ndarray:
    """The orthogonal matrix nearest to a square W, W(WᵀW)^(-1/2): by matrix products where that converges."""
    X = _newton_schulz(W * (np.sqrt(len(W)) / np.linalg.norm(W)))
    if X is not None:
        return X
    values, vectors = np.linalg.eigh(W.T @ W)
    if values[0] > 1e-10 * values[-1]:
        X = _newton_schulz(W @ (vectors / np.sqrt(values)) @ vectors.T)
    return polar(W) if X is None else X


def _newton_schulz(X: np.ndarray) -> np.ndarray | None:
    """The polar factor of a square X; None where its singular values are too far from 1, or apart.

    It converges if none of them reaches √3.
    """
    for _ in range(12):
        excess = X.T @ X
        excess.flat[:: len(X) + 1] -= 1.0
        square = float(np.vdot(excess, excess))
        if not square <= 0.45**2 * len(X):
            return None
        X = X - 0.5 * (X @ excess)
        if square < 1e-16:
            return X
    return None


def _weights(least: float, steps: int) -> list[tuple[float, float, float]]:
    """b/c, a − b/c and c of each step: the best there are for singular values from `least` to 1."""
    weights = []
    for _ in range(steps):
        square = least * least
        d = np.cbrt(4.0 * (1.0 - square) / square**2)
        root = np.sqrt(1.0 + d)
        a = root + 0.5 * np.sqrt(8.0 - 4.0 * d + 8.0 * (2.0 - square) / (square * root))
        b = (a - 1.0) ** 2 / 4.0
        c = a + b - 1.0
        weights.append((float(b / c), float(a - b / c), float(c)))
        least = least * (a + b * square) / (1.0 + c * square)
    return weights


WEIGHTS = _weights(1e-7, 3)


def rough_polar(E: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Rows that are nearly orthonormal: the polar factor of E, but for its weakest directions.

    Rows of zeros have none: rows of `fresh`, as long as those of E, take their place, at right angles to all others of E.
    """
    live = E.any(axis=1)
    X = np.asfortranarray(E[live])
    k, n = X.shape
    C = X @ X.T
    square = float(np.abs(C).sum(axis=1).max())  # at least that of the largest singular value
    unit = 1.0 / np.sqrt(square)
    old, new, c = WEIGHTS[0]
    X = _step(X, C, old * unit, new * unit, c / square, dposv).astype(np.float32)
    for old, new, c in WEIGHTS[1:]:
        X = _step(X, X @ X.T, old, new, c, sposv)
    flop_counts.count(
        len(WEIGHTS) * (k * k * (3.0 * n + 1.0) + 4.0 * k * n + flop_counts.cholesky(k)) + k * k
    )
    U = np.empty(E.shape)
    U[live] = X
    if k < len(U):
        D = fresh[~live]
        # A singular value of X that is 1 − e leaves 2e of what a projection should take away, up to 0.008. Three leave 1e-6,
        # which is little also beside a row of `fresh` of which nearly everything has to go.
        for _ in range(3):
            D = D - (D @ X.T) @ X
        U[~live] = D / np.linalg.norm(D, axis=1, keepdims=True)
        flop_counts.count((12.0 * k + 3.0) * D.size)
    return U


def _step(
    X: np.ndarray, C: np.ndarray, old: float, new: float, c: float, solve: Callable[..., Any]
) -> np.ndarray:
    """old·X + new·(I + c·C)⁻¹X; overwrites X and C = XXᵀ."""
    number = X.dtype.type
    C *= number(c)
    C.flat[:: len(C) + 1] += number(1.0)
    Z: np.ndarray = solve(C.T, X, overwrite_a=True)[1]
    Z *= number(new)
    X *= number(old)
    Z += X
    return Z


def completed(U: np.ndarray) -> np.ndarray:
    """Nearly orthonormal rows, made so to rounding, and after them as many more as make a square."""
    m = len(U)
    # Most of the way to the polar factor; what is left goes wherever the triangular factor sends it.
    U = 1.5 * U - 0.5 * (U @ U.T) @ U
    Q, R = np.linalg.qr(U.T, mode="complete")
    Q[:, :m] *= np.where(np.diag(R) < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(Q.T)
