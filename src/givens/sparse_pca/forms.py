"""Sparse loadings, and two representations of the data for steps with exact counts: the samples, or the products of features.

A search for loadings Z with exact counts asks the data A (samples x features, centred) for one thing above all: the images ZAᵀA.
Their entries where the loadings are not zero are S = ZAᵀAZᵀ, the products of the scores, and S has the adjusted variance and its
derivative; combinations of images are the columns in which the next loadings are counted. `SampleForm` has A: an image costs as
many flops as a product with all samples. `ProductForm` has C = AᵀA: an image is a sum of few rows of C.

S holds squares, so scores that agree to about 1e-7 of their size are the same for the search; see `givens.numerics.gram`.

Arrays are stored one component per row.
"""

from __future__ import annotations

from typing import NamedTuple, overload

import numpy as np
from scipy import sparse

from givens.numerics import gram
from givens.numerics.centred_sparse import CentredSparse
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
            E[heavy] = scores(part.dense(At.shape[1]), At, few=False)
        for j, (where, values) in enumerate(zip(self.where, self.values)):
            if HEAVY * len(where) <= At.shape[1]:
                E[j] = taken(At, where) @ values
        return E

    def replaced(self, j: int, where: np.ndarray, values: np.ndarray) -> SparseRows:
        """With another loading in the place of j."""
        other = SparseRows(list(self.where), list(self.values))
        other.where[j], other.values[j] = where, values
        return other

    def products(self, images: np.ndarray) -> np.ndarray:
        """S = ZAᵀAZᵀ, from the images of these loadings."""
        S = np.array([images[:, where] @ values for where, values in zip(self.where, self.values)])
        return 0.5 * (S + S.T)


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

    def images(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀA, components x features."""
        return product(loadings.scores(self.At), self.At)

    def scores(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀ, components x samples."""
        return loadings.scores(self.At)

    def products(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """AᵀA between few features and few others."""
        At = self.At
        if isinstance(At, CentredSparse):
            return At[:, some].T @ At[:, others]
        return taken(At, some).T @ taken(At, others)

    def part(self, features: np.ndarray) -> SampleForm:
        """Some features alone."""
        return SampleForm(taken(self.At, features))

    def principal_columns(self, norms: np.ndarray, m: int) -> np.ndarray:
        """AᵀU for about the m leading principal axes U, a row each: of many features, the strongest tell the axes."""
        leading = max(AXES, 10 * self.rows)
        few = 3 * leading <= 2 * self.features
        part = taken(self.At, np.argpartition(-norms, leading)[:leading]) if few else self.At
        return product(gram.rough_axes(part, min(m, self.rows))[0].T, self.At)

    def image_flops(self, m: int, nonzeros: int) -> float:
        """Of the images of m loadings with so many non-zeros in all."""
        return 2.0 * self.rows * (nonzeros + m * self.features)


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
        return np.asarray(loadings.matrix(self.features) @ self.C)

    def scores(self, loadings: SparseRows) -> np.ndarray:
        """ZAᵀ in some orthonormal coordinates, as many as components."""
        S = loadings.products(self.images(loadings))
        return gram.root(S, np.sqrt(np.maximum(np.diagonal(S), 0.0)), len(S)).T

    def products(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """AᵀA between few features and few others."""
        return self.C[np.ix_(some, others)]

    def part(self, features: np.ndarray) -> ProductForm:
        """Some features alone."""
        return ProductForm(self.C.take(features, axis=0).take(features, axis=1))

    def principal_columns(self, norms: np.ndarray, m: int) -> np.ndarray:
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

    def image_flops(self, m: int, nonzeros: int) -> float:
        """Of the images of m loadings with so many non-zeros in all."""
        return 2.0 * self.features * nonzeros


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


def product(u: np.ndarray, At: np.ndarray | CentredSparse) -> np.ndarray:
    """uᵀA, for one u or several rows; by all threads where A is large."""
    if At.size < LARGE_PRODUCT or isinstance(At, CentredSparse):
        return u @ At
    rows = np.atleast_2d(u)
    Y = np.empty((len(rows), At.shape[1]))
    turned(rows, At, Y)
    return Y if u.ndim == 2 else Y[0]
