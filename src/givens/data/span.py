"""Rows in the coordinates of their span: an exact reduction where there are fewer rows than variables.

N rows of p variables differ in at most N − 1 directions. With the QR decomposition (X − mean)ᵀ = QR the rows of Rᵀ are those
of X about their mean in the orthonormal basis Q, so that all their distances and products, and everything that is computed
from these, are the same. It takes O(N²p) instead of the O(p³) of a covariance matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class RowSpan:
    """Rows as origin + coordinates · basisᵀ.

    Attributes
    ----------
    origin : array of shape (p,)
        The mean of the rows.
    basis : array of shape (p, r)
        Orthonormal columns.
    coordinates : array of shape (N, r)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.span import RowSpan
    >>> X = np.random.default_rng(0).standard_normal((5, 300))
    >>> span = RowSpan.of(X)
    >>> span.coordinates.shape, bool(np.allclose(span.lift(span.coordinates), X))
    ((5, 5), True)
    """

    origin: np.ndarray
    basis: np.ndarray
    coordinates: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Self:
        """The span of some rows, at most as many as they have variables."""
        origin = rows.mean(axis=0)
        basis, R = np.linalg.qr((rows - origin).T)
        return cls(origin, basis, np.ascontiguousarray(R.T))

    def lift(self, points: np.ndarray) -> np.ndarray:
        """Points given by their coordinates, in all variables."""
        return self.origin + points @ self.basis.T
