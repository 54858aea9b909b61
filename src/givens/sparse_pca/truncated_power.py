"""Sparse components with exact counts of non-zeros, of as large an adjusted variance as can be found.

The scores of unit loadings, E = XZᵀ = QR, have the adjusted variance Σ R_jj² (`givens.metrics`), whose derivative is
2·Q D² R⁻ᵀ, D = diag R. So with

    W = Q D² R⁻ᵀ,        z_j ← the counts[j] largest entries of Xᵀw_j, normalised

the linearised variance rises as far as the counts permit, and the best step is kept. W are combinations of the scores, so Xᵀw_j
are combinations of the images ZXᵀX. Which count belongs to which component is free as well: counts are matched to the columns
y_j = Xᵀw_j/‖w_j‖, for the largest sum of counted squares; or, if only the sum of all counts is given, the largest entries of all
columns are counted.

The result depends on the start: see `givens.sparse_pca.cardinality`.

Arrays are stored one component per row; `givens.sparse_pca.forms` has the representations of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from scipy.optimize import linear_sum_assignment

from givens.numerics import flop_counts
from givens.result import Trace
from givens.solve.outer_loops import iterate
from givens.sparse_pca.forms import (
    SETTLED_GROWTH,
    ImagedLoadings,
    ProductForm,
    SampleForm,
    SparseRows,
    largest,
    largest_beyond,
    settled,
)
from givens.support.progress import Bar

PHASE = "truncated power"
STEP_GROWTH = 3e-4  # of the explained variance; a step that brings less is the last


@dataclass
class Ascent:
    """Loadings, and how they were reached.

    `Y` is WX for W with rows of unit length, in which the next loadings would be counted; `explained` is the adjusted variance
    as a sum of squares, `gradient_norm` that of its derivative by the loadings' values, on the sphere of each.
    """

    here: ImagedLoadings
    Y: np.ndarray
    explained: float
    gradient_norm: float
    trace: Trace
    converged: bool = False

    def smallest_counted(self) -> np.ndarray:
        """Of |Y|, in each row."""
        return np.array([largest_beyond(y, n - 1) for y, n in zip(self.Y, self.here.rows.counts())])

    def largest_uncounted(self) -> np.ndarray:
        """Of |Y|, in each row; 0 where all are counted."""
        return np.array([largest_beyond(y, n) for y, n in zip(self.Y, self.here.rows.counts())])


def matched(Y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The counts in the order that gives the rows of Y the largest sum of counted squares.

    Examples
    --------
    >>> import numpy as np
    >>> matched(np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), np.array([3, 1]))
    array([1, 3])
    """
    distinct, which = np.unique(counts, return_inverse=True)
    if len(distinct) == 1:
        return counts
    largest_sums = np.array([_largest_sums(y * y, distinct) for y in Y])
    # Of two equally good orders the present one is kept.
    gain = largest_sums[:, which] + np.diag(1e-12 * largest_sums.max(axis=1))
    return counts[linear_sum_assignment(gain, maximize=True)[1]]


def _largest_sums(squares: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The sums of the largest squares, for each of the ascending counts; leaves the squares in disorder."""
    most, next_one, sums = counts[-1], counts[-2], np.empty(len(counts))
    squares.partition(len(squares) - most)
    top = squares[len(squares) - most :]
    sums[-1] = top.sum()
    top.partition(most - next_one)
    top = top[most - next_one :]
    top.sort()
    sums[:-1] = top[::-1].cumsum()[counts[:-1] - 1]
    return sums


def cut(Y: np.ndarray, counts: np.ndarray) -> SparseRows:
    """The largest entries of each row, of unit length."""
    pairs = [largest(y, int(count)) for y, count in zip(Y, counts)]
    return SparseRows([where for where, _ in pairs], [values for _, values in pairs])


def divided(Y: np.ndarray, total: int) -> np.ndarray:
    """How many of the `total` largest entries of Y stand in each row, at least one.

    >>> divided(np.array([[0.1, 0.0, 0.2], [3.0, 2.0, -1.0]]), 4)
    array([1, 3])
    """
    sizes = np.abs(Y)
    sizes[np.arange(len(Y)), sizes.argmax(axis=1)] = np.inf
    order = np.argsort(-sizes, axis=None, kind="stable")[:total]
    return np.bincount(order // Y.shape[1], minlength=len(Y))


def ascend(
    table: SampleForm | ProductForm,
    rows: SparseRows,
    asked: np.ndarray,
    tol: float,
    max_iter: int,
    shown: Bar,
    growth: float = SETTLED_GROWTH,
    earlier: Trace | None = None,
    *,
    divide: bool = False,
) -> Ascent:
    """Raise the adjusted variance of loadings with as many non-zeros, as far as it goes; the best of all steps.

    It is the variance as it is reported: in the order in which the counts were `asked` for; or, if only their sum was asked for
    and they are to `divide` it, the largest count first. Values on features that no longer change are sought until a step brings
    no more than the share `growth`. The trace of an earlier ascent, if there is one, goes on.
    """
    began, trace, best = perf_counter(), earlier or Trace(), None
    seconds_before, flops_before = (trace.seconds[-1], trace.flops[-1]) if len(trace) else (0.0, 0.0)
    tol = max(tol, STEP_GROWTH)

    def step(rows: SparseRows) -> tuple[float, SparseRows]:
        nonlocal best
        counts = rows.counts()
        order = np.sort(counts)[::-1] if divide else asked
        if best is not None and rows.same_features(best.here.rows):
            rows = settled(table, rows, order, growth)
        here = ImagedLoadings.of(table, rows)
        T, lengths, explained = here.directions(order)
        continued = best is None and len(trace) > 0  # where the earlier ascent ended
        # The last step may lower the variance; then the one before it is returned.
        if best is None or explained > best.explained:
            Y = here.columns(T, lengths)
            best = Ascent(here, Y, explained, _slope(rows, Y, lengths), trace)
        number = len(trace)
        shown.show(PHASE, number, explained, explained / trace.value[-1] - 1 if number else np.nan)
        seconds, flops = seconds_before + perf_counter() - began, flops_before + counter.flops
        if not continued:
            trace.append(number, seconds, flops, best.explained, best.gradient_norm, PHASE if number else "")
        return explained, cut(
            best.Y, divided(best.Y, int(counts.sum())) if divide else matched(best.Y, counts)
        )

    with flop_counts.job(flop_counts.Flops()) as counter:
        found = iterate(step, rows, tol, max_iter + 1, relative=True)
    assert best is not None
    best.converged = found.converged
    return best


def _slope(loadings: SparseRows, Y: np.ndarray, size: np.ndarray) -> float:
    """The norm of the derivative, 2·size·y on each pattern, beside the loading itself."""
    total = 0.0
    for where, z, y, length in zip(*loadings, Y, size):
        own = y[where]
        total += 4.0 * float(length) ** 2 * max(float(own @ own - (own @ z) ** 2), 0.0)
    return float(np.sqrt(total))
