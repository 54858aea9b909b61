"""Samples, wherever they lie, checked at the door, and one method that sums over them.

A table in memory is one block. Memory maps, data sets of HDF5 and zarr, AnnData (also backed), and iterables of rows or of
batches are read a few megabytes at a time, in order; a data set that is stored in chunks is read by whole rows of chunks, so
that no chunk is decompressed twice. The chunks of a dask array or data frame stay where they are. `Rows.total` adds up a
`Summary` over all of them: in memory, in a loop over blocks, or in a tree of Dask tasks. What an estimator asks of its samples
is an object, such as `Numbers`, which is sent to the workers, so that every block is checked by the same lines.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import tee
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from givens.data.missing import missing_explained
from givens.data.passes import DaskRows, Summary
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from givens.support.arguments import Samples, is_dask
from givens.support.fitting import check_array, finite_or_missing, validate_data
from givens.support.progress import counting

Kind = TypeVar("Kind", bound=Summary)

READ_BYTES = 1 << 22  # bytes of numbers read at a time
MOST_READ_BYTES = 1 << 28  # bytes, where a row of the store's own chunks is larger


@dataclass(frozen=True)
class Numbers:
    """Finite numbers, float64 or float32, contiguous by rows, so that no bit depends on the layout of the samples.

    Parameters
    ----------
    sparse : bool, default=False
        Whether rows may be sparse; they are then csr matrices.
    most_rows : int, optional
        How many rows a summary gets at a time, at most.
    least_rows : int, default=1
        How many rows a table in memory has, at least.
    as_given : bool, default=False
        Whether a table in memory keeps its layout, which saves a copy where sums do not depend on it.
    missing : str or None or False, default=False
        How the estimator estimates missing values, which are then let through; None: it does not, but could, so that an error
        says how. False: it cannot.
    """

    sparse: bool = False
    most_rows: int | None = None
    least_rows: int = 1
    as_given: bool = False
    missing: str | bool | None = False

    def table(self, estimator: BaseEstimator | None, X: Samples, reset: bool) -> Any:
        """A table in memory; the estimator learns, or compares, the number and the names of its features."""
        options = self._options(X) | {"ensure_min_samples": self.least_rows}
        if self.as_given:
            options["order"] = None
        with self._missing_explained(X, "X"):
            if estimator is None:
                return check_array(X, **options)
            return validate_data(estimator, X, reset=reset, **options)

    def block(self, X: Samples, name: str, first: int) -> Any:
        """One block of rows, which begins at row `first`; it may be empty."""
        if _is_as_asked(X):
            return X
        with self._missing_explained(X, name):
            return check_array(X, ensure_min_samples=0, input_name=name, **self._options(X))

    def piece(self, rows: Any) -> Any:
        """Checked rows in the form that summaries add."""
        return rows

    def _options(self, X: Samples) -> dict[str, Any]:
        formats = "csr" if self.sparse else False
        finite = finite_or_missing(X, bool(self.missing))
        types = [np.float64, np.float32]
        return {"accept_sparse": formats, "dtype": types, "order": "C", "ensure_all_finite": finite}

    @contextmanager
    def _missing_explained(self, X: Samples, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            if self.missing is not None:
                raise
            raise missing_explained(error, X, name) from None


def _is_as_asked(X: Samples) -> bool:
    """Whether scikit-learn would return X itself: told at a tenth of the time of its check, as every pass checks every block."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32) and X.size
    if not plain or not X.flags.c_contiguous:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


@dataclass(frozen=True)
class Door:
    """What every block has to pass: the check, and the number of features. It is sent to the workers."""

    check: Any
    features: int | None = None

    def checked(self, block: Any, number: int, first: int) -> Any:
        """A block of rows, which begins at row `first`, after its checks."""
        name = f"chunk {number} of X"
        try:
            rows = self.check.block(block, name, first)
        except (TypeError, ValueError) as error:
            text = " ".join(str(error).split())
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(text if name in text else f"{name}: {text}") from error
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
    """Samples that are checked, and can be read repeatedly; those of an iterator only once.

    Parameters
    ----------
    X : array-like of shape (n, d), or any other source of rows
        A memory map or a data set on disk, a list of arrays, an object of your own whose `__iter__` starts anew, or a dask array
        or data frame, whose chunks stay where they are. An iterator, which yields its rows once, is refused unless `once`.
    estimator : estimator, optional
        Gets the number of features, and their names if X has any.
    check : Numbers, or an object with the same methods
        What every block has to be.
    reset : bool, default=True
        Set the features of the estimator; otherwise X must have those that it knows.
    once : bool, default=False
        Whether the rows are read in one pass only.

    Attributes
    ----------
    n_features : int
    chunks : DaskRows or None
        The rows, if they are those of a dask array or data frame.
    table : array, sparse matrix or None
        The checked rows, if they are in memory.
    samples : int or None
        Their number, if it is known before a pass: not of rows that are read block by block.
    dtype : type
        Of a table, or of the first of several blocks: float32 or float64.
    """

    def __init__(
        self,
        X: Samples,
        estimator: BaseEstimator | None = None,
        check: Any = Numbers(),
        *,
        reset: bool = True,
        once: bool = False,
    ) -> None:
        if hasattr(X, "__next__") and not once:
            raise TypeError(
                "X yields its rows only once, and fit goes through them more than once: pass a list of arrays, "
                "an object whose __iter__ starts anew, or give the batches to partial_fit"
            )
        self.source, self.table, self.chunks = X, None, None
        self.names: Any = None
        self.door = Door(check)
        if is_dask(X):
            self.chunks = DaskRows(X)
            first = self.chunks.X
            _learn_features(estimator, first.shape[1], reset, getattr(X, "columns", None))
        elif in_memory(X):
            first = self.table = check.table(estimator, X, reset)
        else:
            if hasattr(X, "__next__"):
                self.source, X = tee(X)
            first = next(self._blocks(), None)
            if first is None:
                raise ValueError("X yields no rows")
            self.source = X
            _learn_features(estimator, first.shape[1], reset, self.names)
        self.n_features = int(first.shape[1])
        self.dtype: type[np.floating] = np.float32 if first.dtype == np.float32 else np.float64
        self.samples = None if self.chunks is None and self.table is None else int(first.shape[0])
        self.door = Door(check, self.n_features)

    def __iter__(self) -> Generator[Any]:
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
            names = getattr(block, "columns", None)
            self.names = names if self.names is None else self.names
            if names is not None and list(names) != list(self.names):
                raise ValueError(f"chunk {number} of X has other feature names than the first")
            first += rows.shape[0]
            if rows.shape[0]:
                yield rows

    @property
    def parts(self) -> int:
        """Number of chunks on Dask; a table in memory is one."""
        return 1 if self.chunks is None else self.chunks.X.numblocks[0]

    def matrix(self, name: str) -> Any:
        """All rows as one table in memory, for what cannot be summed over blocks; `name` says what that is.

        A table is returned without a copy; rows that are read in blocks are read into memory, and those on Dask are refused.
        """
        if self.chunks is not None:
            raise ValueError(
                f"{name} needs all samples in memory: leave it out with a dask array, or pass X.compute()"
            )
        if self.table is not None:
            return self.table
        if isinstance(self.source, np.ndarray):
            return self.door.check.table(None, self.source, False)
        return stacked(list(self._blocks()))

    def unit(self) -> float:
        """A power of two by which rows are multiplied, so that those of the size of the first rows are near 1."""
        return unit_of(self.head(256))

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
        pieces = iter(self) if self.table is not None else counting(self, length(self.source))
        with closing(pieces):  # or the traceback of an error would hold the bar
            for rows in pieces:
                summary.add(rows)
        summary.end()
        return summary


def stacked(parts: Sequence[Any]) -> Any:
    """Parts of a table, dense or csr, one below the other."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def _learn_features(estimator: Any, number: int, reset: bool, names: Any = None) -> None:
    """Set the number and the names of an estimator's features, or compare them, as scikit-learn does for a table in memory."""
    if estimator is None:
        return
    names = None if names is None else np.asarray(names, dtype=object)
    if reset:
        estimator.n_features_in_ = number
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = names
        return
    if number != estimator.n_features_in_:
        raise ValueError(
            f"X has {number} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    known = getattr(estimator, "feature_names_in_", names)
    if names is not None and list(known) != list(names):
        raise ValueError("the feature names of X differ from those that were seen when the fit began")


def in_memory(X: Samples) -> bool:
    """Whether X is a table in memory (an array, nested lists, a data frame, a sparse matrix), to be checked as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.rows import in_memory
    >>> in_memory(np.ones((3, 2))), in_memory([[1, 2], [3, 4]]), in_memory(iter([np.ones((3, 2))]))
    (True, True, False)
    """
    if isinstance(X, (list, tuple)):
        return not len(X) or _dimensions(X[0]) != 2
    if isinstance(X, np.ndarray):
        return not isinstance(X, np.memmap)
    if is_dask(X):
        return False
    if sparse.issparse(X) or hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return True
    _refuse_without_rows(X)
    if not hasattr(X, "__iter__"):
        return not (_is_anndata(X) or _is_sliceable(X))
    # Arrays of other libraries; but a data set on disk, or a dask array, is not in memory.
    return hasattr(X, "__array__") and not (_is_anndata(X) or _is_stored(X))


def _refuse_without_rows(X: Samples) -> None:
    """Refuse the name of a file, several arrays, and a query that is not computed yet."""
    if isinstance(X, (str, bytes, os.PathLike)):
        raise TypeError(
            f"X must be rows, not the name of a file, got {X!r}: open it first, for example with np.load(path, mmap_mode='r')"
        )
    if hasattr(X, "keys"):
        raise TypeError(
            f"X must be rows, not a {type(X).__name__} of several arrays: pass one of them, as in X[name]"
        )
    if hasattr(X, "collect"):
        raise TypeError(f"X must be rows, and a {type(X).__name__} has none yet: pass X.collect()")


def one_batch(X: Samples) -> None:
    """Refuse what is not one batch of rows but holds, or yields, many."""
    if in_memory(X) or (hasattr(X, "__array__") and not _is_anndata(X)):
        return
    raise TypeError(
        f"partial_fit takes one batch of rows (an array, data frame or sparse matrix), not a {type(X).__name__}: give "
        "it to fit, or each of its batches to partial_fit"
    )


def length(X: Samples) -> int | None:
    """How many rows there are, if that is known before reading them."""
    if is_dask(X) and not hasattr(X, "numblocks"):
        return None  # a data frame, whose partitions have to be counted
    if hasattr(X, "shape"):
        rows = X.shape[0] if X.shape else 0
        return None if rows != rows else int(rows)  # dask says NaN where it does not know
    if isinstance(X, (list, tuple)):
        if in_memory(X):
            return len(X)
        return sum(
            1 if np.ndim(rows) == 1 else rows.shape[0] if hasattr(rows, "shape") else len(rows) for rows in X
        )
    return None


def batches(X: Samples) -> Iterator[Any]:
    """Yield the rows of X in order, as matrices of some rows each, dense or sparse.

    Parameters
    ----------
    X : see the module
        What an iterable yields is passed on as it is, a single row as a matrix of one row.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.rows import batches
    >>> [batch.shape for batch in batches(iter([np.ones((2, 3)), np.ones(3)]))]
    [(2, 3), (1, 3)]
    """
    if _is_anndata(X):
        X = X.X
        if X is None:
            raise ValueError("the AnnData object has no X: pass one of its layers, as in adata.layers[name]")
    if is_dask(X):
        yield from _blocks(X)
    elif sparse.issparse(X):
        yield from _slices(sparse.csr_matrix(X))
    elif _is_sliceable(X):
        yield from _slices(X)
    elif hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
        for number, rows in enumerate(X):
            yield _matrix(rows, number)
    else:
        raise TypeError(
            f"X must be a table, or yield rows or batches of rows: {type(X).__name__} is neither of these"
        )


def _matrix(rows: Any, number: int) -> Any:
    """What an iterable yields, a single row as a matrix of one row."""
    if isinstance(rows, (list, tuple)):
        dimensions = [_dimensions(part) for part in rows[:2]]
        if dimensions and (max(dimensions) > 1 or min(dimensions) < max(dimensions)):
            raise TypeError(
                f"batch {number} of X is a {type(rows).__name__} of {len(rows)}, not a matrix of rows: yield the rows alone, "
                "as in (rows for rows, *others in X)"
            )
    if sparse.issparse(rows):
        return rows if rows.ndim == 2 else rows.reshape((1, -1))
    return np.asarray(rows)[None] if _dimensions(rows) == 1 else rows


def _dimensions(rows: Any) -> int:
    """How many dimensions an array, or nested lists, have; 0 if the lists are of different lengths."""
    try:
        return np.ndim(rows)
    except ValueError:
        return 0


def _blocks(X: Samples) -> Iterator[Any]:
    """The blocks of a dask array or data frame, without those that a selection has left empty."""
    if not hasattr(X, "numblocks"):
        parts = (X.partitions[number] for number in range(X.npartitions))
    else:
        _two_dimensions(X)
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts = (X.blocks[number] for number in range(X.numblocks[0]))
    for part in parts:
        block = part.compute()
        if block.shape[0]:
            yield block


def _slices(X: Samples) -> Iterator[Any]:
    _two_dimensions(X)
    if getattr(X, "format", None) == "csc" and not sparse.issparse(X):
        raise ValueError(
            "X is stored by columns (csc), and all of it would have to be read for a few rows: save it as csr, or pass "
            "X.to_memory() if it fits into memory"
        )
    step = _step(X)
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        yield part if sparse.issparse(part) else np.array(part)


def _two_dimensions(X: Samples) -> None:
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, samples and features, got {len(X.shape)}")


def _step(X: Samples) -> int:
    """How many rows to read at a time: a few megabytes of them, in whole chunks where the rows are stored in chunks."""
    row = 8 * max(1, X.shape[1])
    step = max(1, READ_BYTES // row)
    chunks = getattr(X, "chunks", None)
    together = int(chunks[0]) if chunks else 1
    if together > step:
        return min(together, max(step, MOST_READ_BYTES // row))
    return step - step % together


def _is_anndata(X: Samples) -> bool:
    return hasattr(X, "obs_names") and hasattr(X, "X")


def _is_sliceable(X: Samples) -> bool:
    return hasattr(X, "shape") and hasattr(X, "__getitem__")


def _is_stored(X: Samples) -> bool:
    """Whether X is an array of HDF5 or zarr, in a file or a store."""
    return _is_sliceable(X) and (hasattr(X, "chunks") or hasattr(X, "store") or hasattr(X, "file"))
