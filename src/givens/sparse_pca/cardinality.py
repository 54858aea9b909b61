"""Sparse components with exact counts: which features are looked at, several starts, the components in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.result import Result
from givens.rotations import orthogonality
from givens.sparse_pca import deflation, exchanges, truncated_power
from givens.sparse_pca.data import CentredData, CovarianceData, principal_axes, rough_axes
from givens.sparse_pca.loadings import directions
from givens.sparse_pca.penalised import FitOptions, Loadings, rotated
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
    search = SeveralStarts(At, norms[features], options)
    best = search.run(previous(At, features), rng)
    rounds = 0
    while len(missed := _missed(data, At, features, able, best)):
        rounds += 1
        more = np.union1d(features, missed) if rounds < ROUNDS else able
        where = [np.searchsorted(more, features[where]) for where in best.loadings.where]
        features, At = more, data.factor(more, options.m, keep_layout=True)
        search.At, search.norms = At, norms[features]
        best = search.ascend(truncated_power.SparseRows(where, best.loadings.values))
    return features, At, _arranged(search, best, perf_counter() - began)


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

    def run(self, previous: np.ndarray | None, rng: np.random.Generator) -> truncated_power.Ascent:
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

    def ascend(self, loadings: truncated_power.SparseRows) -> truncated_power.Ascent:
        """Truncated power steps."""
        options = self.options
        with bar(options.progress) as shown:
            found = truncated_power.ascend(
                self.At, loadings, self.counts, options.tol, options.max_sweeps, shown
            )
        self.flops += found.flops
        return found

    def _exchanged(self, best: truncated_power.Ascent) -> truncated_power.Ascent:
        loadings, spent, number = exchanges.exchanged(self.At, self.norms**2, best.loadings, self.counts)
        self.flops += spent
        self.exchanges += number
        if number == 0:
            return best
        found = self.ascend(loadings)
        return found if found.explained > best.explained else best

    def _replaced(
        self, best: truncated_power.Ascent, axes: np.ndarray | None, rank: int
    ) -> truncated_power.Ascent:
        """Short loadings tried against others, one by one."""
        short = truncated_power.HEAVY * int(self.counts.max()) <= self.At.shape[1]
        if not short or axes is None or not 1 < self.options.m < rank:
            return best
        other, spent = deflation.replaced(self.At, self.norms, best, axes)
        self.flops += spent
        found = best if other is None else self.ascend(other)
        return found if found.explained > best.explained else best

    def _first(
        self, previous: np.ndarray | None
    ) -> tuple[truncated_power.SparseRows, np.ndarray | None, int]:
        """Loadings to begin with, the axes if they were needed, and the rank of the data, where that is small."""
        At, norms = self.At, self.norms
        if previous is not None:
            self.tried.append("the last fit")
            self.flops += 2.0 * previous.size * At.shape[1]
            return self._cut(previous.T @ At), None, len(At)
        self.tried.append("loadings one by one")
        enough = max(AXES, 10 * len(At))
        few = 3 * enough <= 2 * len(norms)
        part = truncated_power.taken(At, np.argpartition(-norms, enough)[:enough]) if few else At
        axes, squares = rough_axes(part, min(len(self.counts) + deflation.SPARE, len(At)))
        axes = axes.T * np.sqrt(squares)[:, None]
        loadings, spent = deflation.one_by_one(At, norms, self.counts, axes)
        rank = int(np.sum(squares > 1e-12 * squares[0]))
        self.flops += spent + 2.0 * len(At) * part.size + flop_counts.eigh(len(At))
        return loadings, axes, rank if rank < len(squares) else len(At)

    def _others(
        self, rotate: bool, previous: np.ndarray | None, rng: np.random.Generator
    ) -> Iterator[truncated_power.SparseRows]:
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

    def _cut(self, Y: np.ndarray) -> truncated_power.SparseRows:
        return truncated_power.cut(Y, truncated_power.matched(Y, self.counts))


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
        W = directions(data.scores(Z))[0]
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    larger = np.abs(data.columns(W[some])) > level[some, None]
    return np.flatnonzero(larger.any(axis=0) & left)


def _method(search: SeveralStarts, found: truncated_power.Ascent) -> str:
    """What was done, in one sentence."""
    starts = "; ".join(
        name if (number := search.tried.count(name)) == 1 else f"{name}, {number} times"
        for name in dict.fromkeys(search.tried)
    )
    turned = f"{search.rotations} rotations in {search.sweeps} sweeps" if search.rotations else "no rotations"
    steps = f"truncated power steps, {len(found.trace) - 1} after the best start of {len(search.tried)} ({starts})"
    return f"{steps}; {turned}; {search.exchanges} entries exchanged"


def _arranged(search: SeveralStarts, found: truncated_power.Ascent, seconds: float) -> Loadings:
    """The components in the order in which they are reported."""
    order = truncated_power.reported_order(found.scores, found.loadings.counts(), search.counts)
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
