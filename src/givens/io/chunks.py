"""TableRows a few at a time, for files larger than memory.

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

from givens.io.sources import find_format
from givens.io.table import DataError, check_finite, check_names, made_up

CHUNK = 1 << 23  # bytes of numbers held at a time


@dataclass
class Chunk:
    """Some consecutive samples."""

    values: Any
    names: list[str]
    labels: list[str] | None


@dataclass
class TableRows:
    """The samples of a file, to be read in order as often as one likes.

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
    label_name: str = ""
    corner: str = ""  # what stands over the rows' names

    def __iter__(self) -> Iterator[Chunk]:
        """Yield checked chunks."""
        seen = 0
        for chunk in self.read():
            start = seen

            def where(i: int, j: int, start: int = start, chunk: Chunk = chunk) -> str:
                return f"row {start + i + 1:,} ('{chunk.names[i]}'), variable '{self.variables[j]}'"

            check_finite(chunk.values, where)
            seen += chunk.values.shape[0]
            yield chunk
        if not seen:
            raise DataError("the file has no rows")


def open_rows(
    path: str | os.PathLike[str],
    *,
    labels: str | None = None,
    names: str | None = None,
    drop: Sequence[str] = (),
) -> TableRows:
    """Open a file to read its rows, the samples, a few at a time.

    Parameters
    ----------
    path : path
        .csv, .tsv, .txt (each also .gz), .npy, .parquet or .h5ad.
    labels, names, drop
        As for `read_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from givens.io import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.npy"
    ...     np.save(path, np.ones((5, 3)))
    ...     [chunk.values.shape for chunk in open_rows(path)]
    [(5, 3)]
    """
    file = Path(path)
    kind = find_format(file)
    if kind == "text":
        rows = _text(file, labels, names, drop)
    elif kind == "npy":
        rows = _npy(file, labels)
    elif kind == "parquet":
        rows = _parquet(file, labels, names, drop)
    elif kind == "h5ad":
        rows = _h5ad(file, labels)
    else:
        raise DataError(
            f"{file.name}: {kind} keeps no rows together, so it cannot be streamed; save it as CSV or .npy"
        )
    check_names(rows.variables, "column")
    rows.label_name = labels or ""
    return rows


def _text(path: Path, labels: str | None, names: str | None, drop: Sequence[str]) -> TableRows:
    from givens.io.text import TextRows

    source = TextRows(path, labels, names, drop)
    if source.layout.label_row is not None:
        raise DataError(
            f"'{labels}' is a row, so the samples are columns, and only samples in rows can be streamed"
        )
    width = len(source.layout.numbers)

    def read() -> Iterator[Chunk]:
        seen = 0
        for block in source.blocks():
            named = block.names or [f"sample {seen + k}" for k in range(1, len(block.values) + 1)]
            seen += len(block.values)
            yield Chunk(block.values, named, block.labels)

    rows = TableRows(source.column_names or made_up("variable", width), None, read, list(source.layout.notes))
    if source.layout.names is not None and source.layout.header is not None:
        rows.corner = source.layout.header[source.layout.names]
    return rows


def _npy(path: Path, labels: str | None) -> TableRows:
    from givens.io.arrays import as_numbers, no_labels, reading

    no_labels(path, labels)
    with reading(path, ".npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise DataError(f"{path.name} is stored column by column; save it in C order to stream its rows")
    as_numbers(array[:0], path)
    offset, dtype, (total, width) = array.offset, array.dtype, array.shape
    del array

    def read() -> Iterator[Chunk]:
        # Plain reads, not the memory map: mapped pages would count as this process's memory until it ends.
        step = max(1, CHUNK // max(1, width * dtype.itemsize))
        with open(path, "rb") as stream:
            stream.seek(offset)
            for start in range(0, total, step):
                rows = min(step, total - start)
                with reading(path, ".npy"):
                    values = np.fromfile(stream, dtype, rows * width).reshape(rows, width)
                named = [f"sample {start + k}" for k in range(1, rows + 1)]
                yield Chunk(as_numbers(values, path), named, None)

    return TableRows(made_up("variable", width), total, read)


def _parquet(path: Path, labels: str | None, names: str | None, drop: Sequence[str]) -> TableRows:
    from givens.io.arrays import open_parquet, parquet_columns, parquet_numbers, reading

    file = open_parquet(path)
    columns = parquet_columns(file, path, labels, names, drop)
    titles = list(file.schema_arrow.names)
    step = max(1, CHUNK // (8 * len(columns.numbers)))

    def read() -> Iterator[Chunk]:
        seen = 0
        batches = open_parquet(path).iter_batches(batch_size=step)
        while True:
            with reading(path, "Parquet"):
                batch = next(batches, None)
            if batch is None:
                return
            values = np.column_stack([parquet_numbers(batch.column(k)) for k in columns.numbers])
            named = [f"sample {seen + k}" for k in range(1, len(values) + 1)]
            if columns.names is not None:
                named = [str(value) for value in batch.column(columns.names).to_pylist()]
            marks = (
                None if columns.labels is None else [str(v) for v in batch.column(columns.labels).to_pylist()]
            )
            seen += len(values)
            yield Chunk(values, named, marks)

    return TableRows([titles[k] for k in columns.numbers], file.metadata.num_rows, read, columns.notes)


def _h5ad(path: Path, labels: str | None) -> TableRows:
    from givens.io.arrays import as_numbers, h5ad_labels, open_h5ad, reading

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
    marks = None if labels is None else h5ad_labels(adata, labels, path)
    step = max(1, CHUNK // (8 * width))

    def read() -> Iterator[Chunk]:
        for start in range(0, total, step):
            with reading(path, ".h5ad"):
                values = adata.X[start : start + step]
                values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
            part = slice(start, start + len(values))
            yield Chunk(
                as_numbers(values, path), list(adata.obs_names[part]), None if marks is None else marks[part]
            )

    return TableRows(list(adata.var_names), total, read)
