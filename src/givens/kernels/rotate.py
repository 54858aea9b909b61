"""Rotations of rows.

States are stored transposed: a column of the mathematics is a contiguous row, since loops over strided columns are not
vectorised.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel


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


@inline
def rotate_pair(x: np.ndarray, y: np.ndarray, number: int, c: float, s: float) -> None:
    """Rotate the first `number` entries of two rows, by the angle with cosine c and sine s."""
    for k in range(number):
        a = x[k]
        b = y[k]
        x[k] = c * a + s * b
        y[k] = c * b - s * a
