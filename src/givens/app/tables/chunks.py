"""The rows of a table, a few at a time, for files larger than memory.

A stream is read twice: once to learn from, once for the scores. Only the formats that keep rows together
can be read that way: text, .npy in C order, Parquet, .h5ad.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.layout import ReadingOptions, refuse_row_options
from givens.app.tables.sources import find_format, table_file
from givens.app.tables.table import (
    SAMPLE_WORDS,
    VARIABLE_WORDS,
    DataError,
    OptionError,
    check_finite,
    check_names,
    label_list,
    look_like_variables,
    numbered,
    stem,
)

CHUNK_BYTES = 1 << 23  # bytes of numbers held at a time


@dataclass
class Chunk:
    """Some consecutive samples."""

    values: Any
    names: list[str]
    labels: list[list[str]]  # one list for each column of labels


@dataclass
class TableRows:
    """The samples of a file, read in order, any number of times.

    Attributes
    ----------
    variables : list of str
    total : int or None
        How many samples there are, where the format says it.
    read : callable
        Returns an iterator of `Chunk`.
    """

    variables: list[str]
    total: int | None
    read: Callable[[], Iterator[Chunk]]
    notes: list[str] = field(default_factory=list)
    label_names: list[str] = field(default_factory=list)
    corner: str = ""  # what stands over the rows' names
    samples: str | None = None  # "rows" where the format, labels or the user say so
    named: bool = False  # whether the file names its rows, by more than numbers
    impute: str | None = None  # "drop" leaves out the samples with missing values, "keep" keeps them
    dropped: int = 0  # samples left out, in the last pass

    @property
    def label_name(self) -> str:
        """The first labels' name, or nothing."""
        return self.label_names[0] if self.label_names else ""

    def check_orientation(self, seen: int) -> None:
        """Refuse rows that are no samples, as far as is known after so many of them: by the rules of whole tables."""
        if self.samples is None:
            refuse_variables(self.corner, self.named, (seen, len(self.variables)), "--stream")

    def __iter__(self) -> Iterator[Chunk]:
        """Yield checked chunks."""
        seen = 0
        self.dropped = 0
        self.check_orientation(self.total or 0)
        for chunk in self.read():
            self.check_orientation(seen + chunk.values.shape[0])
            start = seen

            def where(i: int, j: int, start: int = start, chunk: Chunk = chunk) -> str:
                return f"row {start + i + 1:,} ('{chunk.names[i]}'), variable '{self.variables[j]}'"

            seen += chunk.values.shape[0]
            if self.impute == "drop":
                chunk = self.without_missing(chunk)
            known = chunk.values
            if self.impute == "keep" and np.isnan(known).any():
                known = np.where(np.isnan(known), 0.0, known)
            check_finite(known, where, ", or say --impute em or --impute drop")
            if len(chunk.names):
                yield chunk
        if not seen:
            raise DataError("the file has no rows")
        if self.dropped == seen:
            raise DataError(
                "every sample has a missing value: --impute em, or leave out the variables that hold them"
            )

    def without_missing(self, chunk: Chunk) -> Chunk:
        """Return the samples of a chunk that have no missing value."""
        kept = ~np.isnan(chunk.values).any(axis=1)
        if kept.all():
            return chunk
        self.dropped += int((~kept).sum())
        return Chunk(
            chunk.values[kept],
            [name for name, keep in zip(chunk.names, kept) if keep],
            [[word for word, keep in zip(words, kept) if keep] for words in chunk.labels],
        )


def refuse_variables(corner: str, named: bool, shape: tuple[int, int], option: str) -> None:
    """Refuse rows that are rather variables, by what stands over their names or by how many there are, for an option."""
    word, (seen, columns) = stem(corner), shape
    if word in SAMPLE_WORDS or word == "id":
        return
    reason = ""
    if word in VARIABLE_WORDS:
        reason = f"the rows are headed '{corner}'"
    elif named and look_like_variables(seen, columns):
        reason = f"{seen:,} and more named rows of {columns:,} columns look like genes or other variables"
    if reason:
        raise DataError(
            f"{reason}, so they are no samples, and {option} reads samples as rows: "
            f"transpose the file, leave {option} out, or say --samples rows"
        )


def open_rows(
    path: str | os.PathLike[str],
    *,
    samples: str | None = None,
    labels: str | Sequence[str] | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
    header: int | None = None,
    skip_rows: int = 0,
    impute: str | None = None,
) -> TableRows:
    """Open a file to read its rows, the samples, a few at a time.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .npy, .parquet or .h5ad.
    samples : "rows", optional
        As for `read_table`; samples in columns cannot be streamed.
    labels : str or sequence of str, optional
        As for `read_table`.
    names : str, optional
        As for `read_table`.
    drop : sequence of str, default=()
        As for `read_table`.
    header : int, optional
        As for `read_table`.
    skip_rows : int, default=0
        As for `read_table`.
    impute : "drop" or "keep", optional
        As for `read_table`; medians are known only of a whole table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from givens.app.tables import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.npy"
    ...     np.save(path, np.ones((5, 3)))
    ...     [chunk.values.shape for chunk in open_rows(path)]
    [(5, 3)]
    """
    file, wanted = table_file(Path(path)), label_list(labels)
    kind = find_format(file)
    if samples == "columns":
        raise OptionError("--stream reads samples as rows: transpose the file, or leave --stream out")
    if impute not in (None, "drop", "keep"):
        raise OptionError(
            f"--impute {impute} needs the whole table: leave --stream out, or say --impute em or --impute drop"
        )
    if kind != "text":
        refuse_row_options(header, skip_rows, file.name)
    if kind == "text":
        rows = _text(file, ReadingOptions(wanted, names, drop, header, skip_rows))
    elif kind == "npy":
        rows = _npy(file, wanted)
    elif kind == "parquet":
        rows = _parquet(file, wanted, names, drop)
    elif kind == "h5ad":
        rows = _h5ad(file, wanted, names)
    else:
        raise DataError(
            f"{file.name}: {kind} keeps no rows together, so it cannot be streamed; save it as CSV or .npy"
        )
    check_names(rows.variables, "column")
    rows.label_names, rows.impute = wanted, impute
    if samples is not None or wanted:
        rows.samples = "rows"
    return rows


def _text(path: Path, options: ReadingOptions) -> TableRows:
    from givens.app.tables.text import TextRows

    source = TextRows(path, options)
    if source.layout.label_rows:
        raise DataError(
            f"'{next(iter(source.layout.label_rows))}' is a row, so the samples are columns, "
            "and only samples in rows can be streamed"
        )
    width = len(source.layout.numbers)

    def read() -> Iterator[Chunk]:
        seen = 0
        for block in source.blocks():
            named = block.names or numbered("sample", len(block.values), seen + 1)
            seen += len(block.values)
            yield Chunk(block.values, named, block.labels)

    rows = TableRows(
        source.column_names or numbered("variable", width), None, read, list(source.layout.notes)
    )
    rows.named = source.layout.names is not None and not source.layout.counted
    if source.layout.names is not None and source.layout.header is not None:
        rows.corner = source.layout.header[source.layout.names]
    return rows


def _npy(path: Path, labels: Sequence[str]) -> TableRows:
    from givens.app.tables.arrays import as_numbers, no_labels, reading

    no_labels(path, labels)
    with reading(path, ".npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise DataError(f"{path.name} is stored column by column; save it in C order to stream its rows")
    as_numbers(array[:0], path)
    offset, dtype, (total, width) = array.offset, array.dtype, array.shape
    del array
    if total == 0 or width == 0:
        raise DataError(f"{path.name} holds {total:,} x {width:,} numbers: nothing to do")

    def read() -> Iterator[Chunk]:
        # Plain reads, not the memory map: mapped pages would count as this process's memory until it ends.
        step = max(1, CHUNK_BYTES // max(1, width * dtype.itemsize))
        with open(path, "rb") as stream:
            stream.seek(offset)
            for start in range(0, total, step):
                rows = min(step, total - start)
                with reading(path, ".npy"):
                    values = np.fromfile(stream, dtype, rows * width).reshape(rows, width)
                yield Chunk(as_numbers(values, path), numbered("sample", rows, start + 1), [])

    return TableRows(numbered("variable", width), total, read)


def _parquet(path: Path, labels: Sequence[str], names: str | None, drop: Sequence[str]) -> TableRows:
    from givens.app.tables.arrays import (
        open_parquet,
        parquet_columns,
        parquet_numbers,
        parquet_words,
        reading,
    )

    file = open_parquet(path)
    columns = parquet_columns(file, path, labels, names, drop)
    titles = list(file.schema_arrow.names)
    step = max(1, CHUNK_BYTES // (8 * len(columns.numbers)))

    def read() -> Iterator[Chunk]:
        seen = 0
        batches = open_parquet(path).iter_batches(batch_size=step)
        while True:
            with reading(path, "Parquet"):
                batch = next(batches, None)
            if batch is None:
                return
            values = np.column_stack([parquet_numbers(batch.column(k)) for k in columns.numbers])
            named = numbered("sample", len(values), seen + 1)
            if columns.names is not None:
                named = parquet_words(batch.column(columns.names), path)
            marks = [parquet_words(batch.column(k), path) for k in columns.labels.values()]
            seen += len(values)
            yield Chunk(values, named, marks)

    rows = TableRows([titles[k] for k in columns.numbers], file.metadata.num_rows, read, columns.notes)
    rows.named = columns.names is not None
    if columns.names is not None and not titles[columns.names].startswith("__index_level_"):
        rows.corner = titles[columns.names]
    return rows


def _h5ad(path: Path, labels: Sequence[str], names: str | None) -> TableRows:
    from givens.app.tables.arrays import (
        as_numbers,
        checked_sparse,
        h5ad_labels,
        h5ad_names,
        open_h5ad,
        reading,
    )

    adata = open_h5ad(path, backed=True)
    total, width = adata.shape
    with reading(path, ".h5ad"):
        if "X" not in adata.file:
            raise DataError(f"{path.name} has no X")
        if getattr(adata.X, "format", None) == "csc":
            raise DataError(
                f"{path.name} is stored column by column (csc), and all of it would have to be read for a few rows; "
                "save X as csr to stream it"
            )
    marks = [h5ad_labels(adata, label, path) for label in labels]
    notes: list[str] = []
    variables = h5ad_names(adata, names, path, notes)
    if width == 0:
        raise DataError(f"{path.name} has no variables")
    step = max(1, CHUNK_BYTES // (8 * width))

    def read() -> Iterator[Chunk]:
        for start in range(0, total, step):
            with reading(path, ".h5ad"):
                values = adata.X[start : start + step]
                values = (
                    checked_sparse(values, path).toarray()
                    if hasattr(values, "toarray")
                    else np.asarray(values)
                )
            part = slice(start, start + len(values))
            yield Chunk(as_numbers(values, path), list(adata.obs_names[part]), [mark[part] for mark in marks])

    return TableRows(variables, total, read, notes, samples="rows")
