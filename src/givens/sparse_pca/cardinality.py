"""Sparse components with exact counts: which features are looked at, several starts, the components in order.

The first start is loadings found one by one, each in what the scores before it leave. The largest count comes first. Each
loading is sought from the leading axis of the rest and from its strongest feature, and the one that explains more is kept: a
long loading follows the axis; a short one is made of strong features, which the axis may not know. Short loadings have many
places to end at, so after the ascent (`truncated_power`) each of them is tried against a new one, found in what all the others
leave. Further starts are rotations whose thresholds follow the counts, and random columns.

Arrays are stored one component per row; At is samples x features, centred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.numerics.tiles import turned
from givens.result import Result
from givens.rotations import orthogonality
from givens.sparse_pca import exchanges, truncated_power
from givens.sparse_pca.data import CentredData, CovarianceData, principal_axes, rough_axes
from givens.sparse_pca.loadings import FitOptions, Loadings, directions, reported_order, rotated
from givens.sparse_pca.truncated_power import GROWTH, HEAVY, Ascent, SparseRows, largest, taken
from givens.support.progress import bar

AXES = 2000  # features, the strongest, tell the leading axes well enough to begin; or ten times as many as samples
SMALL = (
    1 << 21
)  # samples x features x components up to which rotations and exchanges take no time to speak of
SAME = 1e-6  # two ascents whose variances differ by less than this share have ended in the same place
ROTATED = (
    ("rotations with one threshold", True, False),
    ("rotations with a threshold per component", False, False),
    ("rotations with one threshold, l0", True, True),
)
STEPS = 11  # of one component at the start, before the next one
AMPLE = 1000  # features, and some per count, are looked at first: enough to hold what will be counted, mostly
LARGE = 1 << 20  # entries of the data: a product with fewer is over before another thread has begun
BELOW = 0.5  # of the squared norm of the last feature that would do
SPARE = 5  # axes beyond the components, since what is left of the first ones grows less
SHARED = 6  # times that a budget of non-zeros is shared out anew
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
    features = able[strongest(norms[able] ** 2, options.counts)]
    At = data.factor(features, options.m, keep_layout=True)
    search = SeveralStarts(At, norms[features], options)
    best = search.run(previous(At, features), rng)
    rounds = 0
    while len(missed := _missed(data, At, features, able, best)):
        rounds += 1
        more = np.union1d(features, missed) if rounds < ROUNDS else able
        where = [np.searchsorted(more, features[where]) for where in best.loadings.where]
        features, At = more, data.factor(more, options.m, keep_layout=True)
        search.At, search.norms = At, norms[features]
        best = search.ascend(SparseRows(where, best.loadings.values))
    return features, At, _arranged(search, best, perf_counter() - began)


def solve_total(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: Callable[[np.ndarray, np.ndarray], np.ndarray | None],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, Loadings]:
    """As `solve`, where only the sum of `options.counts` is asked for: it begins with these, and shares them out anew.

    With orthonormal columns U near the scores, Y = AᵀU has in y_kj² what feature k adds to the variance of component j; so the
    largest entries of all of Y are what a budget should be spent on. Counting them, first of principal components, then of
    what was found, gives further counts, as long as the adjusted variance grows.
    """
    assert options.counts is not None
    total, seen = int(options.counts.sum()), {tuple(options.counts.tolist())}
    best = solve(data, options, previous, rng)
    columns = principal_axes(best[1], options.m)[0]
    for step in range(SHARED):
        counts = spent(np.abs(columns.T @ best[1]), total)
        found = best
        if tuple(counts.tolist()) not in seen:
            seen.add(tuple(counts.tolist()))
            found = solve(data, replace(options, counts=counts), previous, rng)
        grown = found[2].result.value > best[2].result.value
        if not grown and step > 0:
            break
        best = found if grown else best
        columns = best[2].result.U
    return best


def spent(sizes: np.ndarray, total: int) -> np.ndarray:
    """How many of the `total` largest entries stand in each row, at least one, in descending order.

    >>> spent(np.array([[0.1, 0.0, 0.2], [3.0, 2.0, 1.0]]), 4)
    array([3, 1])
    """
    firsts = sizes.argmax(axis=1)
    rest = sizes.copy()
    rest[np.arange(len(sizes)), firsts] = -1.0
    order = np.argsort(-rest, axis=None, kind="stable")[: total - len(sizes)]
    counts = 1 + np.bincount(order // sizes.shape[1], minlength=len(sizes))
    return np.sort(counts)[::-1].copy()


class SeveralStarts:
    """Ascents from several starts, the best of which is kept; and what all of them took.

    The first start is loadings found one by one (or the last fit's). Where the data are small there are three more, rotations
    with one threshold for all columns, ℓ1 and ℓ0, and with one for each, and what every ascent ends at is improved by
    exchanges of single entries. Where the data are large, that is left to the further starts that `n_starts` asks for: rotations
    first, then random columns.

    Attributes
    ----------
    flops, sweeps, rotations, exchanges : float, int, int, int
        Of all starts.
    tried : list of str
        The kinds of starts.
    reached : list of float
        The adjusted variance that each start led to, as a sum of squares.
    """

    def __init__(self, At: np.ndarray, norms: np.ndarray, options: FitOptions) -> None:
        assert options.counts is not None
        self.At, self.norms, self.options, self.counts = At, norms, options, options.counts
        self.flops, self.sweeps, self.rotations, self.exchanges = 0.0, 0, 0, 0
        self.tried: list[str] = []
        self.reached: list[float] = []

    def run(self, previous: np.ndarray | None, rng: np.random.Generator) -> Ascent:
        """The best ascent."""
        small = self.At.size * self.options.m <= SMALL
        thorough = small or self.options.n_starts > 1
        first, axes, rank = self._first(previous)
        best = self._replaced(self.ascend(first), axes, rank)
        seen = [best.explained]
        if thorough:
            best = self._exchanged(best)
        self.reached.append(best.explained)
        for start in self._others(small or 2 * self.options.m > rank, previous, rng):
            found = self.ascend(start)
            if thorough and all(abs(found.explained - value) > SAME * value for value in seen):
                seen.append(found.explained)
                found = self._exchanged(found)
            self.reached.append(found.explained)
            best = found if found.explained > best.explained else best
        return best

    def ascend(self, loadings: SparseRows) -> Ascent:
        """Truncated power steps."""
        options = self.options
        with bar(options.progress) as shown:
            found = truncated_power.ascend(
                self.At, loadings, self.counts, options.tol, options.max_sweeps, shown
            )
        self.flops += found.flops
        return found

    def _exchanged(self, best: Ascent) -> Ascent:
        loadings, spent, number = exchanges.exchanged(self.At, self.norms**2, best.loadings, self.counts)
        self.flops += spent
        self.exchanges += number
        if number == 0:
            return best
        found = self.ascend(loadings)
        return found if found.explained > best.explained else best

    def _replaced(self, best: Ascent, axes: np.ndarray | None, rank: int) -> Ascent:
        """Short loadings tried against others, one by one."""
        short = HEAVY * int(self.counts.max()) <= self.At.shape[1]
        if not short or axes is None or not 1 < self.options.m < rank:
            return best
        other, spent = replaced(self.At, self.norms, best, axes)
        self.flops += spent
        found = best if other is None else self.ascend(other)
        return found if found.explained > best.explained else best

    def _first(self, previous: np.ndarray | None) -> tuple[SparseRows, np.ndarray | None, int]:
        """Loadings to begin with, the axes if they were needed, and the rank of the data, where that is small."""
        At, norms = self.At, self.norms
        if previous is not None:
            self.tried.append("the last fit")
            self.flops += 2.0 * previous.size * At.shape[1]
            return self._cut(previous.T @ At), None, len(At)
        self.tried.append("loadings one by one")
        enough = max(AXES, 10 * len(At))
        few = 3 * enough <= 2 * len(norms)
        part = taken(At, np.argpartition(-norms, enough)[:enough]) if few else At
        axes, squares = rough_axes(part, min(len(self.counts) + SPARE, len(At)))
        axes = axes.T * np.sqrt(squares)[:, None]
        loadings, spent = one_by_one(At, norms, self.counts, axes)
        rank = int(np.sum(squares > 1e-12 * squares[0]))
        self.flops += spent + 2.0 * len(At) * part.size + flop_counts.eigh(len(At))
        return loadings, axes, rank if rank < len(squares) else len(At)

    def _others(
        self, rotate: bool, previous: np.ndarray | None, rng: np.random.Generator
    ) -> Iterator[SparseRows]:
        """Further starts: rotations, unless a fit goes on from the last one, and random ones."""
        more = self.options.n_starts - 1
        if previous is None and (rotate or more):
            kinds = ROTATED if rotate else ROTATED[:more]
            more -= 0 if rotate else len(kinds)
            V = principal_axes(self.At, self.options.m)[0]
            for name, shared, l0 in kinds:
                Y, result = rotated(self.At, self.options, V, shared=shared, l0=l0)
                self.tried.append(name)
                self.flops += result.flops
                self.sweeps += result.sweeps
                self.rotations += result.rotations
                yield self._cut(Y)
        for _ in range(more):
            self.tried.append("random columns")
            self.flops += 2.0 * self.options.m * self.At.size
            yield self._cut(np.linalg.qr(rng.standard_normal((len(self.At), self.options.m)))[0].T @ self.At)

    def _cut(self, Y: np.ndarray) -> SparseRows:
        return truncated_power.cut(Y, truncated_power.matched(Y, self.counts))


def _missed(
    data: CentredData | CovarianceData,
    At: np.ndarray,
    features: np.ndarray,
    able: np.ndarray,
    best: Ascent,
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
        W = directions(data.scores(Z))[0]
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    larger = np.abs(data.columns(W[some])) > level[some, None]
    return np.flatnonzero(larger.any(axis=0) & left)


def _method(search: SeveralStarts, found: Ascent) -> str:
    """What was done, in one sentence."""
    starts = "; ".join(
        name if (number := search.tried.count(name)) == 1 else f"{name}, {number} times"
        for name in dict.fromkeys(search.tried)
    )
    turned = f"{search.rotations} rotations in {search.sweeps} sweeps" if search.rotations else "no rotations"
    steps = f"truncated power steps, {len(found.trace) - 1} after the best start of {len(search.tried)} ({starts})"
    return f"{steps}; {turned}; {search.exchanges} entries exchanged"


def _arranged(search: SeveralStarts, found: Ascent, seconds: float) -> Loadings:
    """The components in the order in which they are reported."""
    order = reported_order(found.scores, found.loadings.counts(), search.counts)
    E = found.scores[order]
    U = np.ascontiguousarray(polar(E.T))
    result = Result(
        U=U,
        value=found.explained,
        converged=found.converged,
        message=found.message,
        sweeps=search.sweeps,
        rotations=search.rotations,
        flops=search.flops,
        gradient_norm=found.gradient_norm,
        orthogonality=orthogonality(U),
        determinant=None,
        seconds=seconds,
        trace=found.trace,
        method=_method(search, found),
        starts=np.array(search.reached),
    )
    Z = found.loadings.dense(found.Y.shape[1])[order]
    return Loadings(Z, found.Y[order], found.largest_uncounted()[order], result, np.ascontiguousarray(E.T))


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
