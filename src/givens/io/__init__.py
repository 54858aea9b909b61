"""Tables in and results out.

`read_table` reads CSV and TSV (also .gz), Parquet, .npy, .npz, Matrix Market and .h5ad; `open_rows` reads
the same, where the format allows it, a few rows at a time; `staged` writes results that appear whole or not
at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from givens.io.chunks import TableRows, open_rows
from givens.io.sources import find_format
from givens.io.table import DataError, Grid, Table, to_table
from givens.io.write import staged

__all__ = ["DataError", "Table", "TableRows", "open_rows", "read_grid", "read_table", "staged"]


def read_grid(
    path: str | os.PathLike[str],
    *,
    labels: str | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
) -> Grid:
    """Read a table as the file has it, before it is decided which side is the samples."""
    from givens.io import arrays, matrix_market, text

    file = Path(path)
    kind = find_format(file)
    if kind == "text":
        return text.read_text(file, labels, names, drop)
    if kind == "parquet":
        return arrays.read_parquet(file, labels, names, drop)
    if drop:
        raise DataError(
            f"--drop is for CSV, TSV and Parquet; {file.name} has no columns that are not numbers"
        )
    if kind == "npz":
        return arrays.read_npz(file, labels, names)
    if names is not None:
        raise DataError(f"--names is for CSV, TSV, Parquet and .npz; {file.name} has no column of names")
    if kind == "npy":
        return arrays.read_npy(file, labels)
    if kind == "mtx":
        return matrix_market.read_matrix_market(file, labels)
    return arrays.read_h5ad(file, labels)


def read_table(
    path: str | os.PathLike[str],
    *,
    samples: str | None = None,
    labels: str | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Read a table of samples and variables from a file.

    The separator, the decimal sign, the header and the column of names are found out; what was guessed is
    in the table's `notes`. Nothing is ever unpickled.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .parquet, .npy, .npz, .mtx (also .gz) or .h5ad.
    samples : {"rows", "columns"}, optional
        Which side is the samples; guessed if None.
    labels : str, optional
        The column (or, for a table of variables in rows, the first row) that holds the samples' labels.
    names : str, optional
        The column that holds the rows' names; found out if None.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        One sentence that says what is wrong with the file, where, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from givens.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("flower,length,width,kind\\nf1,5.1,3.5,setosa\\nf2,7.0,3.2,versicolor\\n")
    ...     table = read_table(path, labels="kind")
    >>> table.shape, table.variables, table.samples, table.labels
    ((2, 2), ['length', 'width'], ['f1', 'f2'], ['setosa', 'versicolor'])
    """
    try:
        return to_table(read_grid(path, labels=labels, names=names, drop=drop), samples)
    except MemoryError:
        raise DataError(f"{Path(path).name} does not fit into memory: try --stream") from None
