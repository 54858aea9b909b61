"""Methods of fitted estimators on dask arrays: the result is a dask array of the same chunks, not computed yet."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from givens.cluster.graph import refuse_foreign_workers
from givens.support.extras import require


def applied(model: Any, method: str, X: Any, columns: int | None, dtype: Any = None) -> Any:
    """Call a method of an estimator on every chunk; return the results as a dask array.

    Parameters
    ----------
    model : estimator
        Sent to the workers once. Each call there uses one thread.
    method : str
        The name of a method that takes rows and returns as many rows, or a vector of as many entries.
    X : dask array or data frame
        Lengths of chunks may be unknown.
    columns : int or None
        Number of columns that the method returns; None for a vector.
    dtype : dtype, optional
        Type of the results. By default single precision if X is, else double.
    """
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
    label = f"{type(model).__name__.lower()}-{method}".replace("_", "-")
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
