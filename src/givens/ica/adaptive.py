"""The signs of sources with heavy and light tails, and a fixed-point iteration that needs no signs.

The iteration of Hyvärinen (1999) replaces each column u of U by E[z φ'(zᵀu)] − E[φ''(zᵀu)] u, and then U by its polar factor.
Near an independent source this is Newton's method, whether its tails are heavy or light. It may cycle where sources are not
independent. So it is run on a sample of the rows only, up to a point where the signs can be determined; the descent that follows
cannot cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from givens.numerics import parallel
from givens.numerics.polar import polar
from givens.numerics.tiles import tiled_sum

SAMPLE = 256  # rows of the sample per column; with a quarter of them, noise made some signs wrong
ITERATIONS = 40
SETTLED = 1e-2  # converged when a step rotates every column by an angle whose 1 − |cos| is below this
TILE = 1 << 14  # entries of Z in a tile


class TailSums(NamedTuple):
    """Means over the samples of sources Y = ZU, for φ = log cosh: E[φ'(y_i) y_j], and E[φ''(y_i)]."""

    products: np.ndarray
    outward: np.ndarray

    @property
    def signs(self) -> np.ndarray:
        """1 for each source with heavy tails, −1 for light tails: the sign of E[φ''(y)] − E[φ'(y) y].

        `source_signs` cannot be used here: its E[φ''(y_i) y_j²] assumes nearly independent sources, and the principal axes, from
        which a run starts, are not.
        """
        return np.where(self.outward >= np.diagonal(self.products), 1, -1)


def sample_stride(samples: int, n: int) -> int:
    """The stride of the rows that are the sample for `fixed_point`."""
    return max(1, samples // (SAMPLE * n))


def fixed_point(A: np.ndarray, U: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """Run the fixed-point iteration for log cosh from U on a sample A of white rows; return the last U, and if it settled."""
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
    """The tail sums of sources of this shape. `turned` returns some of their rows, in whose precision products are computed."""
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
