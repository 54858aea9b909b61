"""Linearisation of the sparse PCA objective, from the few entries above their threshold; see `objectives.polar_leaps`."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

WIDE = 32  # number of features that are transposed together, so that whole cache lines are read


@kernel
def lay_out(Y: np.ndarray, rank: np.ndarray, scaling: float, B: np.ndarray) -> None:
    """Write column k of Y, times `scaling`, into row rank[k] of B, if B has this row."""
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
    """E ← E + S(T)B for a tile T of V Bᵀ and its features B; returns Σ φ(T) and the number of non-zeros of S.

    The entries of T where S is not 0 are overwritten by S. For ℓ0 a level is √γ, so that |t| > level means t² > γ.
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
        # Without a branch: the index of an entry below the level is overwritten by the next.
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
        # Four features at a time, to read and write e less often.
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
