"""Documents as word counts, checked and summed some at a time.

Sums over documents are computed in blocks of `BLOCK_DOCUMENTS`, so the number of threads does not change the order of any sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from givens.data.passes import Summary
from givens.numerics import parallel
from givens.support.fitting import check_array, validate_data

BLOCK_DOCUMENTS = 256
"""Number of documents in a block, whose sum one thread computes."""

CHUNK_DOCUMENTS = 16 * BLOCK_DOCUMENTS
"""Number of documents that are held in memory at once, in addition to the data."""

_LARGEST = 2.0**53


class Counts(NamedTuple):
    """Documents as compressed sparse rows, in the types that compiled code expects."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of words of each document."""
        return np.add.reduceat(np.append(self.data, 0.0), self.indptr[:-1]) * (np.diff(self.indptr) > 0)

    @property
    def blocks(self) -> list[slice]:
        """Slices of BLOCK_DOCUMENTS documents."""
        return parallel.slices(self.size, BLOCK_DOCUMENTS)

    @classmethod
    def of(cls, rows: sparse.csr_matrix) -> Counts:
        """The counts of a sparse matrix; arrays are copied only if their type differs."""
        return cls(
            np.ascontiguousarray(rows.data, dtype=np.float64),
            np.ascontiguousarray(rows.indices, dtype=np.int32),
            np.ascontiguousarray(rows.indptr, dtype=np.int64),
        )


@dataclass(frozen=True)
class WordCounts:
    """Documents by rows, as `Rows` checks them: counts, dense or sparse, that become csr matrices.

    Parameters
    ----------
    whole : bool
        Refuse counts that are not whole numbers.
    """

    whole: bool
    most_rows = CHUNK_DOCUMENTS

    def table(self, estimator: BaseEstimator | None, X: Any, reset: bool) -> sparse.csr_matrix:
        """A table of counts in memory as a sparse matrix; the estimator learns, or compares, its words."""
        refuse_text(X)
        if estimator is None:
            return self.block(X, "X", 0)
        rows = as_sparse(validate_data(estimator, X, accept_sparse="csr", reset=reset))
        refuse_bad_counts(rows, whole=self.whole)
        return rows

    def block(self, X: Any, name: str, first: int) -> sparse.csr_matrix:
        """A block of documents, which begins at number `first`, as a sparse matrix."""
        rows = as_sparse(check_array(X, accept_sparse="csr", ensure_min_samples=0, input_name=name))
        refuse_bad_counts(rows, whole=self.whole, first=first)
        return rows

    def piece(self, rows: sparse.csr_matrix) -> Counts:
        """Documents in the types that compiled code expects."""
        return Counts.of(rows)


class EmptyDocuments(Summary):
    """How many documents have no words, and the number of the first such document."""

    def __init__(self) -> None:
        self.next, self.number, self.first = 0, 0, -1

    def begin(self, first: int) -> Self:
        """An empty summary of the documents from number `first` on."""
        other = type(self)()
        other.next = first
        return other

    def add(self, counts: Counts) -> None:
        """Add documents."""
        empty = np.flatnonzero(counts.lengths == 0)
        if len(empty) and not self.number:
            self.first = self.next + int(empty[0])
        self.number += len(empty)
        self.next += counts.size

    def merge(self, other: Self) -> None:
        """Add the summary of the documents that follow."""
        self.first = self.first if self.number else other.first
        self.number, self.next = self.number + other.number, other.next


def refuse_text(X: Any) -> None:
    """Refuse documents that are text, and not counts."""
    first = X
    for _ in range(2):
        listed = isinstance(first, (list, tuple)) or (isinstance(first, np.ndarray) and first.ndim > 0)
        if listed and len(first):
            first = first[0]
        elif hasattr(first, "iloc") and len(first):
            first = first.iloc[0]
    if isinstance(first, (str, bytes)):
        raise ValueError(
            f"X holds text ({str(first)[:30]!r}), not counts: count the words first, "
            "as with sklearn.feature_extraction.text.CountVectorizer().fit_transform(X)"
        )


def as_sparse(table: Any) -> sparse.csr_matrix:
    """A table as a sparse matrix, of a type that SciPy's have: not half precision, nor the other byte order."""
    kind = np.dtype(np.float32) if table.dtype == np.float16 else table.dtype.newbyteorder("=")
    return sparse.csr_matrix(table.astype(kind, copy=False))


def refuse_bad_counts(rows: sparse.csr_matrix, *, whole: bool, first: int = 0) -> None:
    """Refuse negative, too large and fractional counts; the error names the place of the first."""
    data = rows.data
    if not len(data):
        return
    if data.min() < 0:
        raise ValueError(f"Negative values in data: X must hold counts, but {_place(rows, data < 0, first)}")
    if data.max() > _LARGEST:
        raise ValueError(
            f"X must hold counts up to 2^53, beyond which floats skip numbers, but {_place(rows, data > _LARGEST, first)}"
        )
    if whole and data.dtype.kind == "f" and np.any(fractional := data != np.floor(data)):
        raise ValueError(
            f"X must hold whole counts, not weights such as tf-idf, but {_place(rows, fractional, first)}; "
            "pass the counts themselves, or counts='any' to accept them"
        )


def _place(rows: sparse.csr_matrix, bad: np.ndarray, first: int) -> str:
    entry = int(np.argmax(bad))
    document = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
    return f"word {rows.indices[entry]} of document {first + document} has {rows.data[entry]:g}"
