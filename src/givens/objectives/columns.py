"""A sum over the columns of Y = AU: sparse PCA, ICA, factor rotation.

    f(U) = Σ_j φ((AU)_j)

Rotating columns i and j of U rotates columns i and j of Y, so the state is Y if the rows of A are in memory. If they are in
chunks, the state is U, and only sums over rows are sent. `turned_rows` has these two.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from givens.numerics.scaling import check_data, power
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Product, Rotations
from givens.objectives.contrasts import Contrast, Exp, LogCosh
from givens.objectives.quartic import Kurtosis, Orthomax
from givens.objectives.turned_rows import (
    MIN_SAMPLE_ROWS,
    SAMPLE_ROWS_PER_COLUMN,
    HeldRows,
    PassedRows,
    TurnedRows,
)
from givens.schedules import Schedule, Tournament
from givens.support.arguments import is_dask, whole


class Columns(Objective):
    """The sum of a contrast over the columns of AU.

    Parameters
    ----------
    A : array, dask array chunked along its rows, or TurnedRows, shape (rows, n)
        Samples x components for ICA, variables x factors for factor rotation. The rows of a dask array stay in their chunks, and
        only sums over them are sent. `TurnedRows` may be transformed on the way, as by the whitening of ICA.
    contrast : str or Contrast
        "varimax", "quartimax", "kurtosis", "logcosh", "exp", or a `Contrast` object such as `Scalar(phi, dphi)`.
    active : int, optional
        Number of columns of AU that are summed over, the first ones (the Stiefel form). By default all.
    weights : array, shape (rows,), optional
        Positive weights of the rows, for "kurtosis", "logcosh", "exp" and `Scalar`, in memory. By default 1.

    Examples
    --------
    Varimax rotation of a loading matrix:

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns
    >>> A = np.array([[0.8, 0.3], [0.7, 0.2], [0.2, 0.9], [0.1, 0.6]])
    >>> result = minimize(Columns(A, "varimax"))
    >>> (A @ result.U).round(2)
    array([[0.81, 0.26],
           [0.71, 0.17],
           [0.24, 0.89],
           [0.13, 0.59]])
    """

    def __init__(
        self,
        A: Any,
        contrast: str | Contrast,
        active: int | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        rows = _rows_of(A, weights)
        self.unweighted = as_contrast(contrast)
        self.rows: TurnedRows
        self.rows, self.contrast, self.divisor = rows.prepared(self.unweighted)
        degree = self.contrast.degree
        self.factor = self.contrast.sense * (1.0 if degree is None else power(self.divisor, degree))
        self.n = rows.n
        self.shape = (self.n, self.n)
        self.active = (
            self.n if active is None else whole(active, "active", 1, self.n, "the number of columns")
        )
        self.scale = rows.count / len(self.rows.sample(rows.stride)) * self._size(rows.stride) or 1.0
        self.sampled = False  # whether this is the sum over a sample of the rows
        self.trace_slopes = True  # whether looks for the value have slopes too, for the trace
        self.method = self._phases()

    def start(self, rng: np.random.Generator) -> np.ndarray | Columns:
        """The identity; with very many rows, where the sum over some of them is least."""
        return self.coarse() or np.eye(self.n)

    def coarse(self) -> Columns | None:
        """With very many rows, the sum over evenly spaced ones, on which most steps can be made; else None.

        A sum over 50,000 rows differs little from one over 5,000. If the best angle of a pair has a closed form and the plan has
        Newton's method, a run on the sample is made of sweeps.
        """
        if self.sampled or not self.rows.samples_fit:
            return None
        # Sweeps begin on fewer rows, since each of them goes farther than a step of descent.
        per_column = 24 if self._sweeps_cheaply() else SAMPLE_ROWS_PER_COLUMN
        stride = self.rows.count // max(per_column * self.n, MIN_SAMPLE_ROWS)
        if stride < 3:
            return None
        other = copy(self)
        A, weights = self.rows.sample(stride), self.rows.weights
        other.rows = HeldRows(A, weights=None if weights is None else weights[::stride])
        other.contrast, other.sampled = self._weighted(stride), True
        other.scale, other.method = other._size(1) or 1.0, other._phases()
        return other

    def _size(self, stride: int) -> float:
        """The size of f on one row in `stride`: the sum of the contrast over all entries, times the mean weight."""
        entries = _contiguous(self.rows.sample(stride)).reshape(1, -1)
        size = float(self.unweighted.sums(entries, 1, slopes=False)[0].sum())
        if not np.isfinite(size):
            raise ValueError(f"the contrast {self.contrast!r} is not finite on this data: its sum is {size}")
        weights = self.rows.weights
        if weights is None or self.contrast is self.unweighted:  # which has its weights in the rows
            return abs(size)
        return abs(size) * float(weights[::stride].mean())

    def _weighted(self, stride: int) -> Contrast:
        """The contrast for one row in `stride`."""
        weights = self.rows.weights
        return self.contrast if weights is None else self.contrast.weighted(weights[::stride])[1]

    def _sweeps_cheaply(self) -> bool:
        return self.contrast.exact and self.second is not None

    def _phases(self) -> tuple[str | Schedule, ...]:
        """Descent, then Newton's method if the contrast has second derivatives, then sweeps.

        Sweeps alone if pairs have a closed form and the rows are few.
        """
        sweeps = Tournament(block=self.rows.block(self.contrast))
        if isinstance(self.rows, PassedRows):
            if not isinstance(self.contrast, Orthomax):
                return ("descent",)
            # All columns as one block: its moments take one pass.
            return (sweeps,) if sweeps.block == self.n else ("descent", sweeps)
        if (self.contrast.exact and self.rows.count < MIN_SAMPLE_ROWS) or (
            self.sampled and self._sweeps_cheaply()
        ):
            return (sweeps,)
        return ("descent", sweeps) if self.second is None else ("descent", "newton", sweeps)

    @property
    def second(self) -> Callable[[np.ndarray, np.ndarray], Product] | None:
        """The second derivatives, which are sums over all rows in memory; None if runs should not use them."""
        second = self.contrast.second
        # They are n³/2 sums over the rows: 160 columns converge in half of the time without them.
        if second is None or self.n > 128 or isinstance(self.rows, PassedRows):
            return None
        return lambda state, Q: second(state, self.active, Q)

    def state(self, U: np.ndarray) -> np.ndarray:
        """(AU)ᵀ if the rows are in memory, Uᵀ if they are in chunks."""
        return self.rows.state(U)

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes and curvatures, by one pass over Y, or over YQ tile by tile; or by one pass over chunks."""
        slopes = slopes or self.trace_slopes or Q is not None
        return self.rows.look(state, self.contrast, self.active, Q, slopes)

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """Solve the contrast's pair problem for each pair; rotate the pairs of larger blocks."""
        solved = self.rows.solve(state, self.contrast, self.active, blocks, min_gain)
        # Rows in single precision are turned in it, and errors of eps in an angle cost eps².
        solved.gains[solved.gains <= self.rows.rounding**2 * self.scale] = 0.0
        return solved

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the columns of Y, or of U."""
        self.rows.apply(state, blocks, rotations)


def _rows_of(A: Any, weights: np.ndarray | None) -> TurnedRows:
    """The rows of an array, or of a dask array; rows that can be turned as they are."""
    if isinstance(A, TurnedRows):
        if weights is not None:
            raise ValueError(
                "weights are for an array A: TurnedRows have their own, so give these to HeldRows"
            )
        return A
    if is_dask(A):
        from givens.data.rows import Rows

        if weights is not None:
            raise ValueError("weights are for rows in memory: leave them out with a dask array")
        rows = Rows(A)
        return PassedRows(rows, rows.samples or 0)
    A = check_data(A, "A", 2)
    if A.size == 0:
        raise ValueError(f"A must be a matrix with at least one row and one column, got shape {A.shape}")
    return HeldRows(A, weights=None if weights is None else _checked_weights(weights, len(A)))


def _contiguous(A: np.ndarray) -> np.ndarray:
    """A or its transpose, whichever is contiguous, to avoid a copy; for sums over all entries."""
    return A.T if A.flags.f_contiguous else np.ascontiguousarray(A)


def _checked_weights(weights: np.ndarray, rows: int) -> np.ndarray:
    checked = check_data(weights, "weights", 1).astype(np.float64)
    if len(checked) != rows or not (checked > 0).all():
        raise ValueError(
            f"weights must be {rows} positive numbers, one for each row of A; leave out rows that do not count"
        )
    return checked


def as_contrast(contrast: str | Contrast) -> Contrast:
    """A contrast from its name, or itself."""
    if isinstance(contrast, Contrast):
        return contrast
    known: dict[str, Callable[[], Contrast]] = {
        "quartimax": lambda: Orthomax(0.0),
        "varimax": lambda: Orthomax(1.0),
        "kurtosis": Kurtosis,
        "logcosh": LogCosh,
        "exp": Exp,
    }
    if isinstance(contrast, str) and contrast in known:
        return known[contrast]()
    names = ", ".join(repr(name) for name in known)
    raise ValueError(f"there is no contrast {contrast!r}; it is one of {names}, or a Contrast object")
