"""Cayley's transform, and slopes from a gradient; for small matrices, the overhead of NumPy's calls would dominate."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

LARGEST = float(np.finfo(np.float64).max)
NUMBERS = 16_384  # of a tile: few enough for a cache


@kernel
def turned(Q: np.ndarray, skew: np.ndarray, factor: float) -> np.ndarray:
    """Q times Cayley's transform of `factor` times an antisymmetric matrix.

    The transform is 2(I − K/2)⁻¹ − I. The symmetric part of I − K/2 is I, so elimination needs no pivoting.
    """
    n = len(Q)
    inverse = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            inverse[i, j] = -0.5 * factor * skew[i, j]
        inverse[i, i] = 1.0
    for k in range(n):
        pivot = 1.0 / inverse[k, k]
        inverse[k, k] = 1.0
        for j in range(n):
            inverse[k, j] *= pivot
        for i in range(n):
            if i != k:
                share = inverse[i, k]
                inverse[i, k] = 0.0
                for j in range(n):
                    inverse[i, j] -= share * inverse[k, j]
    there = np.dot(Q, inverse)
    for i in range(n):
        for j in range(n):
            there[i, j] = 2.0 * there[i, j] - Q[i, j]
    # Repaired, as by `rotations.repair`, since rounding errors would disturb the comparison of values.
    np.dot(there, np.dot(there.T, there), inverse)
    for i in range(n):
        for j in range(n):
            there[i, j] = 1.5 * there[i, j] - 0.5 * inverse[i, j]
    return there


@kernel
def slopes_of(E: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, bool]:
    """The slopes EᵀU − UᵀE of all pairs, for the gradient E of f at U; and whether they are finite."""
    product = np.dot(E.T, U)
    finite = True
    for i in range(len(U)):
        finite &= abs(product[i, i]) <= LARGEST
        product[i, i] = 0.0
        for j in range(i):
            slope = product[i, j] - product[j, i]
            product[i, j] = slope
            product[j, i] = -slope
            finite &= abs(slope) <= LARGEST
    return product, finite


@kernel
def carry(rows: np.ndarray, skip: int, X: np.ndarray, C: np.ndarray) -> None:
    """Multiply the n x m matrix in each row, which begins after `skip` numbers, by I + X C Xᵀ from the left, in place.

    Tile by tile, so that a part of X serves for all rows while it is in the caches.
    """
    n, m = len(X), X.shape[1] // 2
    tile = max(NUMBERS // (2 * m), 64)
    shares = np.zeros((len(rows), 2 * m, m))
    share = np.empty((2 * m, m))
    for begin in range(0, n, tile):
        end = min(begin + tile, n)
        for row in range(len(rows)):
            part = rows[row, skip + begin * m : skip + end * m].reshape((end - begin, m))
            np.dot(X[begin:end].T, part, share)
            shares[row] += share
    for row in range(len(rows)):
        shares[row] = np.dot(C, shares[row])
    moved = np.empty((min(tile, n), m))
    for begin in range(0, n, tile):
        end = min(begin + tile, n)
        for row in range(len(rows)):
            part = rows[row, skip + begin * m : skip + end * m].reshape((end - begin, m))
            np.dot(X[begin:end], shares[row], moved[: end - begin])
            part += moved[: end - begin]
