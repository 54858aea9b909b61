"""Matrix Market files, dense or by coordinates, and the names of rows and columns in 10x Genomics' lists beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.io

from givens.app.tables.arrays import as_numbers, no_labels, reading
from givens.app.tables.leading import open_bytes, read_bytes, unpacking
from givens.app.tables.records import lines_of
from givens.app.tables.table import DataError, Grid, note_unique
from givens.app.tables.table import stem as words_stem


def read_matrix_market(path: Path, labels: Sequence[str], names: str | None = None) -> Grid:
    """Read a Matrix Market file, with the names of 10x Genomics' lists of genes and cells beside it.

    `names` is the column of the list of genes that names them: "id", "symbol" or a number from 1.
    """
    no_labels(path, labels)
    with reading(path, "Matrix Market"), unpacking(path):
        rows, columns, _, form, kind, symmetry = scipy.io.mminfo(path)
        if kind == "complex" or symmetry == "hermitian":
            raise DataError(
                f"{path.name} holds a {symmetry} matrix of {kind} numbers, and a table needs a real one"
            )
        if symmetry != "general" and rows != columns:  # SciPy would mirror entries out of the matrix
            raise DataError(f"{path.name} calls a matrix of {rows:,} x {columns:,} {symmetry}")
        values = scipy.io.mmread(path)
        values = values.tocsr() if form == "coordinate" else np.ascontiguousarray(values)
    grid = Grid(as_numbers(values, path))
    _take_names(grid, path.parent, names, path)
    return grid


# The columns of 10x Genomics' list of features, by the names they go by.
FEATURE_COLUMNS = {"id": 0, "gene": 0, "symbol": 1, "genesymbol": 1, "name": 1, "genename": 1}


def _take_names(grid: Grid, folder: Path, names: str | None, matrix: Path) -> None:
    """Take the names of rows and columns from 10x Genomics' lists, if these are there and as long."""
    rows, columns = grid.values.shape
    lists = [
        ("barcodes", "column_names", columns),
        ("features", "row_names", rows),
        ("genes", "row_names", rows),
    ]
    for stem_, attribute, size in lists:
        for path in (folder / f"{stem_}.tsv", folder / f"{stem_}.tsv.gz"):
            if not path.exists() or getattr(grid, attribute) is not None:
                continue
            with open_bytes(path) as stream:
                lines = lines_of(read_bytes(stream, -1, path).decode("utf-8", "replace"))
            if len(lines) != size:
                continue
            fields = [line.rstrip("\r\n").split("\t") for line in lines]
            at = _feature_column(names, fields, path) if attribute == "row_names" else 0
            grid.samples = "columns"
            grid.notes.append(f"took the names of the {attribute.split('_')[0]}s from {path.name}")
            if attribute == "row_names" and names is None and all(len(row) > 1 for row in fields):
                grid.notes[-1] += ", its first column (--names symbol takes its second)"
            setattr(grid, attribute, note_unique([row[at] for row in fields], grid.notes))
    if names is not None and grid.row_names is None:
        raise DataError(
            f"--names needs 10x Genomics' features.tsv or genes.tsv beside {matrix.name}, and there is none that fits"
        )


def _feature_column(names: str | None, fields: list[list[str]], path: Path) -> int:
    """Return the column of the list of features that --names asks for."""
    width = min(map(len, fields))
    at = (
        0
        if names is None
        else int(names) - 1
        if names.isdigit()
        else FEATURE_COLUMNS.get(words_stem(names), -1)
    )
    if not 0 <= at < width:
        raise DataError(
            f"{path.name} has no column '{names}' for --names; say id, symbol, or a number from 1 to {width}"
        )
    return at
