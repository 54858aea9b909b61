"""Tables in and results out.

`read_table` reads CSV and TSV (also .gz), Excel, Parquet, .npy, .npz, Matrix Market, .h5ad and zarr; `open_rows` reads
the same, where the format allows it, a few rows at a time; `staged` writes results that appear whole or not
at all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from givens.app.tables.chunks import TableRows, open_rows
from givens.app.tables.sources import find_format, open_source, table_file
from givens.app.tables.table import DataError, OptionError, ReadingOptions, Table, to_table
from givens.app.tables.write import staged

__all__ = [
    "DataError",
    "OptionError",
    "ReadingOptions",
    "Table",
    "TableRows",
    "open_rows",
    "read_table",
    "staged",
]


def read_table(path: str | os.PathLike[str], **options: Any) -> Table:
    """Read a table of samples and variables from a file.

    The separator, the decimal sign, the header and the column of names are detected; what was guessed is
    in the table's `notes`. Nothing is ever unpickled.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .xlsx, .parquet, .npy, .npz, .mtx (also .gz), .h5ad, zarr, or a folder of 10x Genomics
        or of Parquet files.
    **options
        The attributes of `ReadingOptions`.

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
    chosen, file = ReadingOptions(**options), table_file(Path(path))
    try:
        return to_table(open_source(file, chosen, find_format(file)), chosen)
    except MemoryError:
        raise DataError(f"{Path(path).name} does not fit into memory: try --stream") from None
