"""Loadings one by one, to begin with: each in what the scores before it leave.

The largest count comes first. Each loading is sought from the leading axis of the rest and from its strongest feature, and
the one that explains more is kept: a long loading follows the axis; a short one is made of strong features, which the axis
may not know. Short loadings have many places to end at, so after the ascent (`truncated_power`) each of them is tried against
a new one, found in what all the others leave.

Arrays are stored one component per row; At is samples x features, centred.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.tiles import turned
from givens.sparse_pca.truncated_power import GROWTH, HEAVY, Ascent, SparseRows, largest, taken

STEPS = 11  # of one component at the start, before the next one
AMPLE = 1000  # features, and some per count, are looked at first: enough to hold what will be counted, mostly
LARGE = 1 << 20  # entries of the data: a product with fewer is over before another thread has begun
BELOW = 0.5  # of the squared norm of the last feature that would do
SPARE = 5  # axes beyond the components, since what is left of the first ones grows less


def strongest(squares: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The features that loadings with these counts will mostly be made of, ascending, by their squared norms.

    So many that the weakest is far below what would do if each were counted once; all, where that leaves few out.
    """
    total = int(counts.sum())
    enough = 2 * total + AMPLE
    if 3 * enough > 2 * len(squares):
        return np.arange(len(squares))
    parted = np.partition(squares, [len(squares) - enough, len(squares) - total])
    level = min(parted[len(squares) - enough], BELOW * parted[len(squares) - total])
    kept = (squares >= level).nonzero()[0]
    return kept if 3 * len(kept) <= 2 * len(squares) else np.arange(len(squares))


def one_by_one(
    At: np.ndarray, norms: np.ndarray, counts: np.ndarray, axes: np.ndarray
) -> tuple[SparseRows, float]:
    """Loadings to begin with, each in what the scores before it leave, and the flops.

    Parameters
    ----------
    At : array, shape (samples, features)
    norms : array, shape (features,)
    counts : array of int
        In any order: the loadings have the largest first.
    axes : array, shape (some, samples)
        The leading principal axes, each as long as its singular value.
    """
    n, m = len(At), len(counts)
    counts = np.sort(counts)[::-1]
    here = np.arange(At.shape[1])
    rest = norms * norms
    flops = 0.0
    basis = np.zeros((m, n))
    found = SparseRows([], [])
    for j, count in enumerate(counts):
        B = basis[:j]
        best, steps = _next(At, B, rest, axes, int(count))
        found.where.append(here[best.where])
        found.values.append(best.values)
        basis[j] = best.score - (best.score @ B.T) @ B
        basis[j] /= np.linalg.norm(basis[j]) or 1.0
        rest = np.maximum(rest - np.square(_turned(basis[j], At)), 0.0)
        flops += (2.0 * steps + 4.0) * At.size + 2.0 * steps * n * int(count)
        if j + 1 < m:
            here, rest, At = _strongest(here, rest, At, counts[j + 1 :])
    return found, flops


def _next(At: np.ndarray, B: np.ndarray, rest: np.ndarray, axes: np.ndarray, count: int) -> tuple[_Step, int]:
    """One more loading beside the basis B, and how many steps it took; `rest` is what is left of the features' squared norms."""
    pivot = int(np.argmax(rest))
    e = At[:, pivot] - (At[:, pivot] @ B.T) @ B
    if count == 1:
        # Nothing else can explain more.
        return _Step(np.array([pivot]), np.ones(1), e, float(e @ e)), 0
    # The rest's leading axis, from the leading ones of the whole.
    left = axes - (axes @ B.T) @ B
    best = _step(At, B, left.T @ np.linalg.eigh(left @ left.T)[1][:, -1], count)
    if HEAVY * count <= At.shape[1]:
        best = max(best, _step(At, B, e, count), key=_held)
    steps, grown = 2, True
    while grown and steps < STEPS:
        tried = _step(At, B, best.score, count)
        grown = tried.held > best.held * (1 + GROWTH)
        best = max(best, tried, key=_held)
        steps += 1
    return best, steps


def replaced(
    At: np.ndarray, norms: np.ndarray, found: Ascent, axes: np.ndarray
) -> tuple[SparseRows | None, float]:
    """Loadings some of which, tried in turn, the weakest first, gave way to others that explain more; and the flops.

    What counts is what a score has that all the other components together do not explain. None if nothing changed.
    """
    loadings = SparseRows(list(found.loadings.where), list(found.loadings.values))
    E, squares = found.scores.copy(), norms * norms
    flops, changed = 0.0, False
    for j in np.argsort([e @ e for e in (_beside(E, j)[1] for j in range(len(E)))], kind="stable"):
        B, own = _beside(E, j)
        rest = np.maximum(squares - np.square(_turned(B, At)).sum(axis=0), 0.0)
        other, steps = _next(At, B, rest, axes, len(loadings.where[j]))
        flops += 2.0 * (steps + len(E)) * At.size + 2.0 * flop_counts.qr(*E.shape)
        if other.held > (1 + GROWTH) * float(own @ own):
            loadings.where[j], loadings.values[j] = other.where, other.values
            E[j] = taken(At, other.where) @ other.values
            changed = True
    return (loadings if changed else None), flops


def _beside(E: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """A basis of all rows but j, and what it leaves of that."""
    B = np.linalg.qr(np.delete(E, j, axis=0).T)[0].T
    return B, E[j] - (E[j] @ B.T) @ B


def _strongest(
    here: np.ndarray, rest: np.ndarray, At: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kept = strongest(rest, counts)
    return (here, rest, At) if len(kept) == len(rest) else (here[kept], rest[kept], taken(At, kept))


class _Step(NamedTuple):
    """One loading, and what of its score is beside those before it."""

    where: np.ndarray
    values: np.ndarray
    score: np.ndarray
    held: float


def _step(At: np.ndarray, B: np.ndarray, u: np.ndarray, count: int) -> _Step:
    """The counted entries of Xᵀu, for u orthogonal to B."""
    where, values = largest(_turned(u, At), count)
    if HEAVY * count > At.shape[1]:
        z = np.zeros(At.shape[1])
        z[where] = values
        e = At @ z
    else:
        e = taken(At, where) @ values
    e -= (e @ B.T) @ B
    return _Step(where, values, e, float(e @ e))


def _turned(u: np.ndarray, At: np.ndarray) -> np.ndarray:
    """uᵀA, for one u or rows of them, by all threads where that is worth handing it over."""
    if At.size < LARGE:
        return u @ At
    rows = np.atleast_2d(u)
    Y = np.empty((len(rows), At.shape[1]))
    turned(rows, At, Y)
    return Y if u.ndim == 2 else Y[0]


def _held(step: _Step) -> float:
    return step.held
