"""First and second moments: the weight, the mean, and the products of features about it, in one pass.

The sums of two parts, each about its own mean, are merged by the formula of Chan, Golub and LeVeque (1983), in which nothing
cancels: C = C₁ + C₂ + w₁w₂/(w₁ + w₂)·g gᵀ, where g is the difference of the two means.

Of few features, threads take tiles of rows, and each makes products of its own; of many they share out the products. Tiles,
blocks and the order in which they are merged depend on the shape of the rows only, so the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, Self

import numpy as np
from scipy import sparse

from givens.data.passes import Summary
from givens.numerics import gram, parallel
from givens.numerics.scaling import EPS
from givens.numerics.tiles import tiles
from givens.support.arguments import dense

MOST_PRODUCT_FEATURES = 8192
"""Maximum number of features whose products are summed; the products then take 512 MB."""

TILE_FEATURES = 256  # up to so many, the products of a tile (half a megabyte) stay in a core's cache


def overflow_is_told_later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let sums overflow without a warning, in whichever thread they are made: `Moments.covariance` raises an error."""

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)

    return quiet


class Moments(Summary):
    """The weight and the mean of rows multiplied by `unit`, and Σ (x − mean)(x − mean)ᵀ or its diagonal.

    Parameters
    ----------
    features : int or array of int
        How many there are, or the numbers of those that count.
    unit : float, default=1.0
        A power of two, so that squares neither overflow nor underflow; see `givens.numerics.scaling.unit_of`.
    products : bool, default=True
        Whether products of different features are wanted, or the squares of each alone.

    Attributes
    ----------
    count : int
        Number of rows.
    weight : float
        The sum of their weights: their number if they have none.
    mean : array, shape (features,)
    scatter : array
        The products in the upper triangle of a matrix, and nothing of use below it; after `end`, when they are sent and merged,
        that triangle alone, row by row. Without products, the squares.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.moments import Moments
    >>> X = np.random.default_rng(0).standard_normal((100, 3)) + 5
    >>> one, two = Moments(3).begin(0), Moments(3).begin(40)
    >>> one.add(X[:40])
    >>> two.add(X[40:])
    >>> one.end(), two.end()
    (None, None)
    >>> one.merge(two)
    >>> bool(np.allclose(one.covariance(), np.cov(X.T, bias=True)))
    True
    """

    scatter: np.ndarray

    def __init__(self, features: int | np.ndarray, unit: float = 1.0, *, products: bool = True) -> None:
        self.chosen = None if np.ndim(features) == 0 else np.asarray(features)
        self.unit, self.with_products = unit, products
        self.count, self.weight = 0, 0.0
        self.mean = np.zeros(int(features) if self.chosen is None else len(self.chosen))

    def begin(self, first: int) -> Self:
        """A copy whose sums are 0."""
        other = copy(self)
        n = len(self.mean)
        other.scatter = np.zeros((n, n) if self.with_products else n)
        return other

    def add(self, rows: Any, weights: np.ndarray | None = None) -> None:
        """Add rows, dense or csr, with weights above 0, by default 1."""
        if sparse.issparse(rows) and not self.with_products:
            self._add_entries(rows, weights)
        elif self.with_products and len(self.mean) > TILE_FEATURES:
            self._add_blocks(rows, weights)
        else:
            self._add_tiles(rows, weights)
        self.count += rows.shape[0]

    def _add_tiles(self, rows: Any, weights: np.ndarray | None) -> None:
        @overflow_is_told_later
        def products(part: slice) -> tuple[float, np.ndarray, np.ndarray]:
            weight, mean, block = self._centred(rows[part], None if weights is None else weights[part])
            return (
                weight,
                mean,
                block.T @ block if self.with_products else np.einsum("ij,ij->j", block, block),
            )

        cut = tiles(max(len(self.mean), 1), rows.shape[0])
        for start in range(0, len(cut), 16):  # the products of so many tiles wait to be merged
            for weight, mean, C in parallel.each(products, cut[start : start + 16]):
                self.scatter += C
                self.scatter += self._join(weight, mean)

    def _add_blocks(self, rows: Any, weights: np.ndarray | None) -> None:
        step = max(len(self.mean), gram.BLOCK_ENTRIES // len(self.mean))
        for part in parallel.slices(rows.shape[0], step):
            weight, mean, block = self._centred(rows[part], None if weights is None else weights[part])
            gram.add_dense(self.scatter, block)
            del block  # no block is held while the next one is made
            if self.weight:
                self.scatter += self._join(weight, mean)
            else:
                self._join(weight, mean)

    @overflow_is_told_later
    def _centred(self, rows: Any, weights: np.ndarray | None) -> tuple[float, np.ndarray, np.ndarray]:
        """The weight and the mean of some rows, and the rows about it in double precision, times the roots of their weights."""
        rows = dense(rows)
        block = np.array(
            rows if self.chosen is None else rows[:, self.chosen], dtype=np.float64, order="C", copy=True
        )
        if self.unit != 1.0:
            block *= self.unit
        mean = feature_means(block, weights)
        block -= mean
        if weights is None:
            return float(len(block)), mean, block
        block *= np.sqrt(weights)[:, None]
        return float(weights.sum()), mean, block

    def _add_entries(self, rows: Any, weights: np.ndarray | None) -> None:
        weight = float(rows.shape[0] if weights is None else weights.sum())
        mean, squares = _squares_of_sparse(rows, self.unit, weights, weight)
        if self.chosen is not None:
            mean, squares = mean[self.chosen], squares[self.chosen]
        self.scatter += squares
        self.scatter += self._join(weight, mean)

    def end(self) -> None:
        """Keep the upper triangle of the products alone."""
        if self.with_products:
            self.scatter = gram.packed(self.scatter)

    @overflow_is_told_later
    def merge(self, other: Self) -> None:
        """Add the sums of other rows."""
        between = self._join(other.weight, other.mean)
        packed = gram.packed(between) if self.with_products else between
        self.scatter = self.scatter + other.scatter + packed
        self.count += other.count

    @overflow_is_told_later
    def _join(self, weight: float, mean: np.ndarray) -> np.ndarray:
        """Add to the weight and the mean; return what the difference of both means adds to the scatter."""
        gap, total = mean - self.mean, self.weight + weight
        between = self.weight * weight / total if total else 0.0
        self.mean = self.mean + gap * (weight / total) if self.weight else mean
        self.weight = total
        if not between:
            gap = np.zeros_like(gap)
        return between * (np.outer(gap, gap) if self.with_products else gap * gap)

    def products(self) -> np.ndarray:
        """Σ (x − mean)(x − mean)ᵀ of all rows, in the upper triangle, after `end`; a new array."""
        return gram.unpacked(self.scatter, len(self.mean))

    def covariance(self) -> np.ndarray:
        """The products over the weight, in both triangles; raise an error if rows are too large."""
        if not np.isfinite(self.scatter).all():
            raise too_large(self.unit, "rows")
        upper = self.products() / self.weight
        return upper + np.triu(upper, 1).T


def moments_of(
    rows: Any, unit: float = 1.0, weights: np.ndarray | None = None, *, products: bool = True
) -> Moments:
    """The moments of rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.moments import moments_of
    >>> moments_of(np.array([[1.0, 2.0], [3.0, 2.0]]), products=False).scatter
    array([2., 0.])
    """
    found = Moments(rows.shape[1], unit, products=products).begin(0)
    found.add(rows, weights)
    found.end()
    return found


def too_large(unit: float, noun: str, powers: str = "squares") -> ValueError:
    """The error for rows whose powers overflow in the unit of the first rows."""
    return ValueError(
        f"some {noun} are too large beside the first, which are of the size of {1 / unit:.2g}: their {powers} exceed "
        "what float64 holds; leave them out"
    )


def feature_means(rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean of each feature; for a constant feature its value, without rounding errors."""
    mean = rows.mean(axis=0) if weights is None else weights @ rows / weights.sum()
    constant = (rows[0] == rows[-1]) & np.all(rows == rows[0], axis=0)
    return np.where(constant, rows[0], mean)


@overflow_is_told_later
def _squares_of_sparse(
    rows: Any, unit: float, weights: np.ndarray | None, total: float
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each feature of a sparse matrix, and the sum of squares about it.

    They are summed through its entries: those that are not stored are as far from the mean as 0 is.
    """
    features, entries = rows.shape[1], rows.tocoo()
    which, often = entries.col, None if weights is None else weights[entries.row]
    values = entries.data.astype(np.float64) * unit

    def summed(terms: np.ndarray) -> np.ndarray:
        return np.bincount(which, terms if often is None else often * terms, minlength=features)

    everywhere = np.bincount(which, minlength=features) == rows.shape[0]
    zeros = np.where(everywhere, 0.0, total - np.bincount(which, often, minlength=features))
    mean = summed(values) / total
    # What rounding left of the mean; a feature that is constant has no variance left.
    mean += (summed(values - mean[which]) - zeros * mean) / total
    squares = summed((values - mean[which]) ** 2) + np.maximum(zeros, 0.0) * mean**2
    squares[squares <= total * (2 * EPS * mean) ** 2] = 0.0  # a constant feature, but for rounding
    return mean, squares
