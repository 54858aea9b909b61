"""Matrix Market files, dense or by coordinates, and the names of rows and columns in 10x Genomics' lists beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io

from givens.app.tables.arrays import as_numbers, reading
from givens.app.tables.leading import open_bytes, read_bytes, unpacking
from givens.app.tables.records import lines_of
from givens.app.tables.table import DataError, ReadingOptions, TableSource, held, note_unique
from givens.app.tables.table import stem as words_stem


def matrix_market_source(path: Path, options: ReadingOptions) -> TableSource:
    """Read a Matrix Market file, with the names of 10x Genomics' lists of genes and cells beside it.

    `options.names` is the column of the list of genes that names them: "id", "symbol" or a number from 1.
    """
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
    names, notes = _lists_of_names(path, values.shape, options.names)
    if options.names is not None and names[0] is None:
        raise DataError(
            f"--names needs 10x Genomics' features.tsv or genes.tsv beside {path.name}, and there is none that fits"
        )
    return held(
        as_numbers(values, path),
        names[0],
        column_names=names[1],
        samples="columns" if notes else None,
        notes=notes,
    )


# The columns of 10x Genomics' list of features, by the names they go by.
FEATURE_COLUMNS = {"id": 0, "gene": 0, "symbol": 1, "genesymbol": 1, "name": 1, "genename": 1}


def _lists_of_names(
    matrix: Path, shape: tuple[int, int], column: str | None
) -> tuple[list[list[str] | None], list[str]]:
    """Return the names of rows and of columns from 10x Genomics' lists, if these are there and as long, and notes."""
    names: list[list[str] | None] = [None, None]
    notes: list[str] = []
    # The axis that each names
    for stem_, axis in {"barcodes": 1, "features": 0, "genes": 0}.items():
        for path in (matrix.with_name(f"{stem_}.tsv"), matrix.with_name(f"{stem_}.tsv.gz")):
            if names[axis] is not None or not path.exists():
                continue
            with open_bytes(path) as stream:
                lines = lines_of(read_bytes(stream, -1, path).decode("utf-8", "replace"))
            if len(lines) != shape[axis]:
                continue
            fields = [line.rstrip("\r\n").split("\t") for line in lines]
            at = 0 if axis else _feature_column(column, fields, path)
            several = not axis and column is None and all(len(row) > 1 for row in fields)
            advice = ", its first column (--names symbol takes its second)" if several else ""
            notes.append(f"took the names of the {('rows', 'columns')[axis]} from {path.name}{advice}")
            names[axis] = note_unique([row[at] for row in fields], notes)
    return names, notes


def _feature_column(names: str | None, fields: list[list[str]], path: Path) -> int:
    """Return the column of the list of features that --names asks for."""
    width = min(map(len, fields))
    word = names or "id"
    at = int(word) - 1 if word.isdigit() else FEATURE_COLUMNS.get(words_stem(word), -1)
    if not 0 <= at < width:
        raise DataError(
            f"{path.name} has no column '{names}' for --names; say id, symbol, or a number from 1 to {width}"
        )
    return at
