"""From ready data to sparse loadings: starts, the rotations, solveForZ, refitting, order and signs.

Rotations (`givens.minimize`) lead to the rotated data Y = AU. The loadings of a threshold are what is left of Y above it,
z_j ∝ S(y_j), normalised (the paper's solveForZ, after Journée et al.). They are shrunk by it; and as the threshold goes to 0, the
columns y_j are a rotated basis of the principal subspace, whose scores overlap: the same span, less adjusted variance. Refitting
takes the pattern of non-zeros from them and finds the values of the largest adjusted variance: truncated power steps
(`givens.sparse_pca.truncated_power`) that count the entries of the pattern. Where the pattern is everything, principal components
come out.

Arrays are stored one component per row: Y and Z are components x features, X is samples x features (Aᵀ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.gram import leading_axes
from givens.numerics.scaling import check_data, unit_rows
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import ProductRows, SparseColumns
from givens.result import Result
from givens.rotations import orthogonality, repair
from givens.solve.minimize import planned
from givens.solve.outer_loops import best_of
from givens.solve.race import lowest_run
from givens.sparse_pca.forms import (
    SampleForm,
    SparseRows,
    combinations,
    largest,
    product,
    reported_order,
    settled,
)
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.tracked_counts import PATIENCE_SWEEPS, SWEEP_GROWTH, track
from givens.support.arguments import counted
from givens.support.progress import bar

FLAT_GRADIENT = 1e-12  # of the scale: a gradient that is rounding
REFIT_GROWTH = 1e-5  # growth of the explained variance below which values are not refitted any further


@dataclass
class Loadings:
    """Unit loadings (rows of zeros where nothing exceeds the threshold), and how they were found.

    `Y` is the rotated data before the threshold, `levels` one threshold per component; `scores` are samples x components. `merit`
    is the value, or with counts the adjusted variance.
    """

    Z: np.ndarray
    Y: np.ndarray
    levels: np.ndarray
    result: Result
    scores: np.ndarray
    merit: float


def solve(
    At: np.ndarray | CentredSparse, options: FitOptions, start: np.ndarray | None, rng: np.random.Generator
) -> Loadings:
    """The best of several starts: the first is that given, or the principal axes."""
    first = leading_axes(At, options.m)[0] if start is None else start
    further = (np.linalg.qr(rng.standard_normal(first.shape))[0] for _ in range(options.n_starts - 1))
    with flop_counts.job(flop_counts.Flops()) as counter:
        if options.counts is None:
            objective = _objective(At, options)
            best, runs = best_of(
                (first, *further), lambda V: _rotated(At, objective, options, V, rng), _merit
            )
        else:
            best, runs = best_of((first, *further), lambda V: _tracked(At, options, V), _merit)
    best.result = replace(best.result, flops=counter.flops)
    if len(runs) > 1:
        best.result = replace(
            best.result,
            sweeps=sum(found.result.sweeps for found in runs),
            rotations=sum(found.result.rotations for found in runs),
            method=f"{best.result.method}; the best of {len(runs)} starts",
            starts=np.array([found.merit for found in runs]),
        )
    return best


def _merit(found: Loadings) -> float:
    return found.merit


def _objective(At: np.ndarray | CentredSparse, options: FitOptions) -> SparseColumns:
    """The objective of a threshold."""
    penalty, gamma = ("l0", options.level * options.level) if options.l0 else ("l1", options.level)
    if not options.all_columns(len(At)):
        return SparseColumns(ProductRows(At.T), gamma, penalty, options.m)
    objective = SparseColumns(At.T, gamma, penalty, options.m)
    objective.trace_slopes = False
    return objective


def _rotated(
    At: np.ndarray | CentredSparse,
    objective: SparseColumns,
    options: FitOptions,
    V: np.ndarray,
    rng: np.random.Generator,
) -> Loadings:
    """For a threshold: all columns of U by the paper's Algorithm 2, or few columns by sweeps with others chosen beside them."""
    with parallel.pool(options.threads), bar() as shown:
        asked = planned(
            objective,
            options.schedule,
            tol=math.sqrt(options.tol),
            # Without a threshold the principal axes are the answer, and rounding is all that could turn them.
            gradient_tol=FLAT_GRADIENT if options.level == 0.0 else None,
            max_iter=options.max_iter,
            callback=shown.callback,
        )
        result = lowest_run(objective, V, asked, random_state=rng)
    Y = product(np.ascontiguousarray(result.U.T), At)
    # Values that are to be refitted begin with the columns' own, which the threshold has not shrunk.
    cut = shrink(Y, options.level**2, "l0") if options.l0 or options.refit else shrink(Y, options.level)
    Z = unit_rows(cut)
    levels = np.full(options.m, options.level)
    if options.refits and not options.regrow:
        Z = _refitted(At, Z, Z != 0, REFIT_GROWTH)
    return Loadings(Z, Y, levels, result, scores(Z, At, few=True).T, result.value)


def _tracked(At: np.ndarray | CentredSparse, options: FitOptions, V: np.ndarray) -> Loadings:
    """Exact counts, by rotations whose thresholds track them."""
    assert options.counts is not None
    run = track(At, options, V, options.l0)
    best, sweeps = run.best, len(run.trace) - 1
    reason = (
        f"converged: in {PATIENCE_SWEEPS} sweeps the counted entries did not explain {SWEEP_GROWTH:g} of it more"
        if run.converged
        else f"not converged: max_iter = {options.max_iter} reached"
    )
    U = repair(best.point.matrix)
    result = Result(
        U=U,
        value=best.value,
        converged=run.converged,
        message=reason,
        sweeps=sweeps,
        rotations=run.rotations,
        flops=run.trace.flops[-1],
        gradient_norm=best.gradient_norm,
        orthogonality=orthogonality(U),
        seconds=run.trace.seconds[-1],
        trace=run.trace,
        method=f"{counted(sweeps, 'sweep', 'sweeps')} of rotations in blocks",
    )
    levels, E = best.objective.contrast.levels, best.scores
    Z = unit_rows(np.where(np.abs(best.Y) > levels[:, None], best.Y, 0.0))
    order = reported_order(np.einsum("ij,ij->i", E, E), options.counts, options.counts)
    merit = combinations(E @ E.T, order)[2]
    return Loadings(Z[order], best.Y[order], levels[order], result, E[order].T, merit)


def shrink(Y: np.ndarray, gamma: float | np.ndarray, penalty: str = "l1") -> np.ndarray:
    """S(y): sign(y)·[|y| − γ]₊ for "l1", y where y² > γ and 0 elsewhere for "l0"; one γ, or one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import shrink
    >>> shrink(np.array([[3.0, -1.0, -2.0]]), 1.5)
    array([[ 1.5, -0. , -0.5]])
    """
    gamma = np.asarray(gamma, dtype=np.float64)
    level = gamma[:, None] if gamma.ndim else gamma
    if penalty == "l0":
        return np.where(np.square(Y, dtype=np.float64) > level, Y, Y.dtype.type(0))
    return np.copysign(np.maximum(np.abs(Y) - level, 0.0), Y).astype(Y.dtype, copy=False)


def keep_largest(Y: np.ndarray, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """The pattern of the counts[j] largest |y| of each row, as an array of booleans.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import keep_largest
    >>> keep_largest(np.array([[3.0, -1.0, -2.0]]), [2]).astype(int)
    array([[1, 0, 1]])
    """
    pattern = np.zeros(Y.shape, dtype=bool)
    for row, y, count in zip(pattern, Y, counts):
        row[largest(y, int(count))[0] if count else []] = True
    return pattern


def directions(E: np.ndarray, order: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """W for scores E, one component per row, and the adjusted variance in this order, by default the strongest score first.

    A score that the ones before it explain has no derivative; its row is the score itself.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import directions
    >>> W, held = directions(np.array([[3.0, 0.0], [1.0, 2.0]]))
    >>> (W * 3).round(9).tolist(), round(held, 9)
    ([[9.0, -2.0], [0.0, 6.0]], 13.0)
    """
    S = E @ E.T
    T, _, held = combinations(S, np.argsort(-np.diagonal(S), kind="stable") if order is None else order)
    return T @ E, held


def refit(
    X: np.ndarray, Z: np.ndarray, pattern: np.ndarray | None = None, *, tol: float = 1e-9, max_iter: int = 200
) -> np.ndarray:
    """Re-estimate the values of unit loadings Z on their pattern of non-zeros, as long as they explain more.

    Parameters
    ----------
    X : array, shape (samples, features)
        Centred.
    Z : array, shape (components, features)
        Where to begin; rows of zeros stay so.
    pattern : array of bool, shape (components, features), optional
        By default where Z is not zero.
    tol : float, default=1e-9
        A step that raises the adjusted variance by no more than this share of it is the last.
    max_iter : int, default=200

    Returns
    -------
    array, shape (components, features)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import refit
    >>> X = np.outer([2.0, -1.0, -1.0], [3.0, 4.0, 0.1])
    >>> refit(X, np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2)).round(6)
    array([[0.6, 0.8, 0. ]])
    """
    X, Z = check_data(X, "X", 2), check_data(Z, "Z", 2)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"Z must have a column for each of the {X.shape[1]} features of X, got {Z.shape[1]}")
    pattern = Z != 0 if pattern is None else np.asarray(pattern, dtype=bool)
    if pattern.shape != Z.shape:
        raise ValueError(f"pattern must have the shape of Z, {Z.shape}, got {pattern.shape}")
    return _refitted(X, Z, pattern, tol, max_iter)


def _refitted(
    X: np.ndarray | CentredSparse, Z: np.ndarray, pattern: np.ndarray, tol: float, max_iter: int = 200
) -> np.ndarray:
    """`refit` without its checks."""
    refitted, alive = np.zeros(Z.shape), np.flatnonzero(pattern.any(axis=1))
    if len(alive):
        where = [np.flatnonzero(row) for row in pattern[alive]]
        rows = SparseRows(where, [z[places].astype(np.float64) for z, places in zip(Z[alive], where)])
        refitted[alive] = settled(SampleForm(X), rows, None, tol, max_iter + 1).dense(Z.shape[1])
    return refitted


def order_and_sign(
    Z: np.ndarray, variances: np.ndarray, *, keep_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the rows by decreasing variance (unless `keep_order`), and make each row's largest entry positive.

    Returns the rows and the order.
    """
    order = np.arange(len(Z)) if keep_order else np.argsort(-variances, kind="stable")
    Z = Z[order]
    # The first of those that differ by rounding, so that the sign is the same on every processor.
    where = np.argmax(np.abs(Z).round(12), axis=1)
    signs = np.where(Z[np.arange(len(Z)), where] < 0, -1.0, 1.0).astype(Z.dtype)
    # Adding 0.0 makes −0.0 positive.
    return Z * signs[:, None] + Z.dtype.type(0), order
