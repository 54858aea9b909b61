"""The polar factor of a matrix that is nearly orthogonal, by Newton and Schulz: X ← X(3I − XᵀX)/2."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel


@inline
def orthogonalize(X: np.ndarray, excess: np.ndarray, change: np.ndarray) -> bool:
    """Replace a square X by its polar factor; False where its singular values are too far from 1, or apart.

    It converges if none of them reaches √3. `excess` and `change` are room for as many numbers.
    """
    n = len(X)
    for _ in range(12):
        np.dot(X.T, X, excess)
        square = 0.0
        for i in range(n):
            excess[i, i] -= 1.0
            for k in range(n):
                square += excess[i, k] * excess[i, k]
        if not square <= 0.45 * 0.45 * n:
            return False
        np.dot(X, excess, change)
        for i in range(n):
            for k in range(n):
                X[i, k] -= 0.5 * change[i, k]
        if square < 1e-16:
            return True
    return False


@kernel
def newton_schulz(X: np.ndarray) -> bool:
    """Replace a square X by its polar factor; False where that does not converge, and X is of no use then."""
    return orthogonalize(X, np.empty(X.shape), np.empty(X.shape))
