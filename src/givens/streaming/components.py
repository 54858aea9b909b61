"""Components of a stream from its kept columns, and their fitted attributes.

The kept columns Y take the place of the data: rotations find the m columns that maximise the objective on them, as
`SparsePCA` does on samples, beginning at the principal axes. What exceeds the threshold are the loadings; their
values are those of the column itself, not shrunk by γ, unless `refit` is False. With `refit`, loadings with exact counts are
found by the search of `SparsePCA` (`givens.sparse_pca.cardinality`): rotations that begin at the leading axes miss modules that
lie outside their span.

With a threshold, rotated columns and principal axes are both tried, with as many non-zeros, and those of which the kept
columns say that they explain more (adjusted variance) are taken, nearly always the rotated ones. With `refit`, truncated
power steps (`givens.sparse_pca.truncated_power`) on the kept columns then raise what these loadings explain, with as many
non-zeros each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from givens.metrics import adjusted_from_scores, largest_correlation, loading_overlap, span
from givens.numerics import parallel
from givens.sparse_pca import cardinality
from givens.sparse_pca.centred_data import CovarianceData, FeatureMoments
from givens.sparse_pca.few_components import FewColumns, largest_beyond
from givens.sparse_pca.forms import SampleForm, SparseRows
from givens.sparse_pca.loadings import fill_empty, keep_largest, order_and_sign, reported_order, unit_rows
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.truncated_power import ascend
from givens.streaming.sketch import SMALL_BLOCK, Sketch
from givens.support.arguments import are, counted, warn_caller
from givens.support.progress import Bar


@dataclass(frozen=True)
class Asked(FitOptions):
    """What loadings are asked for; whether they stay in the order of their counts; the seed of the starts after the first."""

    keep_order: bool = False
    seed: int = 0


@dataclass(frozen=True)
class StreamComponents:
    """The components of a stream so far; the names are those of the fitted attributes, without the underscore."""

    components: np.ndarray
    explained_variance: np.ndarray
    explained_variance_ratio: np.ndarray
    projected_variance_ratio: float
    n_nonzero: np.ndarray
    gamma: np.ndarray
    loading_overlap: float
    score_correlation: float
    n_iter: int
    flops: float
    method: str


@dataclass
class StreamLoadings:
    """Unit loadings in order, rows of zeros where nothing exceeds the level; the columns they come from; the levels.

    `method` says how they were made of the kept columns.
    """

    Z: np.ndarray
    Y: np.ndarray
    levels: np.ndarray
    adjusted: np.ndarray
    method: str
    sweeps: int = 0
    flops: float = 0.0


def describe(
    sketch: Sketch,
    columns: np.ndarray,
    asked: Asked,
    *,
    rotate: bool,
    rule: str,
    spent: float,
    threads: int | None,
) -> StreamComponents:
    """The components of a sketch.

    Parameters
    ----------
    sketch : Sketch
    columns : array of float64, shape (K, features)
        The kept columns as they are now, scaled if the sketch is.
    asked : Asked
    rotate : bool
        Whether rotations are made now, from principal axes; or the components are columns as they are.
    rule : str
        What the stream did with its samples, in words.
    spent : float
        Flops that went into the columns beyond those the sketch has counted.
    threads : int or None
    """
    norms = np.einsum("ij,ij->j", columns, columns)
    with parallel.pool(threads if columns.size > SMALL_BLOCK else 1):
        found = (rotated if rotate else strongest)(columns, asked)
    Z, empty = fill_empty(cast(Any, found), np.arange(columns.shape[1]), np.sqrt(norms))
    if empty:
        _warn_of_empty(empty, asked)
        Z, _ = order_and_sign(Z, np.zeros(len(Z)), keep_order=True)
    used = np.flatnonzero(Z.any(axis=0))
    columns, few = columns[:, used], Z[:, used]
    scores = columns @ few.T
    adjusted = adjusted_from_scores(scores) * max(len(scores) - 1, 1)
    components = Z.astype(sketch.W.dtype)
    total = sketch.total()
    with np.errstate(over="ignore", under="ignore"):
        unit = np.float64(1.0 if sketch.scaled else sketch.unit)
        variance = adjusted / sketch.divisor() * unit * unit
        gamma = found.levels * unit
        gamma = gamma * gamma if asked.l0 else gamma
    return StreamComponents(
        components=components,
        explained_variance=variance,
        explained_variance_ratio=adjusted / total,
        projected_variance_ratio=float(np.sum((columns @ span(few)) ** 2) / total),
        n_nonzero=np.count_nonzero(components, axis=1),
        gamma=gamma,
        loading_overlap=loading_overlap(few),
        score_correlation=largest_correlation(scores.T @ scores),
        n_iter=max(found.sweeps, 1),
        flops=sketch.flops + spent + found.flops,
        method=f"{rule}; loadings from {found.method}",
    )


def _warn_of_empty(empty: int, asked: Asked) -> None:
    reason, advice = (
        ("exceeds the threshold", "lower gamma or alpha, ask for fewer components, or use n_nonzero")
        if asked.counts is None
        else ("is left by the others", "ask for fewer components, or wait for more samples")
    )
    warn_caller(
        f"nothing of {empty} of {asked.m} components {reason}, so each of these has its largest entry alone; {advice}",
        UserWarning,
    )


def strongest(Y: np.ndarray, asked: Asked) -> StreamLoadings:
    """The m columns with the largest value of the objective, as they are."""
    if asked.counts is None:
        over = np.abs(Y) > asked.level
        excess = np.where(
            over, Y * Y - asked.level * asked.level if asked.l0 else (np.abs(Y) - asked.level) ** 2, 0.0
        )
        values = excess.sum(axis=1)
    else:
        values = np.einsum("ij,ij->i", Y, Y)
    chosen = np.argsort(-values, kind="stable")[: asked.m]
    method = "the columns as they are"
    return _loadings(Y, Y[chosen], asked, _levels(Y[chosen], asked), method, flops=3.0 * Y.size)


def rotated(Y: np.ndarray, asked: Asked) -> StreamLoadings:
    """Loadings from kept columns on their principal axes, strongest first."""
    axes, unturned = Y[: asked.m], "principal axes; no rotations"
    if asked.max_sweeps == 0:
        return _loadings(Y, axes, asked, _levels(axes, asked), unturned)
    norms = np.sqrt(np.einsum("ij,ij->j", Y, Y))
    least = 0.0 if asked.counts is not None else asked.level
    used = np.flatnonzero(norms > least)
    if len(used) <= (asked.m if asked.counts is None else asked.counts.max()):
        return _loadings(Y, axes, asked, _levels(axes, asked), unturned)
    if asked.counts is not None and asked.refit:
        return _counted(Y, norms, asked)
    best = _best_start(Y, used, asked)
    if asked.counts is None:
        levels = np.full(asked.m, largest_beyond(axes, int(np.count_nonzero(best.Z))))
    else:
        levels = _levels(axes, asked)
    method = f"principal axes, which explain more than {best.method}"
    other = _loadings(Y, axes, asked, levels, method, best.sweeps, best.flops)
    best.flops = other.flops
    return _ascended(Y, other if other.adjusted.sum() > best.adjusted.sum() else best, asked)


def _counted(Y: np.ndarray, norms: np.ndarray, asked: Asked) -> StreamLoadings:
    """Loadings with exact counts, as `SparsePCA` finds them, with the kept columns as samples."""
    d = len(norms)
    data = CovarianceData(Y, FeatureMoments(np.zeros(d), np.ones(d), norms, 1.0, 1.0))
    features, _, found = cardinality.solve(data, asked, None, np.random.default_rng(asked.seed))
    Z, columns = np.zeros((2, asked.m, d))
    Z[:, features], columns[:, features] = found.Z, found.Y
    size = np.linalg.norm(found.scores, axis=0)
    if (idle := cardinality.idle(found.scores)).any():
        beyond = int(np.count_nonzero(idle))
        warn_caller(
            f"{are(beyond, 'component', 'components')} beyond the rank of the samples so far, where there is no variance left: "
            f"ask for {asked.m - beyond} or fewer, or wait for more samples",
            UserWarning,
        )
        size[idle] = 0.0
    Z, order = order_and_sign(Z, size, keep_order=asked.keep_order)
    adjusted = adjusted_from_scores(found.scores[:, order]) * max(len(Y) - 1, 1)
    result = found.result
    levels = found.levels[order]
    return StreamLoadings(Z, columns[order], levels, adjusted, result.method, result.steps, result.flops)


def _ascended(Y: np.ndarray, found: StreamLoadings, asked: Asked) -> StreamLoadings:
    """Loadings with as many non-zeros each that explain more of the kept columns, if truncated power steps find some."""
    counts = np.count_nonzero(found.Z, axis=1)
    if not asked.refit or counts.min() == 0:
        return found
    ascent = ascend(SampleForm(Y), SparseRows.of(found.Z), counts, asked.tol, asked.max_sweeps, Bar())
    rows = ascent.here.rows
    E = rows.scores(Y)
    order = reported_order(np.einsum("ij,ij->i", E, E), rows.counts(), counts)
    Z, again = order_and_sign(
        rows.dense(Y.shape[1])[order],
        np.linalg.norm(E[order], axis=1),
        keep_order=asked.keep_order,
    )
    order = order[again]
    found.flops += ascent.flops
    adjusted = adjusted_from_scores(E[order].T) * max(len(Y) - 1, 1)
    if adjusted.sum() <= found.adjusted.sum():
        return found
    steps = len(ascent.trace) - 1
    method = f"{found.method}; then {counted(steps, 'truncated power step', 'truncated power steps')}"
    levels = ascent.largest_uncounted()[order]
    return StreamLoadings(Z, ascent.Y[order], levels, adjusted, method, found.sweeps + steps, found.flops)


def _best_start(Y: np.ndarray, used: np.ndarray, asked: Asked) -> StreamLoadings:
    """Rotate from the principal axes, and from random columns; the best by its value, or with counts by what it explains."""
    rng = np.random.default_rng(asked.seed)
    best, most, flops = None, -np.inf, 0.0
    for k in range(asked.n_starts):
        start = np.eye(len(Y))[:, : asked.m]
        if k:
            start = np.linalg.qr(rng.standard_normal(start.shape))[0]
        merit, found = _from(Y, used, asked, start)
        flops += found.flops
        if best is None or merit > most:
            best, most = found, merit
    assert best is not None
    best.flops = flops
    if asked.n_starts > 1:
        best.method += f", the best of {asked.n_starts} starts"
    return best


def _from(Y: np.ndarray, used: np.ndarray, asked: Asked, start: np.ndarray) -> tuple[float, StreamLoadings]:
    levels = np.full(asked.m, asked.level)
    objective = FewColumns(np.ascontiguousarray(Y[:, used]), levels, asked.l0, asked.counts)
    result = objective.maximise(start, tol=asked.tol, max_sweeps=asked.max_sweeps, threads=parallel.width())
    columns = result.U.T @ Y
    columns[:, used] = objective.columns
    if asked.counts is not None:
        levels = _levels(columns, asked)
    spent = result.flops + 2.0 * (asked.m + 1) * Y.size
    found = _loadings(Y, columns, asked, levels, f"axes turned by {result.method}", result.steps, spent)
    return (result.value if asked.counts is None else float(found.adjusted.sum())), found


def _levels(columns: np.ndarray, asked: Asked) -> np.ndarray:
    if asked.counts is None:
        return np.full(len(columns), asked.level)
    return np.array([largest_beyond(column, int(count)) for column, count in zip(columns, asked.counts)])


def _loadings(
    Y: np.ndarray,
    columns: np.ndarray,
    asked: Asked,
    levels: np.ndarray,
    method: str,
    sweeps: int = 0,
    flops: float = 0.0,
) -> StreamLoadings:
    level = levels[:, None]
    if asked.counts is None:
        pattern = np.abs(columns) > level
    else:
        pattern = keep_largest(columns, asked.counts)
    shrunk = not asked.refit and not asked.l0
    Z = unit_rows(np.where(pattern, columns - np.copysign(level, columns) if shrunk else columns, 0.0))
    size = np.linalg.norm(Y @ Z.T, axis=0)
    Z, order = order_and_sign(Z, size, keep_order=asked.keep_order)
    adjusted = adjusted_from_scores(Y @ Z.T) * max(len(Y) - 1, 1)
    flops += (4.0 * len(Y) + 4.0) * Z.size
    return StreamLoadings(Z, columns[order], levels[order], adjusted, method, sweeps, flops)
