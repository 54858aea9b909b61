"""Loadings with exact counts of non-zeros: the data as they need them, and truncated power steps.

The scores of unit loadings, E = AᵀZ read by rows, E = QR, have the adjusted variance Σ R_jj² (`givens.metrics`), whose
derivative is 2·Q D² R⁻ᵀ, D = diag R. So with

    W = Q D² R⁻ᵀ,        z_j ← the counts[j] largest entries of Xᵀw_j, normalised

the linearised variance rises as far as the counts permit, and the best step is kept. Which count belongs to which component is
free: counts are matched to the columns y_j = Xᵀw_j/‖w_j‖, for the largest sum of counted squares; or, if only the sum of all
counts is given, the largest entries of all columns are counted. The result depends on the start: see
`givens.sparse_pca.cardinality`.

A step asks the data A (samples x features, centred) for one thing above all: the images ZAᵀA. Their entries where the loadings
are not zero are S = ZAᵀAZᵀ, the products of the scores, and S has the adjusted variance and its derivative; combinations of
images are the columns in which the next loadings are counted. `SampleForm` has A: an image costs as many flops as a product
with all samples. `ProductForm` has C = AᵀA: an image is a sum of few rows of C. S holds squares, so scores that agree to about
1e-7 of their size are the same for the search; see `givens.numerics.gram`.

Arrays are stored one component per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import linear_sum_assignment

from givens.numerics import flop_counts, gram
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.tiles import scores, turned
from givens.result import Trace
from givens.solve.outer_loops import iterate
from givens.support.progress import bar

MIN_STEP_GROWTH = 3e-4
"""Share of the explained variance; a step that brings less is the last, since exchanges bring more in the time of another one."""
MIN_VALUE_GROWTH = 1e-5
"""The same for values on features that do not change, while a search goes on."""
ROUNDING_SHARE = 1e-12
"""Of a score's square: where no more is left beside other scores, it is rounding."""


class SparseRows(NamedTuple):
    """Unit loadings: which features each has, in ascending order, and their values."""

    where: list[np.ndarray]
    values: list[np.ndarray]

    @classmethod
    def of(cls, Z: np.ndarray) -> SparseRows:
        """The non-zeros of an array, components x features."""
        where = [np.flatnonzero(row) for row in Z]
        return cls(where, [np.asarray(row[places], dtype=np.float64) for row, places in zip(Z, where)])

    def counts(self) -> np.ndarray:
        """How many non-zeros each has."""
        return np.array([len(where) for where in self.where])

    def same_features(self, other: SparseRows) -> bool:
        """Whether the non-zeros are in the same places."""
        return all(np.array_equal(here, there) for here, there in zip(self.where, other.where))

    def dense(self, features: int) -> np.ndarray:
        """As an array, components x features."""
        Z = np.zeros((len(self.where), features))
        for row, where, values in zip(Z, self.where, self.values):
            row[where] = values
        return Z

    def scores(self, At: np.ndarray | CentredSparse) -> np.ndarray:
        """ZXᵀ, components x samples."""
        sizes = [len(where) for where in self.where]
        if is_heavy(max(sizes), At.shape[1]):
            return scores(self.dense(At.shape[1]), At, few=True)
        flop_counts.count(2.0 * sum(sizes) * len(At))
        return np.array([taken(At, where) @ values for where, values in zip(*self)])


class SampleForm:
    """Centred data, samples x features.

    Parameters
    ----------
    At : array of float64, shape (samples, features), or CentredSparse
    """

    def __init__(self, At: np.ndarray | CentredSparse) -> None:
        self.At = At
        self.rows, self.features = At.shape

    def images(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀA, components x features."""
        return product(loadings.scores(self.At), self.At)

    def scores(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀ, components x samples."""
        return loadings.scores(self.At)

    def products(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """AᵀA between few features and few others."""
        return np.asarray(self.At[:, some].T @ self.At[:, others])

    def part(self, features: np.ndarray) -> SampleForm:
        """Some features alone."""
        return SampleForm(taken(self.At, features))

    def principal_columns(self, m: int) -> np.ndarray:
        """AᵀU for about the m leading principal axes U, a row each."""
        return product(gram.rough_axes(self.At, min(m, self.rows))[0].T, self.At)


class ProductForm:
    """The products of features, C = AᵀA.

    Parameters
    ----------
    C : array of float64, shape (features, features)
        Both triangles.
    """

    def __init__(self, C: np.ndarray) -> None:
        self.C = C
        self.rows = self.features = len(C)

    def images(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀA, components x features."""
        flop_counts.count(2.0 * self.features * int(loadings.counts().sum()))
        return np.array([values @ self.C[where] for where, values in zip(*loadings)])

    def scores(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀ in some orthonormal coordinates, as many as components."""
        S = ImagedLoadings.of(self, loadings).products()
        return gram.root(S, np.sqrt(np.maximum(np.diagonal(S), 0.0)), len(S)).T

    def products(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """AᵀA between few features and few others."""
        return self.C[np.ix_(some, others)]

    def part(self, features: np.ndarray) -> ProductForm:
        """Some features alone."""
        return ProductForm(self.C.take(features, axis=0).take(features, axis=1))

    def principal_columns(self, m: int) -> np.ndarray:
        """AᵀU for about the m leading principal axes U, a row each; of many features by a few steps of subspace iteration."""
        m = min(m, self.features)
        if gram.decomposed_whole(self.features, m):
            squares, V = np.linalg.eigh(self.C)
            axes = V.T
        else:
            V = gram.leading_subspace(self.features, m, lambda rows: product(rows, self.C))
            squares, turns = np.linalg.eigh(product(V, self.C) @ V.T)
            axes = turns.T @ V
        return axes[::-1][:m] * np.sqrt(np.maximum(squares[::-1][:m], 0.0))[:, None]


def is_heavy(count: int, features: int) -> bool:
    """Whether loadings with so many non-zeros are multiplied as an array, which is then faster."""
    return 16 * count > features


def taken(At: Any, features: np.ndarray) -> Any:
    """These columns."""
    return At.taken(features) if isinstance(At, CentredSparse) else At.take(features, axis=1)


def largest(y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the `count` largest |y| are, ascending, and these entries as a unit vector."""
    if count >= len(y):
        where = np.arange(len(y))
    else:
        sizes = np.abs(y)
        parted = sizes.copy()
        parted.partition(len(y) - count)
        level = parted[len(y) - count]
        where = (sizes >= level).nonzero()[0]
        if len(where) > count:
            equal = np.flatnonzero(sizes[where] == level)
            where = np.delete(where, equal[count - len(where) :])
    values = y[where]
    size = float(np.sqrt(values @ values))
    return where, values / (size if size > 0 else 1.0)


def largest_beyond(y: np.ndarray, count: int) -> float:
    """The largest |y| that is not among the `count` largest; 0 if there is none.

    >>> largest_beyond(np.array([3.0, -1.0, -2.0]), 1)
    2.0
    """
    sizes = np.abs(y).ravel()
    place = len(sizes) - count - 1
    return float(np.partition(sizes, place)[place]) if place >= 0 else 0.0


def product(rows: np.ndarray, At: np.ndarray | CentredSparse) -> np.ndarray:
    """The rows multiplied by A, by all threads."""
    Y = np.empty((len(rows), At.shape[1]))
    turned(rows, At, Y)
    return Y


@dataclass(frozen=True)
class ImagedLoadings:
    """Loadings with their images ZAᵀA, components x features."""

    table: SampleForm | ProductForm
    rows: SparseRows
    images: np.ndarray

    @classmethod
    def of(cls, table: SampleForm | ProductForm, rows: SparseRows) -> ImagedLoadings:
        """With images computed here."""
        return cls(table, rows, table.images(rows))

    def products(self) -> np.ndarray:
        """S = ZAᵀAZᵀ."""
        S = np.array([self.images[:, where] @ values for where, values in zip(*self.rows)])
        flop_counts.count(2.0 * len(S) * int(self.rows.counts().sum()))
        return 0.5 * (S + S.T)

    def replaced(self, j: int, where: np.ndarray, values: np.ndarray) -> ImagedLoadings:
        """With another loading in the place of j."""
        images, rows = self.images.copy(), SparseRows(list(self.rows.where), list(self.rows.values))
        images[j] = self.table.images(SparseRows([where], [values]))[0]
        rows.where[j], rows.values[j] = where, values
        return ImagedLoadings(self.table, rows, images)

    def directions(self, asked: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
        """T, with W = TE; the lengths of the rows of W; and the adjusted variance, in the reported order of the counts."""
        S = self.products()
        return combinations(S, reported_order(np.diagonal(S), self.rows.counts(), asked))

    def columns(self, T: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """WA for W = TE with rows of unit length."""
        return product(T / np.where(lengths > 0, lengths, 1.0)[:, None], self.images)


def settled(
    table: SampleForm | ProductForm,
    rows: SparseRows,
    asked: np.ndarray | None,
    growth: float = MIN_VALUE_GROWTH,
) -> SparseRows:
    """The same features with the values that explain most, in the reported order: steps on these features alone.

    They end with the step that brings no more than the share `growth`, or after 200.
    """
    features, inverse = np.unique(np.concatenate(rows.where), return_inverse=True)
    part = table.part(features)

    def step(here: SparseRows) -> tuple[float, SparseRows]:
        imaged = ImagedLoadings.of(part, here)
        T, lengths, explained = imaged.directions(asked)
        values = [y[where] for y, where in zip(imaged.columns(T, lengths), here.where)]
        return explained, SparseRows(here.where, [z / (np.linalg.norm(z) or 1.0) for z in values])

    start = SparseRows(np.split(inverse, np.cumsum(rows.counts())[:-1]), rows.values)
    return SparseRows(rows.where, iterate(step, start, growth, 200, relative=True).best.values)


def combinations(S: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """T with W = TE, of scores E with the products S = EEᵀ; the lengths of W's rows; and the adjusted variance in this order."""
    T, lengths, (R, order) = np.eye(len(S)), np.sqrt(np.diagonal(S)), triangular(S, order)
    inverse = dtrtri(R)[0]
    squares = np.square(np.diagonal(R))
    # W = R⁻¹D²Qᵀ, and Q is orthonormal.
    W = inverse * squares
    T[order[:, None], order], lengths[order] = W @ inverse.T, np.linalg.norm(W, axis=1)
    return T, lengths, float(squares.sum())


def triangular(S: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R, upper triangular, with RᵀR = S for the scores in this order, and the order without scores that others before explain."""
    order = order[np.diagonal(S)[order] > 0]
    while True:
        part = S[order[:, None], order]
        R, failed = dpotrf(part)
        left = np.square(np.diagonal(R)) <= ROUNDING_SHARE * np.diagonal(part)
        dependent = failed - 1 if failed else int(np.argmax(left)) if left.any() else -1
        if dependent < 0:
            return R, order
        order = np.delete(order, dependent)


def reported_order(squares: np.ndarray, counts: np.ndarray, asked: np.ndarray | None) -> np.ndarray:
    """The order in which components are reported: as the counts were asked for, those with equal counts by their variance.

    If no counts were asked for, all are in the order of their variance.

    Parameters
    ----------
    squares : array, shape (components,)
        Of the lengths of the scores.
    counts : array of int, shape (components,)
        How many non-zeros each component has.
    asked : array of int or None
        The same numbers in the order in which they were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.truncated_power import reported_order
    >>> reported_order(np.array([1.0, 9.0, 4.0]), np.array([5, 5, 2]), np.array([5, 2, 5]))
    array([1, 2, 0])
    """
    if asked is None:
        return np.argsort(-squares, kind="stable")
    order = np.empty(len(asked), dtype=int)
    order[np.argsort(-asked, kind="stable")] = np.lexsort((-squares, -counts))
    return order


@dataclass
class Ascent:
    """Loadings, and how they were reached.

    `Y` is WX for W with rows of unit length, in which the next loadings would be counted; `explained` is the adjusted variance
    as a sum of squares, `gradient_norm` that of its derivative by the loadings' values, on the sphere of each.
    """

    here: ImagedLoadings
    Y: np.ndarray
    explained: float
    gradient_norm: float
    trace: Trace
    converged: bool = False

    @classmethod
    def at(
        cls, here: ImagedLoadings, directions: tuple[np.ndarray, np.ndarray, float], trace: Trace
    ) -> Ascent:
        """Where an ascent is, with the directions there."""
        T, lengths, explained = directions
        Y = here.columns(T, lengths)
        return cls(here, Y, explained, _slope(here.rows, Y, lengths), trace)

    def smallest_counted(self) -> np.ndarray:
        """Of |Y|, in each row."""
        return np.array([largest_beyond(y, n - 1) for y, n in zip(self.Y, self.here.rows.counts())])

    def largest_uncounted(self) -> np.ndarray:
        """Of |Y|, in each row; 0 where all are counted."""
        return np.array([largest_beyond(y, n) for y, n in zip(self.Y, self.here.rows.counts())])


def matched(Y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The counts in the order that gives the rows of Y the largest sum of counted squares.

    Examples
    --------
    >>> import numpy as np
    >>> matched(np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), np.array([3, 1]))
    array([1, 3])
    """
    if np.all(counts == counts[0]):
        return counts
    gain = np.cumsum(-np.sort(-np.square(Y), axis=1), axis=1)[:, counts - 1]
    # Of two equally good orders the present one is kept.
    gain += np.diag(1e-12 * gain.max(axis=1))
    return counts[linear_sum_assignment(gain, maximize=True)[1]]


def cut(Y: np.ndarray, counts: np.ndarray) -> SparseRows:
    """The largest entries of each row, of unit length."""
    pairs = [largest(y, int(count)) for y, count in zip(Y, counts)]
    return SparseRows([where for where, _ in pairs], [values for _, values in pairs])


def divided(Y: np.ndarray, total: int) -> np.ndarray:
    """How many of the `total` largest entries of Y stand in each row, at least one.

    >>> divided(np.array([[0.1, 0.0, 0.2], [3.0, 2.0, -1.0]]), 4)
    array([1, 3])
    """
    sizes = np.abs(Y)
    sizes[np.arange(len(Y)), sizes.argmax(axis=1)] = np.inf
    order = np.argsort(-sizes, axis=None, kind="stable")[:total]
    return np.bincount(order // Y.shape[1], minlength=len(Y))


def ascend(
    table: SampleForm | ProductForm,
    rows: SparseRows,
    asked: np.ndarray,
    tol: float,
    max_iter: int,
    *,
    divide: bool = False,
) -> Ascent:
    """Raise the adjusted variance of loadings with as many non-zeros, as far as it goes; the best of all steps.

    It is the variance as it is reported: in the order in which the counts were `asked` for; or, if only their sum was asked for
    and they are to `divide` it, the largest count first.
    """
    began, trace, best = perf_counter(), Trace(), None

    def step(rows: SparseRows) -> tuple[float, SparseRows]:
        nonlocal best
        counts = rows.counts()
        order = np.sort(counts)[::-1] if divide else asked
        if best is not None and rows.same_features(best.here.rows):
            rows = settled(table, rows, order)
        here = ImagedLoadings.of(table, rows)
        directions = here.directions(order)
        explained = directions[2]
        # The last step may lower the variance; then the one before it is returned.
        if best is None or explained > best.explained:
            best = Ascent.at(here, directions, trace)
        number, phase = len(trace), "truncated power"
        shown.show(phase, number, explained, explained / trace.value[-1] - 1 if number else np.nan)
        seconds, label = perf_counter() - began, phase if number else ""
        trace.append(number, seconds, counter.flops, best.explained, best.gradient_norm, label)
        following = divided(best.Y, int(counts.sum())) if divide else matched(best.Y, counts)
        return explained, cut(best.Y, following)

    with bar() as shown, flop_counts.job(flop_counts.Flops()) as counter:
        found = iterate(step, rows, max(tol, MIN_STEP_GROWTH), max_iter + 1, relative=True)
    assert best is not None
    best.converged = found.converged
    return best


def _slope(loadings: SparseRows, Y: np.ndarray, size: np.ndarray) -> float:
    """The norm of the derivative, 2·size·y on each pattern, beside the loading itself."""
    total = 0.0
    for where, z, y, length in zip(*loadings, Y, size):
        counted = y[where]
        total += 4.0 * float(length) ** 2 * max(float(counted @ counted - (counted @ z) ** 2), 0.0)
    return float(np.sqrt(total))
