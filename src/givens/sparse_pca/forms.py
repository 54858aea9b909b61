"""Sparse loadings, and two representations of the data for steps with exact counts: the samples, or the products of features.

A search for loadings Z with exact counts asks the data A (samples x features, centred) for one thing above all: the images ZAᵀA.
Their entries where the loadings are not zero are S = ZAᵀAZᵀ, the products of the scores, and S has the adjusted variance and its
derivative; combinations of images are the columns in which the next loadings are counted. `SampleForm` has A: an image costs as
many flops as a product with all samples. `ProductForm` has C = AᵀA: an image is a sum of few rows of C.

S holds squares, so scores that agree to about 1e-7 of their size are the same for the search; see `givens.numerics.gram`.

Arrays are stored one component per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from givens.numerics import flop_counts, gram
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.tiles import scores, turned
from givens.solve.outer_loops import iterate

HEAVY = 16  # loadings with more than 1/16 of all features are multiplied as an array
DEPENDENT_SHARE = 1e-12  # of a score's square: where no more is left beside others, it is rounding
SETTLED_GROWTH = 1e-9  # the same for values on features that no longer change
SETTLING_STEPS = 200


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
        if HEAVY * max(sizes) > At.shape[1]:
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
    growth: float = SETTLED_GROWTH,
    steps: int = SETTLING_STEPS,
) -> SparseRows:
    """The same features with the values that explain most, in the reported order: steps on these features alone.

    They end with the step that brings no more than the share `growth`.
    """
    features, inverse = np.unique(np.concatenate(rows.where), return_inverse=True)
    part = table.part(features)

    def step(here: SparseRows) -> tuple[float, SparseRows]:
        imaged = ImagedLoadings.of(part, here)
        T, lengths, explained = imaged.directions(asked)
        values = [y[where] for y, where in zip(imaged.columns(T, lengths), here.where)]
        return explained, SparseRows(here.where, [z / (np.linalg.norm(z) or 1.0) for z in values])

    start = SparseRows(np.split(inverse, np.cumsum(rows.counts())[:-1]), rows.values)
    return SparseRows(rows.where, iterate(step, start, growth, steps, relative=True).best.values)


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
        left = np.square(np.diagonal(R)) <= DEPENDENT_SHARE * np.diagonal(part)
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
    >>> from givens.sparse_pca.forms import reported_order
    >>> reported_order(np.array([1.0, 9.0, 4.0]), np.array([5, 5, 2]), np.array([5, 2, 5]))
    array([1, 2, 0])
    """
    if asked is None:
        return np.argsort(-squares, kind="stable")
    order = np.empty(len(asked), dtype=int)
    order[np.argsort(-asked, kind="stable")] = np.lexsort((-squares, -counts))
    return order
