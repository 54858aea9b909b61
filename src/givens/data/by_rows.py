"""What a method of a fitted estimator says of each sample, wherever the samples lie."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from givens.data.passes import refuse_foreign_workers
from givens.data.rows import batches, in_memory, length
from givens.support.arguments import Samples, is_dask
from givens.support.imports import require


def by_rows(model: Any, method: str, X: Samples, columns: int | None, dtype: Any = None) -> Any:
    """Call a method of an estimator on all rows of X: at once if X is in memory, else block by block.

    Parameters
    ----------
    model : estimator
        Sent to the workers once. Each call there uses one thread.
    method : str
        The name of a method that takes a table and returns as many rows, or a vector of as many entries.
    X : any source of rows, see `data.rows`
        Of a dask array or data frame, whose chunks may have unknown lengths, the result is a dask array that is not computed yet.
    columns : int or None
        Number of columns that the method returns; None for a vector.
    dtype : dtype, optional
        Type of the results on Dask. By default single precision if X is, else double.
    """
    if is_dask(X):
        return _on_dask(model, method, X, columns, dtype)
    if in_memory(X):
        return getattr(model, method)(X)
    parts = [getattr(model, method)(batch) for batch in batches(X) if length(batch) != 0]
    if not parts:
        raise ValueError("X yields no rows; an iterator can be read only once, so pass a new one")
    return np.concatenate(parts)


def _on_dask(model: Any, method: str, X: Samples, columns: int | None, dtype: Any) -> Any:
    dask = require("dask", extra="dask")
    refuse_foreign_workers()
    if not hasattr(X, "numblocks"):
        X = X.to_dask_array()
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if dtype is None:
        dtype = np.float32 if X.dtype == np.float32 else np.float64
    alone = copy(model)
    alone.threads = 1
    alone.__dict__.pop("feature_names_in_", None)  # chunks have no names
    label = f"{type(model).__name__}-{method}".lower().replace("_", "-")
    shape: dict[str, Any] = {"chunks": (X.chunks[0],), "drop_axis": 1}
    if columns is not None:
        shape = {"chunks": (X.chunks[0], (columns,))}
    return X.map_blocks(
        _called,
        model=dask.delayed(alone, traverse=False),
        method=method,
        columns=columns,
        dtype=dtype,
        meta=np.empty((0,) * (1 if columns is None else 2), dtype=dtype),
        name=f"{label}-{dask.base.tokenize(alone, X)}",
        **shape,
    )


def _called(block: Any, model: Any, method: str, columns: int | None) -> Any:
    if not block.shape[0]:
        return np.empty(0 if columns is None else (0, columns))  # a selection may leave a chunk without rows
    return getattr(model, method)(block)
