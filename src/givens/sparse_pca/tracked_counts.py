"""Rotations whose thresholds track counts: exactly so many entries of each column exceed them.

The thresholds are moved before each sweep. The value then belongs to another threshold each time and need not rise; what is kept
is the sweep whose counted entries make the loadings of the largest adjusted variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from givens.metrics import total_adjusted
from givens.numerics import flop_counts
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.scaling import EPS
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import ProductRows, SparseColumns
from givens.result import Trace
from givens.solve.outer_loops import iterate
from givens.solve.point import Stiefel
from givens.solve.run import checked_look
from givens.solve.widened_sweeps import widened_sweep
from givens.sparse_pca.forms import largest_beyond
from givens.sparse_pca.options import FitOptions

PATIENCE_SWEEPS = 2  # the explained variance may fall and rise again
SWEEP_GROWTH = 3e-3  # of the explained variance in so many sweeps


@dataclass(frozen=True)
class TrackedColumns:
    """V and the columns AV, one per row, with thresholds that so many of their entries exceed.

    Attributes
    ----------
    Y, before : array
        (AV)ᵀ, and Vᵀ before the last sweep.
    objective : SparseColumns
        With these thresholds.
    slopes : array
    value, gradient_norm : float
        Of the objective.
    scores : array, shape (m, n)
        Of the counted entries as unit loadings.
    explained : float
        Their adjusted variance.
    """

    point: Stiefel
    Y: np.ndarray
    before: np.ndarray | None
    objective: SparseColumns
    slopes: np.ndarray
    value: float
    gradient_norm: float
    scores: np.ndarray
    explained: float


@dataclass(frozen=True)
class TrackedRun:
    """The best columns of a run, and how it went."""

    best: TrackedColumns
    trace: Trace
    rotations: int
    converged: bool


def track(
    At: np.ndarray | CentredSparse, options: FitOptions, V: np.ndarray, l0: bool, *, shared: bool = False
) -> TrackedRun:
    """Sweeps from V, as long as the counted entries explain more; with `shared`, one threshold for all columns."""
    assert options.counts is not None
    counts, began, trace, rotations = options.counts, perf_counter(), Trace(), 0
    data = SparseColumns(ProductRows(At.T), 0.0, "l0" if l0 else "l1", options.m)
    best: TrackedColumns | None = None

    def seen(point: Stiefel, Y: np.ndarray, before: np.ndarray | None) -> TrackedColumns:
        levels = counted_levels(Y, counts, shared)
        objective = data.at_levels(levels)
        look = checked_look(objective.look(Y), point)
        assert look.slopes is not None
        Z = np.where(np.abs(Y) > levels[:, None], Y, 0.0)
        sizes = np.linalg.norm(Z, axis=1, keepdims=True)
        E = scores(Z / np.where(sizes > 0, sizes, 1.0), At, few=True)
        norm = point.norm(look.slopes)
        return TrackedColumns(
            point, Y, before, objective, look.slopes, -look.value, norm, E, total_adjusted(E)
        )

    def step(last: TrackedColumns | None) -> tuple[float, TrackedColumns]:
        nonlocal best, rotations
        if last is None:
            here = seen(Stiefel(np.ascontiguousarray(V.T), options.m), data.state(V), None)
        else:
            swept = widened_sweep(last.objective, last.point, last.Y, last.slopes, last.before)
            rotations += int(swept.gain > 0.0)
            here = seen(swept.point, swept.state, last.point.Ut)
        phase, seconds = "sweeps" if last else "", perf_counter() - began
        trace.append(len(trace), seconds, counter.flops, here.value, here.gradient_norm, phase)
        if best is None or here.explained > best.explained:
            best = here
        return here.explained, here

    with flop_counts.job(flop_counts.Flops()) as counter:
        found = iterate(
            step, None, SWEEP_GROWTH, options.max_iter + 1, relative=True, patience=PATIENCE_SWEEPS
        )
    assert best is not None
    return TrackedRun(best, trace, rotations, found.converged)


def counted_levels(Y: np.ndarray, counts: np.ndarray, shared: bool = False) -> np.ndarray:
    """A level for each row of Y, just above the largest entry that is not counted; with `shared`, one for all rows."""
    # Above it, since squares of equal numbers may compare as unequal where they are fused with a subtraction.
    margin = 1 + 4 * EPS
    if shared:
        return np.full(len(Y), margin * largest_beyond(Y, int(counts.sum())))
    return np.array([margin * largest_beyond(y, int(count)) for y, count in zip(Y, counts)])
