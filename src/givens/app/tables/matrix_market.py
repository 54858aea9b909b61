"""Matrix Market files, dense or by coordinates, read as CSV is.

SciPy's reader is not used: it trusts the number of entries that a file announces, and a damaged file can end the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.arrays import no_labels
from givens.app.tables.layout import Layout
from givens.app.tables.leading import open_bytes, read_bytes
from givens.app.tables.records import lines_of
from givens.app.tables.table import DataError, Grid, note_unique
from givens.app.tables.table import stem as words_stem
from givens.app.tables.text import TextRows

FIELDS = ("real", "integer", "double", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
LONGEST_COMMENTS = 1 << 20  # bytes that comments may take


def read_matrix_market(path: Path, labels: Sequence[str], names: str | None = None) -> Grid:
    """Read a Matrix Market file, with the names of 10x Genomics' lists of genes and cells beside it.

    `names` is the column of the list of genes that names them: "id", "symbol" or a number from 1.
    """
    no_labels(path, labels)
    form, kind, symmetry, sizes, layout = _header(path)
    body = np.concatenate(
        [block.values for block in TextRows(path, layout=layout).blocks()] or [np.empty((0, layout.width))]
    )
    if form == "coordinate":
        values = _by_coordinates(path, body, kind, symmetry, sizes)
    else:
        values = _dense(path, body[:, 0], symmetry, sizes)
    grid = Grid(values)
    _take_names(grid, path.parent, names, path)
    return grid


def _header(path: Path) -> tuple[str, str, str, list[int], Layout]:
    """Return the form, the kind of numbers, the symmetry, the sizes, and where and how the body is written."""
    with open_bytes(path) as stream:
        lines = read_bytes(stream, LONGEST_COMMENTS, path).split(b"\n")
    words = lines[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise DataError(
            f"{path.name} is a damaged Matrix Market file: its first line says nothing that can be read"
        )
    form, kind, symmetry = words[2:]
    if kind not in FIELDS or symmetry not in SYMMETRIES:
        raise DataError(
            f"{path.name} holds a {symmetry} matrix of {kind} numbers, and a table needs a real one"
        )
    at = 1
    while at < len(lines) and (lines[at].startswith(b"%") or not lines[at].strip()):
        at += 1
    sizes = lines[at].split() if at < len(lines) else []
    if len(sizes) != (3 if form == "coordinate" else 2) or not all(
        word.isdigit() and len(word) < 13 for word in sizes
    ):
        raise DataError(f"{path.name}, line {at + 1}: the sizes of the matrix should stand here")
    width = 1 if form == "array" else (2 if kind == "pattern" else 3)
    skip = sum(len(line) + 1 for line in lines[: at + 1])
    layout = Layout(" ", ".", skip, at + 2, None, None, [], width, "latin-1")
    return form, kind, symmetry, [int(word) for word in sizes], layout


def _by_coordinates(path: Path, body: np.ndarray, kind: str, symmetry: str, sizes: list[int]) -> Any:
    """Return the sparse matrix that the entries make up."""
    import scipy.sparse

    rows, columns, announced = sizes
    if len(body) != announced:
        raise DataError(
            f"{path.name} announces {announced:,} entries and holds {len(body):,}: it is damaged or truncated"
        )
    places = body[:, :2]
    good = (places >= 1) & (places <= [rows, columns]) & (places == np.floor(places))
    if not good.all():
        bad = int(np.flatnonzero(~good.all(axis=1))[0])
        shown = " ".join(f"{place:g}" for place in places[bad])
        raise DataError(f"{path.name}: entry {bad + 1:,} stands at {shown}, outside {rows:,} x {columns:,}")
    i, j = (places - 1).astype(np.int64).T
    entries = np.ones(len(body)) if kind == "pattern" else body[:, 2]
    if symmetry != "general":
        other = i != j
        sign = -1.0 if symmetry == "skew-symmetric" else 1.0
        entries = np.concatenate([entries, sign * entries[other]])
        i, j = np.concatenate([i, j[other]]), np.concatenate([j, i[other]])
    if symmetry != "general" and rows != columns:
        raise DataError(f"{path.name} calls a matrix of {rows:,} x {columns:,} {symmetry}")
    return scipy.sparse.csr_matrix((entries, (i, j)), shape=(rows, columns))


def _dense(path: Path, numbers: np.ndarray, symmetry: str, sizes: list[int]) -> np.ndarray:
    """Return the dense matrix, which a file holds column by column, one triangle of it if it is symmetric."""
    rows, columns = sizes
    if symmetry != "general":
        raise DataError(f"{path.name} holds one triangle of a dense {symmetry} matrix: save it whole")
    if len(numbers) != rows * columns:
        raise DataError(
            f"{path.name} announces {rows * columns:,} numbers and holds {len(numbers):,}: it is truncated"
        )
    return np.ascontiguousarray(numbers.reshape(columns, rows).T)


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
