"""Documents as word counts: rows of non-negative numbers, as compressed sparse rows in the types that compiled code expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from givens.data.passes import TILE_ROWS
from givens.numerics import parallel
from givens.support.arguments import Samples
from givens.support.fitting import check_array, validate_data


class Counts(NamedTuple):
    """Documents as compressed sparse rows."""

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
        """Slices of documents, each for one thread; their length is fixed, so that threads do not change the order of any sum."""
        return parallel.slices(self.size, 256)

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
    most_rows = TILE_ROWS

    def table(self, estimator: BaseEstimator | None, X: Samples, reset: bool) -> sparse.csr_matrix:
        """A table of counts in memory as a sparse matrix; the estimator learns, or compares, its words."""
        refuse_text(X)
        if estimator is None:
            return self.block(X, "X", 0)
        return self._counts(validate_data(estimator, X, accept_sparse="csr", reset=reset), 0)

    def block(self, X: Samples, name: str, first: int) -> sparse.csr_matrix:
        """A block of documents, which begins at number `first`, as a sparse matrix."""
        # Every pass checks every block, for which scikit-learn takes longer than the sums over a small one.
        plain = type(X) is sparse.csr_matrix and X.dtype in (np.float64, np.int64) and X.shape[1] > 0
        if not (plain and X.has_canonical_format and np.isfinite(X.data.sum())):
            X = check_array(X, accept_sparse="csr", ensure_min_samples=0, input_name=name)
        return self._counts(X, first)

    def piece(self, rows: sparse.csr_matrix) -> Counts:
        """Documents in the types that compiled code expects."""
        return Counts.of(rows)

    def _counts(self, table: Any, first: int) -> sparse.csr_matrix:
        """A table as a sparse matrix; negative, too large and fractional counts are refused by an error that names the first."""
        rows = as_sparse(table)
        data = rows.data
        if data.min(initial=0) < 0:
            raise ValueError(
                f"Negative values in data: X must hold counts, but {_place(rows, data < 0, first)}"
            )
        if data.max(initial=0) > (most := 2.0**53):
            raise ValueError(
                f"X must hold counts up to 2^53, beyond which floats skip numbers, but {_place(rows, data > most, first)}"
            )
        if self.whole and data.dtype.kind == "f" and np.any(bad := data != np.floor(data)):
            raise ValueError(
                f"X must hold whole counts, not weights such as tf-idf, but {_place(rows, bad, first)}; "
                "pass the counts themselves, or counts='any' to accept them"
            )
        return rows


def refuse_text(X: Samples) -> None:
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


def _place(rows: sparse.csr_matrix, bad: np.ndarray, first: int) -> str:
    entry = int(np.argmax(bad))
    document = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
    return f"word {rows.indices[entry]} of document {first + document} has {rows.data[entry]:g}"
