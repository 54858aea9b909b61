"""Compiled linearisation of the sparse PCA objective: features laid out for it; the few entries that exceed their threshold."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

WIDE = 32  # features that are turned over together: a row of so many is read in full lines of the cache


@kernel
def lay(Y: np.ndarray, rank: np.ndarray, scaling: float, B: np.ndarray) -> None:
    """Row rank[k] of B ← column k of Y, scaled, for every rank that B has."""
    n, features = Y.shape
    tile = np.empty((n, WIDE), B.dtype)
    for first in range(0, features, WIDE):
        number = min(WIDE, features - first)
        for i in range(n):
            for k in range(number):
                tile[i, k] = Y[i, first + k] * scaling
        for k in range(number):
            if rank[first + k] < len(B):
                b = B[rank[first + k]]
                for i in range(n):
                    b[i] = tile[i, k]


@kernel
def linearise(T: np.ndarray, levels: np.ndarray, l0: bool, B: np.ndarray, E: np.ndarray) -> tuple[float, int]:
    """E ← E + S(T)B for the rows T of a tile and its features B; returns Σ φ(T) and the number of non-zeros of S.

    T is overwritten, by S where that is not 0.
    For ℓ0 a level is √γ: |t| > level is what t² > γ means.
    """
    total = 0.0
    nonzeros = 0
    length = T.shape[1]
    where = np.empty(length + 1, np.int64)
    for j in range(len(levels)):
        level = levels[j]
        t = T[j]
        e = E[j]
        found = 0
        # Without a branch: an entry that does not count is overwritten by the next.
        for k in range(length):
            where[found] = k
            found += abs(t[k]) > level
        nonzeros += found
        for k in range(found):
            v = t[where[k]]
            size = abs(v) - level
            total += v * v - level * level if l0 else size * size
            if not l0:
                t[where[k]] = np.copysign(size, v)
        # Four features together: e is read and written a quarter as often.
        last = found - found % 4
        for k in range(0, last, 4):
            k0, k1, k2, k3 = where[k], where[k + 1], where[k + 2], where[k + 3]
            s0, s1, s2, s3 = t[k0], t[k1], t[k2], t[k3]
            b0, b1, b2, b3 = B[k0], B[k1], B[k2], B[k3]
            for i in range(len(e)):
                e[i] += (s0 * b0[i] + s1 * b1[i]) + (s2 * b2[i] + s3 * b3[i])
        for k in range(last, found):
            s = t[where[k]]
            b = B[where[k]]
            for i in range(len(e)):
                e[i] += s * b[i]
    return total, nonzeros
