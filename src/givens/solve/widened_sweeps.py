"""Sweeps of an n x m matrix V, m < n, against a few columns beside it that are chosen anew before each sweep.

A function of V does not depend on the other n − m columns of U = [V W]: they are any completion. With E = ∂f/∂V all pairs of a
column of V and one beside it have the gradient R = (I − VVᵀ)E. So the completion may be turned until R, and the step before, lie
in its first 2m columns: the pairs with all others have the derivative zero. A sweep rotates [V W], with these 2m columns as W, as
one block, of which the first m columns count. Nothing of order n² is ever stored.

The phase converges where a sweep gains at most the square of `tol` times the value, not the scale: a threshold may leave little
of the data.

The states of the objective are arrays with a row for each column (`Columns` in memory): so that of V stays, and only W is new.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Objective
from givens.result import Stop
from givens.rotations import repair
from givens.solve.point import Stiefel
from givens.solve.run import Phase, Run
from givens.solve.state import Ending


class Widened(NamedTuple):
    """A sweep: the point and the state after it, and its gain."""

    point: Stiefel
    state: np.ndarray
    gain: float


class WidenedSweeps(Phase):
    """Rotate V and the columns chosen beside it, as one block."""

    name = "widened sweeps"

    def __init__(self) -> None:
        self.before: np.ndarray | None = None
        self.gain = np.inf

    def advance(self, run: Run) -> float | Ending:
        """One sweep."""
        least = run.tol * abs(run.value())
        if self.gain <= least:
            return Ending(Stop.SMALL_SWEEPS, run.tol, 1)
        point, slopes = run.point, run.look().slopes
        if not isinstance(point, Stiefel) or slopes is None:
            lacking = "it is for n x m matrices, m < n, and objectives with gradients"
            return Ending(Stop.LACKING, text=f"the phase {self.name!r} cannot begin: {lacking}")
        swept = widened_sweep(run.objective, point, run.state, slopes, self.before, least)
        self.before, self.gain = point.Ut[: point.active], swept.gain
        run.progress.sweeps += 1
        if swept.gain > 0.0:
            run.progress.rotations += 1
            run.go_to(swept.point, state=swept.state)
            run.look()
        return swept.gain

    def memory(self) -> dict[str, np.ndarray]:
        """The last gain, and the columns before the last sweep."""
        arrays = {"gain": np.array(self.gain)}
        return arrays if self.before is None else arrays | {"before": self.before}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore them."""
        self.gain, self.before = float(arrays["gain"]), arrays.get("before")


def widened_sweep(
    objective: Objective,
    point: Stiefel,
    state: Any,
    slopes: np.ndarray,
    before: np.ndarray | None = None,
    min_gain: float = 0.0,
) -> Widened:
    """One sweep from a point with this state.

    Parameters
    ----------
    objective : Objective
        Its states are arrays with a row for each column.
    point : Stiefel
    state : array
    slopes : array, shape (m + n, m)
        Those of a look at the point; R is below the slopes inside V.
    before : array, shape (m, n), optional
        The columns of V before the last sweep.
    min_gain : float, default=0.0
        The gain below which a sweep is of no use.
    """
    m = point.active
    W = _directions(point.Ut[:m], slopes[m:].T, before, objective.scale)
    wide, columns = state[:m], point.Ut[:m]
    if len(W):
        wide = np.concatenate([wide, objective.state(np.ascontiguousarray(W.T))])
        columns = np.concatenate([columns, W])
    solved = objective.solve(wide, [np.arange(len(wide))], min_gain)
    gain = float(solved.gains[0])
    if not gain > 0.0:
        return Widened(point, state, 0.0)
    # The next sweep has other columns beside V, so these need not be rotated.
    Qt = np.asarray(solved.rotations[0])[:, :m].T
    after = Stiefel(Qt @ columns, m)
    after.in_place = True
    flop_counts.count(2.0 * m * (wide.size + columns.size))
    return Widened(after, Qt @ wide, gain)


def _directions(Vt: np.ndarray, R: np.ndarray, before: np.ndarray | None, scale: float) -> np.ndarray:
    """An orthonormal basis, transposed, of the gradient's directions and of where the columns came from, beside V."""
    m, n = Vt.shape
    if m == n:
        return np.zeros((0, n))
    D = _of_unit_length(R, scale)
    if before is not None:
        D = np.concatenate([D, _of_unit_length(_beside(Vt, before), 1.0)])
    if len(D) == 0:
        return D
    D = _beside(Vt, D)
    squares, vectors = np.linalg.eigh(D @ D.T)
    some = squares > 1e-8 * squares[-1]  # smaller ones belong to no direction of their own
    some[: max(len(D) - (n - m), 0)] = False
    W = (vectors[:, some] / np.sqrt(squares[some])).T @ D
    flop_counts.count(flop_counts.eigh(len(D)) + (8.0 * m + 4.0 * len(D) + 4.0 * len(W)) * D.size)
    if some.all():
        # The polar factor keeps each direction nearest to the column it belongs to.
        W = vectors @ W
    # Orthonormal but for the rounding errors of what was subtracted.
    return repair(_beside(Vt, W).T).T


def _beside(Vt: np.ndarray, D: np.ndarray) -> np.ndarray:
    """D(I − VVᵀ)."""
    return D - (D @ Vt.T) @ Vt


def _of_unit_length(D: np.ndarray, unit: float) -> np.ndarray:
    """The rows that are larger than rounding errors of numbers as large as `unit`, normalised."""
    sizes = np.linalg.norm(D, axis=1, keepdims=True)
    some = sizes[:, 0] > 1e-12 * max(unit, float(sizes.max(initial=0.0)))
    return D[some] / sizes[some]
