"""Joint diagonalisation: the pair problem of a stack of matrices, and its rotation.

The matrices are stored as C[i, j, k], with the index k of the matrix last, so that inner loops over rows and over columns are
both contiguous. With u_k = C_iik − C_jjk and v_k = C_ijk + C_jik, the sum of squared diagonal entries of a pair is, up to a
constant, ¼(P sin 4θ + Q cos 4θ) with P = Σ 2uv and Q = Σ u² − v².
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.rotate import rotate_pair, write_rotation


@inline
def _pair(C: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """P and Q of a pair."""
    P = 0.0
    Q = 0.0
    for k in range(C.shape[2]):
        u = C[i, i, k] - C[j, j, k]
        v = C[i, j, k] + C[j, i, k]
        P += 2.0 * u * v
        Q += u * u - v * v
    return P, Q


@inline
def _angle(P: float, Q: float, least: float) -> tuple[float, float]:
    """The best angle and its gain; 0 and 0 where P and Q are rounding errors, below `least`."""
    radius = math.hypot(P, Q)
    if Q > 0.0:
        # An angle below rounding has no effect, and would be found again in every sweep.
        if abs(P) <= 1e-16 * Q or radius <= least:
            return 0.0, 0.0
        return 0.25 * math.atan2(P, Q), 0.25 * P * (P / (radius + Q))
    if radius - Q <= least:
        return 0.0, 0.0
    return 0.25 * math.atan2(P, Q), 0.25 * (radius - Q)


@inline
def _rotate(C: np.ndarray, i: int, j: int, c: float, s: float) -> None:
    size = C.shape[0]
    depth = C.shape[2]
    for r in range(size):
        rotate_pair(C[i, r], C[j, r], depth, c, s)
    for r in range(size):
        rotate_pair(C[r, i], C[r, j], depth, c, s)


@kernel
def solve_pairs(C: np.ndarray, pairs: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, int]:
    """The best rotation of each pair by itself: rotations, gains, and the number of pairs that rotate."""
    count = pairs.shape[0]
    rotations = np.empty((count, 2, 2))
    gains = np.empty(count)
    rotated = 0
    for p in range(count):
        P, Q = _pair(C, pairs[p, 0], pairs[p, 1])
        theta, gain = _angle(P, Q, least)
        write_rotation(rotations[p], math.cos(theta), math.sin(theta))
        gains[p] = gain
        rotated += gain > 0.0
    return rotations, gains, rotated


@kernel
def solve_block(C: np.ndarray, least: float) -> tuple[np.ndarray, float, int]:
    """Rotate every pair of a block once, in place, on its own matrices: Q, the gain, and the number of rotations."""
    size = C.shape[0]
    Qt = np.eye(size)
    total = 0.0
    rotated = 0
    for i in range(size):
        for j in range(i + 1, size):
            P, Q = _pair(C, i, j)
            theta, gain = _angle(P, Q, least)
            if gain <= 0.0:
                continue
            c = math.cos(theta)
            s = math.sin(theta)
            _rotate(C, i, j, c, s)
            rotate_pair(Qt[i], Qt[j], size, c, s)
            total += gain
            rotated += 1
    return Qt.T.copy(), total, rotated


@kernel
def rotate_pairs(C: np.ndarray, pairs: np.ndarray, Q: np.ndarray) -> None:
    """C_k ← GᵀC_kG for the rotation G of each pair in turn."""
    for p in range(pairs.shape[0]):
        _rotate(C, pairs[p, 0], pairs[p, 1], Q[p, 0, 0], Q[p, 1, 0])


@kernel
def pair_sums(C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ_k C_ijk², Σ_k C_iik v_k and Σ_k v_k² for all i and j, with v_k = C_ijk + C_jik."""
    size = C.shape[0]
    squares = np.empty((size, size))
    products = np.empty((size, size))
    sums = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            square = 0.0
            product = 0.0
            both = 0.0
            for k in range(C.shape[2]):
                v = C[i, j, k] + C[j, i, k]
                square += C[i, j, k] * C[i, j, k]
                product += C[i, i, k] * v
                both += v * v
            squares[i, j] = square
            products[i, j] = product
            sums[i, j] = both
    return squares, products, sums
