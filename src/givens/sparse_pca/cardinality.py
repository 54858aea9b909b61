"""Sparse components with exact counts: which features are looked at, several starts, the components in order."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.result import Result
from givens.rotations import orthogonality
from givens.sparse_pca import deflation, truncated_power
from givens.sparse_pca.data import CentredData, CovarianceData, principal_axes
from givens.sparse_pca.penalised import FitOptions, Loadings, rotated
from givens.support.progress import bar

AXES = 2000  # features, the strongest, tell the leading axes well enough to begin; or ten times as many as samples
ROUGH = 1e-4  # accuracy of the axes to begin with
ROUNDS = 3  # of features that were left out and turn out to count; then all are taken


def solve(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: Callable[[np.ndarray, np.ndarray], np.ndarray | None],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, Loadings]:
    """Features, the data of these, and loadings with `options.counts` non-zeros.

    Only the strongest features are taken at first. In the end the columns of all features say whether one that was left out
    is larger than one that was counted; if so it is taken too, and the ascent goes on.
    """
    assert options.counts is not None
    began, norms = perf_counter(), data.found.norms
    able = np.flatnonzero(norms > 0)
    if len(able) < max(options.m, int(options.counts.max())):
        able = np.arange(len(norms))
    features = able[deflation.strongest(norms[able] ** 2, options.counts)]
    At = data.factor(features, options.m, keep_layout=True)
    best = _best_start(At, norms[features], options, options.counts, previous(At, features), rng)
    rounds = 0
    while len(missed := _missed(data, At, features, able, best)):
        rounds += 1
        more = np.union1d(features, missed) if rounds < ROUNDS else able
        where = [np.searchsorted(more, features[where]) for where in best.loadings.where]
        features, At = more, data.factor(more, options.m, keep_layout=True)
        best = _ascent(At, truncated_power.SparseRows(where, best.loadings.values), best.flops, options)
    return features, At, _arranged(best, options.counts, perf_counter() - began)


def _best_start(
    At: np.ndarray,
    norms: np.ndarray,
    options: FitOptions,
    counts: np.ndarray,
    previous: np.ndarray | None,
    rng: np.random.Generator,
) -> truncated_power.Ascent:
    """The best ascent: from loadings found one by one (or the last fit's), then from random ones."""
    loadings, spent, rank, axes = _first(At, norms, counts, previous)
    best = _ascent(At, loadings, spent, options)
    short = truncated_power.HEAVY * int(counts.max()) <= At.shape[1]
    if short and axes is not None and 1 < options.m < rank:
        other, spent = deflation.replaced(At, norms, best, axes)
        if other is not None:
            found = _ascent(At, other, best.flops + spent, options)
            best = found if found.explained > best.explained else best
    others = []
    if previous is None and 2 * options.m > rank:
        # One by one leaves little to the last of so many; rotations turn all of them at once.
        others.append(rotated(At, options, counts, principal_axes(At, options.m)[0]))
    for _ in range(1, options.n_starts):
        others.append(np.linalg.qr(rng.standard_normal((len(At), options.m)))[0].T @ At)
    for Y in others:
        found = _ascent(At, _cut(Y, counts), 2.0 * options.m * At.size, options)
        best = found if found.explained > best.explained else best
    return best


def _first(
    At: np.ndarray, norms: np.ndarray, counts: np.ndarray, previous: np.ndarray | None
) -> tuple[truncated_power.SparseRows, float, int, np.ndarray | None]:
    """Loadings to begin with, the flops, the rank of the data, where that is small, and the axes if they were needed."""
    if previous is not None:
        return _cut(previous.T @ At, counts), 2.0 * previous.size * At.shape[1], len(At), None
    enough = max(AXES, 10 * len(At))
    few = 3 * enough <= 2 * len(norms)
    part = truncated_power.taken(At, np.argpartition(-norms, enough)[:enough]) if few else At
    axes, squares = principal_axes(part, min(len(counts) + deflation.SPARE, len(At)), tol=ROUGH)
    axes = axes.T * np.sqrt(squares)[:, None]
    loadings, spent = deflation.one_by_one(At, norms, counts, axes)
    rank = int(np.sum(squares > 1e-12 * squares[0]))
    spent += 2.0 * len(At) * part.size + flop_counts.eigh(len(At))
    return loadings, spent, rank if rank < len(squares) else len(At), axes


def _cut(Y: np.ndarray, counts: np.ndarray) -> truncated_power.SparseRows:
    return truncated_power.cut(Y, truncated_power.matched(Y, counts))


def _ascent(
    At: np.ndarray, loadings: truncated_power.SparseRows, spent: float, options: FitOptions
) -> truncated_power.Ascent:
    with bar(options.progress) as shown:
        found = truncated_power.ascend(At, loadings, options.tol, options.max_sweeps, shown)
    found.flops += spent
    return found


def _missed(
    data: CentredData | CovarianceData,
    At: np.ndarray,
    features: np.ndarray,
    able: np.ndarray,
    best: truncated_power.Ascent,
) -> np.ndarray:
    """The features that were left out and have larger entries than some that were counted."""
    norms = data.found.norms
    left = np.zeros(len(norms), dtype=bool)
    left[able] = True
    left[features] = False
    level = best.smallest_counted()
    # No entry of a column is larger than the norm of its feature.
    some = np.flatnonzero(level < norms[left].max(initial=0.0))
    if len(some) == 0:
        return features[:0]
    W = best.W
    if len(At) < data.shape[0]:
        # In the coordinates of the samples, which a root of the products does not have.
        Z = np.zeros((len(W), len(norms)))
        Z[:, features] = best.loadings.dense(len(features))
        W = truncated_power.directions(data.scores(Z))[0]
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    larger = np.abs(data.columns(W[some])) > level[some, None]
    return np.flatnonzero(larger.any(axis=0) & left)


def _arranged(found: truncated_power.Ascent, asked: np.ndarray, seconds: float) -> Loadings:
    """The components as the counts were asked for; those with equal counts by their variance."""
    size = np.einsum("ij,ij->i", found.scores, found.scores)
    order = np.empty(len(asked), dtype=int)
    order[np.argsort(-asked, kind="stable")] = np.lexsort((-size, -found.loadings.counts()))
    E = found.scores[order]
    U = np.ascontiguousarray(polar(E.T))
    result = Result(
        U=U,
        value=found.explained,
        converged=found.converged,
        message=found.message,
        sweeps=len(found.trace) - 1,
        rotations=0,
        flops=found.flops,
        gradient_norm=found.gradient_norm,
        orthogonality=orthogonality(U),
        determinant=None,
        seconds=seconds,
        trace=found.trace,
    )
    Z = found.loadings.dense(found.Y.shape[1])[order]
    return Loadings(Z, found.Y[order], found.largest_uncounted()[order], result, np.ascontiguousarray(E.T))
