"""AnnData, in HDF5 (.h5ad) or zarr, and plain arrays of zarr: a matrix whose rows are read where they are needed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from givens.app.tables.arrays import as_numbers, checked_sparse, reading, the_matrix
from givens.app.tables.hdf5 import walked
from givens.app.tables.layout import MOST_FIELDS
from givens.app.tables.table import Block, DataError, ReadingOptions, TableSource, listed, note_unique
from givens.support.imports import require


def opened(path: Path) -> Any:
    """An HDF5 file, or a zarr group, which has the same methods; to be used in a `with` statement."""
    if path.is_dir():
        return nullcontext(require("zarr", extra="zarr").open(str(path), mode="r"))
    return require("h5py", extra="anndata").File(path, "r")


class MatrixRows:
    """The rows of a matrix in an HDF5 file or in zarr, dense or sparse: a reader that workers get a copy of."""

    ndim = 2

    def __init__(self, path: Path, key: str | None, matrix: Any, by_rows: str) -> None:
        self.path, self.key = str(path), key  # None for a zarr array outside any group
        attributes = matrix.attrs
        # Under other names in files of anndata before 0.7.
        kind = attributes.get("encoding-type", attributes.get("h5sparse_format", "array"))
        self.kind = str(kind).removesuffix("_matrix")
        self.sparse = self.kind in ("csr", "csc")
        if self.kind == "csc" and by_rows:
            raise DataError(
                f"{path.name} is stored column by column (csc), and all of it would have to be read for a few rows; "
                f"save X as csr {'to stream it' if by_rows == '--stream' else f'for {by_rows}'}"
            )
        if self.sparse:
            shape = attributes["shape"] if "shape" in attributes else attributes["h5sparse_shape"]
            self.shape = tuple(int(length) for length in shape)
        else:
            self.shape = matrix.shape
        stored = matrix["data"] if self.sparse else matrix
        self.entries = int(np.prod(stored.shape))
        self.chunk = 1  # rows that are read together
        self.name = key or "the array"
        self.dtype = as_numbers(np.empty((0,) * len(self.shape), stored.dtype), path, self.name).dtype

    def __getitem__(self, places: tuple[slice, slice]) -> Any:
        """Some rows, or all of a matrix that is stored by columns; all columns."""
        path = Path(self.path)
        first, last = places[0].start or 0, places[0].stop
        with reading(path, "zarr" if path.is_dir() else ".h5ad"), opened(path) as group:
            matrix = group if self.key is None else group[self.key]
            if not self.sparse:
                return as_numbers(np.asarray(matrix[first:last]), path, self.name)
            by_columns = self.kind == "csc"
            starts = np.asarray(matrix["indptr"][:] if by_columns else matrix["indptr"][first : last + 1])
            part = slice(int(starts[0]), int(starts[-1]))
            content = (
                np.asarray(matrix["data"][part]),
                np.asarray(matrix["indices"][part]),
                starts - starts[0],
            )
            build = sparse.csc_matrix if by_columns else sparse.csr_matrix
            rows = build(content, shape=(last - first, self.shape[1]))
        return as_numbers(checked_sparse(rows, path), path, self.name)

    def lengths(self, most: int, dense: bool) -> int:
        """How many rows have about so many bytes: a multiple of those that zarr reads at a time."""
        width = 8 * self.shape[1] if dense or not self.sparse else 12 * self.entries / max(1, self.shape[0])
        several = max(1, int(most / max(1, width * self.chunk)))
        return max(1, min(several * self.chunk, self.shape[0]))


def matrix_source(rows: MatrixRows, words: Any = lambda first, last: ([], []), **facts: Any) -> TableSource:
    """Return the source of a matrix whose rows can be read."""

    def blocks(most: int) -> Iterator[Block]:
        total = rows.shape[0]
        step = rows.lengths(most, dense=True)
        for first in range(0, max(1, total), step):
            last = min(first + step, total)
            yield Block(rows[first:last, :], *words(first, last))

    return TableSource((rows.shape[0], rows.shape[1]), blocks, rows, words, **facts)


def h5ad_source(path: Path, options: ReadingOptions) -> TableSource:
    """Open an AnnData file: X, with obs as samples and var as variables."""
    with walked(path):
        anndata = require("anndata", extra="anndata")
    with reading(path, ".h5ad"), warnings.catch_warnings():
        # Names that stand twice are made unique, and that is noted.
        warnings.filterwarnings("ignore", message=".*names are not unique", category=UserWarning)
        adata = anndata.read_h5ad(path, backed="r")
        adata.file.close()
    with reading(path, ".h5ad"), opened(path) as group:
        return _annotated(path, adata, group, options)


def _annotated(path: Path, adata: Any, group: Any, options: ReadingOptions) -> TableSource:
    """The source of X of an AnnData object, whose small parts are in memory."""
    if "X" not in group:
        raise DataError(f"{path.name} has no X")
    rows = MatrixRows(path, "X", group["X"], options.by_rows)
    marks = []
    for label in options.labels:
        if label not in adata.obs:
            raise DataError(
                f"{path.name} has no '{label}' in obs; it has {listed(list(adata.obs.columns), 8)}"
            )
        marks.append([str(value) for value in adata.obs[label]])
    notes: list[str] = []
    variables, samples = (
        _variables(adata, options.names, path, notes),
        [str(name) for name in adata.obs_names],
    )
    if rows.shape != (len(samples), len(variables)):
        raise DataError(
            f"{path.name}: X is {' x '.join(f'{length:,}' for length in rows.shape)}, and obs and var have {len(samples):,} and "
            f"{len(variables):,} names"
        )
    return matrix_source(
        rows,
        lambda first, last: (samples[first:last], [mark[first:last] for mark in marks]),
        column_names=variables,
        samples="rows",
        notes=notes,
    )


def _variables(adata: Any, names: str | None, path: Path, notes: list[str]) -> list[str]:
    """Return the variables' names, unique, from the index of var or from a column of it."""
    if names is None:
        return note_unique([str(name) for name in adata.var_names], notes)
    if names not in adata.var:
        raise DataError(
            f"{path.name} has no '{names}' in var for --names; it has {listed(list(adata.var.columns), 8)}"
        )
    notes.append(f"took the variables' names from var's column '{names}'")
    return note_unique([str(name) for name in adata.var[names]], notes)


def zarr_source(path: Path, options: ReadingOptions) -> TableSource:
    """Open a zarr array, or a group that holds an array X, only one matrix, or an AnnData object."""
    zarr = require("zarr", extra="zarr")
    with reading(path, "zarr"):
        group = zarr.open(str(path), mode="r")
        key = None
        if not hasattr(group, "dtype"):
            if group.attrs.get("encoding-type") == "anndata":
                anndata = require("anndata.io", extra="anndata")
                obs, var = (anndata.read_elem(group[part]) for part in ("obs", "var"))
                adata = SimpleNamespace(obs=obs, var=var, obs_names=obs.index, var_names=var.index)
                return _annotated(path, adata, group, options)
            matrices = sorted(name for name, array in group.arrays() if array.ndim == 2)
            key = the_matrix(matrices)
            if key is None:
                raise DataError(
                    f"{path.name} should hold one matrix, or one called 'X'; it holds {', '.join(matrices) or 'none'}"
                )
        options.refuse_words(path.name)
        matrix = group if key is None else group[key]
        rows = MatrixRows(path, key, matrix, options.by_rows)
        if rows.shape[1] > MOST_FIELDS:
            raise DataError(
                f"{path.name} has {rows.shape[1]:,} columns, more than the {MOST_FIELDS:,} that are read"
            )
        rows.chunk = max(1, matrix.chunks[0])
        return matrix_source(rows)
