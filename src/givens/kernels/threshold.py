"""The contrast of sparse PCA: φ(y) = Σ_k [|y_k| − γ]₊² (ℓ1) or Σ_k [y_k² − γ]₊ (ℓ0) of a column y, and its slopes.

S(y) is sign(y)·[|y| − γ]₊ for ℓ1 and y·1[y² > γ] for ℓ0. Levels are γ for ℓ1 and √γ for ℓ0, where |y| > level means y² > γ.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel


@inline
def above(y: np.ndarray, number: int, level: float, members: np.ndarray, limit: int) -> int:
    """Write the indices of entries with |y| > level into `members`; return their number, or -1 if it exceeds `limit`."""
    size = 0
    for start in range(0, number, 16):
        stop = min(start + 16, number)
        above = 0
        for k in range(start, stop):
            above += abs(y[k]) > level
        if above > 0:
            if size + above > limit:
                return -1
            for k in range(start, stop):
                if abs(y[k]) > level:
                    members[size] = k
                    size += 1
    return size


@inline
def _shrink_row(y: np.ndarray, level: float, l0: bool, out: np.ndarray) -> tuple[float, int]:
    part = 0.0
    count = 0
    if l0:
        square = level * level
        for k in range(len(y)):
            v = np.float64(y[k])
            above = abs(v) > level
            v = v if above else v - v
            part += v * v - square * above
            out[k] = v
            count += 1 if above else 0
    else:
        for k in range(len(y)):
            v = np.float64(y[k])
            t = v if v < level else level
            t = v - (t if t > -level else -level)
            part += t * t
            out[k] = t
            count += 1 if t != 0.0 else 0
    return part, count


@kernel
def value(Y: np.ndarray, levels: np.ndarray, l0: bool) -> float:
    """Σ φ over the first rows of Y, one for each level; summed row by row."""
    total = 0.0
    room = np.empty(Y.shape[1], Y.dtype)
    for j in range(len(levels)):
        total += _shrink_row(Y[j], levels[j], l0, room)[0]
    return total


@kernel
def shrink(Y: np.ndarray, levels: np.ndarray, l0: bool, S: np.ndarray) -> tuple[float, int]:
    """Write S(y) of the rows y of Y into S, which may be Y; return Σ φ and the number of non-zeros."""
    total = 0.0
    nonzeros = 0
    # By way of a third array: a loop that may write where it reads is not vectorised.
    room = np.empty(Y.shape[1], Y.dtype)
    for j in range(len(levels)):
        part, count = _shrink_row(Y[j], levels[j], l0, room)
        for k in range(len(room)):
            S[j, k] = room[k]
        total += part
        nonzeros += count
    return total, nonzeros
