"""Parquet: a file, or a folder of files of the same columns, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.arrays import reading
from givens.app.tables.layout import names_rows
from givens.app.tables.leading import SAMPLE_LINES
from givens.app.tables.table import (
    Block,
    DataError,
    ReadingOptions,
    TableSource,
    Words,
    check_names,
    listed,
    only_count,
)
from givens.support.imports import require

BATCH_ROWS = 1 << 16


def opened(path: Path) -> Any:
    """Open a Parquet file."""
    parquet = require("pyarrow.parquet", extra="parquet")
    with reading(path, "Parquet"):
        # Otherwise Arrow holds the bytes of all row groups that it will read, and of every column of a row group.
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 14)


def numbers(batch: Any, titles: list[str]) -> np.ndarray:
    """Return columns as float64, NaN where they are null."""
    import pyarrow

    columns = dict(
        zip(batch.schema.names, batch.columns)
    )  # to look each up by its name takes longer than to read it
    values = np.empty((len(batch), len(titles)))
    for k, title in enumerate(titles):
        values[:, k] = columns[title].cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return values


def text(batch: Any, title: str, path: Path) -> list[str]:
    """Return a column as text."""
    with reading(path, "Parquet"):
        return [str(value) for value in batch.column(title).to_pylist()]


class RowGroups:
    """The numbers in the rows of Parquet files, which are read by whole row groups: a reader that workers get a copy of."""

    ndim, sparse, dtype = 2, False, np.dtype(np.float64)

    def __init__(self, paths: list[Path], files: list[Any], titles: list[str]) -> None:
        self.paths, self.titles = [str(path) for path in paths], titles
        self.groups: list[tuple[int, int]] = []
        self.edges = [0]
        for number, file in enumerate(files):
            meta = file.metadata
            for group in range(meta.num_row_groups):
                self.groups.append((number, group))
                self.edges.append(self.edges[-1] + meta.row_group(group).num_rows)
        self.shape = (self.edges[-1], len(titles))

    def batches(self, first: int, last: int, titles: list[str], most: int = BATCH_ROWS) -> Iterator[Any]:
        """Yield some rows of some columns, not more than `most` at a time, as Arrow has them."""
        here = [k for k, edge in enumerate(self.edges[1:]) if edge > first and self.edges[k] < last]
        start = self.edges[here[0]] if here else 0
        for number, places in groupby(here, lambda k: self.groups[k][0]):
            path = Path(self.paths[number])
            with reading(path, "Parquet"):
                groups = [self.groups[k][1] for k in places]
                for batch in opened(path).iter_batches(most, row_groups=groups, columns=titles):
                    end = start + len(batch)
                    part = batch.slice(max(first - start, 0), min(last, end) - max(first, start))
                    start = end
                    yield part

    def __getitem__(self, places: tuple[slice, slice]) -> np.ndarray:
        """Some rows; all columns."""
        batches = self.batches(places[0].start or 0, places[0].stop, self.titles)
        return np.concatenate([numbers(batch, self.titles) for batch in batches])

    def lengths(self, most: int, dense: bool) -> tuple[int, ...]:
        """Samples of each chunk: of as many row groups as make `most` bytes, but one at least."""
        rows = max(1, most // (8 * len(self.titles)))
        found: list[int] = []
        for start, end in zip(self.edges, self.edges[1:]):
            if found and found[-1] + end - start <= rows:
                found[-1] += end - start
            elif end > start:
                found.append(end - start)
        return tuple(found) or (0,)


def parquet_source(paths: list[Path], options: ReadingOptions) -> TableSource:
    """Open Parquet files: numeric columns are the table, a text column its names."""
    files = [opened(path) for path in paths]
    titles = list(files[0].schema_arrow.names)
    for path, file in zip(paths, files):
        if list(file.schema_arrow.names) != titles:
            raise DataError(
                f"{path.name} has other columns than {paths[0].name}, in one folder of Parquet files"
            )
    numeric, names, notes = _columns(files[0], paths[0], options)
    check_names(numeric, "column")
    rows = RowGroups(paths, files, numeric)
    labels = list(options.labels)
    asked = [*([] if names is None else [names]), *labels]

    def split(columns: list[list[str]]) -> Words:
        return ([], columns) if names is None else (columns[0], columns[1:])

    def blocks(most: int) -> Iterator[Block]:
        step = min(max(1, most // (8 * len(numeric))), BATCH_ROWS)
        for batch in rows.batches(0, rows.shape[0], [*numeric, *asked], step):
            yield Block(numbers(batch, numeric), *split([text(batch, title, paths[0]) for title in asked]))
        if not rows.shape[0]:
            yield Block(np.empty(rows.shape))

    def words(first: int, last: int) -> Words:
        columns: list[list[str]] = [[] for _ in asked]
        for batch in rows.batches(first, last, asked) if asked else ():
            for column, title in zip(columns, asked):
                column += text(batch, title, paths[0])
        return split(columns)

    return TableSource(
        rows.shape,
        blocks,
        rows=rows,
        words=words,
        column_names=numeric,
        corner="" if names is None or names.startswith("__index_level_") else names,
        named=names is not None,
        notes=notes,
    )


def _columns(file: Any, path: Path, options: ReadingOptions) -> tuple[list[str], str | None, list[str]]:
    """Return which columns of a Parquet file are the numbers and which holds the names of rows, and notes."""
    schema = file.schema_arrow
    titles: list[str] = list(schema.names)
    _refuse_unknown(titles, path, options)
    # Where pandas wrote the file it says which columns were the index; a range, which is no column, is a dictionary.
    with reading(path, "Parquet"):
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    taken = {*options.labels, *options.drop, options.names}
    kinds = {title: kind for title, kind in zip(titles, schema.types) if title not in taken}
    texts = [title for title, kind in kinds.items() if title in index or not _is_numeric(kind)]
    first = [title for title in texts if title in index] or [title for title in texts if title == titles[0]]
    names = options.names if options.names is not None or not first else first[0]
    counting = _counting(file, [title for title in kinds if title not in texts and names_rows(title)], path)
    left_out = [title for title in texts if title != names]
    notes = [f"left out '{title}', which counts the rows" for title in counting]
    if left_out:
        notes.append(f"left out the text column{'s' if len(left_out) > 1 else ''} {listed(left_out)}")
    others = {*taken, *texts, *counting}
    numeric = [title for title in titles if title not in others]
    if not numeric:
        raise DataError(f"{path.name} has no column of numbers")
    return numeric, names, notes


def _counting(file: Any, titles: list[str], path: Path) -> list[str]:
    """Return the columns that only count the rows, as far as the first rows show."""
    with reading(path, "Parquet"):
        first = next(file.iter_batches(SAMPLE_LINES, columns=titles), None) if titles else None
    return [title for title in titles if first is not None and only_count(text(first, title, path))]


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _refuse_unknown(titles: list[str], path: Path, options: ReadingOptions) -> None:
    """Refuse names of columns that the file has not."""
    names = [] if options.names is None else [options.names]
    for option, wanted in {
        "--labels": options.labels,
        "--names": names,
        "--drop": options.drop,
    }.items():
        for name in wanted:
            if name not in titles:
                raise DataError(
                    f"{path.name} has no column '{name}' for {option}; its columns are {listed(titles, 8)}"
                )
