"""Signs of sources with heavy and light tails, and steps towards the sources that need no signs.

The fixed-point iteration of Hyvärinen (1999) takes each column u of U to E[z φ'(zᵀu)] − E[φ''(zᵀu)] u, and all of them back to an
orthogonal matrix by the polar factor. Near an independent source this is Newton's method, whatever its tails are like. It may
cycle where sources are not independent, so it only leads to where signs can be told, on a sample of the rows; what follows is
a descent, which cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from givens.numerics import parallel
from givens.numerics.polar import polar
from givens.numerics.tiles import tiled_sum

SAMPLE = 256  # rows for each column: with a quarter of that, noise made some signs wrong
ITERATIONS = 40
SETTLED = 1e-2  # 1 − |cos| of the angle that the last step turned any column by
TILE = 1 << 14  # entries of Z at a time


class TailSums(NamedTuple):
    """Of sources Y = ZU, for log cosh: E[φ'(y_i) y_j], and E[φ''(y_i)]."""

    products: np.ndarray
    outward: np.ndarray

    @property
    def signs(self) -> np.ndarray:
        """1 for each source with heavy tails, −1 for light tails: the sign of E[φ''(y)] − E[φ'(y) y].

        Not `source_signs`, whose E[φ''(y_i) y_j²] holds for what is nearly independent: principal axes, the start, are not.
        """
        return np.where(self.outward >= np.diagonal(self.products), 1, -1)


def sample_stride(samples: int, n: int) -> int:
    """Every so many-th of the samples is in the sample for `fixed_point`."""
    return max(1, samples // (SAMPLE * n))


def fixed_point(A: np.ndarray, U: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """Where fixed-point steps for log cosh lead from U, on a sample A of white rows; and whether they settled."""
    A = np.ascontiguousarray(A, dtype=np.float32)
    for _ in range(ITERATIONS):
        V = U.astype(np.float32)
        products, outward = tail_sums(A.shape, lambda part, V=V: A[part] @ V, weights)  # type: ignore[misc]
        towards = products - np.diag(outward)
        signs = np.where(np.diagonal(products) < outward, -1.0, 1.0)
        R = polar(signs[:, None] * towards)
        if not np.isfinite(R).all():
            return U, False
        U = U @ R.T
        if 1.0 - float(np.abs(np.diagonal(R)).min()) < SETTLED:
            return polar(U), True
    return polar(U), False


def tail_sums(
    shape: tuple[int, int], turned: Callable[[slice], np.ndarray], weights: np.ndarray | None = None
) -> TailSums:
    """The sums over sources of this shape, of which `turned` gives some rows, in the precision in which it gives them."""
    samples, n = shape

    def sums(part: slice) -> np.ndarray:
        Y = turned(part)
        slopes = np.tanh(Y)
        counted = slopes if weights is None else slopes * weights[part, None].astype(Y.dtype)
        found = np.empty((n + 1, n))
        found[:n], found[n] = counted.T @ Y, np.einsum("ij,ij->j", counted, slopes)
        return found

    total = float(samples) if weights is None else float(weights.sum())
    means = tiled_sum(parallel.slices(samples, max(64, TILE // n)), sums) / total
    return TailSums(means[:n], 1.0 - means[n])
