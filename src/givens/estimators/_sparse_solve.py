"""From ready data to sparse loadings: starts, the rotations, solveForZ, exact counts, refitting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from givens import parallel
from givens.estimators._features import principal_start
from givens.loadings import keep_largest, refit, shrink, unit_rows
from givens.metrics import adjusted_from_scores
from givens.minimize import minimize
from givens.objectives.threshold import SparseColumns
from givens.progress import bar
from givens.result import Result, Trace
from givens.stiefel import maximise


@dataclass(frozen=True)
class Options:
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


@dataclass
class Loadings:
    """Unit loadings (rows of zeros where nothing exceeds the threshold), and how they were found.

    `V` is the n x m rotation, `Y` the rotated data before the threshold, `levels` one threshold per component.
    """

    Z: np.ndarray
    V: np.ndarray
    Y: np.ndarray
    levels: np.ndarray
    result: Result


def solve(At: np.ndarray, options: Options, start: np.ndarray | None, rng: np.random.Generator) -> Loadings:
    """The best of several starts: by the value, or with counts by the adjusted variance."""
    best: tuple[float, Loadings] | None = None
    for k in range(options.n_starts):
        if k == 0:
            V = principal_start(At, options.m) if start is None else start
        else:
            V = np.linalg.qr(rng.standard_normal((len(At), options.m)))[0]
        found = _from(At, options, V)
        merit = found.result.value if options.counts is None else _explained(At, found.Z)
        if best is None or merit > best[0]:
            best = merit, found
    assert best is not None
    return best[1]


def _explained(At: np.ndarray, Z: np.ndarray) -> float:
    scores = At @ Z.T
    order = np.argsort(-np.einsum("ij,ij->j", scores, scores), kind="stable")
    return float(adjusted_from_scores(scores[:, order]).sum())


def _from(At: np.ndarray, options: Options, V: np.ndarray) -> Loadings:
    l0 = options.l0
    if options.m == len(At) and options.counts is None:
        result, Y, levels = _whole(At, options, V)
    else:
        levels = np.full(options.m, options.level)
        with parallel.pool(options.threads), bar(options.progress) as shown:
            result, Y = maximise(
                At,
                V,
                levels,
                l0,
                counts=options.counts,
                tol=options.tol,
                max_sweeps=options.max_sweeps,
                show=lambda sweep, value: shown.show(value, float("nan")),
            )
    if options.counts is None:
        pattern = None
        Z = unit_rows(shrink(Y, levels**2 if l0 else levels, "l0" if l0 else "l1"))
    else:
        pattern = keep_largest(Y, options.counts)
        Z = unit_rows(np.where(pattern, Y, 0.0))
    if options.refit:
        refitted = refit(At, Z, pattern)
        # The trace it maximises is not the adjusted variance, which it seldom but sometimes lowers.
        if pattern is None or _explained(At, refitted) >= _explained(At, Z):
            Z = refitted
    return Loadings(Z, result.U[:, : options.m], Y, levels, result)


def _whole(At: np.ndarray, options: Options, V: np.ndarray) -> tuple[Result, np.ndarray, np.ndarray]:
    """As many components as samples: the paper's Algorithm 2, in blocks."""
    objective = SparseColumns(
        At.T, options.level**2 if options.l0 else options.level, "l0" if options.l0 else "l1"
    )
    objective.dear = True
    result = minimize(
        objective,
        V,
        tol=options.tol,
        max_sweeps=options.max_sweeps,
        threads=options.threads,
        progress=options.progress,
    )
    Y = result.U.T @ At
    return result, Y, np.full(options.m, options.level)


def in_units(result: Result, unit: float) -> Result:
    """The result of data that had been divided by `unit`, as if they had not."""
    with np.errstate(over="ignore"):
        square = float(np.float64(unit) * np.float64(unit))
        trace = Trace(
            result.trace.sweep,
            result.trace.seconds,
            result.trace.flops,
            [value * square for value in result.trace.value],
            [norm * square for norm in result.trace.gradient_norm],
        )
        return replace(
            result, value=result.value * square, gradient_norm=result.gradient_norm * square, trace=trace
        )
