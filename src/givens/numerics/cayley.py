"""Cayley's transform: an orthogonal matrix for an antisymmetric one.

(I − K/2)⁻¹ (I + K/2)  =  exp(K) + O(K³),  orthogonal to rounding
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgesv


def turned(Q: np.ndarray, skew: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Q times Cayley's transform of `factor` times an antisymmetric matrix."""
    # Q (I − K/2)⁻¹ (I + K/2)  =  2 Q (I − K/2)⁻¹ − Q, solved as (I − K/2)ᵀ Xᵀ = 2 Qᵀ: LAPACK's arrays are the transposes of ours.
    n = len(Q)
    matrix = np.multiply(-0.5 * factor, skew, order="C")
    matrix.reshape(-1)[:: n + 1] = 1.0
    there = dgesv(matrix.T, np.multiply(2.0, Q, order="C").T, overwrite_a=1, overwrite_b=1)[2].T
    there -= Q
    # Repaired every time, as `rotations.repair` does: a drift would show in the comparison of one look with the next.
    gram = there.T @ there
    gram *= -0.5
    gram.reshape(-1)[:: n + 1] += 1.5
    return there @ gram
