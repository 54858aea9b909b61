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
from givens.kernels.rotate import rotate_pair, write_rotation


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
def _gain(P: float, Q: float, least: float) -> float:
    """The gain of the best angle; 0 where P and Q are rounding errors, below `least`."""
    radius = math.hypot(P, Q)
    if Q > 0.0:
        # An angle below rounding has no effect, and would be found again in every sweep.
        return 0.0 if abs(P) <= 1e-16 * Q or radius <= least else 0.25 * P * (P / (radius + Q))
    return 0.0 if radius - Q <= least else 0.25 * (radius - Q)


@inline
def _angle(P: float, Q: float, least: float) -> tuple[float, float]:
    """The best angle and its gain; 0 and 0 where P and Q are rounding errors."""
    gain = _gain(P, Q, least)
    return 0.25 * math.atan2(P, Q) if gain > 0.0 else 0.0, gain


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
def solve_pairs(C: np.ndarray, pairs: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, int]:
    """The best rotation of each pair by itself: rotations, gains, and the number of pairs that rotate."""
    count = pairs.shape[0]
    rotations = np.empty((count, 2, 2))
    gains = np.empty(count)
    rotated = 0
    for p in range(count):
        i = pairs[p, 0]
        j = pairs[p, 1]
        P, Q = _pair(C[i, i], C[j, j], C[i, j])
        theta, gain = _angle(P, Q, least)
        write_rotation(rotations[p], math.cos(theta), math.sin(theta))
        gains[p] = gain
        rotated += gain > 0.0
    return rotations, gains, rotated


@kernel
def solve_block(C: np.ndarray, size: int, least: float) -> tuple[np.ndarray, float, int]:
    """Rotate every pair of a block once, in place, on its own entries i ≤ j: Q, the gain, and the number of rotations."""
    depth = C.shape[1]
    entries = C.reshape(C.size)
    # Entry (i, j), i ≤ j, is row first[i] + j.
    first = np.empty(size, np.int64)
    for i in range(size):
        first[i] = i * size - i * (i + 1) // 2
    Qt = np.eye(size)
    total = 0.0
    rotated = 0
    for i in range(size):
        for j in range(i + 1, size):
            ii, jj, ij = C[first[i] + i], C[first[j] + j], C[first[i] + j]
            P, Q = _pair(ii, jj, ij)
            theta, gain = _angle(P, Q, least)
            if gain <= 0.0:
                continue
            c = math.cos(theta)
            s = math.sin(theta)
            _rotate_both(ii, jj, ij, c, s)
            for r in range(i):
                rotate_pair(C[first[r] + i], C[first[r] + j], depth, c, s)
            for r in range(i + 1, j):
                rotate_pair(C[first[i] + r], C[first[r] + j], depth, c, s)
            # For r > j, the rows of (i, r) are contiguous, and so are those of (j, r).
            after, rest = depth * (j + 1), depth * (size - 1 - j)
            rotate_pair(entries[depth * first[i] + after :], entries[depth * first[j] + after :], rest, c, s)
            rotate_pair(Qt[i], Qt[j], size, c, s)
            total += gain
            rotated += 1
    return Qt.T.copy(), total, rotated


@kernel
def rotate_pairs(C: np.ndarray, pairs: np.ndarray, Q: np.ndarray) -> None:
    """C_k ← GᵀC_kG for the rotation G of each pair in turn."""
    size, depth = C.shape[0], C.shape[2]
    for p in range(pairs.shape[0]):
        i, j, c, s = pairs[p, 0], pairs[p, 1], Q[p, 0, 0], Q[p, 1, 0]
        for r in range(size):
            rotate_pair(C[i, r], C[j, r], depth, c, s)
        for r in range(size):
            rotate_pair(C[r, i], C[r, j], depth, c, s)


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


@kernel
def gains_of_pairs(slopes: np.ndarray, curvatures: np.ndarray, least: float) -> np.ndarray:
    """The gain of each pair by itself, from the slopes −P and the curvatures 4Q."""
    size = slopes.shape[0]
    gains = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1, size):
            gain = _gain(slopes[i, j], 0.25 * curvatures[i, j], least)
            gains[i, j] = gain
            gains[j, i] = gain
    return gains
