"""Rows of anything that holds them: in memory, on disk, or still to come.

Arrays, memory maps, scipy.sparse matrices, data sets of HDF5 and zarr, AnnData (also backed), dask arrays, and
iterables of rows or of batches: all of them are read a few megabytes at a time, in order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["batches", "in_memory", "length"]

CHUNK = 1 << 22  # bytes of numbers read at a time


def in_memory(X: Any) -> bool:
    """Whether X is a table in memory (an array, nested lists, a data frame, a sparse matrix), to be checked as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rows import in_memory
    >>> in_memory(np.ones((3, 2))), in_memory([[1, 2], [3, 4]]), in_memory(iter([np.ones((3, 2))]))
    (True, True, False)
    """
    if isinstance(X, (str, bytes, os.PathLike)):
        raise TypeError(
            f"X must be rows, not the name of a file, got {X!r}: open it first, for example with np.load(path, mmap_mode='r')"
        )
    if isinstance(X, (list, tuple)):
        return not len(X) or getattr(X[0], "ndim", 0) != 2
    if isinstance(X, np.ndarray):
        return not isinstance(X, np.memmap)
    if sparse.issparse(X) or hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return True
    if isinstance(X, dict) or not hasattr(X, "__iter__"):
        return not (_is_anndata(X) or _is_sliceable(X))
    # Arrays of other libraries; but a data set on disk, or a dask array, is not in memory.
    return hasattr(X, "__array__") and not (_is_dask(X) or _is_anndata(X) or _is_stored(X))


def length(X: Any) -> int | None:
    """How many rows there are, if that is known before reading them."""
    if _is_anndata(X) or hasattr(X, "shape"):
        rows = X.shape[0]
        return None if rows != rows else int(rows)  # dask says NaN where it does not know
    if isinstance(X, (list, tuple)):
        return sum(1 if np.ndim(rows) == 1 else rows.shape[0] for rows in X)
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
    >>> from givens.rows import batches
    >>> [batch.shape for batch in batches(iter([np.ones((2, 3)), np.ones(3)]))]
    [(2, 3), (1, 3)]
    """
    if _is_anndata(X):
        X = X.X
    if _is_dask(X):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        for number in range(X.numblocks[0]):
            yield X.blocks[number].compute()
    elif sparse.issparse(X):
        yield from _slices(sparse.csr_matrix(X))
    elif _is_sliceable(X):
        yield from _slices(X)
    elif hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
        for rows in X:
            yield rows if sparse.issparse(rows) or np.ndim(rows) != 1 else np.asarray(rows)[None]
    else:
        raise TypeError(
            f"X must be a table, or yield rows or batches of rows: {type(X).__name__} is neither of these"
        )


def _slices(X: Any) -> Iterator[Any]:
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, samples and features, got {len(X.shape)}")
    step = max(1, CHUNK // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        yield part if sparse.issparse(part) else np.array(part)


def _is_dask(X: Any) -> bool:
    return hasattr(X, "dask") and hasattr(X, "blocks")


def _is_anndata(X: Any) -> bool:
    return hasattr(X, "obs_names") and hasattr(X, "X")


def _is_sliceable(X: Any) -> bool:
    return hasattr(X, "shape") and hasattr(X, "__getitem__")


def _is_stored(X: Any) -> bool:
    """HDF5 and zarr: arrays that live in a file or a store."""
    return _is_sliceable(X) and (hasattr(X, "chunks") or hasattr(X, "store") or hasattr(X, "file"))
