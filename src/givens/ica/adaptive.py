"""Signs of sources with heavy and light tails, and steps towards the sources that need no signs.

The fixed-point iteration of Hyvärinen (1999) takes each column u of U to E[z φ'(zᵀu)] − E[φ''(zᵀu)] u, and all of them back to an
orthogonal matrix by the polar factor. Near an independent source this is Newton's method, whatever its tails are like. It may
cycle where sources are not independent, so it only leads to where signs can be told, on a sample of the rows; what follows is
a descent, which cannot.
"""

from __future__ import annotations

import numpy as np

from givens.numerics import parallel
from givens.numerics.polar import polar

SAMPLE = 256  # rows for each column: with a quarter of that, noise made some signs wrong
ITERATIONS = 40
SETTLED = 1e-2  # 1 − |cos| of the angle that the last step turned any column by
TILE = 1 << 18  # entries of Z at a time
GROUPS = 16


def fixed_point(Z: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, bool]:
    """Where fixed-point steps for log cosh lead from U, on an even sample of the rows of white Z; and whether they settled."""
    n = Z.shape[1]
    stride = max(1, len(Z) // (SAMPLE * n))
    A = np.ascontiguousarray(Z[::stride], dtype=np.float32)
    for _ in range(ITERATIONS):
        products, outward, inward = _sums(A, U)
        towards = products - np.diag(outward)
        signs = np.where(inward < outward, -1.0, 1.0)
        R = polar(signs[:, None] * towards)
        if not np.isfinite(R).all():
            return U, False
        U = U @ R.T
        if 1.0 - float(np.abs(np.diagonal(R)).min()) < SETTLED:
            return polar(U), True
    return polar(U), False


def tail_signs(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """1 for each column of ZU with heavy tails, −1 for light tails: the sign of E[φ''(y)] − E[φ'(y) y], for log cosh.

    Not `source_signs`, whose E[φ''(y_i) y_j²] holds for what is nearly independent: principal axes, the start, are not.
    """
    _, outward, inward = _sums(Z, U)
    return np.where(outward >= inward, 1, -1)


def _sums(Z: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[φ'(y_i) y_j], E[φ''(y_i)] and E[φ'(y_i) y_i] of Y = ZU, for log cosh, in the precision of Z.

    Groups of tiles depend on the shape only and are added up in their order.
    """
    samples, n = Z.shape
    V = U.astype(Z.dtype)
    step = max(64, TILE // n // GROUPS)
    cut = [slice(first, min(first + step, samples)) for first in range(0, samples, step)]

    def group(which: slice) -> tuple[np.ndarray, np.ndarray]:
        products, squares = np.zeros((n, n)), np.zeros(n)
        for part in cut[which]:
            Y = Z[part] @ V
            slopes = np.tanh(Y)
            products += slopes.T @ Y
            squares += np.einsum("ij,ij->j", slopes, slopes)
        return products, squares

    sums = parallel.each(group, parallel.parts(len(cut), GROUPS))
    products = sum((first for first, _ in sums), start=np.zeros((n, n))) / samples
    squares = sum((second for _, second in sums), start=np.zeros(n)) / samples
    return products, 1.0 - squares, np.diagonal(products).copy()
