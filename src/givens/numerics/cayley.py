"""Cayley's transform: an orthogonal matrix for an antisymmetric one.

(I − K/2)⁻¹ (I + K/2)  =  exp(K) + O(K³),  orthogonal to rounding
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg.lapack import dgesv

SMALL = 16  # the order up to which compiled loops are faster than LAPACK and BLAS


def turned(Q: np.ndarray, skew: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Q times Cayley's transform of `factor` times an antisymmetric matrix."""
    if len(Q) <= SMALL:
        return _compiled()(np.ascontiguousarray(Q), np.ascontiguousarray(skew), factor)
    # Q (I − K/2)⁻¹ (I + K/2)  =  2 Q (I − K/2)⁻¹ − Q, solved as (I − K/2)ᵀ Xᵀ = Qᵀ: LAPACK's arrays are the transposes of ours.
    matrix = (-0.5 * factor) * skew
    matrix.flat[:: len(Q) + 1] += 1.0
    there = dgesv(matrix.T, np.array(Q, dtype=float, order="C").T, overwrite_a=1, overwrite_b=1)[2].T
    there *= 2.0
    there -= Q
    # Repaired every time, as `rotations.repair` does: a drift would show in the comparison of one look with the next.
    excess = there @ (there.T @ there)
    there *= 1.5
    excess *= 0.5
    there -= excess
    return there


@cache
def _compiled() -> Callable[[np.ndarray, np.ndarray, float], np.ndarray]:
    from givens.kernels.cayley import turned

    return turned  # type: ignore[no-any-return]
