"""Cayley's transform of small matrices, for which the overhead of NumPy's calls would dominate.

Products are loops: those of BLAS would take half a second to compile.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel


@inline
def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """AB, for square matrices."""
    n = len(A)
    C = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            share = A[i, k]
            for j in range(n):
                C[i, j] += share * B[k, j]
    return C


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
    there = product(Q, inverse)
    for i in range(n):
        for j in range(n):
            there[i, j] = 2.0 * there[i, j] - Q[i, j]
    # Repaired, as by `rotations.repair`, since rounding errors would disturb the comparison of values.
    gram = product(there.T, there)
    excess = product(there, gram)
    for i in range(n):
        for j in range(n):
            there[i, j] = 1.5 * there[i, j] - 0.5 * excess[i, j]
    return there
