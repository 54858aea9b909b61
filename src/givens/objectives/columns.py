"""A sum over the columns of Y = AU: sparse PCA, ICA, factor rotation.

    f(U) = Σ_j φ((AU)_j)

Rotating columns i and j of U rotates columns i and j of Y, so the state is Y. It is stored transposed: each column of AU is a
contiguous row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import check_data, power, power_of_two
from givens.numerics.tiles import tiles
from givens.objectives.base import Blocks, Look, Objective, Plan, Rotations, Second, Solved
from givens.objectives.contrasts import Contrast, Exp, LogCosh
from givens.objectives.quartic import Kurtosis, Orthomax
from givens.schedules import Schedule, Tournament
from givens.support.arguments import as_array, is_dask

# Rows per column of the samples on which a run may begin, and the smallest number of rows of a sample. The smallest samples are
# for sweeps.
LARGE, SMALL, SMALLEST, LEAST = 256, 64, 24, 1024
# Tolerances of runs on samples, whose minimum is elsewhere, and on all rows in single precision; and of sweeps on samples.
ROUGH, NEAR, ROUGH_SWEEP = 1e-4, 1e-6, 3e-4
# With more columns, Newton's method is not used: the second derivatives are n³/2 sums over the rows.
MOST_TWICE = 128
# Fourth powers of numbers between its inverse and this neither overflow nor underflow in single precision.
LARGEST = 2.0**15

CONTRASTS: dict[str, Callable[[], Contrast]] = {
    "quartimax": lambda: Orthomax(0.0),
    "varimax": lambda: Orthomax(1.0),
    "kurtosis": Kurtosis,
    "logcosh": LogCosh,
    "exp": Exp,
}


class Columns(Objective):
    """The sum of a contrast over the columns of AU.

    Parameters
    ----------
    A : array, or dask array chunked along its rows, shape (rows, n)
        Samples x components for ICA, variables x factors for factor rotation. The rows of a dask array stay in their chunks, and
        only sums over them are sent.
    contrast : str or Contrast
        "varimax", "quartimax", "kurtosis", "logcosh", "exp", or a `Contrast` object such as `Scalar(phi, dphi)`.
    active : int, optional
        Number of columns of AU that are summed over, the first ones (the Stiefel form). By default all.
    weights : array, shape (rows,), optional
        Positive weights of the rows, for "kurtosis", "logcosh", "exp" and `Scalar`. By default 1.

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

    def __new__(cls, A: Any = None, *args: Any, **options: Any) -> Self:
        """An object of the class for dask arrays, if A is one."""
        if is_dask(A) and cls is Columns:
            from givens.objectives.chunked_columns import ChunkedColumns

            cls = ChunkedColumns  # type: ignore[assignment]
        return super().__new__(cls)

    def __init__(
        self,
        A: np.ndarray,
        contrast: str | Contrast,
        active: int | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        A = as_array(A, "A")
        if A.ndim != 2 or A.shape[0] < 1 or A.shape[1] < 1:
            raise ValueError(f"A must be a matrix with at least one row and one column, got shape {A.shape}")
        A = check_data(A, "A")
        self.contrast = as_contrast(contrast)
        self.weights = None
        if weights is not None:
            self.weights = _checked_weights(weights, len(A))
            factors, self.contrast = self.contrast.weighted(self.weights)
            A = A if factors is None else A * factors[:, None]
        degree = self.contrast.degree
        self.divisor = 1.0 if degree is None else _rescaling(A)
        self.factor = self.contrast.sense * (1.0 if degree is None else power(self.divisor, degree))
        self.A = A if self.divisor == 1.0 else A / A.dtype.type(self.divisor)
        self.n = A.shape[1]
        self.active = checked_active(active, self.n)
        self.scale = self.contrast.size(_contiguous(self.A)) or 1.0
        self.rough = ROUGH
        self.single = False  # whether looks are in single precision
        self.sweeping = False  # whether this is a sample for sweeps
        self.trace_slopes = True  # whether looks for the value have slopes too, for the trace

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The identity."""
        return np.eye(self.n)

    def coarse(self) -> Columns | None:
        """With very many rows, evenly spaced ones in single precision; of such a sample, a smaller one; else None.

        A sum over 50,000 rows differs little from one over 10,000, so that most steps can be made on the cheaper one. If the
        plan has Newton's method, all rows in single precision are a cheaper form where they are too few for a sample. If the
        best angle of a pair has a closed form, too, a run begins with sweeps over the smallest sample.
        """
        if self.sweeping or not self.contrast.smooth:
            return None
        sweeping = self.single and self.contrast.exact and self._twice()
        rows = (SMALLEST if sweeping else SMALL if self.single else LARGE) * self.n
        stride = self._height() // max(rows, LEAST)
        everything = stride < 3 and self._twice() and not self.single and self._height() >= LEAST
        if everything:
            stride = 1
        elif stride < 3:
            return None
        A = self._rows(slice(None, None, stride))
        unit = 1.0 if self.contrast.degree is None else power_of_two(A)
        if self.contrast.degree is None and max(float(A.max()), -float(A.min())) > LARGEST:
            return None
        single = np.empty(A.shape, dtype=np.float32)
        np.divide(A, A.dtype.type(unit), out=single, casting="same_kind")
        rough = ROUGH_SWEEP if sweeping else NEAR if everything else ROUGH
        other = self._cheaper(single, rough, stride)
        other.sweeping = sweeping
        return other

    def _height(self) -> int:
        """Number of rows of A."""
        return len(self.A)

    def _rows(self, part: slice) -> np.ndarray:
        """Some rows of A."""
        return self.A[part]

    def _cheaper(self, A: np.ndarray, rough: float, stride: int) -> Columns:
        other = copy(self)
        other.A, other.single, other.rough = A, True, rough
        if self.weights is not None:
            other.weights = self.weights[::stride]
            other.contrast = self.contrast.weighted(other.weights)[1]
        other.scale = other.contrast.size(_contiguous(A)) or 1.0
        return other

    def plan(self) -> Plan:
        """Descent if the contrast is smooth, then Newton's method if it has second derivatives, then sweeps.

        Leaps and sweeps if it is not smooth; sweeps alone if pairs have a closed form and the rows are few.
        """
        phases: tuple[str, ...] = ("leaps", "sweeps")
        if self.contrast.smooth:
            newton = ("newton",) if self._twice() else ()
            cheap = self.contrast.exact and len(self.A) < LEAST
            phases = ("sweeps",) if cheap or self.sweeping else ("descent", *newton, "sweeps")
        return Plan(
            phases=phases,
            schedule=self._schedule(),
            coarse=self.coarse,
            rough=self.rough,
            second=self._second if self._twice() else None,
            state_flops=2.0 * self.A.size * self.n,
            rounding=_single_rounding(self.n) if self.A.dtype == np.float32 else 0.0,
        )

    def _twice(self) -> bool:
        """Whether to use second derivatives."""
        return self.contrast.twice and self.n <= MOST_TWICE

    def _second(self, state: np.ndarray, Q: np.ndarray) -> Second:
        return self.contrast.second(state, self.active, Q)

    def _schedule(self) -> Schedule:
        """A tournament, with the contrast's size of blocks."""
        return Tournament(block=self.contrast.block(self.n))

    def data(self) -> list[np.ndarray | str]:
        """The matrix A, the power of two it was divided by, the contrast, and the weights."""
        weights = [] if self.weights is None else [self.weights]
        return [self.A, np.array(self.divisor), repr(self.contrast), *weights]

    def state(self, U: np.ndarray) -> np.ndarray:
        """(AU)ᵀ."""
        Y = np.empty((self.n, len(self.A)), dtype=self.A.dtype)
        Ut = np.ascontiguousarray(U.T, dtype=self.A.dtype)

        def tile(rows: slice) -> None:
            np.matmul(Ut, self.A[rows].T, out=Y[:, rows])

        parallel.each(tile, tiles(self.n, len(self.A)))
        return Y

    def value(self, state: np.ndarray) -> float:
        """Evaluate f."""
        return self.contrast.value(state, self.active)

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes and curvatures, by one pass over Y, or over YQ tile by tile."""
        if Q is None and not (slopes or self.trace_slopes):
            return Look(self.value(state))
        return self.contrast.look(state, self.active, Q, self.single)

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> Solved:
        """Solve the contrast's pair problem for each pair; for each larger block, rotate its pairs on a copy of its columns."""
        note = self.contrast.note
        error = math.nan if note else 0.0
        if isinstance(blocks, np.ndarray):
            return Solved(*self.contrast.solve_pairs(state, blocks, self.active), note=note, error=error)
        counting = [int(np.sum(block < self.active)) for block in blocks]
        found = [self.contrast.solve_block(state, block, a, min_gain) for block, a in zip(blocks, counting)]
        rotations, gains, rotated, flops, payload = zip(*found)
        return Solved(rotations, np.array(gains), sum(rotated), sum(flops), payload, note, error)

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate the columns of Y."""
        if isinstance(blocks, np.ndarray):
            from givens.kernels.rotate import rotate_rows

            Q = np.asarray(rotations)
            shares = parallel.parts(len(blocks), parallel.width())
            parallel.each(lambda share: rotate_rows(state, blocks[share], Q[share]), shares)
            return 6.0 * len(blocks) * state.shape[1]

        from givens.kernels.rotate import rotate_block

        if len(blocks) == 1 and len(blocks[0]) == len(state):
            return self._turn(state, rotations[0])

        def part(work: tuple[int, slice]) -> None:
            Qt = np.ascontiguousarray(rotations[work[0]].T, dtype=state.dtype)
            rotate_block(state, blocks[work[0]], Qt, work[1].start, work[1].stop)

        # Two pieces for each block, so that a few blocks keep all threads busy.
        pieces = parallel.parts(state.shape[1], 2)
        parallel.each(part, [(k, rows) for k in range(len(blocks)) for rows in pieces])
        return float(sum(2 * len(block) ** 2 for block in blocks)) * state.shape[1]

    def _turn(self, state: np.ndarray, Q: np.ndarray) -> float:
        """Rotate all columns, without gathering those of a block."""
        Qt = np.ascontiguousarray(Q.T, dtype=state.dtype)

        def tile(part: slice) -> None:
            state[:, part] = Qt @ state[:, part]

        parallel.each(tile, tiles(len(state) // 2, state.shape[1]))
        return 2.0 * len(Q) ** 2 * state.shape[1]


def _contiguous(A: np.ndarray) -> np.ndarray:
    """A or its transpose, whichever is contiguous, to avoid a copy; for sums over all entries."""
    return A.T if A.flags.f_contiguous else np.ascontiguousarray(A)


def _single_rounding(n: int) -> float:
    """Relative error of slopes, if Y is rotated in single precision; errors of eps in an angle cost a gain of eps²."""
    return n * 4 * float(np.finfo(np.float32).eps)


def _rescaling(A: np.ndarray) -> float:
    """The power of two to divide A by; 1, which saves a copy, if fourth powers neither overflow nor underflow."""
    factor = power_of_two(A)
    return 1.0 if 1 / LARGEST <= factor <= LARGEST and A.dtype == np.float64 else factor


def _checked_weights(weights: np.ndarray, rows: int) -> np.ndarray:
    checked = check_data(weights, "weights", 1).astype(np.float64)
    if len(checked) != rows or not (checked > 0).all():
        raise ValueError(
            f"weights must be {rows} positive numbers, one for each row of A; leave out rows that do not count"
        )
    return checked


def checked_active(active: int | None, n: int) -> int:
    """The number of active columns, n by default."""
    if active is None:
        return n
    if not 1 <= active <= n or int(active) != active:
        raise ValueError(f"active must be between 1 and the number of columns, {n}, got {active!r}")
    return active


def as_contrast(contrast: str | Contrast) -> Contrast:
    """A contrast from its name, or itself."""
    if isinstance(contrast, Contrast):
        return contrast
    if isinstance(contrast, str) and contrast in CONTRASTS:
        return CONTRASTS[contrast]()
    names = ", ".join(repr(name) for name in CONTRASTS)
    raise ValueError(f"there is no contrast {contrast!r}; it is one of {names}, or a Contrast object")
