"""Sparse components with exact counts: which features are looked at, several starts, the components in order.

The first start is loadings found one by one, each in what the scores before it leave: the largest count first, and again in the
order in which unequal counts are listed. Each loading is sought from the leading axis of the rest and from its strongest
feature, and the one that explains more is kept: a long loading follows the axis; a short one consists of strong features, which
may have little weight in the axis. Short loadings have many local maxima, so after the ascent (`truncated_power`) each of them is
compared with a new one, found in what all the others leave. Further starts are rotations whose thresholds track the counts, and
random columns.

Arrays are stored one component per row; At is samples x features, centred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.numerics import flop_counts
from givens.numerics.gram import leading_axes
from givens.numerics.polar import polar
from givens.result import Result
from givens.rotations import orthogonality
from givens.sparse_pca import exchanges, truncated_power
from givens.sparse_pca.centred_data import CentredData, CovarianceData
from givens.sparse_pca.forms import (
    HEAVY,
    Axes,
    ProductForm,
    ProductRest,
    SampleForm,
    SampleRest,
    SparseRows,
    Step,
    orthonormal_columns,
)
from givens.sparse_pca.loadings import Loadings, directions, reported_order, rotated
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.truncated_power import STEP_GROWTH, Ascent
from givens.support.arguments import counted
from givens.support.progress import bar

SMALL_PROBLEM = (
    1 << 21
)  # samples x features x components up to which rotations and exchanges take little time
SAME = 1e-6  # two ascents whose variances differ by less than this share have ended in the same place
ROTATED = {"rotations with one threshold": True, "rotations with a threshold per component": False}
IDLE = 1e-14  # share of the largest variance that is a rounding error, also of products of features
LOADING_STEPS = 11  # of one component at the start, before the next one
AMPLE = 1000  # number of features that are looked at first, beyond some for each counted entry
BELOW = 0.5  # share of the squared norm of the feature that would be counted last; weaker ones are left out
SPARE_AXES = 5  # axes beyond the components, since what is left of the first ones grows less
SHARED = 6  # times that a budget of non-zeros is divided again
FEATURE_ROUNDS = 3  # of features that were left out and turn out to count; then all are taken


def solve(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SampleForm | ProductForm, Loadings]:
    """Features, the data of these, and loadings with `options.counts` non-zeros; `previous` are the loadings of the last fit.

    More components than the data have rank compete for the same variance, and together explain less than fewer. So where some
    explain nothing, the search is repeated without them, and they get the weakest features.
    """
    assert options.counts is not None
    features, table, loadings = _solve(data, options, previous, rng)
    m = options.m - int(np.count_nonzero(idle(loadings.scores)))
    if m in (0, options.m):
        return features, table, loadings
    fewer = replace(options, m=m, counts=options.counts[:m])
    others, other, found = solve(data, fewer, None if previous is None else previous[:m], rng)
    if found.result.value < (1 - SAME) * loadings.result.value:
        return features, table, loadings
    return others, other, _extended(found, other, data.found.norms[others], options.counts[m:])


def idle(scores: np.ndarray) -> np.ndarray:
    """Which scores explain nothing beyond those before them, but for rounding errors."""
    adjusted = adjusted_from_scores(scores)
    return adjusted <= IDLE * adjusted.max(initial=0.0)


def _extended(
    found: Loadings, table: SampleForm | ProductForm, norms: np.ndarray, counts: np.ndarray
) -> Loadings:
    """Loadings, and further ones of the weakest features, in a direction of the least variance, so that they come last."""
    more = np.zeros((len(counts), len(norms)))
    by_norm = np.argsort(norms, kind="stable")
    for row, count in zip(more, counts):
        kept = by_norm[:count]
        alone = np.zeros((count, len(norms)))
        alone[np.arange(count), kept] = 1.0
        scores = table.scores(SparseRows.of(alone))[0]
        variances, axes = np.linalg.eigh(scores @ scores.T)
        flat = axes[:, variances <= variances[0] + 1e-9 * variances[-1]]
        # Any of these directions will do, if none of its entries is 0.
        direction = flat @ (flat.T @ np.random.default_rng(0).standard_normal(count))
        row[kept] = direction / np.linalg.norm(direction)
    Z = np.concatenate([found.Z, more])
    scores = np.ascontiguousarray(table.scores(SparseRows.of(Z))[0].T)
    U = np.ascontiguousarray(polar(scores))
    levels = np.concatenate([found.levels, np.zeros(len(more))])
    result = replace(found.result, U=U, orthogonality=orthogonality(U))
    return Loadings(Z, np.concatenate([found.Y, np.zeros_like(more)]), levels, result, scores)


def _solve(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SampleForm | ProductForm, Loadings]:
    """As `solve`, with all components at once.

    Only the strongest features are taken at first. In the end the columns of all features say whether one that was left out
    is larger than one that was counted; if so it is taken too, and the ascent goes on.
    """
    assert options.counts is not None
    began, norms = perf_counter(), data.found.norms
    able = np.flatnonzero(norms > 0)
    if len(able) < max(options.m, int(options.counts.max())):
        able = np.arange(len(norms))
    features = able[strongest(norms[able] ** 2, options.counts)]
    search = SeveralStarts(_table(data, features, options), norms[features], options)
    best = search.run(None if previous is None else previous[:, features], rng)
    rounds = 0
    while len(missed := _missed(data, search.table, features, able, best)):
        rounds += 1
        more = np.union1d(features, missed) if rounds < FEATURE_ROUNDS else able
        where = [np.searchsorted(more, features[where]) for where in best.loadings.where]
        features = more
        search.table, search.norms = _table(data, features, options), norms[features]
        best = search.ascend(SparseRows(where, best.loadings.values))
    return features, search.table, _arranged(search, best, perf_counter() - began)


def _table(
    data: CentredData | CovarianceData, features: np.ndarray, options: FitOptions
) -> SampleForm | ProductForm:
    """The products of features where samples are many and one start is enough: exchanges and rotations need samples."""
    large = len(features) ** 2 * options.m > SMALL_PROBLEM
    if large and options.n_starts == 1 and isinstance(data, CentredData) and len(features) < data.shape[0]:
        return ProductForm(data.products(features))
    # Exchanges, which several starts end with, need an array.
    return SampleForm(data.factor(features, options.m, keep_layout=True, implicit=options.n_starts == 1))


def solve_total(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SampleForm | ProductForm, Loadings]:
    """As `solve`, where only the sum of `options.counts` is asked for: it begins with these, and divides the sum again.

    With orthonormal columns U near the scores, Y = AᵀU has in y_kj² what feature k adds to the variance of component j; so the
    largest entries of all of Y are what a budget should be spent on. Counting them, first of principal components, then of
    what was found, gives further counts, as long as the adjusted variance grows.
    """
    assert options.counts is not None
    total, seen = int(options.counts.sum()), {tuple(options.counts.tolist())}
    best = solve(data, options, previous, rng)
    columns = best[1].principal_columns(options.m)
    for step in range(SHARED):
        counts = spent(np.abs(columns), total)
        found = best
        if tuple(counts.tolist()) not in seen:
            seen.add(tuple(counts.tolist()))
            found = solve(data, replace(options, counts=counts), previous, rng)
        grown = found[2].result.value > best[2].result.value
        if not grown and step > 0:
            break
        best = found if grown else best
        columns = orthonormal_columns(best[1], best[2].Z)
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

    The first start is loadings found one by one, in one order or two, the better of which counts (or the last fit's). Where the
    data are small there are two more, rotations with one threshold for all columns and with one for each, and what every ascent
    ends at is improved by exchanges of single entries. Where the data are large, that is left to the further starts that
    `n_starts` asks for: rotations first, then random columns.

    Attributes
    ----------
    flops, sweeps, rotations, exchanges : float, int, int, int
        Of all starts.
    tried : list of str
        The kinds of starts.
    reached : list of float
        The adjusted variance that each start led to, as a sum of squares.
    """

    def __init__(self, table: SampleForm | ProductForm, norms: np.ndarray, options: FitOptions) -> None:
        assert options.counts is not None
        self.table, self.norms, self.options, self.counts = table, norms, options, options.counts
        self.flops, self.sweeps, self.rotations, self.exchanges = 0.0, 0, 0, 0
        self.tried: list[str] = []
        self.reached: list[float] = []

    def run(self, previous: np.ndarray | None, rng: np.random.Generator) -> Ascent:
        """The best ascent."""
        firsts, axes, rank = self._firsts(previous)
        many = 2 * self.options.m > rank
        if many and isinstance(self.table, ProductForm):
            self.table = self.table.samples(self.options.m)
            axes = self._axes()
        small = (
            isinstance(self.table, SampleForm)
            and self.table.rows * self.table.features * self.options.m <= SMALL_PROBLEM
        )
        thorough = small or self.options.n_starts > 1
        begun = [self._replaced(self.ascend(first), axes, rank) for first in firsts]
        best = max(begun, key=_explained)
        seen = [ascent.explained for ascent in begun]
        if thorough:
            best = self._exchanged(best)
        self.reached.append(best.explained)
        for start in self._others(small or many, previous, rng):
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
                self.table, loadings, self.counts, options.tol, options.max_sweeps, shown
            )
        self.flops += found.flops
        return found

    def _exchanged(self, best: Ascent) -> Ascent:
        assert isinstance(self.table, SampleForm)
        assert isinstance(self.table.At, np.ndarray)
        loadings, spent, number = exchanges.exchanged(
            self.table.At, self.norms**2, best.loadings, self.counts
        )
        self.flops += spent
        self.exchanges += number
        if number == 0:
            return best
        found = self.ascend(loadings)
        return found if found.explained > best.explained else best

    def _replaced(self, best: Ascent, axes: Axes | None, rank: int) -> Ascent:
        """Short loadings tried against others, one by one."""
        short = HEAVY * int(self.counts.max()) <= self.table.features
        if not short or axes is None or not 1 < self.options.m < rank:
            return best
        other, spent = replaced(self.table, self.norms, best, axes)
        self.flops += spent
        found = best if other is None else self.ascend(other)
        return found if found.explained > best.explained else best

    def _firsts(self, previous: np.ndarray | None) -> tuple[list[SparseRows], Axes | None, int]:
        """Loadings to begin with, the axes if they were needed, and the rank of the data, where that is small."""
        whole = self.table.rows or self.table.features
        if previous is not None:
            self.tried.append("the last fit")
            self.flops += self.table.product_flops(len(previous), int(np.count_nonzero(previous)))
            return [self._cut(orthonormal_columns(self.table, previous))], None, whole
        axes = self._axes()
        orders = [np.sort(self.counts)[::-1]]
        if np.any(np.diff(self.counts) > 0):
            orders.append(self.counts)
        self.tried.append("loadings one by one" if len(orders) == 1 else "loadings one by one, in two orders")
        firsts = []
        for counts in orders:
            loadings, spent = one_by_one(self.table, self.norms, counts, axes)
            firsts.append(loadings)
            self.flops += spent
        rank = int(np.sum(axes.squares > 1e-12 * axes.squares[0]))
        return firsts, axes, rank if rank < len(axes.squares) else whole

    def _axes(self) -> Axes:
        whole = self.table.rows or self.table.features
        self.flops += 2.0 * whole * whole * self.table.features + flop_counts.eigh(whole)
        return self.table.axes(self.norms, len(self.counts) + SPARE_AXES)

    def _others(
        self, rotate: bool, previous: np.ndarray | None, rng: np.random.Generator
    ) -> Iterator[SparseRows]:
        """Further starts: rotations, unless a fit goes on from the last one, and random ones."""
        more = self.options.n_starts - 1
        if not more and (previous is not None or not rotate):
            return
        assert isinstance(self.table, SampleForm)
        At = self.table.At
        if previous is None:
            kinds = list(ROTATED) if rotate else list(ROTATED)[:more]
            more -= 0 if rotate else len(kinds)
            V = leading_axes(At, self.options.m)[0]
            for name in kinds:
                Y, result = rotated(At, self.options, V, shared=ROTATED[name])
                self.tried.append(name)
                self.flops += result.flops
                self.sweeps += result.sweeps
                self.rotations += result.rotations
                yield self._cut(Y)
        for _ in range(more):
            self.tried.append("random columns")
            self.flops += 2.0 * self.options.m * At.size
            yield self._cut(np.linalg.qr(rng.standard_normal((len(At), self.options.m)))[0].T @ At)

    def _cut(self, Y: np.ndarray) -> SparseRows:
        return truncated_power.cut(Y, truncated_power.matched(Y, self.counts))


def _missed(
    data: CentredData | CovarianceData,
    table: SampleForm | ProductForm,
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
    if table.rows != data.shape[0]:
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
    return f"{steps}; {turned}; {counted(search.exchanges, 'entry', 'entries')} exchanged"


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
    leading = 2 * total + AMPLE
    if 3 * leading > 2 * len(squares):
        return np.arange(len(squares))
    parted = np.partition(squares, [len(squares) - leading, len(squares) - total])
    level = min(parted[len(squares) - leading], BELOW * parted[len(squares) - total])
    kept = (squares >= level).nonzero()[0]
    return kept if 3 * len(kept) <= 2 * len(squares) else np.arange(len(squares))


def one_by_one(
    table: SampleForm | ProductForm, norms: np.ndarray, counts: np.ndarray, axes: Axes
) -> tuple[SparseRows, float]:
    """Loadings to begin with, each in what the scores before it leave, and the flops.

    Parameters
    ----------
    table : SampleForm or ProductForm
    norms : array, shape (features,)
    counts : array of int
        The loadings are found in this order.
    axes : Axes
        The leading principal axes.
    """
    m = len(counts)
    here = np.arange(table.features)
    left = norms * norms
    flops = 0.0
    found = SparseRows([], [])
    A = table.At if isinstance(table, SampleForm) else np.zeros((0, table.features))
    rest = table.rest(np.zeros((0, len(A))), A)
    for j, count in enumerate(counts):
        best, steps = _next(rest, left, axes, int(count))
        found.where.append(here[best.where])
        found.values.append(best.values)
        rest, row = rest.extended(best)
        left = np.maximum(left - np.square(row), 0.0)
        flops += (steps + 2) * table.product_flops(1, int(count)) * len(here) / table.features
        if j + 1 < m and isinstance(rest, SampleRest):
            kept = strongest(left, counts[j + 1 :])
            if len(kept) < len(here):
                here, left, rest = here[kept], left[kept], rest.narrowed(kept)
    return found, flops


def _next(rest: SampleRest | ProductRest, left: np.ndarray, axes: Axes, count: int) -> tuple[Step, int]:
    """One more loading beside a basis, and how many steps it took; `left` is what is left of the features' squared norms."""
    pivot = int(np.argmax(left))
    if count == 1:
        # Nothing else can explain more.
        return rest.alone(pivot), 0
    # The rest's leading axis, from the leading ones of the whole.
    best = rest.step(rest.leading(axes), count)
    if HEAVY * count <= len(left):
        best = max(best, rest.step(rest.feature(pivot), count), key=_held)
    steps, grown = 2, True
    while grown and steps < LOADING_STEPS:
        tried = rest.step(best.score, count)
        grown = tried.held > best.held * (1 + STEP_GROWTH)
        best = max(best, tried, key=_held)
        steps += 1
    return best, steps


def replaced(
    table: SampleForm | ProductForm, norms: np.ndarray, found: Ascent, axes: Axes
) -> tuple[SparseRows | None, float]:
    """Loadings some of which, tried in turn, the weakest first, gave way to others that explain more; and the flops.

    What counts is what a score has that all the other components together do not explain. None if nothing changed.
    """
    loadings = SparseRows(list(found.loadings.where), list(found.loadings.values))
    E, A = table.scores(loadings)
    squares, flops, changed = norms * norms, 0.0, False
    for j in np.argsort([e @ e for e in (_beside(E, j)[1] for j in range(len(E)))], kind="stable"):
        B, own = _beside(E, j)
        rest = table.rest(B, A)
        left = np.maximum(squares - np.square(rest.columns()).sum(axis=0), 0.0)
        other, steps = _next(rest, left, axes, len(loadings.where[j]))
        flops += steps * table.product_flops(1, len(loadings.where[j])) + table.product_flops(len(E), 0)
        flops += 2.0 * flop_counts.qr(*E.shape)
        if other.held > (1 + STEP_GROWTH) * float(own @ own):
            loadings.where[j], loadings.values[j] = other.where, other.values
            E, A = table.scores(loadings)
            changed = True
    return (loadings if changed else None), flops


def _beside(E: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """A basis of all rows but j, and what it leaves of that."""
    B = np.linalg.qr(np.delete(E, j, axis=0).T)[0].T
    return B, E[j] - (E[j] @ B.T) @ B


def _explained(ascent: Ascent) -> float:
    return ascent.explained


def _held(step: Step) -> float:
    return step.held
