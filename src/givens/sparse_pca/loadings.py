"""Loadings of a threshold: starts, the rotations, solveForZ, refitting.

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
from dataclasses import dataclass, replace

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.gram import leading_axes
from givens.numerics.scaling import EPS, unit_rows
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import ProductRows, SparseColumns
from givens.result import Result
from givens.solve.minimize import planned
from givens.solve.outer_loops import best_of
from givens.solve.race import lowest_run
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.truncated_power import (
    SampleForm,
    SparseRows,
    largest_beyond,
    product,
    settled,
)
from givens.support.progress import bar


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
    At: np.ndarray | CentredSparse, options: FitOptions, start: np.ndarray | None, rng: np.random.Generator
) -> Loadings:
    """The best of several starts: the first is that given, or the principal axes.

    Columns that are taken as they are (max_iter = 0) may have counts; then each has its own threshold.
    """
    first = leading_axes(At, options.m)[0] if start is None else start
    number = options.n_starts if options.max_iter else 1
    further = (np.linalg.qr(rng.standard_normal(first.shape))[0] for _ in range(number - 1))
    levels = np.full(options.m, options.level)
    if options.counts is not None:
        Y = product(np.ascontiguousarray(first.T), At)
        # Above entries that are equal to the largest that is not counted, also after rounding.
        beyond = [largest_beyond(y, int(count)) for y, count in zip(Y, options.counts)]
        levels = (1 + 4 * EPS) * np.array(beyond)
    objective = _objective(At, options, levels)
    with flop_counts.job(flop_counts.Flops()) as counter:
        best, runs = best_of(
            (first, *further),
            lambda V: _rotated(At, objective, options, levels, V, rng),
            lambda found: found.result.value,
        )
    best.result = replace(
        best.result,
        flops=counter.flops,
        sweeps=sum(found.result.sweeps for found in runs),
        rotations=sum(found.result.rotations for found in runs),
    )
    if len(runs) > 1:
        best.result = replace(
            best.result,
            method=f"{best.result.method}; the best of {len(runs)} starts",
            starts=np.array([found.result.value for found in runs]),
        )
    return best


def _objective(At: np.ndarray | CentredSparse, options: FitOptions, levels: np.ndarray) -> SparseColumns:
    """All columns of U by the paper's Algorithm 2, or few columns by sweeps with others chosen beside them."""
    penalty, gamma = ("l0", levels * levels) if options.l0 else ("l1", levels)
    if not options.all_columns(len(At)):
        return SparseColumns(ProductRows(At.T), gamma, penalty, options.m)
    objective = SparseColumns(At.T, gamma, penalty, options.m)
    objective.trace_slopes = False
    return objective


def _rotated(
    At: np.ndarray | CentredSparse,
    objective: SparseColumns,
    options: FitOptions,
    levels: np.ndarray,
    V: np.ndarray,
    rng: np.random.Generator,
) -> Loadings:
    with parallel.pool(options.threads), bar() as shown:
        run = planned(
            objective,
            options.schedule,
            tol=math.sqrt(options.tol),
            # Without a threshold the principal axes are the answer, and rounding is all that could turn them.
            gradient_tol=None if levels.any() else 1e-12,
            max_iter=options.max_iter,
            callback=shown.callback,
        )
        result = lowest_run(objective, V, run, random_state=rng)
    Y = product(np.ascontiguousarray(result.U.T), At)
    # Values that are to be refitted begin with the columns' own, which the threshold has not shrunk.
    Z = unit_rows(shrink(Y, levels**2, "l0") if options.l0 or options.refit else shrink(Y, levels))
    alive = Z.any(axis=1)
    if options.refit and options.max_iter and alive.any():
        Z[alive] = settled(SampleForm(At), SparseRows.of(Z[alive]), None).dense(Z.shape[1])
    return Loadings(Z, Y, levels, result, scores(Z, At, few=True).T)


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
