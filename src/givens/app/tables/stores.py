"""Stores that a Dask cluster reads in chunks: zarr, Parquet (a file or a folder of files) and .h5ad.

Every chunk is read where it is needed, by whichever worker; how samples are cut into chunks depends on the store only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from givens.app.tables.arrays import (
    as_numbers,
    checked_sparse,
    h5ad_labels,
    h5ad_names,
    open_h5ad,
    open_parquet,
    parquet_columns,
    parquet_numbers,
    parquet_words,
    reading,
)
from givens.app.tables.chunks import refuse_variables
from givens.app.tables.layout import MOST_FIELDS
from givens.app.tables.sources import NOUNS, find_format
from givens.app.tables.table import DataError, OptionError, check_names, label_list, numbered
from givens.support.imports import require

CHUNK = 1 << 25  # bytes of the numbers of a chunk, if the store's own chunks or row groups are no larger
ZARR = ("zarr.json", ".zarray", ".zgroup")

Words = tuple[list[str], list[list[str]]]  # names of samples, and a list for each column of labels


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


def open_store(
    path: Path,
    *,
    samples: str | None = None,
    labels: Sequence[str] | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
    dense: bool = False,
) -> Store:
    """Open a store to read its rows, the samples, in chunks.

    Parameters
    ----------
    path : Path
        A zarr array, or a group that holds an array X, only one matrix, or an AnnData object; a Parquet file or a folder of such;
        .h5ad.
    samples, labels, names, drop
        As for `read_table`; samples have to be rows.
    dense : bool, default=False
        Make sparse chunks dense.

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
    if samples == "columns":
        raise OptionError("--cluster reads samples as rows: transpose the store, or leave --cluster out")
    path = path.absolute()
    wanted = label_list(labels)
    if path.is_dir() and any((path / name).is_file() for name in ZARR):
        store = _zarr(path, wanted, names, drop, dense)
    elif path.is_dir() and list(path.glob("*.parquet")):
        store = _parquet(sorted(path.glob("*.parquet"), key=_natural), wanted, names, drop, samples)
    else:
        kind = _kind(path)
        if kind == "parquet":
            store = _parquet([path], wanted, names, drop, samples)
        else:
            store = _h5ad(path, wanted, names, drop, dense)
    check_names(store.variables, "column")
    store.label_names = wanted
    if 0 in store.X.shape:
        raise DataError(f"{path.name} holds {' x '.join(map(str, store.X.shape))} numbers: nothing to do")
    return store


def _kind(path: Path) -> str:
    """The format of a file, if it can be read in chunks."""
    advice = "save it as zarr, Parquet or .h5ad, or leave --cluster out"
    if path.is_dir():
        raise DataError(
            f"{path} is a folder without zarr arrays or .parquet files, which --cluster reads in chunks"
        )
    kind = find_format(path)
    if kind not in ("parquet", "h5ad"):
        raise DataError(f"{path.name} is {NOUNS[kind]}, which --cluster cannot read in chunks: {advice}")
    return kind


def _natural(path: Path) -> list[Any]:
    """Sort part.2 before part.10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _chunked(rows: Any, lengths: int | tuple[int, ...], name: str, dense: bool) -> Any:
    """A dask array of an object that reads its rows."""
    array = require("dask.array", extra="dask")
    found = array.from_array(
        rows,
        chunks=(lengths, rows.shape[1]),
        name=f"{name}-{require('dask.base', extra='dask').tokenize(vars(rows), lengths)}",
        asarray=False,
        inline_array=True,
        meta=sparse.csr_matrix((0, 0), dtype=rows.dtype) if rows.sparse else np.empty((0, 0), rows.dtype),
    )
    if dense and rows.sparse:
        found = found.map_blocks(_toarray, dtype=rows.dtype, meta=np.empty((0, 0), rows.dtype))
    return found


def _toarray(block: Any) -> np.ndarray:
    return block.toarray()


# AnnData: .h5ad and zarr.


class MatrixRows:
    """The rows of X in an HDF5 file or a zarr group, dense or compressed by rows: a reader that workers get a copy of."""

    ndim = 2

    def __init__(self, path: Path, key: str | None, matrix: Any) -> None:
        self.path, self.key = str(path), key  # None for a zarr array outside any group
        self.kind = str(matrix.attrs.get("encoding-type", "array")).removesuffix("_matrix")
        self.sparse = self.kind in ("csr", "csc")
        if self.kind == "csc":
            raise DataError(
                f"{path.name} is stored column by column (csc), and all of it would have to be read for a few rows; "
                "save X as csr for --cluster"
            )
        if self.sparse:
            self.entries = int(matrix["data"].shape[0])
            self.shape = tuple(int(length) for length in matrix.attrs["shape"])
            stored = matrix["data"].dtype
        else:
            self.shape, stored = matrix.shape, matrix.dtype
            self.entries = int(np.prod(self.shape))
        self.name = key or "the array"
        self.dtype = as_numbers(np.empty((0,) * len(self.shape), stored), path, self.name).dtype

    def __getitem__(self, places: tuple[slice, slice]) -> Any:
        """Some rows; all columns."""
        path = Path(self.path)
        first, last = places[0].start or 0, places[0].stop
        with reading(path, "zarr" if path.is_dir() else ".h5ad"), _opened(path) as opened:
            matrix = opened if self.key is None else opened[self.key]
            if not self.sparse:
                return as_numbers(np.asarray(matrix[first:last]), path, self.name)
            starts = np.asarray(matrix["indptr"][first : last + 1])
            part = slice(int(starts[0]), int(starts[-1]))
            content = (
                np.asarray(matrix["data"][part]),
                np.asarray(matrix["indices"][part]),
                starts - starts[0],
            )
            rows = sparse.csr_matrix(content, shape=(last - first, self.shape[1]))
        return as_numbers(checked_sparse(rows, path), path, self.name)

    def length(self, dense: bool) -> int:
        """Samples of a chunk."""
        width = 8 * self.shape[1] if dense or not self.sparse else 12 * self.entries / max(1, self.shape[0])
        return max(1, min(int(CHUNK / max(1, width)), self.shape[0]))


def _opened(path: Path) -> Any:
    """An HDF5 file, or a zarr group, which has the same methods; to be used in a `with` statement."""
    if path.is_dir():
        return nullcontext(require("zarr", extra="zarr").open(str(path), mode="r"))
    return require("h5py", extra="anndata").File(path, "r")


def _h5ad(path: Path, labels: list[str], names: str | None, drop: Sequence[str], dense: bool) -> Store:
    adata = open_h5ad(path, backed=True)
    try:
        with reading(path, ".h5ad"):
            return _annotated(path, adata, adata.file._file, labels, names, drop, dense)
    finally:
        adata.file.close()


def _annotated(
    path: Path,
    adata: Any,
    opened: Any,
    labels: list[str],
    names: str | None,
    drop: Sequence[str],
    dense: bool,
) -> Store:
    """The X of an AnnData object, whose small parts are in memory."""
    _no_columns(path, drop)
    if "X" not in opened:
        raise DataError(f"{path.name} has no X")
    notes: list[str] = []
    marks = [h5ad_labels(adata, label, path) for label in labels]
    variables = h5ad_names(adata, names, path, notes)
    samples = [str(name) for name in adata.obs_names]
    rows = MatrixRows(path, "X", opened["X"])
    if rows.shape != (len(samples), len(variables)):
        raise DataError(
            f"{path.name}: X is {' x '.join(f'{length:,}' for length in rows.shape)}, and obs and var have {len(samples):,} and "
            f"{len(variables):,} names"
        )
    X = _chunked(rows, rows.length(dense), "annotated-rows", dense)
    return Store(
        X,
        variables,
        lambda first, last: (samples[first:last], [mark[first:last] for mark in marks]),
        notes=notes,
    )


def _no_columns(path: Path, drop: Sequence[str]) -> None:
    if drop:
        raise DataError(f"--drop is for Parquet; {path.name} has no columns that are not numbers")


def _zarr(path: Path, labels: list[str], names: str | None, drop: Sequence[str], dense: bool) -> Store:
    zarr = require("zarr", extra="zarr")
    with reading(path, "zarr"):
        opened = zarr.open(str(path), mode="r")
        if hasattr(opened, "dtype"):
            return _zarr_array(path, None, opened, labels, names, drop)
        if opened.attrs.get("encoding-type") == "anndata":
            anndata = require("anndata.io", extra="anndata")
            obs, var = (anndata.read_elem(opened[key]) for key in ("obs", "var"))
            adata = SimpleNamespace(obs=obs, var=var, obs_names=obs.index, var_names=var.index)
            return _annotated(path, adata, opened, labels, names, drop, dense)
        matrices = sorted(key for key, array in opened.arrays() if array.ndim == 2)
        key = "X" if "X" in matrices else (matrices[0] if len(matrices) == 1 else None)
        if key is None:
            raise DataError(
                f"{path.name} should hold one matrix, or one called 'X'; it holds {', '.join(matrices) or 'none'}"
            )
        return _zarr_array(path, key, opened[key], labels, names, drop)


def _zarr_array(
    path: Path, key: str | None, matrix: Any, labels: list[str], names: str | None, drop: Sequence[str]
) -> Store:
    _no_columns(path, drop)
    for option, wanted in (("--labels", labels[0] if labels else None), ("--names", names)):
        if wanted is not None:
            raise DataError(f"{path.name} holds numbers only, so {option} {wanted} finds nothing")
    rows = MatrixRows(path, key, matrix)
    if rows.shape[1] > MOST_FIELDS:
        raise DataError(
            f"{path.name} has {rows.shape[1]:,} columns, more than the {MOST_FIELDS:,} that are read"
        )
    length = matrix.chunks[0]
    length *= max(1, CHUNK // (length * 8 * max(1, rows.shape[1])))
    X = _chunked(rows, min(length, max(1, rows.shape[0])), "zarr-rows", False)
    return Store(
        X,
        numbered("variable", rows.shape[1]),
        lambda first, last: (numbered("sample", last - first, first + 1), []),
    )


# Parquet.


class RowGroups:
    """The numbers in the rows of Parquet files, one after the other, which are read by whole row groups."""

    ndim, sparse, dtype = 2, False, np.dtype(np.float64)

    def __init__(self, paths: list[Path], titles: list[str]) -> None:
        self.paths, self.titles = [str(path) for path in paths], titles
        self.groups: list[tuple[int, int]] = []
        self.edges = [0]
        for number, path in enumerate(paths):
            meta = open_parquet(path).metadata
            for group in range(meta.num_row_groups):
                self.groups.append((number, group))
                self.edges.append(self.edges[-1] + meta.row_group(group).num_rows)
        self.shape = (self.edges[-1], len(titles))

    def tables(self, first: int, last: int, titles: list[str]) -> Any:
        """Some rows of some columns, as Arrow's tables."""
        for place in range(bisect_right(self.edges, first) - 1, len(self.groups)):
            start, end = self.edges[place : place + 2]
            if start >= last:
                return
            number, group = self.groups[place]
            path = Path(self.paths[number])
            with reading(path, "Parquet"):
                table = open_parquet(path).read_row_group(group, columns=titles)
            yield table.slice(max(first - start, 0), min(last, end) - max(first, start))

    def __getitem__(self, places: tuple[slice, slice]) -> np.ndarray:
        """Some rows; all columns."""
        first, last = places[0].start or 0, places[0].stop
        values = np.empty((last - first, len(self.titles)))
        at = 0
        for table in self.tables(first, last, self.titles):
            for k, title in enumerate(self.titles):
                values[at : at + len(table), k] = parquet_numbers(table.column(title))
            at += len(table)
        return values

    def lengths(self) -> tuple[int, ...]:
        """Samples of each chunk: of as many row groups as make CHUNK bytes, but one at least."""
        most = max(1, CHUNK // (8 * len(self.titles)))
        found: list[int] = []
        for start, end in zip(self.edges, self.edges[1:]):
            if found and found[-1] + end - start <= most:
                found[-1] += end - start
            elif end > start:
                found.append(end - start)
        return tuple(found) or (0,)


def _parquet(
    paths: list[Path], labels: list[str], names: str | None, drop: Sequence[str], samples: str | None
) -> Store:
    file = open_parquet(paths[0])
    columns = parquet_columns(file, paths[0], labels, names, drop)
    titles: list[str] = list(file.schema_arrow.names)
    for path in paths[1:]:
        if list(open_parquet(path).schema_arrow.names) != titles:
            raise DataError(
                f"{path.name} has other columns than {paths[0].name}, in one folder of Parquet files"
            )
    rows = RowGroups(paths, [titles[k] for k in columns.numbers])
    name = None if columns.names is None else titles[columns.names]
    corner = name if name is not None and not name.startswith("__index_level_") else ""
    if samples is None and not labels:
        refuse_variables(corner, name is not None, rows.shape, "--cluster")
    asked = [*([] if name is None else [name]), *labels]

    def words(first: int, last: int) -> Words:
        texts: dict[str, list[str]] = {title: [] for title in asked}
        for table in rows.tables(first, last, asked) if asked else ():
            for title in asked:
                texts[title] += parquet_words(table.column(title), paths[0])
        return numbered("sample", last - first, first + 1) if name is None else texts[name], [
            texts[label] for label in labels
        ]

    X = _chunked(rows, rows.lengths(), "parquet-rows", False)
    return Store(X, rows.titles, words, notes=columns.notes)
