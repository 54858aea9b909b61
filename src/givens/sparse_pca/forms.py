"""Two representations of the data for steps with exact counts: the samples, or the products of features.

The steps need the scores E = ZAᵀ of sparse loadings in some orthonormal coordinates, the data in the same coordinates, and the
best entries of what is left beside a basis of scores. `SampleForm` has the data A, samples x features, and works in the
coordinates of the samples. `ProductForm` has C = AᵀA, features x features, and never leaves the space of features: with Z of few
non-zeros, ZC is a sum of few rows of C, ZCZᵀ = LLᵀ is as small as the number of components, L are the scores in the coordinates
of a basis of their span, and L⁻¹ZC are the data. A step costs non-zeros x features, not samples x features x components.

C holds squares, so scores that agree to about 1e-7 of their size are the same for `ProductForm`; see `givens.numerics.gram`.
"""

from __future__ import annotations

from typing import NamedTuple, overload

import numpy as np
from scipy import sparse

from givens.numerics import gram
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.polar import polar
from givens.numerics.tiles import scores, turned

HEAVY = 16  # a loading with more than 1/16 of all features is multiplied as if it were dense
LARGE_PRODUCT = 1 << 20  # entries of the data from which a product is shared among threads
AXES = 2000  # features, the strongest, tell the leading axes well enough to begin; or ten times as many as samples


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

    def matrix(self, features: int) -> sparse.csr_array:
        """As a sparse matrix, components x features."""
        ends = np.concatenate(([0], np.cumsum(self.counts())))
        entries = (np.concatenate(self.values), np.concatenate(self.where), ends)
        return sparse.csr_array(entries, shape=(len(self.where), features))

    def scores(self, At: np.ndarray | CentredSparse) -> np.ndarray:
        """ZXᵀ, components x samples."""
        E = np.empty((len(self.where), len(At)))
        heavy = [j for j, where in enumerate(self.where) if HEAVY * len(where) > At.shape[1]]
        if heavy:
            part = SparseRows([self.where[j] for j in heavy], [self.values[j] for j in heavy])
            E[heavy] = scores(part.dense(At.shape[1]), At, few=False)[0]
        for j, (where, values) in enumerate(zip(self.where, self.values)):
            if HEAVY * len(where) <= At.shape[1]:
                E[j] = taken(At, where) @ values
        return E


@overload
def taken(At: np.ndarray, features: np.ndarray) -> np.ndarray: ...
@overload
def taken(At: np.ndarray | CentredSparse, features: np.ndarray) -> np.ndarray | CentredSparse: ...
def taken(At: np.ndarray | CentredSparse, features: np.ndarray) -> np.ndarray | CentredSparse:
    """These columns, in the same memory layout."""
    if isinstance(At, CentredSparse):
        return At.taken(features)
    return At.T.take(features, axis=0).T if At.flags.f_contiguous else At.take(features, axis=1)


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


class Step(NamedTuple):
    """A loading, what of its score is beside the basis (as `Rest` represents it), and the square of that."""

    where: np.ndarray
    values: np.ndarray
    score: np.ndarray
    held: float


class Axes(NamedTuple):
    """Leading principal axes, a row each, in the coordinates of the samples or of the features; the squares of their sizes."""

    rows: np.ndarray
    squares: np.ndarray


class SampleForm:
    """Centred data, samples x features.

    Parameters
    ----------
    At : array of float64, shape (samples, features), or CentredSparse
        An array is contiguous by samples or by features.
    """

    def __init__(self, At: np.ndarray | CentredSparse) -> None:
        self.At = At
        self.rows, self.features = At.shape

    def scores(self, loadings: SparseRows) -> tuple[np.ndarray, np.ndarray | CentredSparse]:
        """E = ZAᵀ, components x coordinates; and A in these coordinates, coordinates x features."""
        return loadings.scores(self.At), self.At

    def part(self, features: np.ndarray) -> SampleForm:
        """Some features alone."""
        return SampleForm(taken(self.At, features))

    def axes(self, norms: np.ndarray, m: int) -> Axes:
        """The leading m, each as long as its singular value, from the strongest features if they are many."""
        leading = max(AXES, 10 * self.rows)
        few = 3 * leading <= 2 * len(norms)
        part = taken(self.At, np.argpartition(-norms, leading)[:leading]) if few else self.At
        axes, squares = gram.rough_axes(part, min(m, self.rows))
        return Axes(axes.T * np.sqrt(squares)[:, None], squares)

    def principal_columns(self, m: int) -> np.ndarray:
        """AᵀU for the m leading principal axes U, a row for each."""
        return gram.leading_axes(self.At, m)[0].T @ self.At

    def rest(self, B: np.ndarray, A: np.ndarray | CentredSparse) -> SampleRest:
        """What is left beside an orthonormal basis B of scores; rows of B are in the coordinates of A."""
        return SampleRest(self.At, B)

    def product_flops(self, m: int, nonzeros: int) -> float:
        """Of scores with so many non-zeros, and of products of all features with m columns."""
        return 2.0 * self.rows * (nonzeros + m * self.features)


class SampleRest:
    """What the samples have beside an orthonormal basis of scores; a score is a vector of samples."""

    def __init__(self, At: np.ndarray | CentredSparse, B: np.ndarray) -> None:
        self.At, self.B = At, B

    def columns(self) -> np.ndarray:
        """BA: how much of each feature lies along each vector of the basis."""
        return product(self.B, self.At)

    def feature(self, k: int) -> np.ndarray:
        """What is left of a feature."""
        return self._beside(self.At[:, k])

    def leading(self, axes: Axes) -> np.ndarray:
        """The leading axis of what is left, among the leading ones of the whole."""
        left = self._beside(axes.rows)
        return left.T @ np.linalg.eigh(left @ left.T)[1][:, -1]

    def step(self, u: np.ndarray, count: int) -> Step:
        """The counted entries of Aᵀu, for u that is left beside the basis."""
        where, values = largest(product(u, self.At), count)
        if HEAVY * count > self.At.shape[1]:
            z = np.zeros(self.At.shape[1])
            z[where] = values
            e = self.At @ z
        else:
            e = taken(self.At, where) @ values
        e = self._beside(e)
        return Step(where, values, e, float(e @ e))

    def alone(self, k: int) -> Step:
        """One feature as a loading."""
        e = self.feature(k)
        return Step(np.array([k]), np.ones(1), e, float(e @ e))

    def extended(self, step: Step) -> tuple[SampleRest, np.ndarray]:
        """With the score of a step in the basis, and the row that this adds to `columns`."""
        row = self._beside(step.score)
        row /= np.linalg.norm(row) or 1.0
        return SampleRest(self.At, np.vstack((self.B, row))), product(row, self.At)

    def narrowed(self, features: np.ndarray) -> SampleRest:
        """Of some features."""
        return SampleRest(taken(self.At, features), self.B)

    def _beside(self, e: np.ndarray) -> np.ndarray:
        return e - (e @ self.B.T) @ self.B


class ProductForm:
    """The products of features, C = AᵀA.

    Parameters
    ----------
    C : array of float64, shape (features, features)
        Both triangles.
    """

    rows = None

    def __init__(self, C: np.ndarray) -> None:
        self.C = C
        self.features = len(C)

    def scores(self, loadings: SparseRows) -> tuple[np.ndarray, np.ndarray]:
        """E = ZAᵀ, components x coordinates; and A in these coordinates, coordinates x features."""
        Z = loadings.matrix(self.features)
        ZC = Z @ self.C
        S = Z @ ZC.T
        E = gram.root(S, np.sqrt(np.maximum(np.diagonal(S), 0.0)), len(S)).T
        return E, np.linalg.pinv(E) @ ZC

    def part(self, features: np.ndarray) -> ProductForm:
        """Some features alone."""
        return ProductForm(self.C.take(features, axis=0).take(features, axis=1))

    def axes(self, norms: np.ndarray, m: int) -> Axes:
        """The leading m eigenvectors of C; of many features by a few steps of subspace iteration."""
        p = self.features
        m = min(m, p)
        if gram.decomposed_whole(p, m):
            squares, V = np.linalg.eigh(self.C)
            return Axes(np.ascontiguousarray(V[:, ::-1][:, :m].T), np.maximum(squares[::-1][:m], 0.0))
        V = gram.leading_subspace(p, m, lambda rows: product(rows, self.C))
        squares, turns = np.linalg.eigh(product(V, self.C) @ V.T)
        return Axes(turns[:, ::-1][:, :m].T @ V, np.maximum(squares[::-1][:m], 0.0))

    def principal_columns(self, m: int) -> np.ndarray:
        """AᵀU for the m leading principal axes U, a row for each."""
        V, squares = self.axes(np.empty(0), m)
        return V * np.sqrt(squares)[:, None]

    def rest(self, B: np.ndarray, A: np.ndarray | CentredSparse) -> ProductRest:
        """What is left beside an orthonormal basis B of scores; rows of B are in the coordinates of A."""
        return ProductRest(self.C, B @ A)

    def samples(self, rows: int) -> SampleForm:
        """A root of C in the place of samples, at least so many rows."""
        norms = np.sqrt(np.maximum(np.diagonal(self.C), 0.0))
        return SampleForm(gram.root(self.C.copy(), norms, rows))

    def product_flops(self, m: int, nonzeros: int) -> float:
        """Of scores with so many non-zeros, and of products of all features with m columns."""
        return 2.0 * self.features * (nonzeros + m * m)


class ProductRest:
    """What features have beside an orthonormal basis of scores; a score e is the vector Aᵀe of features.

    `BA` has a row for each vector of the basis.
    """

    def __init__(self, C: np.ndarray, BA: np.ndarray) -> None:
        self.C, self.BA = C, BA

    def columns(self) -> np.ndarray:
        """BA: how much of each feature lies along each vector of the basis."""
        return self.BA

    def feature(self, k: int) -> np.ndarray:
        """What is left of a feature."""
        return self.C[k] - self.BA[:, k] @ self.BA

    def leading(self, axes: Axes) -> np.ndarray:
        """The leading axis of what is left, among the leading ones of the whole."""
        V, squares = axes
        along = V @ self.BA.T
        turn = np.linalg.eigh(np.diag(squares) - along @ along.T)[1][:, -1]
        return (turn * squares) @ V - (turn @ along) @ self.BA

    def step(self, u: np.ndarray, count: int) -> Step:
        """The counted entries of u, which is Aᵀe for a score e that is left beside the basis."""
        where, values = largest(u, count)
        return self._step(where, values)

    def alone(self, k: int) -> Step:
        """One feature as a loading."""
        return self._step(np.array([k]), np.ones(1))

    def _step(self, where: np.ndarray, values: np.ndarray) -> Step:
        y = values @ self.C.take(where, axis=0) - (self.BA[:, where] @ values) @ self.BA
        return Step(where, values, y, max(float(values @ y[where]), 0.0))

    def extended(self, step: Step) -> tuple[ProductRest, np.ndarray]:
        """With the score of a step in the basis, and the row that this adds to `columns`."""
        row = step.score / (np.sqrt(step.held) or 1.0)
        return ProductRest(self.C, np.vstack((self.BA, row))), row


def orthonormal_columns(table: SampleForm | ProductForm, Z: np.ndarray) -> np.ndarray:
    """AᵀU for the orthonormal columns U nearest to the scores of loadings, a row for each of them."""
    E, A = table.scores(SparseRows.of(Z))
    return product(polar(E.T).T, A)


def product(u: np.ndarray, At: np.ndarray | CentredSparse) -> np.ndarray:
    """uᵀA, for one u or several rows; by all threads where A is large."""
    if At.size < LARGE_PRODUCT or isinstance(At, CentredSparse):
        return u @ At
    rows = np.atleast_2d(u)
    Y = np.empty((len(rows), At.shape[1]))
    turned(rows, At, Y)
    return Y if u.ndim == 2 else Y[0]
