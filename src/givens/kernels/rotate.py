"""Turn pairs of rows: the one thing that every objective does to what it stores.

Arrays are stored transposed, one column of the mathematics per contiguous row, because a strided column costs the
whole gain of SIMD.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def rotate_rows(Y: np.ndarray, pairs: np.ndarray, Q: np.ndarray) -> None:
    """Y[(i, j)] ← Qᵀ Y[(i, j)] for each pair (i, j) in turn, with its 2 x 2 matrix Q."""
    length = Y.shape[1]
    for k in range(pairs.shape[0]):
        x = Y[pairs[k, 0]]
        y = Y[pairs[k, 1]]
        a, b, c, d = Q[k, 0, 0], Q[k, 1, 0], Q[k, 0, 1], Q[k, 1, 1]
        for r in range(length):
            first = x[r]
            second = y[r]
            x[r] = a * first + b * second
            y[r] = c * first + d * second
