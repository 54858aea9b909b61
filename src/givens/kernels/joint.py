"""Joint diagonalisation: the pair problem of a stack of symmetric matrices, and its rotation.

The matrices are symmetric and stored as C[i, j, k], with the index k of the matrix last, so that inner loops are contiguous. With
u_k = C_iik − C_jjk and v_k = 2C_ijk, the sum of squared diagonal entries of a pair is, up to a constant,
¼(P sin 4θ + Q cos 4θ) with P = Σ 2uv and Q = Σ u² − v².

A block stores only its entries i ≤ j, one row of K numbers for each, in the order of `numpy.triu_indices`. This halves the work
of a rotation.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.harmonics import quarter
from givens.kernels.rotate import rotate_pair


@inline
def _pair(ii: np.ndarray, jj: np.ndarray, ij: np.ndarray) -> tuple[float, float]:
    """P and Q of a pair, from its entries of all matrices."""
    P = 0.0
    Q = 0.0
    for k in range(len(ij)):
        u = ii[k] - jj[k]
        v = 2.0 * ij[k]
        P += 2.0 * u * v
        Q += u * u - v * v
    return P, Q


@inline
def _rotate_both(ii: np.ndarray, jj: np.ndarray, ij: np.ndarray, c: float, s: float) -> None:
    """Rotate the entries (i, i), (j, j) and (i, j) of all matrices."""
    cc, cs, ss = c * c, c * s, s * s
    for k in range(len(ij)):
        a = ii[k]
        b = jj[k]
        h = ij[k]
        ii[k] = cc * a + 2.0 * cs * h + ss * b
        jj[k] = ss * a - 2.0 * cs * h + cc * b
        ij[k] = cs * (b - a) + (cc - ss) * h


@kernel
def turn_block(C: np.ndarray, Qt: np.ndarray, rounding: float) -> tuple[float, int]:
    """Rotate every pair of a block once, on its own entries i ≤ j and the rows of Qt: the gain, and the number of rotations."""
    size, depth = len(Qt), C.shape[1]
    # Entry (i, j), i ≤ j, is row first[i] + j.
    first = np.empty(size, np.int64)
    for i in range(size):
        first[i] = i * size - i * (i + 1) // 2
    total, rotated = 0.0, 0
    for i in range(size):
        for j in range(i + 1, size):
            ii, jj, ij = C[first[i] + i], C[first[j] + j], C[first[i] + j]
            P, Q = _pair(ii, jj, ij)
            theta, gain = quarter(P, Q, rounding)
            if gain <= 0.0:
                continue
            c, s = math.cos(theta), math.sin(theta)
            _rotate_both(ii, jj, ij, c, s)
            for r in range(size):
                if r != i and r != j:
                    rotate_pair(C[first[min(i, r)] + max(i, r)], C[first[min(j, r)] + max(j, r)], depth, c, s)
            rotate_pair(Qt[i], Qt[j], size, c, s)
            total += gain
            rotated += 1
    return total, rotated


@kernel
def look(C: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of squared off-diagonal entries, the slopes −P and the curvatures 4Q of all pairs."""
    size = C.shape[0]
    slopes = np.zeros((size, size))
    curvatures = np.zeros((size, size))
    total = 0.0
    for i in range(size):
        for j in range(i + 1, size):
            P, Q = _pair(C[i, i], C[j, j], C[i, j])
            slopes[i, j] = -P
            slopes[j, i] = P
            curvatures[i, j] = 4.0 * Q
            curvatures[j, i] = 4.0 * Q
            square = 0.0
            for k in range(C.shape[2]):
                square += C[i, j, k] * C[i, j, k]
            total += 2.0 * square
    return total, slopes, curvatures
