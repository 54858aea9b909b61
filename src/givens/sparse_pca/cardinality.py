"""Sparse components with exact counts: one search, over a list of starts.

1. *Starts*: rotations of the leading principal columns whose thresholds track the counts, with one threshold for all components
   and with one for each; between these, loadings found one by one, each in what the scores before it leave, the largest count
   first, and again in the order in which unequal counts are listed.
2. *The ascent* of each start (`truncated_power`). No further start is tried once the best two ascents agree.
3. *Exchanges* of single entries of the best, and the ascent again.
4. *Renewals*, if exchanges gain much: loadings where the ascents ended, of which some gave way to new ones that explain more
   beside all the others. They are starts for 2 and 3 again.

Further starts are random combinations of the leading principal columns. Features that are weak are left out at first.

*Exchanges.* Truncated power steps end where no linearised step leads on, and short loadings have many such places. An entry p
of a loading gives way to another q, with the best weight for q beside the entries that stay, and what is compared is the
adjusted variance itself. With the scores E = ZAᵀ, Eᵀ = QR in the reported order, the score of component k leaves R_kk q_k after
projecting out those before it, s = R_kk². Orthogonalise what those after it leave, without z_k: the i-th has the direction g_i
and the length l_i. With a_i = g_i·e', e' what a loading's score leaves, the adjusted variance is, but for a constant,

    T = s − Σ_i l_i² a_i² / (s − Σ_{h<i} a_h²),

s a quadratic and a_i linear in z_k: so hundreds of exchanges are evaluated at once, from QᵀA = R⁻ᵀZAᵀA and few products of
features. The candidates are the entries that cost least and the features that bring most by s alone.

Arrays are stored one component per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import takewhile
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from givens.metrics import adjusted_from_scores, total_adjusted
from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.numerics.scaling import EPS, unit_rows
from givens.numerics.tiles import scores
from givens.objectives.sparse_columns import ProductRows, SparseColumns
from givens.result import Result, Stop
from givens.rotations import orthogonality
from givens.solve.outer_loops import best_of, iterate
from givens.solve.point import Stiefel
from givens.solve.run import checked_look
from givens.solve.widened_sweeps import widened_sweep
from givens.sparse_pca.centred_data import CentredData, CovarianceData
from givens.sparse_pca.loadings import Loadings
from givens.sparse_pca.options import FitOptions
from givens.sparse_pca.truncated_power import (
    MIN_STEP_GROWTH,
    ROUNDING_SHARE,
    Ascent,
    ImagedLoadings,
    ProductForm,
    SampleForm,
    SparseRows,
    ascend,
    cut,
    is_heavy,
    largest,
    largest_beyond,
    matched,
    reported_order,
    settled,
    triangular,
)

SPARE_FEATURES = 1000
"""Number of features that are looked at first, beyond two for each counted entry: so few cost little."""
MIN_EXCHANGE_GAIN = 1e-4
"""Share of the adjusted variance; a round of exchanges that gains less is the last."""


def solve(
    data: CentredData | CovarianceData,
    options: FitOptions,
    previous: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SampleForm | ProductForm, Loadings]:
    """Features, the data of these, and loadings with `options.counts` non-zeros; `previous` are the loadings of the last fit.

    Only the strongest features are taken at first. In the end the columns of all features say whether one that was left out
    is larger than one that was counted; if so it is taken too, and the ascent goes on.
    """
    assert options.counts is not None
    began, norms = perf_counter(), data.moments.norms
    able = np.flatnonzero(norms > 0)
    if len(able) < max(options.m, int(options.counts.max())):
        able = np.arange(len(norms))
    features, rounds = able[strongest(norms[able] ** 2, options.counts)], 0
    with flop_counts.job(flop_counts.Flops()) as counter:
        search = CountSearch(_table(data, features, options), norms[features], options)
        best = search.run(None if previous is None else previous[:, features], rng)
        while len(missed := _missed(data, features, able, best)):
            rounds += 1
            # Where features are missed again and again, all are taken.
            more = np.union1d(features, missed) if rounds < 3 else able
            rows = best.here.rows
            where = [np.searchsorted(more, features[where]) for where in rows.where]
            features, search.table = more, _table(data, more, options)
            best = search.ascend(SparseRows(where, rows.values))
        best = search.settled(best)
    loadings = search.loadings(best, norms[features], counter.flops, perf_counter() - began)
    return features, search.table, loadings


def idle(scores: np.ndarray) -> np.ndarray:
    """Which scores explain nothing beyond those before them, but for rounding errors."""
    adjusted = adjusted_from_scores(scores)
    # Of products of features too, which know squares to EPS.
    return adjusted <= 50 * EPS * adjusted.max(initial=0.0)


def _table(
    data: CentredData | CovarianceData, features: np.ndarray, options: FitOptions
) -> SampleForm | ProductForm:
    """The products of features where samples are more, and components are far from as many as features."""
    if isinstance(data, CentredData) and 2 * options.m <= len(features) < data.shape[0]:
        return ProductForm(data.products(features))
    return SampleForm(data.factor(features, options.m, implicit=True))


class CountSearch:
    """The best of several starts with exact counts; and what all of them took.

    More components than the data have rank compete for the same variance, and together explain less than fewer. So no more than
    the rank are sought; the others are made of the weakest features.

    Parameters
    ----------
    table : SampleForm or ProductForm
    norms : array, shape (features,)
    options : FitOptions

    Attributes
    ----------
    axes : array, shape (axes, features)
        The leading principal columns, two for each component and some more.
    counts : array of int
        The counts that are sought, in the order in which components are reported.
    sweeps, rotations : int
        Of all starts.
    reached : list of float
        The adjusted variance, as a sum of squares, that the first starts led to, and each further one.
    """

    def __init__(self, table: SampleForm | ProductForm, norms: np.ndarray, options: FitOptions) -> None:
        assert options.counts is not None
        self.table, self.squares, self.options = table, norms**2, options
        self.axes = table.principal_columns(2 * options.m + 10)
        sizes = np.linalg.norm(self.axes, axis=1)
        self.axes = self.axes[
            sizes > 1e-6 * sizes.max()
        ]  # shorter ones are rounding, if squares are known to EPS
        self.counts = options.counts[: max(len(self.axes), 1)]
        flop_counts.count(2.0 * table.rows**2 * table.features + flop_counts.eigh(table.rows))
        self.sweeps, self.rotations = 0, 0
        self.reached: list[float] = []

    def run(self, previous: np.ndarray | None, rng: np.random.Generator) -> Ascent:
        """The best ascent; `previous` are loadings of an earlier fit, which take the place of the first starts."""
        first = self._starts() if previous is None else [partial(self._last, previous[: len(self.counts)])]
        further = [[partial(self._random_columns, rng)]] * (self.options.n_starts - 1)
        best, found = best_of([first, *further], self._attempt, explained)
        self.reached = [ascent.explained for ascent in found]
        return self._divided(best) if self.options.divide else best

    def ascend(self, rows: SparseRows, *, divide: bool = False) -> Ascent:
        """Truncated power steps."""
        return ascend(self.table, rows, self.counts, self.options.tol, self.options.max_iter, divide=divide)

    def settled(self, best: Ascent) -> Ascent:
        """With the values that explain most on the features that were found."""
        rows = settled(self.table, best.here.rows, self.counts, 1e-9)
        here = ImagedLoadings.of(self.table, rows)
        directions = here.directions(self.counts)
        if directions[2] <= best.explained:
            return best
        found = Ascent.at(here, directions, best.trace)
        found.converged, found.trace.value[-1] = best.converged, found.explained
        return found

    def _attempt(self, starts: Iterable[Callable[[], SparseRows]]) -> Ascent:
        """The best of some starts, or of what renewing the loadings that they lead to leads to."""
        best, ascents = self._best(starts)
        # Where exchanges gain more than this, loadings have many local maxima.
        if best.explained <= (1 + 1e-3) * max(map(explained, ascents)):
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
        rows = exchanged(best.here, self.squares, self.counts)
        return best if rows is best.here.rows else max(best, self.ascend(rows), key=explained)

    def _divided(self, best: Ascent) -> Ascent:
        """With counts that divide their sum anew, as long as the adjusted variance grows."""
        for _ in range(6):
            counts = self.counts
            found = self.ascend(best.here.rows, divide=True)
            self.counts = np.sort(found.here.rows.counts())[::-1]
            found = self._exchanged(found)
            if found.explained <= best.explained * (1 + MIN_STEP_GROWTH):
                self.counts = counts
                break
            best = found
        return best

    def _starts(self) -> Iterator[Callable[[], SparseRows]]:
        """Loadings one by one, and rotations."""
        yield partial(self._rotated, shared=True)
        found = partial(one_by_one, self.table, self.axes, self.squares)
        yield partial(found, np.sort(self.counts)[::-1])
        if np.any(np.diff(self.counts) > 0):
            yield partial(found, self.counts)
        yield partial(self._rotated, shared=False)

    def _rotated(self, shared: bool) -> SparseRows:
        Y, sweeps, rotations = rotated(self.axes, self.counts, self.options.max_iter, shared)
        self.sweeps, self.rotations = self.sweeps + sweeps, self.rotations + rotations
        return self._cut(Y)

    def _last(self, previous: np.ndarray) -> SparseRows:
        here = ImagedLoadings.of(self.table, SparseRows.of(previous))
        return self._cut(here.columns(*here.directions(None)[:2]))

    def _random_columns(self, rng: np.random.Generator) -> SparseRows:
        turn = np.linalg.qr(rng.standard_normal((len(self.axes), len(self.counts))))[0]
        return self._cut(turn.T @ self.axes)

    def _cut(self, Y: np.ndarray) -> SparseRows:
        return cut(Y, matched(Y, self.counts))

    def loadings(self, best: Ascent, norms: np.ndarray, flops: float, seconds: float) -> Loadings:
        """All loadings that were asked for, and the result."""
        assert self.options.counts is not None
        Z, Y, more = best.here.rows.dense(len(norms)), best.Y, self.options.counts[len(self.counts) :]
        if len(more):
            by_norm = np.argsort(norms, kind="stable")
            Z, Y = (np.vstack((rows, np.zeros((len(more), len(norms))))) for rows in (Z, Y))
            for row, count in zip(Z[len(self.counts) :], more):
                row[by_norm[:count]] = 1.0 / np.sqrt(count)
        E = np.ascontiguousarray(self.table.scores(SparseRows.of(Z)).T)
        U = np.ascontiguousarray(polar(E))
        stop = Stop.SMALL_STEP if best.converged else Stop.MAX_ITER
        tol, steps = max(self.options.tol, MIN_STEP_GROWTH), len(best.trace) - 1
        result = Result(
            U=U,
            value=best.explained,
            converged=best.converged,
            message=f"converged: a step did not raise the explained variance by {tol:g} of it"
            if best.converged
            else f"not converged: max_iter = {self.options.max_iter} reached",
            sweeps=self.sweeps,
            rotations=self.rotations,
            flops=flops,
            gradient_norm=best.gradient_norm,
            orthogonality=orthogonality(U),
            seconds=seconds,
            trace=best.trace,
            method=f"truncated power steps, {steps} after the best start",
            starts=np.array(self.reached),
            stop=stop,
        )
        levels = np.append(best.largest_uncounted(), np.zeros(len(more)))
        return Loadings(Z, Y, levels, result, E)


def explained(ascent: Ascent) -> float:
    """The adjusted variance, as a sum of squares."""
    return ascent.explained


def _agreed(ascents: list[Ascent]) -> bool:
    """Whether the best two explain nearly the same; on hard tables ascents differ by percents."""
    values = sorted(map(explained, ascents))
    return len(values) > 1 and values[-1] - values[-2] <= 5e-3 * values[-1]


def _missed(
    data: CentredData | CovarianceData, features: np.ndarray, able: np.ndarray, best: Ascent
) -> np.ndarray:
    """The features that were left out and have larger entries than some that were counted."""
    norms = data.moments.norms
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
    leading = 2 * total + SPARE_FEATURES
    if 3 * leading > 2 * len(squares):
        return np.arange(len(squares))
    parted = np.partition(squares, [len(squares) - leading, len(squares) - total])
    level = min(parted[len(squares) - leading], 0.5 * parted[len(squares) - total])
    kept = (squares >= level).nonzero()[0]
    return kept if 3 * len(kept) <= 2 * len(squares) else np.arange(len(squares))


def rotated(axes: np.ndarray, counts: np.ndarray, max_iter: int, shared: bool) -> tuple[np.ndarray, int, int]:
    """Rotate the leading principal columns; the best columns, and how many sweeps and rotations they took.

    Thresholds track the counts: before each sweep they are moved so that exactly so many entries of each column exceed them;
    with `shared`, of all columns together. The value then belongs to another threshold each time and need not rise; what is
    returned are the columns whose counted entries make the loadings of the largest adjusted variance.
    """
    data, rotations = SparseColumns(ProductRows(axes.T), 0.0, "l1", len(counts)), 0
    best: tuple[float, np.ndarray] | None = None
    margin = (
        1 + 4 * EPS
    )  # squares of equal numbers may compare as unequal where they are fused with a subtraction

    def swept(objective: SparseColumns, slopes: np.ndarray, here: RotatedColumns) -> RotatedColumns:
        nonlocal rotations
        found = widened_sweep(objective, here.point, here.Y, slopes, here.before)
        rotations += int(found.gain > 0.0)
        return RotatedColumns(found.point, found.state, here.point.Ut)

    def step(sweep: Callable[[], RotatedColumns]) -> tuple[float, Callable[[], RotatedColumns]]:
        nonlocal best
        here = sweep()
        beyond = [largest_beyond(y, int(count)) for y, count in zip(here.Y, counts)]
        levels = (
            np.full(len(counts), largest_beyond(here.Y, int(counts.sum()))) if shared else np.array(beyond)
        )
        levels = margin * levels
        E = scores(unit_rows(np.where(np.abs(here.Y) > levels[:, None], here.Y, 0.0)), axes, few=True)
        objective, value = data.at_levels(levels), total_adjusted(E)
        look = checked_look(objective.look(here.Y), here.point)
        assert look.slopes is not None
        if best is None or value > best[0]:
            best = value, here.Y
        return value, partial(swept, objective, look.slopes, here)

    V = np.eye(len(axes))[:, : len(counts)]
    start = RotatedColumns(Stiefel(np.ascontiguousarray(V.T), len(counts)), data.state(V), None)
    # The explained variance may fall and rise again.
    found = iterate(step, lambda: start, 3e-3, max_iter + 1, relative=True, patience=2)
    assert best is not None
    return best[1], len(found.values) - 1, rotations


class RotatedColumns(NamedTuple):
    """V, the columns (AV)ᵀ, and Vᵀ before the last sweep."""

    point: Stiefel
    Y: np.ndarray
    before: np.ndarray | None


class ResidualScore(NamedTuple):
    """A loading, the image Aᵀe of what its score leaves beside a basis, e, and the square of e."""

    where: np.ndarray
    values: np.ndarray
    image: np.ndarray
    square: float


class Residual:
    """What the features have beside an orthonormal basis B of scores.

    Parameters
    ----------
    table : SampleForm or ProductForm
    axes : array, shape (axes, features)
        The leading principal columns, AᵀU.
    BA : array, shape (basis, features)
    """

    def __init__(self, table: SampleForm | ProductForm, axes: np.ndarray, BA: np.ndarray) -> None:
        self.table, self.axes, self.BA = table, axes, BA

    def score(self, where: np.ndarray, values: np.ndarray) -> ResidualScore:
        """Of a loading."""
        image = self.table.images(SparseRows([where], [values]))[0] - (self.BA[:, where] @ values) @ self.BA
        flop_counts.count(2.0 * self.BA.size)
        return ResidualScore(where, values, image, max(float(values @ image[where]), 0.0))

    def leading(self) -> np.ndarray:
        """The image of the leading axis, among those of the whole."""
        squares = np.einsum("ij,ij->i", self.axes, self.axes)
        sizes = np.sqrt(squares)
        along = (self.axes @ self.BA.T) / np.where(sizes > 0, sizes, 1.0)[:, None]
        turn = np.linalg.eigh(np.diag(squares) - along @ along.T)[1][:, -1]
        return (turn * sizes) @ self.axes - (turn @ along) @ self.BA

    def best_loading(self, squares: np.ndarray, count: int) -> ResidualScore:
        """A loading of a large score, by truncated power steps; `squares` are the squared norms of the features."""
        pivot = int(np.argmax(squares - np.einsum("ij,ij->j", self.BA, self.BA)))
        strongest = self.score(np.array([pivot]), np.ones(1))
        if count == 1:
            # Nothing else can explain more.
            return strongest
        starts = [self.leading()] + ([strongest.image] if not is_heavy(count, len(squares)) else [])
        start = max((self.score(*largest(y, count)) for y in starts), key=lambda found: found.square)

        def step(here: ResidualScore) -> tuple[float, ResidualScore]:
            return here.square, self.score(*largest(here.image, count))

        return iterate(step, start, MIN_STEP_GROWTH, 10, relative=True).best


def one_by_one(
    table: SampleForm | ProductForm, axes: np.ndarray, squares: np.ndarray, counts: np.ndarray
) -> SparseRows:
    """Loadings with these counts, in this order, each in what the scores before it leave."""
    rows, residual = SparseRows([], []), Residual(table, axes, np.zeros((0, table.features)))
    for count in counts:
        found = residual.best_loading(squares, int(count))
        BA = np.vstack((residual.BA, found.image / (np.sqrt(found.square) or 1.0)))
        residual = Residual(table, axes, BA)
        rows.where.append(found.where)
        rows.values.append(found.values)
    return rows


def renewed(here: ImagedLoadings, axes: np.ndarray, squares: np.ndarray) -> ImagedLoadings:
    """Loadings some of which gave way to new ones that explain more beside all the others.

    The weakest is compared first. What counts is what a score has that all the others do not explain, in any order: so
    the adjusted variance may fall.
    """
    m, S = len(here.images), here.products()
    if m == 1:
        return here
    for j in np.argsort([_beside(S, j)[1] for j in range(m)], kind="stable"):
        basis, square = _beside(here.products(), j)
        residual = Residual(here.table, axes, basis @ here.images)
        found = residual.best_loading(squares, len(here.rows.where[j]))
        if found.square > (1 + MIN_STEP_GROWTH) * square:
            here = here.replaced(int(j), found.where, found.values)
    return here


def _beside(S: np.ndarray, j: int) -> tuple[np.ndarray, float]:
    """An orthonormal basis of all scores but j, in terms of the scores, and the square of what it leaves of score j."""
    others = np.delete(np.arange(len(S)), j)
    values, vectors = np.linalg.eigh(S[np.ix_(others, others)])
    some = values > ROUNDING_SHARE * values.max(initial=0.0)
    basis = np.zeros((int(some.sum()), len(S)))
    basis[:, others] = (vectors[:, some] / np.sqrt(values[some])).T
    return basis, max(float(S[j, j] - np.sum((basis @ S[j]) ** 2)), 0.0)


class Exchange(NamedTuple):
    """By how much the adjusted variance grows if one entry of component j gives way to another, and the loading after it."""

    gain: float
    j: int
    where: np.ndarray
    values: np.ndarray


def exchanged(here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray) -> SparseRows:
    """Loadings that exchanges of single entries lead to; the same object where none gains enough.

    Parameters
    ----------
    here : ImagedLoadings
    squares : array, shape (features,)
        The squared norms of the features.
    asked : array of int
        The counts in the order in which components are reported.
    """
    explained = here.directions(asked)[2]
    for _ in range(50):
        there = _round(here, squares, asked, explained)
        if there is here:
            break
        rows = settled(here.table, there.rows, asked)
        here, before = ImagedLoadings.of(here.table, rows), explained
        explained = here.directions(asked)[2]
        if explained - before <= MIN_EXCHANGE_GAIN * before:
            break
    return here.rows


def _round(here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray, explained: float) -> ImagedLoadings:
    """After the best exchange of each loading, those that gain most first, as long as they gain together."""
    scored = ScoredLoadings(here, squares, asked)
    proposals = map(scored.best_exchange, range(len(scored.order)))
    for gain, j, where, values in sorted(proposals, key=lambda proposal: -proposal.gain):
        if gain <= MIN_EXCHANGE_GAIN * explained / len(asked):
            break
        tried = here.replaced(j, where, values)
        now = tried.directions(asked)[2]
        if now > explained:
            here, explained = tried, now
    return here


class ScoredLoadings:
    """Loadings in the reported order, and the decomposition of their scores, Eᵀ = QR.

    Attributes
    ----------
    order : array of int
        Empty if a score is explained by those before it, but for rounding: then no exchange is offered.
    QA : array, shape (components, features)
    rest : array, shape (components, features)
        What the scores before each component leave of the features' squared norms.
    """

    def __init__(self, here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray) -> None:
        self.table, self.squares, self.rows = here.table, squares, here.rows
        S = here.products()
        order = reported_order(np.diagonal(S), here.rows.counts(), asked)
        self.R, self.order = triangular(S, order)
        if len(self.order) < len(order):
            self.order = order[:0]
            return
        self.QA = solve_triangular(self.R, here.images[order], trans="T", check_finite=False)
        flop_counts.count(len(order) * self.QA.size)
        before = np.cumsum(np.vstack((np.zeros(len(squares)), self.QA[:-1] ** 2)), axis=0)
        self.rest = np.maximum(squares - before, 0.0)

    def best_exchange(self, k: int) -> Exchange:
        """The exchange of the k-th component in the reported order that gains most."""
        j = int(self.order[k])
        where, z, QA, R, rest = self.rows.where[j], self.rows.values[j], self.QA, self.R, self.rest[k]
        s, h = R[k, k] ** 2, R[k, k] * QA[k]
        out, q = _leaving(s, h, rest, where, z), _entering(s, h, rest, where)
        if len(q) == 0:
            return Exchange(0.0, j, where, z)
        p = where[out]
        products = self.table.products(p, q) - QA[:k, p].T @ QA[:k, q]
        kept = (1.0 - z[out] ** 2)[:, None]
        alone = kept <= ROUNDING_SHARE
        root = np.sqrt(np.where(alone, 1.0, kept))
        # The squared score of the entries that stay, of unit length, and its product with the feature that enters.
        stay = np.where(alone, 0.0, (s - 2 * z[out] * h[p] + z[out] ** 2 * rest[p])[:, None] / root**2)
        cross = np.where(alone, 0.0, (h[q] - z[out, None] * products) / root)
        # The best share of the new entry: the leading eigenvector of [[stay, cross], [cross, rest]].
        top = 0.5 * (stay + rest[q]) + np.hypot(0.5 * (stay - rest[q]), cross)
        angle = np.where(alone, 0.5 * np.pi, 0.5 * np.arctan2(2 * cross, stay - rest[q]))
        cos, sin = np.cos(angle), np.sin(angle)
        G, lengths = np.linalg.qr(R[k:, k + 1 :])
        a, after = R[k, k] * G[0], np.square(np.diagonal(lengths))
        along_p, along_q = G.T @ QA[k:, p], G.T @ QA[k:, q]
        staying = np.where(alone[:, 0], 0.0, (a[:, None] - z[out] * along_p) / root[:, 0])
        shares = cos * staying[:, :, None] + sin * along_q[:, None, :]
        gains = _variance(top, shares, after) - _variance(np.array(s), a, after)
        new = int(np.argmax(gains)) % len(q)
        # Entries that the scores before explain cost nothing: of equal ones the smallest feature leaves, whatever their order.
        most = gains[:, new].max()
        equal = gains[:, new] >= most - ROUNDING_SHARE * (abs(most) + s)
        old = int(np.argmin(np.where(equal, self.squares[p], np.inf)))
        loading = _after(where, z, int(out[old]), int(q[new]), cos[old, new], sin[old, new])
        return Exchange(float(gains[old, new]), j, *loading)


def _variance(s: np.ndarray, shares: np.ndarray, after: np.ndarray) -> np.ndarray:
    """T of the module's docstring, `shares` the a_i along the first axis; −∞ where the scores are dependent."""
    left = s - np.concatenate((np.zeros((1, *shares.shape[1:])), np.cumsum(shares**2, axis=0)))
    good = (left > ROUNDING_SHARE * s).all(axis=0)
    total = s - np.tensordot(after, shares**2 / np.where(good, left[:-1], 1.0), axes=1)
    return np.where(good, total, -np.inf)


def _leaving(s: float, h: np.ndarray, rest: np.ndarray, where: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The entries whose loss costs least."""
    kept = 1.0 - z**2
    left = (s - 2 * z * h[where] + z**2 * rest[where]) / np.where(kept > ROUNDING_SHARE, kept, 1.0)
    return np.argsort(-left, kind="stable")[:12]


def _entering(s: float, h: np.ndarray, rest: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The features that would bring most to the score."""
    top = 0.5 * (s + rest) + np.hypot(0.5 * (s - rest), h)
    top[where] = -np.inf
    number = min(48, len(top) - len(where))
    return np.argpartition(-top, number - 1)[:number] if number > 0 else where[:0]


def _after(
    where: np.ndarray, z: np.ndarray, out: int, new: int, cos: float, sin: float
) -> tuple[np.ndarray, np.ndarray]:
    """The loading after an exchange: cos times the entries that stay, of unit length, and sin for the new feature."""
    staying = np.delete(z, out)
    size = float(np.linalg.norm(staying))
    features = np.append(np.delete(where, out), new)
    values = np.append(cos * staying / (size if size > 0 else 1.0), sin)
    order = np.argsort(features)
    return features[order], values[order]
