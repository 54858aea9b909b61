"""Sparse components with exact counts of non-zeros, of as large an adjusted variance as can be found.

The scores of unit loadings, E = XZᵀ = QR, have the adjusted variance Σ R_jj² (`givens.metrics`), whose derivative is
2·Q D² R⁻ᵀ, D = diag R. So with

    W = Q D² R⁻ᵀ,        z_j ← the counts[j] largest entries of Xᵀw_j, normalised

the linearised variance rises as far as the counts permit, and the best step is kept. Which count belongs to which component
is free as well: counts are matched to the columns y_j = Xᵀw_j/‖w_j‖, for the largest sum of counted squares.

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
from givens.sparse_pca.forms import ProductForm, SampleForm, SparseRows, largest, product
from givens.sparse_pca.loadings import directions, reported_order
from givens.support.progress import Bar

PHASE = "truncated power"
STEP_GROWTH = 3e-4  # of the explained variance; a step that brings less is the last
SETTLED_GROWTH, SETTLING_STEPS = (
    1e-9,
    200,
)  # the same for values on features that no longer change; and the most steps


@dataclass
class Ascent:
    """Loadings, and how they were reached.

    `W` has rows of unit length, `Y` is WX, in which the next loadings would be counted; `explained` is the adjusted variance as
    a sum of squares, `gradient_norm` that of its derivative by the loadings' values, on the sphere of each.
    """

    loadings: SparseRows
    W: np.ndarray
    Y: np.ndarray
    scores: np.ndarray
    explained: float
    gradient_norm: float
    flops: float
    trace: Trace
    converged: bool = False
    message: str = ""

    def smallest_counted(self) -> np.ndarray:
        """Of |Y|, in each row."""
        return self._sorted(0)

    def largest_uncounted(self) -> np.ndarray:
        """Of |Y|, in each row; 0 where all are counted."""
        return self._sorted(1)

    def _sorted(self, beyond: int) -> np.ndarray:
        sizes, places = np.abs(self.Y), self.Y.shape[1] - self.loadings.counts() - beyond
        return np.array([np.partition(row, k)[k] if k >= 0 else 0.0 for row, k in zip(sizes, places)])


def matched(Y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The counts in the order that gives the rows of Y the largest sum of counted squares.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.truncated_power import matched
    >>> matched(np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), np.array([3, 1]))
    array([1, 3])
    """
    distinct, which = np.unique(counts, return_inverse=True)
    if len(distinct) == 1:
        return counts
    held = np.array([_held_by(y * y, distinct) for y in Y])
    # Of two equally good orders the present one is kept.
    gain = held[:, which] + np.diag(1e-12 * held.max(axis=1))
    return counts[linear_sum_assignment(gain, maximize=True)[1]]


def _held_by(squares: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The sums of the largest squares, for each of the ascending counts; leaves the squares in disorder."""
    most, next_one, held = counts[-1], counts[-2], np.empty(len(counts))
    squares.partition(len(squares) - most)
    top = squares[len(squares) - most :]
    held[-1] = top.sum()
    top.partition(most - next_one)
    top = top[most - next_one :]
    top.sort()
    held[:-1] = top[::-1].cumsum()[counts[:-1] - 1]
    return held


def cut(Y: np.ndarray, counts: np.ndarray) -> SparseRows:
    """The largest entries of each row, of unit length."""
    pairs = [largest(y, int(count)) for y, count in zip(Y, counts)]
    return SparseRows([where for where, _ in pairs], [values for _, values in pairs])


def settled(
    table: SampleForm | ProductForm, loadings: SparseRows, asked: np.ndarray, growth: float = SETTLED_GROWTH
) -> tuple[SparseRows, float]:
    """The same features with the values that explain most, and the flops: steps on these features alone.

    They end with the step that brings no more than the share `growth`.
    """
    features, inverse = np.unique(np.concatenate(loadings.where), return_inverse=True)
    part, ends = table.part(features), np.cumsum(loadings.counts())[:-1]
    here = SparseRows(np.split(inverse, ends), loadings.values)
    before, flops, counts = -np.inf, 0.0, loadings.counts()
    for _ in range(SETTLING_STEPS):
        E, A = part.scores(here)
        W, held = directions(E, reported_order(E, counts, asked))
        flops += part.product_flops(len(counts), 0)
        if held <= before * (1 + growth):
            break
        before, loadings = held, SparseRows(loadings.where, here.values)
        values = [y[where] for y, where in zip(W @ A, here.where)]
        here = SparseRows(here.where, [z / (np.linalg.norm(z) or 1.0) for z in values])
    return loadings, flops


def ascend(
    table: SampleForm | ProductForm,
    loadings: SparseRows,
    asked: np.ndarray,
    tol: float,
    max_steps: int,
    shown: Bar,
) -> Ascent:
    """Raise the adjusted variance of loadings with as many non-zeros, as far as it goes; the best of all steps.

    It is the variance as it is reported: in the order in which the counts were `asked` for.
    """
    began, flops, trace = perf_counter(), 0.0, Trace()
    counts, free, done = loadings.counts(), True, False
    best: Ascent | None = None
    tol = max(tol, STEP_GROWTH)
    for step in range(max_steps + 1):
        if best is not None and loadings.same_features(best.loadings):
            loadings, spent = settled(table, loadings, asked)
            flops += spent
        E, A = table.scores(loadings)
        W, held = directions(E, reported_order(E, loadings.counts(), asked))
        m, n = E.shape
        flops += table.product_flops(0, int(counts.sum())) + flop_counts.qr(n, m) + 2.0 * m * m * n
        done = best is not None and held <= best.explained * (1 + tol)
        if best is None or held > best.explained:
            size = np.linalg.norm(W, axis=1)
            W /= np.where(size > 0, size, 1.0)[:, None]
            Y = product(W, A)
            flops += table.product_flops(m, 0)
            best = Ascent(loadings, W, Y, E, held, _slope(loadings, Y, size), flops, trace)
        shown.step("truncated power", step, max_steps, 1)
        # The last step may lower the variance; then the one before it is returned.
        trace.append(
            step, perf_counter() - began, flops, best.explained, best.gradient_norm, PHASE if step else ""
        )
        shown.show(held, np.nan if step == 0 else held / trace.value[-2] - 1)
        if done:
            break
        if free:
            before, counts = counts, matched(Y, counts)
            free = not np.array_equal(before, counts)
        loadings = cut(Y, counts)
    assert best is not None
    best.converged, best.flops = done, flops
    if best.converged:
        best.message = f"converged: a step did not raise the explained variance by {tol:g} of it"
    else:
        best.message = f"not converged: max_sweeps = {max_steps} reached"
    return best


def _slope(loadings: SparseRows, Y: np.ndarray, size: np.ndarray) -> float:
    """The norm of the derivative, 2·size·y on each pattern, beside the loading itself."""
    total = 0.0
    for where, z, y, length in zip(*loadings, Y, size):
        own = y[where]
        total += 4.0 * float(length) ** 2 * max(float(own @ own - (own @ z) ** 2), 0.0)
    return float(np.sqrt(total))
