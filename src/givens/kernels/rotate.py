"""Rotations of rows.

States are stored transposed: a column of the mathematics is a contiguous row, since loops over strided columns are not
vectorised.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

TILE = 192  # number of entries of each row in one matrix product


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


@kernel
def rotate_block(Y: np.ndarray, block: np.ndarray, Qt: np.ndarray, first: int, last: int) -> None:
    """Y[block, first:last] ← Qᵀ Y[block, first:last], by matrix products of tiles that fit into the cache."""
    width = len(block)
    step = min(TILE, max(last - first, 1))
    tile = np.empty((width, step), Y.dtype)
    turned = np.empty((width, step), Y.dtype)
    for start in range(first, last, step):
        number = min(step, last - start)
        if number < step:
            tile = np.empty((width, number), Y.dtype)
            turned = np.empty((width, number), Y.dtype)
        for j in range(width):
            y = Y[block[j]]
            for k in range(number):
                tile[j, k] = y[start + k]
        np.dot(Qt, tile, turned)
        for j in range(width):
            y = Y[block[j]]
            for k in range(number):
                y[start + k] = turned[j, k]


@inline
def rotate_pair(x: np.ndarray, y: np.ndarray, number: int, c: float, s: float) -> None:
    """Rotate the first `number` entries of two rows, by the angle with cosine c and sine s."""
    for k in range(number):
        a = x[k]
        b = y[k]
        x[k] = c * a + s * b
        y[k] = c * b - s * a


@inline
def write_rotation(Q: np.ndarray, c: float, s: float) -> None:
    """Write the 2 x 2 rotation by the angle with cosine c and sine s."""
    Q[0, 0] = c
    Q[1, 1] = c
    Q[1, 0] = s
    Q[0, 1] = -s
