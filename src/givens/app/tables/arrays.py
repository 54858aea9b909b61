"""Tables that are not text: .npy, .npz, Parquet, .h5ad.

Nothing is ever unpickled: NumPy files are read with `allow_pickle=False`, and a file of Python objects is
refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.hdf5 import walked
from givens.app.tables.layout import names_rows
from givens.app.tables.leading import SAMPLE_LINES
from givens.app.tables.table import DataError, Grid, listed, note_unique, only_count
from givens.support.arguments import one_entry_each
from givens.support.imports import require

OBJECTS = "holds Python objects, which are never unpickled: save plain numbers and strings"


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn any exception of a parser at a damaged file into one sentence."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except MemoryError:
        raise DataError(f"{path.name} does not fit into memory, or is a damaged {what} file") from None
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        if "allow_pickle" in text or "Python objects" in text:
            raise DataError(f"{path.name} {OBJECTS}") from None
        raise DataError(f"{path.name} is a damaged {what} file ({text or type(error).__name__})") from None


def as_numbers(values: Any, path: Path, what: str = "the array") -> Any:
    """Return the values as float64 or float32, or say what they are instead."""
    if values.ndim != 2:
        many = f"{values.ndim} dimension{'' if values.ndim == 1 else 's'}"
        raise DataError(f"{path.name}: {what} has {many}, and a table has two")
    if values.dtype.kind not in "fiub":
        raise DataError(f"{path.name}: {what} holds {values.dtype}, not real numbers")
    return values if values.dtype in (np.float64, np.float32) else values.astype(np.float64)


def read_npy(path: Path, labels: Sequence[str]) -> Grid:
    """Read an array of two dimensions."""
    no_labels(path, labels)
    return Grid(as_numbers(load_array(path), path))


def no_labels(path: Path, labels: Sequence[str]) -> None:
    """Refuse labels where a format has none."""
    if labels:
        raise DataError(f"{path.name} holds numbers only, so --labels {labels[0]} finds nothing")


def load_array(path: Path) -> np.ndarray:
    """Load a .npy file, whatever its dimensions."""
    with reading(path, ".npy"):
        return np.load(path, allow_pickle=False)


def load_archive(path: Path) -> dict[str, np.ndarray]:
    """Load every array of a .npz file."""
    with reading(path, ".npz"), open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        # A member that is no array comes as its bytes.
        return {key: value for key in archive.files if isinstance(value := archive[key], np.ndarray)}


def read_npz(path: Path, labels: Sequence[str], names: str | None) -> Grid:
    """Read the table of a .npz archive: its one matrix, dense or compressed sparse, with names beside it."""
    arrays = load_archive(path)
    values, used = _matrix(arrays, path)
    grid = Grid(as_numbers(values, path))
    rows, columns = grid.values.shape
    side = {key: value for key, value in arrays.items() if key not in used and value.ndim == 1}
    for label in labels:
        if label not in side or len(side[label]) not in (rows, columns):
            raise DataError(f"{path.name} has no labels '{label}'; it holds {listed(sorted(arrays), 12)}")
        chosen = side.pop(label)
        grid.labels_of = "rows" if len(chosen) == rows else "columns"
        if len({len(chosen), *map(len, grid.labels.values())}) > 1:
            raise DataError(f"{path.name}: some of the labels are the rows', and others the columns'")
        grid.labels[label] = [str(value) for value in chosen]
    for size, attribute in ((rows, "row_names"), (columns, "column_names")):
        fitting = [key for key, value in side.items() if len(value) == size and value.dtype.kind == "U"]
        unique = [key for key in fitting if len(set(side[key].tolist())) == size]
        chosen_key = names if names in fitting else (unique[0] if unique and rows != columns else None)
        if chosen_key is not None:
            setattr(grid, attribute, side.pop(chosen_key).tolist())
            grid.notes.append(f"took the names of the {attribute.split('_')[0]}s from '{chosen_key}'")
    return grid


def _matrix(arrays: dict[str, np.ndarray], path: Path) -> tuple[Any, set[str]]:
    """Return the one matrix of an archive, and the keys it was made of."""
    parts = {"data", "indices", "indptr", "shape"}
    if parts <= set(arrays):
        import scipy.sparse

        kind = arrays["format"].item() if "format" in arrays and arrays["format"].size == 1 else b"csr"
        kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        build = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix}.get(kind)
        if build is None:
            raise DataError(f"{path.name} holds a sparse matrix of the form '{kind}': save it as csr or csc")
        parts_of = (arrays["data"], arrays["indices"], arrays["indptr"])
        with reading(path, "sparse matrix"):
            matrix = build(parts_of, shape=tuple(arrays["shape"]))
        return checked_sparse(matrix, path).tocsr(), parts | {"format"}
    tables = [key for key, value in arrays.items() if value.ndim == 2]
    key = "X" if "X" in tables else (tables[0] if len(tables) == 1 else None)
    if key is None:
        found = listed([f"{key} {value.shape}" for key, value in arrays.items()], 8) if arrays else "nothing"
        raise DataError(f"{path.name} should hold one matrix, or one called 'X'; it holds {found}")
    return arrays[key], {key}


def read_parquet(path: Path, labels: Sequence[str], names: str | None, drop: Sequence[str]) -> Grid:
    """Read a Parquet file: numeric columns are the table, a text column its names."""
    file = open_parquet(path)
    columns = parquet_columns(file, path, labels, names, drop)
    with reading(path, "Parquet"):
        table = file.read()
    titles: list[str] = table.column_names  # pyarrow makes a new list at every access
    values = np.empty((table.num_rows, len(columns.numbers)))
    for at, k in enumerate(columns.numbers):
        values[:, at] = parquet_numbers(table.column(k))
    grid = Grid(values, column_names=[titles[k] for k in columns.numbers], notes=columns.notes)
    if columns.names is not None:
        grid.row_names = parquet_words(table.column(columns.names), path)
        name = titles[columns.names]
        grid.corner = "" if name.startswith("__index_level_") else name
    for name, at in columns.labels.items():
        grid.labels[name] = parquet_words(table.column(at), path)
    return grid


def parquet_words(column: Any, path: Path) -> list[str]:
    """Return a column as text."""
    with reading(path, "Parquet"):
        return [str(value) for value in column.to_pylist()]


def open_parquet(path: Path) -> Any:
    """Open a Parquet file."""
    parquet = require("pyarrow.parquet", extra="parquet")
    with reading(path, "Parquet"):
        # Otherwise Arrow holds the bytes of all row groups that it will read, and of every column of a row group.
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 14)


def parquet_numbers(column: Any) -> np.ndarray:
    """Return a column of a Parquet table as float64, NaN where it is null."""
    import pyarrow

    return column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)


class ColumnTypes:
    """Which columns of a Parquet file are numbers, names and labels."""

    def __init__(
        self, numbers: list[int], names: int | None, labels: dict[str, int], notes: list[str]
    ) -> None:
        self.numbers, self.names, self.labels, self.notes = numbers, names, labels, notes


def parquet_columns(
    file: Any, path: Path, labels: Sequence[str], names: str | None, drop: Sequence[str]
) -> ColumnTypes:
    """Sort the columns of a Parquet file out by their types."""
    import pyarrow

    schema = file.schema_arrow
    titles: list[str] = list(schema.names)
    asked = (
        [("--labels", name) for name in labels] + [("--names", names)] + [("--drop", name) for name in drop]
    )
    for option, wanted in asked:
        if wanted is not None and wanted not in titles:
            raise DataError(
                f"{path.name} has no column '{wanted}' for {option}; its columns are {listed(titles, 8)}"
            )
    label_at = {name: titles.index(name) for name in labels}
    # Where pandas wrote the file it says which columns were the index; a range, which is no column, is a dictionary.
    with reading(path, "Parquet"):
        told = (schema.pandas_metadata or {}).get("index_columns", [])
        index_columns = [name for name in told if isinstance(name, str)]
    texts: list[int] = []
    numbers: list[int] = []
    for k, column in enumerate(schema):
        kind = column.type
        if k in label_at.values() or titles[k] in drop or titles[k] == names:
            continue
        numeric = (
            pyarrow.types.is_integer(kind)
            or pyarrow.types.is_floating(kind)
            or pyarrow.types.is_boolean(kind)
        )
        (numbers if numeric and titles[k] not in index_columns else texts).append(k)
    at = None if names is None else titles.index(names)
    if at is None:
        index = [k for k in texts if titles[k] in index_columns]
        first = index or [k for k in texts if k == 0]
        at = first[0] if first else None
    left_out = [titles[k] for k in texts if k != at]
    counting = [k for k in numbers if names_rows(titles[k]) and only_count(_first_words(file, k, path))]
    numbers = [k for k in numbers if k not in counting]
    notes = [f"left out '{titles[k]}', which counts the rows" for k in counting]
    if left_out:
        notes.append(f"left out the text column{'s' if len(left_out) > 1 else ''} {listed(left_out)}")
    if not numbers:
        raise DataError(f"{path.name} has no column of numbers")
    return ColumnTypes(numbers, at, label_at, notes)


def _first_words(file: Any, column: int, path: Path) -> list[str]:
    """Return the first values of a column as text."""
    with reading(path, "Parquet"):
        title = file.schema_arrow.names[column]
        batch = next(file.iter_batches(batch_size=SAMPLE_LINES, columns=[title]), None)
    return [] if batch is None else parquet_words(batch.column(0), path)


def read_h5ad(path: Path, labels: Sequence[str], names: str | None) -> Grid:
    """Read an AnnData file: X, with obs as samples and var as variables, named by a column of var if `names` says so."""
    adata = open_h5ad(path, backed=False)
    values = adata.X
    if values is None:
        raise DataError(f"{path.name} has no X")
    values = checked_sparse(values, path).tocsr() if hasattr(values, "tocsr") else np.asarray(values)
    grid = Grid(as_numbers(values, path, "X"), list(adata.obs_names), samples="rows")
    grid.column_names = h5ad_names(adata, names, path, grid.notes)
    grid.labels = {label: h5ad_labels(adata, label, path) for label in labels}
    return grid


def checked_sparse(values: Any, path: Path) -> Any:
    """Return a sparse matrix of a file with one entry at each place, none outside it: SciPy would read or write there."""
    with reading(path, "sparse matrix" if path.suffix == ".npz" else ".h5ad"):
        # SciPy looks at the indices only if the last of these is above 0.
        starts = values.indptr
        if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise ValueError("the places where its rows begin are not in order")
        values.check_format(full_check=True)
    return one_entry_each(values)


def h5ad_names(adata: Any, names: str | None, path: Path, notes: list[str]) -> list[str]:
    """Return the variables' names, unique, from the index of var or from a column of it."""
    if names is None:
        return note_unique([str(name) for name in adata.var_names], notes)
    if names not in adata.var:
        raise DataError(
            f"{path.name} has no '{names}' in var for --names; it has {listed(list(adata.var.columns), 8)}"
        )
    notes.append(f"took the variables' names from var's column '{names}'")
    return note_unique([str(name) for name in adata.var[names]], notes)


def h5ad_labels(adata: Any, labels: str, path: Path) -> list[str]:
    """Return a column of obs as strings."""
    if labels not in adata.obs:
        raise DataError(f"{path.name} has no '{labels}' in obs; it has {listed(list(adata.obs.columns), 8)}")
    return [str(value) for value in adata.obs[labels]]


def open_h5ad(path: Path, backed: bool) -> Any:
    """Open an AnnData file, in memory or on disk."""
    with walked(path):
        anndata = require("anndata", extra="anndata")
    with reading(path, ".h5ad"), warnings.catch_warnings():
        # Names that stand twice are made unique, and that is noted.
        warnings.filterwarnings("ignore", message=".*names are not unique", category=UserWarning)
        return anndata.read_h5ad(path, backed="r" if backed else None)
