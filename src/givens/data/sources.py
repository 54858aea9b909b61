"""Read rows in batches: from memory, from disk, or from an iterator.

Arrays, memory maps, scipy.sparse matrices, data sets of HDF5 and zarr, AnnData (also backed), dask arrays and data frames,
and iterables of rows or of batches: all of them are read a few megabytes at a time, in order. A data set that is stored
in chunks is read by whole rows of chunks, so that no chunk is decompressed twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from givens.support.arguments import is_dask

__all__ = ["batches", "in_memory", "length"]

READ_BYTES = 1 << 22  # bytes of numbers read at a time
MOST_READ_BYTES = 1 << 28  # bytes, where a row of the store's own chunks is larger


def in_memory(X: Any) -> bool:
    """Whether X is a table in memory (an array, nested lists, a data frame, a sparse matrix), to be checked as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.sources import in_memory
    >>> in_memory(np.ones((3, 2))), in_memory([[1, 2], [3, 4]]), in_memory(iter([np.ones((3, 2))]))
    (True, True, False)
    """
    if isinstance(X, (str, bytes, os.PathLike)):
        raise TypeError(
            f"X must be rows, not the name of a file, got {X!r}: open it first, for example with np.load(path, mmap_mode='r')"
        )
    if isinstance(X, (list, tuple)):
        return not len(X) or _dimensions(X[0]) != 2
    if isinstance(X, np.ndarray):
        return not isinstance(X, np.memmap)
    if is_dask(X):
        return False
    if sparse.issparse(X) or hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return True
    if hasattr(X, "keys"):
        raise TypeError(
            f"X must be rows, not a {type(X).__name__} of several arrays: pass one of them, as in X[name]"
        )
    if hasattr(X, "collect"):
        raise TypeError(f"X must be rows, and a {type(X).__name__} has none yet: pass X.collect()")
    if not hasattr(X, "__iter__"):
        return not (_is_anndata(X) or _is_sliceable(X))
    # Arrays of other libraries; but a data set on disk, or a dask array, is not in memory.
    return hasattr(X, "__array__") and not (_is_anndata(X) or _is_stored(X))


def one_batch(X: Any) -> None:
    """Refuse what is not one batch of rows but holds, or yields, many."""
    if in_memory(X) or (hasattr(X, "__array__") and not _is_anndata(X)):
        return
    raise TypeError(
        f"partial_fit takes one batch of rows (an array, data frame or sparse matrix), not a {type(X).__name__}: give "
        "it to fit, which goes on with the stream if warm_start=True"
    )


def length(X: Any) -> int | None:
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


def batches(X: Any) -> Iterator[Any]:
    """Yield the rows of X in order, as matrices of some rows each, dense or sparse.

    Parameters
    ----------
    X : see the module
        What an iterable yields is passed on as it is, a single row as a matrix of one row.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.sources import batches
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


def _blocks(X: Any) -> Iterator[Any]:
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


def _slices(X: Any) -> Iterator[Any]:
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


def _two_dimensions(X: Any) -> None:
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, samples and features, got {len(X.shape)}")


def _step(X: Any) -> int:
    """How many rows to read at a time: a few megabytes of them, in whole chunks where the rows are stored in chunks."""
    row = 8 * max(1, X.shape[1])
    step = max(1, READ_BYTES // row)
    chunks = getattr(X, "chunks", None)
    together = int(chunks[0]) if chunks else 1
    if together > step:
        return min(together, max(step, MOST_READ_BYTES // row))
    return step - step % together


def _is_anndata(X: Any) -> bool:
    return hasattr(X, "obs_names") and hasattr(X, "X")


def _is_sliceable(X: Any) -> bool:
    return hasattr(X, "shape") and hasattr(X, "__getitem__")


def _is_stored(X: Any) -> bool:
    """Whether X is an array of HDF5 or zarr, in a file or a store."""
    return _is_sliceable(X) and (hasattr(X, "chunks") or hasattr(X, "store") or hasattr(X, "file"))
