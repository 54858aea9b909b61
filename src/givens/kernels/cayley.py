"""Cayley's transform of small matrices: most of the time of LAPACK's solver would go into calling it."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def turned(Q: np.ndarray, skew: np.ndarray, factor: float) -> np.ndarray:
    """Q times Cayley's transform of `factor` times an antisymmetric matrix.

    The transform is 2(I − K/2)⁻¹ − I. The symmetric part of I − K/2 is I, so that elimination needs no pivots.
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
    # Repaired every time, as `rotations.repair` does: a drift would show in the comparison of one look with the next.
    np.dot(there, np.dot(there.T, there), inverse)
    for i in range(n):
        for j in range(n):
            there[i, j] = 1.5 * there[i, j] - 0.5 * inverse[i, j]
    return there
