"""Stores that a Dask cluster reads in chunks: zarr, Parquet (a file or a folder of files) and .h5ad.

Every chunk is read where it is needed, by whichever worker; how samples are cut into chunks depends on the store only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from givens.app.tables.sources import open_source, store_format
from givens.app.tables.table import (
    DataError,
    ReadingOptions,
    TableSource,
    Words,
    check_names,
    numbered,
    refuse_variables,
)
from givens.support.imports import require

DEFAULT_CHUNK_BYTES = (
    1 << 25
)  # bytes of the numbers of a chunk, if the store's own chunks or row groups are no larger


@dataclass
class Store:
    """Samples in chunks.

    Attributes
    ----------
    X : dask array, samples x variables
        Its chunks are arrays, or csr matrices if the store is sparse.
    variables : list of str
    words : callable
        The names and labels of the samples from one number to another.
    """

    X: Any
    variables: list[str]
    words: Callable[[int, int], Words]
    label_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def open_store(path: Path, *, dense: bool = False, **options: Any) -> Store:
    """Open a store to read its rows, the samples, in chunks.

    Parameters
    ----------
    path : Path
        A zarr array, or a group that holds an array X, only one matrix, or an AnnData object; a Parquet file or a folder of such;
        .h5ad.
    dense : bool, default=False
        Make sparse chunks dense.
    **options
        As for `read_table`; samples have to be rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import zarr
    >>> from givens.app.tables.stores import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.zarr"
    ...     array = zarr.open(str(path), mode="w", shape=(5, 3), chunks=(2, 3), dtype="f8")
    ...     array[:] = 1.0
    ...     store = open_store(path)
    ...     store.X.shape, store.variables[:1], float(store.X.sum().compute())
    ((5, 3), ['variable 1'], 15.0)
    """
    chosen = ReadingOptions(**options, by_rows="--cluster")
    path = path.absolute()
    source = open_source(path, chosen, store_format(path))
    check_names(source.column_names, "column")
    if 0 in source.shape:
        raise DataError(f"{path.name} holds {' x '.join(map(str, source.shape))} numbers: nothing to do")
    if chosen.samples is None and not chosen.labels:
        refuse_variables(source, source.shape[0] or 0, "--cluster")

    def words(first: int, last: int) -> Words:
        names, labels = source.words(first, last) if source.words else ([], [])
        return names or numbered("sample", last - first, first + 1), labels

    return Store(_chunked(source, dense), source.variables, words, list(chosen.labels), source.notes)


def _chunked(source: TableSource, dense: bool) -> Any:
    """A dask array of an object that reads its rows."""
    array = require("dask.array", extra="dask")
    rows = source.rows
    lengths = rows.lengths(DEFAULT_CHUNK_BYTES, dense)
    found = array.from_array(
        rows,
        chunks=(lengths, rows.shape[1]),
        name=f"rows-{require('dask.base', extra='dask').tokenize(vars(rows), lengths)}",
        asarray=False,
        inline_array=True,
        meta=sparse.csr_matrix((0, 0), dtype=rows.dtype) if rows.sparse else np.empty((0, 0), rows.dtype),
    )
    if dense and rows.sparse:
        found = found.map_blocks(_toarray, dtype=rows.dtype, meta=np.empty((0, 0), rows.dtype))
    return found


def _toarray(block: Any) -> np.ndarray:
    return block.toarray()
