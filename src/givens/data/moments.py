"""The means of all features, and their products about the means, in one pass: from them principal components are computed.

The sums of two parts, each about its own mean, are merged by the formula of Chan, Golub and LeVeque (1983), in which nothing
cancels: C = C₁ + C₂ + n₁n₂/(n₁ + n₂)·g gᵀ, where g is the difference of the two means.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from givens.data.summary import Summary
from givens.numerics import gram
from givens.support.arguments import dense

MOST_PRODUCT_FEATURES = 8192
"""Maximum number of features whose products are summed; the products then take 512 MB."""


def feature_means(rows: np.ndarray) -> np.ndarray:
    """The mean of each feature; for a constant feature its value, without rounding errors."""
    constant = np.all(rows == rows[0], axis=0)
    return np.where(constant, rows[0], rows.mean(axis=0))


def pooled_mean(
    count: int, mean: np.ndarray, more: int, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The mean of two parts together, the difference g of their means, and n₁n₂/(n₁ + n₂), the weight of g gᵀ."""
    gap = other - mean
    if not count or not more:
        return (mean if count else other), gap, 0.0
    total = count + more
    return mean + gap * (more / total), gap, count * more / total


class Scatter(Summary):
    """Count, mean, and Σ (x − mean)(x − mean)ᵀ, of rows multiplied by `unit`.

    Parameters
    ----------
    features : int
    unit : float, default=1.0
        A power of two, so that squares neither overflow nor underflow; see `givens.data.rows.unit_of`.

    Attributes
    ----------
    count : int
    mean : array, shape (features,)
    C : array, shape (features, features)
        The products of the rows that were added, in the upper triangle.
    upper : array, shape (features * (features + 1) / 2,)
        The upper triangle of C, in place of C, after `end`: this is what is sent and merged.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.moments import Scatter
    >>> X = np.random.default_rng(0).standard_normal((100, 3)) + 5
    >>> one, two = Scatter(3).begin(0), Scatter(3).begin(40)
    >>> one.add(X[:40])
    >>> two.add(X[40:])
    >>> one.end(), two.end()
    (None, None)
    >>> one.merge(two)
    >>> bool(np.allclose(one.products(), np.triu(99 * np.cov(X.T))))
    True
    """

    C: np.ndarray
    upper: np.ndarray

    def __init__(self, features: int, unit: float = 1.0) -> None:
        self.unit = unit
        self.count = 0
        self.mean = np.zeros(features)

    def begin(self, first: int) -> Self:
        """A copy whose sums are 0."""
        other = copy(self)
        other.C = np.zeros((len(self.mean), len(self.mean)))
        return other

    def add(self, rows: Any) -> None:
        """Add rows, dense or csr."""
        step = max(len(self.mean), gram.BLOCK_ENTRIES // len(self.mean))
        for start in range(0, rows.shape[0], step):
            part = np.array(dense(rows[start : start + step]), dtype=np.float64, order="C")
            part *= self.unit
            mean = feature_means(part)
            part -= mean
            gram.add_dense(self.C, part)
            between = self._join(len(part), mean)
            if between is not None:
                self.C += between

    def end(self) -> None:
        """Keep the upper triangle of C alone."""
        self.upper = gram.packed(self.C)
        del self.C

    def merge(self, other: Self) -> None:
        """Add the sums of other rows."""
        self.upper = self.upper + other.upper
        between = self._join(other.count, other.mean)
        if between is not None:
            self.upper += gram.packed(between)

    def products(self) -> np.ndarray:
        """C of all rows, in the upper triangle."""
        return gram.unpacked(self.upper, len(self.mean))

    def _join(self, count: int, mean: np.ndarray) -> np.ndarray | None:
        """Add `count` rows of this mean to the count and the mean; return what the difference of both means adds to C."""
        self.mean, gap, weight = pooled_mean(self.count, self.mean, count, mean)
        self.count += count
        return np.outer(weight * gap, gap) if weight else None
