"""Samples, wherever they lie, checked at the door, and one method that sums over them.

A table in memory is one block; a memory map, a data set on disk, AnnData or an iterable are read block by block; the chunks of a
dask array or data frame stay where they are. `Rows.total` adds up a `Summary` over all of them: in memory, in a loop over
blocks, or in a tree of Dask tasks. What an estimator asks of its samples is an object, such as `Numbers`, which is sent to the
workers, so that every block is checked by the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from givens.data.dask import DaskRows
from givens.data.sources import batches, in_memory
from givens.data.summary import Summary
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from givens.support.arguments import is_dask
from givens.support.fitting import check_array, validate_data

Kind = TypeVar("Kind", bound=Summary)

HEAD_ROWS = 256  # first rows, from which the size of the data is estimated


@dataclass(frozen=True)
class Numbers:
    """Finite numbers, float64 or float32, contiguous by rows, so that no bit depends on the layout of the samples.

    Parameters
    ----------
    sparse : bool, default=False
        Whether rows may be sparse; they are then csr matrices.
    most_rows : int, optional
        How many rows a summary gets at a time, at most.
    """

    sparse: bool = False
    most_rows: int | None = None

    def table(self, estimator: BaseEstimator | None, X: Any, reset: bool) -> Any:
        """A table in memory; the estimator learns, or compares, the number and the names of its features."""
        if estimator is None:
            return check_array(X, **self._options)
        return validate_data(estimator, X, reset=reset, **self._options)

    def block(self, X: Any, name: str, first: int) -> Any:
        """One block of rows, which begins at row `first`; it may be empty."""
        return check_array(X, ensure_min_samples=0, input_name=name, **self._options)

    def piece(self, rows: Any) -> Any:
        """Checked rows in the form that summaries add."""
        return rows

    @property
    def _options(self) -> dict[str, Any]:
        formats = "csr" if self.sparse else False
        return {"accept_sparse": formats, "dtype": [np.float64, np.float32], "order": "C"}


@dataclass(frozen=True)
class Door:
    """What every block has to pass: the check, and the number of features. It is sent to the workers."""

    check: Any
    features: int | None = None

    def checked(self, block: Any, number: int, first: int) -> Any:
        """A block of rows, which begins at row `first`, after its checks."""
        name = f"chunk {number} of X"
        rows = self.check.block(block, name, first)
        if self.features is not None and rows.shape[1] != self.features:
            raise ValueError(f"{name} has {rows.shape[1]} columns, but the first has {self.features}")
        return rows

    def pieces(self, rows: Any) -> Iterator[Any]:
        """Yield checked rows, some at a time; nothing if there are none."""
        number = rows.shape[0]
        step = self.check.most_rows or max(number, 1)
        for part in parallel.slices(number, step):
            yield self.check.piece(rows if number <= step else rows[part])


class _Nothing(Summary):
    """The empty summary of a pass that only checks the rows."""

    def add(self, rows: Any) -> None:
        """Ignore the rows, which have been checked."""

    def merge(self, other: _Nothing) -> None:
        """Nothing to merge."""


class Rows:
    """Samples that are checked, and can be read repeatedly.

    Parameters
    ----------
    X : array-like of shape (n, d), or anything that `givens.rows` reads
        A memory map or a data set on disk, a list of arrays, an object of your own whose `__iter__` starts anew, or a dask array
        or data frame, whose chunks stay where they are. An iterator, which yields its rows once, is refused.
    estimator : estimator, optional
        Gets the number of features, and their names if X has any.
    check : Numbers, or an object with the same methods
        What every block has to be.
    reset : bool, default=True
        Set the features of the estimator; otherwise X must have those that it knows.

    Attributes
    ----------
    n_features : int
    chunks : DaskRows or None
        The rows, if they are those of a dask array or data frame.
    table : array, sparse matrix or None
        The checked rows, if they are in memory.
    """

    def __init__(
        self,
        X: Any,
        estimator: BaseEstimator | None = None,
        check: Any = Numbers(),
        *,
        reset: bool = True,
    ) -> None:
        if hasattr(X, "__next__"):
            raise TypeError(
                "X yields its rows only once, and fit goes through them more than once: pass a list of arrays, "
                "an object whose __iter__ starts anew, or give the batches to partial_fit"
            )
        self.source, self.table, self.chunks = X, None, None
        self.door = Door(check)
        if is_dask(X):
            self.chunks = DaskRows(X, bool(getattr(estimator, "progress", False)))
            self.n_features = self.chunks.shape[1]
            if estimator is not None:
                self.chunks.learn_features(estimator, reset)
        elif in_memory(X):
            self.table = check.table(estimator, X, reset)
            self.n_features = self.table.shape[1]
        else:
            first = next(self._blocks(), None)
            if first is None:
                raise ValueError("X yields no rows")
            self.n_features, self._first_dtype = first.shape[1], first.dtype
            _learn_number(estimator, self.n_features, reset)
        self.door = Door(check, self.n_features)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows of data that are not on Dask, in order, some at a time."""
        for rows in self._blocks():
            yield from self.door.pieces(rows)

    def _blocks(self) -> Iterator[Any]:
        """Yield the checked blocks of data that are not on Dask, the empty ones left out."""
        if self.chunks is not None:
            raise TypeError("rows on Dask stay in their chunks, and cannot be iterated over")
        if self.table is not None:
            yield self.table
            return
        first = 0
        for number, block in enumerate(batches(self.source)):
            rows = self.door.checked(block, number, first)
            first += rows.shape[0]
            if rows.shape[0]:
                yield rows

    @property
    def samples(self) -> int | None:
        """Number of samples, if it is known before a pass: not of rows that are read block by block."""
        return None if self.table is None and self.chunks is None else self.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features of a table, in memory or on Dask."""
        return self.chunks.shape if self.chunks is not None else self._table.shape

    @property
    def parts(self) -> int:
        """Number of chunks on Dask; a table in memory is one."""
        return 1 if self.chunks is None else self.chunks.X.numblocks[0]

    @property
    def dtype(self) -> type[np.floating]:
        """Type of a table, or of the first of several blocks: float32 or float64."""
        if self.chunks is None and self.table is None:
            return self._first_dtype.type
        table = self.chunks.X if self.chunks is not None else self._table
        return np.float32 if table.dtype == np.float32 else np.float64

    @property
    def _table(self) -> Any:
        if self.table is None:
            raise AttributeError("rows that are read block by block have no shape")
        return self.table

    def unit(self) -> float:
        """A power of two by which rows are multiplied, so that those of the size of the first rows are near 1."""
        return unit_of(self.head(HEAD_ROWS))

    def head(self, size: int) -> Any:
        """The first rows, at most `size` of them, in memory, dense or csr as they are."""
        if self.chunks is not None:
            return self._first_on_dask(self.chunks, size)
        found: list[Any] = []
        for rows in self._blocks():
            found.append(rows[:size])
            size -= rows.shape[0]
            if size <= 0:
                break
        return stacked(found)

    def _first_on_dask(self, chunks: DaskRows, size: int) -> Any:
        """The first rows on Dask, checked; if they are invalid, a pass raises an error that names the place."""
        block = chunks.head(size)
        try:
            return self.door.checked(block, 0, 0)
        except (TypeError, ValueError):
            self.total(_Nothing(), "check")
            raise

    def keep(self, value: Any, name: str) -> Any:
        """A value for the `kept` of many passes, which every worker fetches once; `name` as for `total`."""
        return value if self.chunks is None else self.chunks.keep(value, name)

    def total(self, empty: Kind, name: str, kept: Sequence[Any] = ()) -> Kind:
        """The summary of all rows.

        Parameters
        ----------
        empty : Summary
            An empty summary, which is not changed.
        name : str
            Name of the pass, words joined by hyphens; Dask's dashboard shows it.
        kept : sequence, default=()
            Values that `keep` returned; they are passed to `Summary.given`.
        """
        if self.chunks is not None:
            return self.chunks.total(empty, self.door, name, kept)
        summary = (empty.given(kept) if kept else empty).begin(0)
        for rows in self:
            summary.add(rows)
        summary.end()
        return summary


def stacked(parts: Sequence[Any]) -> Any:
    """Parts of a table, dense or csr, one below the other."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def _learn_number(estimator: Any, features: int, reset: bool) -> None:
    """Set the number of features of an estimator whose samples come in blocks without names, or compare it."""
    if estimator is None:
        return
    if reset:
        estimator.n_features_in_ = features
    elif features != estimator.n_features_in_:
        raise ValueError(
            f"X has {features} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
