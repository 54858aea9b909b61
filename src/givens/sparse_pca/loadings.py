"""From ready data to sparse loadings: starts, the rotations, solveForZ, refitting, order and signs.

Rotations (`givens.minimize`, or `FewColumns` for few components) lead to the rotated data Y = AU. The loadings of a threshold are
what is left of Y above it, z_j ∝ S(y_j), normalised (the paper's solveForZ, after Journée et al.). They are shrunk by it; and as
the threshold goes to 0, the columns y_j are a rotated basis of the principal subspace, whose scores overlap: the same span, less
adjusted variance. Refitting takes the pattern of non-zeros from them and finds the values of the largest adjusted variance. The
scores of unit loadings, E = XZᵀ = QR, have the adjusted variance Σ R_jj² (`givens.metrics`), whose derivative is 2·Q D² R⁻ᵀ,
D = diag R. So with

    W = Q D² R⁻ᵀ,        z_j ← (Xᵀw_j on the pattern of j), normalised

the linearised variance rises as far as the pattern permits, and it goes on as long as the variance itself grows. Where the
pattern is everything, principal components come out.

Arrays are stored one component per row: Y and Z are components x features, X is samples x features (Aᵀ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from givens.metrics import adjusted_from_scores
from givens.numerics import parallel
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.gram import leading_axes
from givens.numerics.scaling import check_data
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import SparseColumns
from givens.result import Result
from givens.rotations import complete
from givens.solve.minimize import planned
from givens.solve.race import lowest_run
from givens.sparse_pca.few_components import FewColumns
from givens.sparse_pca.options import FitOptions
from givens.support.progress import bar

__all__ = [
    "directions",
    "keep_largest",
    "order_and_sign",
    "refit",
    "shrink",
    "unit_rows",
]


DEPENDENT_SHARE = 1e-12  # of a score's square: where no more is left beside others, it is rounding
FLAT_GRADIENT = 1e-12  # of the value: a gradient that is rounding
REFIT_GROWTH = 1e-5  # growth of the explained variance below which values are not refitted any further


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
    """The best of several starts: by the value, or with counts by the adjusted variance."""
    best: tuple[float, Loadings] | None = None
    results, reached = [], []
    for k in range(options.n_starts):
        if k == 0:
            V = leading_axes(At, options.m)[0] if start is None else start
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
    At: np.ndarray | CentredSparse, options: FitOptions, V: np.ndarray, rng: np.random.Generator
) -> tuple[float, Loadings]:
    if options.counts is not None:
        return _counted(At, options, options.counts, V)
    if options.all_columns(len(At)):
        assert isinstance(At, np.ndarray)
        result, Y = _whole(At, options, V, rng)
    else:
        objective = FewColumns(At, np.full(options.m, options.level), options.l0)
        result = _few(objective, options, V)
        Y = objective.columns
    levels = np.full(options.m, options.level)
    # Values that are to be refitted begin with the columns' own, which the threshold has not shrunk.
    if options.l0 or options.refit:
        Z = unit_rows(shrink(Y, options.level * options.level, "l0"))
    else:
        Z = unit_rows(shrink(Y, options.level))
    if options.refit:
        Z = _refitted(At, Z, Z != 0, REFIT_GROWTH)
    return result.value, Loadings(Z, Y, levels, result, scores(Z, At, few=True).T)


def _counted(
    At: np.ndarray | CentredSparse, options: FitOptions, counts: np.ndarray, V: np.ndarray
) -> tuple[float, Loadings]:
    """Exact counts, by rotations whose thresholds track them."""
    objective = FewColumns(At, np.zeros(options.m), options.l0, counts)
    result = _few(objective, options, V)
    Y = objective.columns
    S = np.where(keep_largest(Y, counts), Y, 0.0)
    size = np.linalg.norm(S, axis=1, keepdims=True)
    E = objective.scores / np.where(size > 0, size, 1.0)
    order = reported_order(np.einsum("ij,ij->i", E, E), counts, counts)
    found = Loadings(unit_rows(S)[order], Y[order], objective.levels[order], result, E[order].T)
    return float(adjusted_from_scores(found.scores).sum()) * max(len(At) - 1, 1), found


def rotated(
    At: np.ndarray | CentredSparse, options: FitOptions, V: np.ndarray, *, shared: bool
) -> tuple[np.ndarray, Result]:
    """The columns at the end of a run whose thresholds track the counts: one threshold per column, or one for all."""
    assert options.counts is not None
    At = At if isinstance(At, CentredSparse) else np.ascontiguousarray(At)
    objective = FewColumns(At, np.zeros(options.m), False, options.counts, shared)
    result = _few(objective, replace(options, progress=False), V)
    return objective.columns, result


def _few(objective: FewColumns, options: FitOptions, V: np.ndarray) -> Result:
    return objective.maximise(
        V,
        tol=options.tol,
        # Without a threshold the principal axes are the answer, and rounding is all that could turn them.
        gradient_tol=FLAT_GRADIENT,
        max_sweeps=options.max_sweeps,
        threads=options.threads,
        progress=options.progress,
    )


def _whole(
    At: np.ndarray, options: FitOptions, V: np.ndarray, rng: np.random.Generator
) -> tuple[Result, np.ndarray]:
    """All columns of U: the paper's Algorithm 2, in blocks after leaps, or as the schedule has it."""
    penalty, gamma = ("l0", options.level * options.level) if options.l0 else ("l1", options.level)
    objective = SparseColumns(At.T, gamma, penalty, active=options.m)
    objective.trace_slopes = False
    # The columns beside V that no component has: any will do.
    U = complete(V)
    with parallel.pool(options.threads), bar(options.progress) as shown:
        asked = planned(
            objective,
            options.schedule,
            tol=math.sqrt(options.tol),
            # Without a threshold the principal axes are the answer, as for few columns.
            gradient_tol=FLAT_GRADIENT if options.level == 0.0 else None,
            max_iter=options.max_sweeps,
            callback=shown.callback,
        )
        result = lowest_run(objective, U, asked, random_state=rng)
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


def unit_rows(S: np.ndarray) -> np.ndarray:
    """Rows divided by their norms; zero rows stay zero."""
    largest = np.max(np.abs(S), axis=1, keepdims=True) if S.shape[1] else np.zeros((len(S), 1))
    largest[largest == 0] = 1.0
    S = S / largest
    norms = np.linalg.norm(S, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    return S / norms


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
    for j, count in enumerate(counts):
        if count >= Y.shape[1]:
            pattern[j] = True
        elif count > 0:
            pattern[j, np.argpartition(-np.abs(Y[j]), count - 1)[:count]] = True
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
    T, held = combinations(S, np.argsort(-np.diagonal(S), kind="stable") if order is None else order)
    return T @ E, held


def combinations(S: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, float]:
    """T with W = TE, of scores E with the products S = EEᵀ; and the adjusted variance in this order."""
    T, R, order = np.eye(len(S)), *triangular(S, order)
    inverse = solve_triangular(R, np.eye(len(R)), check_finite=False)
    squares = np.square(np.diagonal(R))
    T[np.ix_(order, order)] = (inverse * squares) @ inverse.T
    return T, float(squares.sum())


def triangular(S: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R, upper triangular, with RᵀR = S for the scores in this order, and the order without scores that others before explain."""
    order = order[np.diagonal(S)[order] > 0]
    while True:
        part = S[np.ix_(order, order)]
        R, failed = dpotrf(part)
        left = np.square(np.diagonal(R)) <= DEPENDENT_SHARE * np.diagonal(part)
        dependent = failed - 1 if failed else int(np.argmax(left)) if left.any() else -1
        if dependent < 0:
            return R, order
        order = np.delete(order, dependent)


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
    used = np.flatnonzero(pattern.any(axis=0))
    alive = np.flatnonzero(pattern.any(axis=1))
    refitted = np.zeros(Z.shape)
    if len(used) == 0:
        return refitted
    B = X.taken(used) if isinstance(X, CentredSparse) else np.asarray(X[:, used], dtype=np.float64)
    keep = pattern[np.ix_(alive, used)]
    best = here = np.asarray(Z[np.ix_(alive, used)], dtype=np.float64)
    before = -np.inf
    for _ in range(max_iter + 1):
        W, held = directions(here @ B.T)
        if held > before:
            best = here
        if held <= before * (1 + tol):
            break
        before = held
        here = unit_rows(np.where(keep, W @ B, 0.0))
    refitted[np.ix_(alive, used)] = best
    return refitted


def order_and_sign(
    Z: np.ndarray, variances: np.ndarray, *, keep_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the rows by decreasing variance (unless `keep_order`), and make each row's largest entry positive.

    Returns the rows and the order.
    """
    order = np.arange(len(Z)) if keep_order else np.argsort(-variances, kind="stable")
    Z = Z[order]
    where = np.argmax(np.abs(Z), axis=1)
    signs = np.where(Z[np.arange(len(Z)), where] < 0, -1.0, 1.0).astype(Z.dtype)
    # Adding 0.0 makes −0.0 positive.
    return Z * signs[:, None] + Z.dtype.type(0), order


def reported_order(squares: np.ndarray, counts: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The order in which components are reported: as the counts were asked for, those with equal counts by their variance.

    Parameters
    ----------
    squares : array, shape (components,)
        Of the lengths of the scores.
    counts, asked : array of int
        How many non-zeros each component has; the same numbers in the order in which they were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import reported_order
    >>> reported_order(np.array([1.0, 9.0, 4.0]), np.array([5, 5, 2]), np.array([5, 2, 5]))
    array([1, 2, 0])
    """
    order = np.empty(len(asked), dtype=int)
    order[np.argsort(-asked, kind="stable")] = np.lexsort((-squares, -counts))
    return order


def screen(norms: np.ndarray, asked: FitOptions) -> np.ndarray:
    """The features that can enter a component: those with norms above the level, and never fewer than are needed."""
    kept = np.flatnonzero(norms > (asked.level if asked.counts is None else 0.0))
    need = asked.m if asked.counts is None else max(asked.m, int(asked.counts.max()))
    return kept if len(kept) >= need else np.sort(np.argsort(-norms, kind="stable")[:need])


def fill_empty(loadings: Loadings, features: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, int]:
    """Give each component of zeros its largest entry, no two of them the same; returns the loadings and how many."""
    Z = loadings.Z.copy()
    empty = np.flatnonzero(~Z.any(axis=1))
    taken = np.zeros(Z.shape[1], dtype=bool)
    for j in empty:
        sizes = np.where(taken, -1.0, np.abs(loadings.Y[j]))
        if sizes.max() <= 0:
            sizes = np.where(taken | Z.any(axis=0), -1.0, norms[features])
        if sizes.max() < 0:
            sizes = norms[features]
        where = int(np.argmax(sizes))
        Z[j, where] = -1.0 if loadings.Y[j, where] < 0 else 1.0
        taken[where] = True
    return Z, len(empty)
