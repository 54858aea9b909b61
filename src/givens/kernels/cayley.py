"""Cayley's transform, and slopes from a gradient; for small matrices, the overhead of NumPy's calls would dominate."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

LARGEST = float(np.finfo(np.float64).max)


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
