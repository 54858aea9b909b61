"""Sparse loadings from the kept columns of a stream.

The kept columns Y take the place of the data: rotations find the m columns that maximise the objective on them, as
`SparsePCA` does on samples, beginning at the principal axes. What exceeds the threshold are the loadings; their
values are those of the column itself (`refit`), not shrunk by γ. (Alternating refits overfit here: K columns are few.)

Rotated columns and principal axes are both tried, with as many non-zeros, and those of which the kept columns say
that they explain more (adjusted variance) are given: for very sparse loadings these are the rotated ones; where a fifth
of the features may be used, principal axes, being orthogonal, waste less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.minimize import minimize
from givens.numerics import parallel
from givens.sparse_pca.few_components import FewColumns
from givens.sparse_pca.loadings import keep_largest, order_and_sign, unit_rows


@dataclass(frozen=True)
class Asked:
    """What loadings are asked for: m of them, above a level (of |y|) or with exact counts."""

    m: int
    level: float
    l0: bool
    counts: np.ndarray | None
    keep_order: bool
    refit: bool
    tol: float
    max_sweeps: int
    n_starts: int = 1
    seed: int = 0


@dataclass
class StreamComponents:
    """Unit loadings in order, rows of zeros where nothing exceeds the level; the columns they come from; the levels."""

    Z: np.ndarray
    Y: np.ndarray
    levels: np.ndarray
    adjusted: np.ndarray
    sweeps: int
    flops: float


def strongest(Y: np.ndarray, asked: Asked) -> StreamComponents:
    """The m columns with the largest value of the objective, as they are."""
    if asked.counts is None:
        over = np.abs(Y) > asked.level
        excess = np.where(over, Y * Y - asked.level**2 if asked.l0 else (np.abs(Y) - asked.level) ** 2, 0.0)
        values = excess.sum(axis=1)
    else:
        values = np.einsum("ij,ij->i", Y, Y)
    chosen = np.argsort(-values, kind="stable")[: asked.m]
    return _loadings(Y, Y[chosen], asked, _levels(Y[chosen], asked), 0, 3.0 * Y.size)


def rotated(Y: np.ndarray, asked: Asked) -> StreamComponents:
    """Loadings from kept columns on their principal axes, strongest first."""
    axes = Y[: asked.m]
    if asked.max_sweeps == 0:
        return _loadings(Y, axes, asked, _levels(axes, asked), 0, 0.0)
    norms = np.sqrt(np.einsum("ij,ij->j", Y, Y))
    least = 0.0 if asked.counts is not None else asked.level
    used = np.flatnonzero(norms > least)
    if len(used) <= (asked.m if asked.counts is None else asked.counts.max()):
        return _loadings(Y, axes, asked, _levels(axes, asked), 0, 0.0)
    best = _best_start(Y, used, asked)
    if asked.counts is None:
        levels = np.full(asked.m, _level_of(axes, int(np.count_nonzero(best.Z))))
    else:
        levels = _levels(axes, asked)
    other = _loadings(Y, axes, asked, levels, best.sweeps, best.flops)
    best.flops = other.flops
    return other if other.adjusted.sum() > best.adjusted.sum() else best


def _best_start(Y: np.ndarray, used: np.ndarray, asked: Asked) -> StreamComponents:
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
    return best


def _from(Y: np.ndarray, used: np.ndarray, asked: Asked, start: np.ndarray) -> tuple[float, StreamComponents]:
    levels = np.full(asked.m, asked.level)
    objective = FewColumns(np.ascontiguousarray(Y[:, used]), levels, asked.l0, asked.counts)
    result = minimize(objective, start, tol=asked.tol, max_sweeps=asked.max_sweeps, threads=parallel.width())
    columns = result.U.T @ Y
    columns[:, used] = objective.columns
    if asked.counts is not None:
        levels = _levels(columns, asked)
    spent = result.flops + 2.0 * (asked.m + 1) * Y.size
    found = _loadings(Y, columns, asked, levels, result.steps, spent)
    return result.value if asked.counts is None else float(found.adjusted.sum()), found


def _levels(columns: np.ndarray, asked: Asked) -> np.ndarray:
    if asked.counts is None:
        return np.full(len(columns), asked.level)
    return np.array([_level_of(column, int(count)) for column, count in zip(columns, asked.counts)])


def _level_of(columns: np.ndarray, count: int) -> float:
    """The largest entry beyond the `count` largest: so many exceed it."""
    sizes = np.abs(columns).ravel()
    if count >= len(sizes):
        return 0.0
    return float(np.partition(sizes, len(sizes) - count - 1)[len(sizes) - count - 1])


def _loadings(
    Y: np.ndarray, columns: np.ndarray, asked: Asked, levels: np.ndarray, sweeps: int, flops: float
) -> StreamComponents:
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
    return StreamComponents(Z, columns[order], levels[order], adjusted, sweeps, flops)
