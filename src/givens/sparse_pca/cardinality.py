"""Sparse components with exact counts: one search, over a list of starts.

1. *Starts*: rotations of the leading principal columns whose thresholds track the counts, with one threshold for all components
   and with one for each; between these, loadings found one by one, each in what the scores before it leave, the largest count
   first, and again in the order in which unequal counts are listed.
2. *The ascent* of each start (`truncated_power`). No further start is tried once the best two ascents agree.
3. *Exchanges* of single entries of the best (`exchanges`), and the ascent again.
4. *Renewals*, if exchanges gain much: loadings where the ascents ended, of which some gave way to new ones that explain more
   beside all the others. They are starts for 2 and 3 again.

Further starts are random combinations of the leading principal columns. Features that are weak are left out at first.

Arrays are stored one component per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from time import perf_counter

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.result import Result
from givens.rotations import orthogonality
from givens.solve.outer_loops import best_of
from givens.sparse_pca.centred_data import CentredData, CovarianceData
from givens.sparse_pca.exchanges import VALUE_GROWTH, exchanged, one_by_one, renewed
from givens.sparse_pca.forms import (
    ImagedLoadings,
    ProductForm,
    SampleForm,
    SparseRows,
    reported_order,
)
from givens.sparse_pca.loadings import Loadings
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.tracked_counts import track
from givens.sparse_pca.truncated_power import STEP_GROWTH, Ascent, ascend, cut, matched
from givens.support.arguments import counted
from givens.support.progress import bar

SAME = 1e-6  # two searches whose variances differ by less than this share have found the same
AGREED = 5e-3  # two ascents whose variances differ by less than this share; on hard tables starts differ by percents
LITTLE_GAIN = (
    1e-3  # of the adjusted variance by exchanges; where they gain more, loadings have many local maxima
)
IDLE = 1e-14  # share of the largest variance that is a rounding error, also of products of features
AMPLE = 1000  # number of features that are looked at first, beyond some for each counted entry
BELOW = 0.5  # share of the squared norm of the feature that would be counted last; weaker ones are left out
BEYOND_RANK = 1e-6  # share of the largest principal column's length that is a rounding error
SPARE_AXES = 10  # principal columns beyond two for each component
DIVISIONS = 6  # times that a budget of non-zeros is divided again
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
        variances, axes = np.linalg.eigh(table.products(kept, kept))
        flat = axes[:, variances <= variances[0] + 1e-9 * variances[-1]]
        # Any of these directions will do, if none of its entries is 0.
        direction = flat @ (flat.T @ np.random.default_rng(0).standard_normal(count))
        row[kept] = direction / np.linalg.norm(direction)
    Z = np.concatenate([found.Z, more])
    scores = np.ascontiguousarray(table.scores(SparseRows.of(Z)).T)
    U = np.ascontiguousarray(polar(scores))
    levels = np.concatenate([found.levels, np.zeros(len(more))])
    result = replace(found.result, U=U, orthogonality=orthogonality(U))
    return Loadings(Z, np.concatenate([found.Y, np.zeros_like(more)]), levels, result, scores, result.value)


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
    with flop_counts.job(flop_counts.Flops()) as counter:
        search = CountSearch(_table(data, features, options), norms[features], options)
        best = search.run(None if previous is None else previous[:, features], rng)
        rounds = 0
        while len(missed := _missed(data, features, able, best)):
            rounds += 1
            more = np.union1d(features, missed) if rounds < FEATURE_ROUNDS else able
            rows = best.here.rows
            where = [np.searchsorted(more, features[where]) for where in rows.where]
            features, search.table = more, _table(data, more, options)
            best = search.ascend(SparseRows(where, rows.values))
        best = search.settled(best)
    return features, search.table, search.reported(best, counter.flops, perf_counter() - began)


def _table(
    data: CentredData | CovarianceData, features: np.ndarray, options: FitOptions
) -> SampleForm | ProductForm:
    """The products of features where samples are more, and components are far from as many as features."""
    if isinstance(data, CentredData) and 2 * options.m <= len(features) < data.shape[0]:
        return ProductForm(data.products(features))
    return SampleForm(data.factor(features, options.m, implicit=True))


class CountSearch:
    """The best of several starts with exact counts; and what all of them took.

    Parameters
    ----------
    table : SampleForm or ProductForm
    norms : array, shape (features,)
    options : FitOptions

    Attributes
    ----------
    counts : array of int
        The counts in the order in which components are reported.
    sweeps, rotations, exchanges : int
        Of all starts.
    tried : list of str
        The kinds of starts.
    reached : list of float
        The adjusted variance, as a sum of squares, that the first starts led to, and each further one.
    """

    def __init__(self, table: SampleForm | ProductForm, norms: np.ndarray, options: FitOptions) -> None:
        assert options.counts is not None
        self.table, self.squares, self.options, self.counts = table, norms**2, options, options.counts
        self.axes = table.principal_columns(2 * options.m + SPARE_AXES)
        sizes = np.linalg.norm(self.axes, axis=1)
        self.axes[sizes <= BEYOND_RANK * sizes.max()] = 0.0
        flop_counts.count(2.0 * table.rows**2 * table.features + flop_counts.eigh(table.rows))
        self.sweeps, self.rotations, self.exchanges = 0, 0, 0
        self.tried: list[str] = []
        self.reached: list[float] = []

    def run(self, previous: np.ndarray | None, rng: np.random.Generator) -> Ascent:
        """The best ascent; `previous` are loadings of an earlier fit, which take the place of the first starts."""
        first = self._starts() if previous is None else [partial(self._last, previous)]
        further = [[partial(self._random_columns, rng)]] * (self.options.n_starts - 1)
        best, found = best_of([first, *further], self._attempt, explained)
        self.reached = [ascent.explained for ascent in found]
        return self._divided(best) if self.options.divide else best

    def ascend(self, rows: SparseRows, growth: float = VALUE_GROWTH, *, divide: bool = False) -> Ascent:
        """Truncated power steps."""
        tol, most = self.options.tol, self.options.max_iter
        with bar() as shown:
            return ascend(self.table, rows, self.counts, tol, most, shown, growth, divide=divide)

    def settled(self, best: Ascent) -> Ascent:
        """Further steps, with the values that explain most."""
        tol, most, rows = self.options.tol, self.options.max_iter, best.here.rows
        with bar() as shown:
            return ascend(self.table, rows, self.counts, tol, most, shown, earlier=best.trace)

    def _attempt(self, starts: Iterable[Callable[[], SparseRows]]) -> Ascent:
        """The best of some starts, or of what renewing the loadings that they lead to leads to."""
        best, ascents = self._best(starts)
        if best.explained <= (1 + LITTLE_GAIN) * max(map(explained, ascents)):
            return best
        renewals = list(self._renewals(ascents))
        return max(best, self._best(renewals)[0], key=explained) if renewals else best

    def _renewals(self, ascents: list[Ascent]) -> Iterator[Callable[[], SparseRows]]:
        """Where ascents ended, with the loadings that gave way to new ones; none where no loading did."""
        for ascent in ascents:
            here = renewed(ascent.here, self.axes, self.squares)
            if here is not ascent.here:
                yield partial(SparseRows, *here.rows)

    def _best(self, starts: Iterable[Callable[[], SparseRows]]) -> tuple[Ascent, list[Ascent]]:
        """The best ascent, with exchanges; and all ascents without."""
        ascents = list[Ascent]()

        def ascended(start: Callable[[], SparseRows]) -> Ascent:
            ascents.append(self.ascend(start()))
            return ascents[-1]

        further = takewhile(lambda start: not _agreed(ascents), starts)
        return best_of(further, ascended, explained, further=[(1, self._exchanged)])

    def _exchanged(self, best: Ascent) -> Ascent:
        rows, number = exchanged(best.here, self.squares, self.counts)
        self.exchanges += number
        return max(best, self.ascend(rows), key=explained) if number else best

    def _divided(self, best: Ascent) -> Ascent:
        """With counts that divide their sum anew, as long as the adjusted variance grows."""
        for _ in range(DIVISIONS):
            counts = self.counts
            found = self.ascend(best.here.rows, divide=True)
            self.counts = np.sort(found.here.rows.counts())[::-1]
            found = self._exchanged(found)
            if found.explained <= best.explained * (1 + STEP_GROWTH):
                self.counts = counts
                break
            best = found
        return best

    def _starts(self) -> Iterator[Callable[[], SparseRows]]:
        """Loadings one by one, and rotations."""
        yield partial(self._rotated, shared=True)
        yield partial(self._one_by_one, np.sort(self.counts)[::-1])
        if np.any(np.diff(self.counts) > 0):
            yield partial(self._one_by_one, self.counts)
        yield partial(self._rotated, shared=False)

    def _one_by_one(self, counts: np.ndarray) -> SparseRows:
        self.tried.append("loadings one by one")
        return one_by_one(self.table, self.axes, self.squares, counts)

    def _rotated(self, shared: bool) -> SparseRows:
        self.tried.append(f"rotations with {'one threshold' if shared else 'a threshold per component'}")
        V = np.eye(len(self.axes))[:, : self.options.m]
        run = track(self.axes, self.options, V, False, shared=shared)
        self.sweeps += len(run.trace) - 1
        self.rotations += run.rotations
        return self._cut(run.best.Y)

    def _last(self, previous: np.ndarray) -> SparseRows:
        self.tried.append("the last fit")
        here = ImagedLoadings.of(self.table, SparseRows.of(previous))
        return self._cut(here.columns(*here.directions(None)[:2]))

    def _random_columns(self, rng: np.random.Generator) -> SparseRows:
        self.tried.append("random columns")
        turn = np.linalg.qr(rng.standard_normal((len(self.axes), self.options.m)))[0]
        return self._cut(turn.T @ self.axes)

    def _cut(self, Y: np.ndarray) -> SparseRows:
        return cut(Y, matched(Y, self.counts))

    def reported(self, best: Ascent, flops: float, seconds: float) -> Loadings:
        """The components in the order in which they are reported."""
        rows, most = best.here.rows, self.options.max_iter
        E = self.table.scores(rows)
        order = reported_order(np.einsum("ij,ij->i", E, E), rows.counts(), self.counts)
        E = E[order]
        U = np.ascontiguousarray(polar(E.T))
        stopped = (
            f"converged: a step did not raise the explained variance by {max(self.options.tol, STEP_GROWTH):g} of it"
            if best.converged
            else f"not converged: max_iter = {most} reached"
        )
        result = Result(
            U=U,
            value=best.explained,
            converged=best.converged,
            message=stopped,
            sweeps=self.sweeps,
            rotations=self.rotations,
            flops=flops,
            gradient_norm=best.gradient_norm,
            orthogonality=orthogonality(U),
            seconds=seconds,
            trace=best.trace,
            method=self._method(len(best.trace) - 1),
            starts=np.array(self.reached),
        )
        Z = rows.dense(best.Y.shape[1])[order]
        levels, scores = best.largest_uncounted()[order], np.ascontiguousarray(E.T)
        return Loadings(Z, best.Y[order], levels, result, scores, best.explained)

    def _method(self, steps: int) -> str:
        """What was done, in one sentence."""
        starts = "; ".join(
            name if (number := self.tried.count(name)) == 1 else f"{name}, {number} times"
            for name in dict.fromkeys(self.tried)
        )
        turned = f"{self.rotations} rotations in {self.sweeps} sweeps" if self.rotations else "no rotations"
        return (
            f"truncated power steps, {steps} after the best start of {len(self.tried)} ({starts}); {turned}; "
            f"{counted(self.exchanges, 'entry', 'entries')} exchanged"
        )


def explained(ascent: Ascent) -> float:
    """The adjusted variance, as a sum of squares."""
    return ascent.explained


def _agreed(ascents: list[Ascent]) -> bool:
    """Whether the best two explain nearly the same."""
    values = sorted(map(explained, ascents))
    return len(values) > 1 and values[-1] - values[-2] <= AGREED * values[-1]


def _missed(
    data: CentredData | CovarianceData, features: np.ndarray, able: np.ndarray, best: Ascent
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
    here = best.here
    rows = SparseRows([features[where] for where in here.rows.where], here.rows.values)
    everywhere = ImagedLoadings(here.table, rows, data.images(rows.dense(len(norms))))
    Y = everywhere.columns(*everywhere.directions(None)[:2])
    larger = np.abs(Y[some]) > level[some, None]
    return np.flatnonzero(larger.any(axis=0) & left)


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
