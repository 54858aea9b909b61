"""Tables in and results out.

`read_table` reads CSV and TSV (also .gz), Excel, Parquet, .npy, .npz, Matrix Market and .h5ad; `open_rows` reads
the same, where the format allows it, a few rows at a time; `staged` writes results that appear whole or not
at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from givens.app.tables.chunks import TableRows, open_rows
from givens.app.tables.layout import ReadingOptions, refuse_row_options
from givens.app.tables.sources import find_format, table_file
from givens.app.tables.table import DataError, Grid, OptionError, Table, label_list, to_table
from givens.app.tables.write import staged

__all__ = ["DataError", "OptionError", "Table", "TableRows", "open_rows", "read_grid", "read_table", "staged"]


def read_grid(
    path: str | os.PathLike[str],
    *,
    labels: str | Sequence[str] | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
    header: int | None = None,
    skip_rows: int = 0,
) -> Grid:
    """Read a table as the file has it, before it is decided which side is the samples."""
    from givens.app.tables import arrays, excel, matrix_market, text

    file, wanted = table_file(Path(path)), label_list(labels)
    kind = find_format(file)
    if kind in ("text", "xlsx"):
        options = ReadingOptions(wanted, names, drop, header, skip_rows)
        return text.read_text(file, options) if kind == "text" else excel.read_excel(file, options)
    refuse_row_options(header, skip_rows, file.name)
    if kind == "parquet":
        return arrays.read_parquet(file, wanted, names, drop)
    if drop:
        raise DataError(
            f"--drop is for CSV, TSV, Excel and Parquet; {file.name} has no columns that are not numbers"
        )
    if kind == "npz":
        return arrays.read_npz(file, wanted, names)
    if kind == "mtx":
        return matrix_market.read_matrix_market(file, wanted, names)
    if kind == "h5ad":
        return arrays.read_h5ad(file, wanted, names)
    if names is not None:
        raise DataError(f"--names is not for .npy; {file.name} has no column of names")
    return arrays.read_npy(file, wanted)


def read_table(
    path: str | os.PathLike[str],
    *,
    samples: str | None = None,
    labels: str | Sequence[str] | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
    header: int | None = None,
    skip_rows: int = 0,
    impute: str | None = None,
    signals: bool = False,
) -> Table:
    """Read a table of samples and variables from a file.

    The separator, the decimal sign, the header and the column of names are detected; what was guessed is
    in the table's `notes`. Nothing is ever unpickled.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .xlsx, .parquet, .npy, .npz, .mtx (also .gz), .h5ad, or a folder of 10x Genomics.
    samples : "rows" or "columns", optional
        Which side is the samples; guessed if None.
    labels : str or sequence of str, optional
        The columns (or, for a table of variables in rows, the first rows) that hold the samples' labels.
    names : str, optional
        The column that holds the rows' names; detected if None. For .h5ad a column of var, for 10x Genomics one of the
        list of features ("id", "symbol").
    drop : sequence of str, default=()
        Columns to leave out.
    header : int, optional
        The row that holds the names of the columns, counted from 1 after those that `skip_rows` leaves out; 0 if none does.
        Detected if None. For CSV, TSV and Excel, as `skip_rows`.
    skip_rows : int, default=0
        How many rows to leave out at the top of the file, comments and blank ones included.
    impute : "median", "drop" or "keep", optional
        Fill in missing values with the median of their variable, leave out the samples that have any, or keep them as NaN.
        Refused if None.
    signals : bool, default=False
        Whether the variables are signals, of which there are fewer than samples: a table that is much wider than long then
        has its samples in columns, unless `samples` says otherwise.

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
    >>> from givens.app.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("flower,length,width,kind\\nf1,5.1,3.5,setosa\\nf2,7.0,3.2,versicolor\\n")
    ...     table = read_table(path, labels="kind")
    >>> table.shape, table.variables, table.samples, table.labels
    ((2, 2), ['length', 'width'], ['f1', 'f2'], ['setosa', 'versicolor'])
    """
    try:
        grid = read_grid(path, labels=labels, names=names, drop=drop, header=header, skip_rows=skip_rows)
        return to_table(grid, samples, impute, signals)
    except MemoryError:
        raise DataError(f"{Path(path).name} does not fit into memory: try --stream") from None
