"""A centred sparse matrix that is never made dense: A = B − r·μᵀ, with B sparse and two vectors.

Centring fills in every zero, but only with a matrix of rank 1: products are those of B, less the products of the vectors.
So sparse PCA of wide data takes as much memory, and as many flops, as there are non-zeros. `@`, `.T`, `len`, `shape` and A[:, k]
mean what they mean for arrays; `size` counts the stored numbers, so 2·size·m are the flops of a product with m vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DENSE_PART = 1 << 21  # entries up to which some columns are taken as an array, which is faster


class CentredSparse:
    """B − r·μᵀ.

    Parameters
    ----------
    B : csc or csr array of float64, shape (samples, features)
    r : array, shape (samples,)
    mean : array, shape (features,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from givens.numerics.centred_sparse import CentredSparse
    >>> A = CentredSparse(sparse.csc_array(np.diag([2.0, 4.0])), np.ones(2), np.array([1.0, 2.0]))
    >>> A @ np.array([1.0, 1.0]), A[:, 1]
    (array([-1.,  1.]), array([-2.,  2.]))
    """

    __array_ufunc__ = None  # so that array @ A is left to __rmatmul__
    ndim = 2

    def __init__(self, B: Any, r: np.ndarray, mean: np.ndarray) -> None:
        self.B, self.r, self.mean = B, r, mean
        self.shape: tuple[int, int] = B.shape
        self.size = B.nnz + len(r) + len(mean)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> CentredSparse:
        """The transpose; nothing is copied."""
        return CentredSparse(self.B.T, self.mean, self.r)

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        product = np.asarray(self.B @ V)
        return product - (np.outer(self.r, self.mean @ V) if V.ndim == 2 else self.r * (self.mean @ V))

    def __rmatmul__(self, V: np.ndarray) -> np.ndarray:
        return (self.T @ V.T).T

    def __getitem__(self, key: tuple[slice, Any]) -> np.ndarray:
        rows, columns = key
        if rows != slice(None):
            raise TypeError("only columns can be taken")
        which = np.atleast_1d(columns)
        part = self.B[:, which].toarray(order="F")
        part -= np.outer(self.r, self.mean[which])
        return part[:, 0] if np.ndim(columns) == 0 else part

    def taken(self, columns: np.ndarray) -> np.ndarray | CentredSparse:
        """Some columns: as an array if they are few."""
        if len(columns) * len(self) <= DENSE_PART:
            return self[:, columns]
        return CentredSparse(self.B[:, columns], self.r, self.mean[columns])

    def outer_products(self) -> np.ndarray:
        """AAᵀ."""
        along = np.outer(self.B @ self.mean, self.r)
        C = (self.B @ self.B.T).toarray()
        C -= along
        C -= along.T
        C += (self.mean @ self.mean) * np.outer(self.r, self.r)
        return C

    def sum_of_squares(self) -> float:
        """Of all entries, to the rounding error of the sum of squares of B."""
        crossed = self.r @ (self.B @ self.mean)
        return max(
            float(self.B.data @ self.B.data - 2 * crossed + (self.r @ self.r) * (self.mean @ self.mean)), 0.0
        )
