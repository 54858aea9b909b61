"""Data that are read more than once: a table, an iterable of tables that can be restarted, or data on Dask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from givens.cluster import RepeatedData
from givens.cluster.graph import DaskRows
from givens.moments.sums import unit_of
from givens.support.arguments import dense, is_dask
from givens.support.fitting import check_array, validate_data
from givens.support.rows import batches, in_memory

_TYPES = [np.float64, np.float32]
HEAD_ROWS = 256  # first rows, from which the size of the data is estimated


class RepeatedRows(RepeatedData):
    """The rows of X, checked, which can be read repeatedly; contiguous by rows, so that no bit depends on the layout of X.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets the number of features, and their names if X has any.
    X : array-like of shape (n, d), or anything that `givens.rows` reads
        A memory map or a data set on disk, a list of arrays, an object of your own whose `__iter__` starts anew, or a dask array
        or data frame, whose chunks stay where they are. An iterator, which yields its rows once, is refused.
    accept_sparse : bool, default=False
        Whether chunks may be sparse; they are then csr matrices.
    reset : bool, default=True
        Set the features of the estimator; otherwise X must have those that it knows.
    """

    sparse: bool = False

    def __init__(
        self, estimator: BaseEstimator, X: Any, *, accept_sparse: bool = False, reset: bool = True
    ) -> None:
        if hasattr(X, "__next__"):
            raise TypeError(
                "X yields its rows only once, and fit goes through them more than once: pass a list of arrays, "
                "an object whose __iter__ starts anew, or give the batches to partial_fit"
            )
        self.source: Any = []
        self.checked = False
        self.sparse = accept_sparse
        if is_dask(X):
            self.chunks = DaskRows(X, estimator)
            self.features = self.chunks.learn_features(estimator, reset)
        elif in_memory(X):
            table = validate_data(
                estimator, X, accept_sparse=self._formats, dtype=_TYPES, order="C", reset=reset
            )
            self.source, self.checked = [table], True
            self.features = table.shape[1]
        else:
            self.source = X
            first = next(iter(self), None)
            if first is None:
                raise ValueError("X yields no rows")
            self.features = first.shape[1]
            estimator.n_features_in_ = self.features

    def __iter__(self) -> Iterator[np.ndarray]:
        if self.checked:
            yield from self.source
            return
        for number, chunk in enumerate(batches(self.source)):
            yield from self.pieces(chunk, number, 0)

    def pieces(self, block: Any, number: int, first: int) -> Iterator[np.ndarray]:
        """Yield the rows of a chunk, checked; nothing if it is empty."""
        name = f"chunk {number} of X"
        chunk = check_array(
            block,
            accept_sparse=self._formats,
            dtype=_TYPES,
            order="C",
            ensure_min_samples=0,
            input_name=name,
        )
        features = getattr(self, "features", chunk.shape[1])
        if chunk.shape[1] != features:
            raise ValueError(f"{name} has {chunk.shape[1]} columns, but the first has {features}")
        if chunk.shape[0]:
            yield chunk

    def mold(self) -> RepeatedRows:
        """A copy without data, which checks chunks of the same number of features."""
        other = RepeatedRows.__new__(RepeatedRows)
        other.features, other.sparse = self.features, self.sparse
        return other

    @property
    def _formats(self) -> str | bool:
        return "csr" if self.sparse else False

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features of a table, in memory or on Dask."""
        return self.chunks.shape if self.chunks is not None else self.source[0].shape

    @property
    def parts(self) -> int:
        """Number of chunks on Dask; a table in memory is one."""
        return self.chunks.X.numblocks[0] if self.chunks is not None else len(self.source)

    @property
    def dtype(self) -> type[np.floating]:
        """Type of a table, in memory or on Dask: float32 or float64."""
        table = self.chunks.X if self.chunks is not None else self.source[0]
        return np.float32 if table.dtype == np.float32 else np.float64

    def unit(self) -> float:
        """A power of two by which rows are multiplied, so that those of the size of the first rows are near 1."""
        return unit_of(dense(self.head(HEAD_ROWS)))

    def head(self, size: int) -> np.ndarray:
        """The first rows, at most `size`; dense if they are in memory."""
        if self.chunks is not None:
            return next(self.pieces(self.first_block(size), 0, 0))
        found: list[np.ndarray] = []
        for chunk in self:
            found.append(dense(chunk[: size - sum(map(len, found))]))
            if sum(map(len, found)) >= size:
                break
        return np.concatenate(found)


class Parts(RepeatedRows):
    """Rows in memory that have been checked."""

    def __init__(self, *parts: np.ndarray) -> None:
        self.source, self.checked = parts, True
        self.features = parts[0].shape[1]
