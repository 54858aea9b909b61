"""From ready data to sparse loadings: starts, the rotations, solveForZ, exact counts, refitting; in a pool that is open."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.minimize import minimize
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import SparseColumns
from givens.result import Result
from givens.schedules import Schedule
from givens.sparse_pca.data import principal_axes
from givens.sparse_pca.few_components import FewColumns
from givens.sparse_pca.loadings import keep_largest, refit, shrink, unit_rows
from givens.sparse_pca.truncated_power import reported_order

FLAT = 1e-12  # of the value: a gradient that is rounding
REFIT = 1e-5  # growth of the explained variance below which values are not refitted any further


@dataclass(frozen=True)
class FitOptions:
    """What a fit is asked for; `level` and `counts` exclude each other."""

    m: int
    level: float
    l0: bool
    counts: np.ndarray | None
    refit: bool
    tol: float
    max_sweeps: int
    n_starts: int
    threads: int | None
    progress: bool
    schedule: Schedule | None = None


@dataclass
class Loadings:
    """Unit loadings (rows of zeros where nothing exceeds the threshold), and how they were found.

    `Y` is the rotated data before the threshold, `levels` one threshold per component; `scores` are samples x components.
    """

    Z: np.ndarray
    Y: np.ndarray
    levels: np.ndarray
    result: Result
    scores: np.ndarray


def solve(
    At: np.ndarray, options: FitOptions, start: np.ndarray | None, rng: np.random.Generator
) -> Loadings:
    """The best of several starts: by the value, or with counts by the adjusted variance."""
    best: tuple[float, Loadings] | None = None
    results, reached = [], []
    for k in range(options.n_starts):
        if k == 0:
            V = principal_axes(At, options.m)[0] if start is None else start
        else:
            V = np.linalg.qr(rng.standard_normal((len(At), options.m)))[0]
        merit, found = _from(At, options, V, rng)
        results.append(found.result)
        reached.append(merit)
        if best is None or merit > best[0]:
            best = merit, found
    assert best is not None
    found = best[1]
    if len(results) > 1:
        found.result = replace(
            found.result,
            sweeps=sum(result.sweeps for result in results),
            rotations=sum(result.rotations for result in results),
            flops=sum(result.flops for result in results),
            method=f"{found.result.method}; the best of {len(results)} starts",
            starts=np.array(reached),
        )
    return found


def _from(
    At: np.ndarray, options: FitOptions, V: np.ndarray, rng: np.random.Generator
) -> tuple[float, Loadings]:
    if options.counts is not None:
        return _counted(At, options, options.counts, V)
    if options.m == len(At) or options.schedule is not None:
        result, Y = _whole(At, options, V, rng)
    else:
        objective = FewColumns(At, np.full(options.m, options.level), options.l0)
        result = _few(objective, options, V)
        Y = objective.columns
    levels = np.full(options.m, options.level)
    # Values that are to be refitted begin with the columns' own, which the threshold has not shrunk.
    if options.l0 or options.refit:
        Z = unit_rows(shrink(Y, options.level**2, "l0"))
    else:
        Z = unit_rows(shrink(Y, options.level))
    if options.refit:
        Z = refit(At, Z, tol=REFIT)
    return result.value, Loadings(Z, Y, levels, result, scores(Z, At, few=True)[0].T)


def _counted(
    At: np.ndarray, options: FitOptions, counts: np.ndarray, V: np.ndarray
) -> tuple[float, Loadings]:
    """Exact counts by rotations with thresholds that follow."""
    objective = FewColumns(At, np.zeros(options.m), options.l0, counts)
    result = _few(objective, options, V)
    Y = objective.columns
    S = np.where(keep_largest(Y, counts), Y, 0.0)
    size = np.linalg.norm(S, axis=1, keepdims=True)
    E = objective.scores / np.where(size > 0, size, 1.0)
    order = reported_order(E, counts, counts)
    found = Loadings(unit_rows(S)[order], Y[order], objective.levels[order], result, E[order].T)
    return float(adjusted_from_scores(found.scores).sum()) * max(len(At) - 1, 1), found


def rotated(
    At: np.ndarray, options: FitOptions, V: np.ndarray, *, shared: bool, l0: bool
) -> tuple[np.ndarray, Result]:
    """The columns that rotations end at whose thresholds follow the counts: one for each column, or one shared by all."""
    assert options.counts is not None
    objective = FewColumns(np.ascontiguousarray(At), np.zeros(options.m), l0, options.counts, shared)
    result = _few(objective, replace(options, progress=False), V)
    return objective.columns, result


def _few(objective: FewColumns, options: FitOptions, V: np.ndarray) -> Result:
    return minimize(
        objective,
        V,
        tol=options.tol,
        # Without a threshold the principal axes are the answer, and rounding is all that could turn them.
        gradient_tol=FLAT,
        max_sweeps=options.max_sweeps,
        threads=options.threads,
        progress=options.progress,
    )


def _whole(
    At: np.ndarray, options: FitOptions, V: np.ndarray, rng: np.random.Generator
) -> tuple[Result, np.ndarray]:
    """All columns of U: the paper's Algorithm 2, in blocks after leaps, or as the schedule has it."""
    penalty, gamma = ("l0", options.level**2) if options.l0 else ("l1", options.level)
    objective = SparseColumns(At.T, gamma, penalty, active=options.m)
    objective.dear = True
    # The columns beside V that no component has: any will do.
    U = np.hstack((V, np.linalg.qr(V, mode="complete")[0][:, options.m :]))
    result = minimize(
        objective,
        U,
        schedule=options.schedule,
        tol=options.tol,
        max_sweeps=options.max_sweeps,
        threads=options.threads,
        random_state=rng,
        progress=options.progress,
    )
    return result, result.U[:, : options.m].T @ At


def in_units(result: Result, unit: float) -> Result:
    """The result of data that had been divided by `unit`, as if they had not."""
    with np.errstate(over="ignore"):
        square = float(np.float64(unit) * np.float64(unit))
        trace = replace(
            result.trace,
            value=[value * square for value in result.trace.value],
            gradient_norm=[norm * square for norm in result.trace.gradient_norm],
        )
        return replace(
            result,
            value=result.value * square,
            gradient_norm=result.gradient_norm * square,
            trace=trace,
            phases=tuple(replace(phase, gain=phase.gain * square) for phase in result.phases),
            starts=None if result.starts is None else result.starts * square,
        )
