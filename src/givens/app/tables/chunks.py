"""The rows of a table, a few at a time, for files larger than memory.

A stream is read twice: once to learn from, once for the scores. Only the formats that keep rows together
can be read that way: text, .npy in C order, Parquet, .h5ad and zarr.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.sources import find_format, open_source, table_file
from givens.app.tables.table import (
    Block,
    DataError,
    OptionError,
    ReadingOptions,
    TableSource,
    check_finite,
    check_names,
    numbered,
    refuse_variables,
)
from givens.support.arguments import dense

CHUNK_BYTES = 1 << 23  # bytes of numbers held at a time


@dataclass
class TableRows:
    """The samples of a file, read in order, any number of times: iterating yields checked blocks of them.

    Attributes
    ----------
    source : TableSource
    options : ReadingOptions
    variables, label_names, notes : list of str
    dropped : int
        How many samples the last pass left out, for missing values.
    """

    source: TableSource
    options: ReadingOptions
    dropped: int = 0

    def __post_init__(self) -> None:
        self.variables = self.source.variables
        self.label_names = list(self.options.labels)
        self.notes = self.source.notes

    @property
    def total(self) -> int | None:
        """How many samples there are, where the format says it."""
        return self.source.shape[0]

    def check_orientation(self, seen: int) -> None:
        """Refuse rows that are no samples, as far as is known after so many of them: by the rules of whole tables."""
        if self.source.samples is None and self.options.samples is None and not self.options.labels:
            refuse_variables(self.source, seen, "--stream")

    def __iter__(self) -> Iterator[Block]:
        seen = self.dropped = 0
        self.check_orientation(self.total or 0)
        for block in self.source.blocks(CHUNK_BYTES):
            rows = block.values.shape[0]
            self.check_orientation(seen + rows)
            names = block.names or numbered("sample", rows, seen + 1)
            block = Block(dense(block.values), names, block.labels)

            def where(i: int, j: int, start: int = seen, names: list[str] = names) -> str:
                return f"row {start + i + 1:,} ('{names[i]}'), variable '{self.variables[j]}'"

            seen += rows
            if self.options.impute == "drop":
                missing = np.isnan(np.asarray(block.values)).any(axis=1)
                self.dropped += int(missing.sum())
                block = block.selected(~missing)
            advice = ", or say --impute em or --impute drop"
            check_finite(block.values, where, advice, missing=self.options.impute == "keep")
            if len(block.values):
                yield block
        if not seen:
            raise DataError("the file has no rows")
        if self.dropped == seen:
            raise DataError(
                "every sample has a missing value: --impute em, or leave out the variables that hold them"
            )


def open_rows(path: str | os.PathLike[str], **options: Any) -> TableRows:
    """Open a file to read its rows, the samples, a few at a time.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .npy, .parquet, .h5ad or zarr.
    **options
        As for `read_table`; samples in columns cannot be streamed, and medians are known only of a whole table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from givens.app.tables import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.npy"
    ...     np.save(path, np.ones((5, 3)))
    ...     [block.values.shape for block in open_rows(path)]
    [(5, 3)]
    """
    file = table_file(Path(path))
    kind = find_format(file)
    chosen = ReadingOptions(**options, by_rows="--stream")
    if chosen.impute == "median":
        raise OptionError(
            "--impute median needs the whole table: leave --stream out, or say --impute em or --impute drop"
        )
    source = open_source(file, chosen, kind)
    check_names(source.column_names, "column")
    return TableRows(source, chosen)
