"""Excel files: their first sheet, taken as a text table."""

from __future__ import annotations

import csv
import tempfile
import warnings
from pathlib import Path

from givens.app.tables.arrays import reading
from givens.app.tables.table import ReadingOptions, TableSource
from givens.app.tables.text import text_source
from givens.support.imports import require


def excel_source(path: Path, options: ReadingOptions) -> TableSource:
    """Read the first sheet of an Excel file; header, names and orientation are detected as in a text file."""
    require("openpyxl", extra="excel")
    pandas = require("pandas", extra="excel")
    with reading(path, "Excel"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions, which hold no numbers
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            frame = book.parse(sheets[0], header=None, dtype=object, na_filter=False)
    with tempfile.TemporaryDirectory() as folder:
        # Under the same name, so that an error names the user's file; a line of it is a row of the sheet.
        copy = Path(folder) / path.name
        with open(copy, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter="\t").writerows(frame.to_numpy().tolist())
        source = text_source(copy, options)
        blocks = list(source.blocks(0))
    source.blocks = lambda most: iter(blocks)
    if len(sheets) > 1:
        source.notes.append(f"read the sheet '{sheets[0]}', the first of {len(sheets)}")
    return source
