"""Cayley's transform: an orthogonal matrix for an antisymmetric one.

(I − K/2)⁻¹ (I + K/2)  =  exp(K) + O(K³),  orthogonal to rounding
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgesv


def turned(Q: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """Q times Cayley's transform of an antisymmetric matrix."""
    half, eye = 0.5 * skew, np.eye(len(Q))
    # LAPACK's own solver: for small matrices most of the time of NumPy's goes into calling it.
    R = dgesv(eye - half, eye + half, overwrite_a=1, overwrite_b=1)[2]
    there = Q @ R
    # Repaired every time, as `rotations.repair` does: a drift would show in the comparison of one look with the next.
    excess = there @ (there.T @ there)
    there *= 1.5
    excess *= 0.5
    there -= excess
    return there
