"""NumPy's files, .npy and .npz, and what the readers of all formats but text share.

Nothing is ever unpickled: NumPy files are read with `allow_pickle=False`, and a file of Python objects is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.tables.table import Block, DataError, ReadingOptions, TableSource, held, listed
from givens.support.arguments import one_entry_each


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
            raise DataError(
                f"{path.name} holds Python objects, which are never unpickled: save plain numbers and strings"
            ) from None
        raise DataError(f"{path.name} is a damaged {what} file ({text or type(error).__name__})") from None


def as_numbers(values: Any, path: Path, what: str = "the array") -> Any:
    """Return the values as float64 or float32, or say what they are instead."""
    if values.ndim != 2:
        many = f"{values.ndim} dimension{'' if values.ndim == 1 else 's'}"
        raise DataError(f"{path.name}: {what} has {many}, and a table has two")
    if values.dtype.kind not in "fiub":
        raise DataError(f"{path.name}: {what} holds {values.dtype}, not real numbers")
    return values if values.dtype in (np.float64, np.float32) else values.astype(np.float64)


def checked_sparse(values: Any, path: Path) -> Any:
    """Return a sparse matrix of a file with one entry at each place, none outside it: SciPy would read or write there."""
    with reading(path, "sparse matrix" if path.suffix == ".npz" else ".h5ad"):
        # SciPy looks at the indices only if the last of these is above 0.
        starts = values.indptr
        if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise ValueError("the places where its rows begin are not in order")
        values.check_format(full_check=True)
    return one_entry_each(values).tocsr()


def load_array(path: Path) -> np.ndarray:
    """Load a .npy file, whatever its dimensions."""
    with reading(path, ".npy"):
        return np.load(path, allow_pickle=False)


def npy_source(path: Path, options: ReadingOptions) -> TableSource:
    """Open an array of two dimensions."""
    if not options.by_rows:
        return held(as_numbers(load_array(path), path))
    with reading(path, ".npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise DataError(f"{path.name} is stored column by column; save it in C order to stream its rows")
    as_numbers(array[:0], path)
    offset, dtype, (total, width) = array.offset, array.dtype, array.shape
    if total == 0 or width == 0:
        raise DataError(f"{path.name} holds {total:,} x {width:,} numbers: nothing to do")

    def blocks(most: int) -> Iterator[Block]:
        # Plain reads, not the memory map: mapped pages would count as this process's memory until it ends.
        step = max(1, most // (width * dtype.itemsize))
        with open(path, "rb") as stream:
            stream.seek(offset)
            for start in range(0, total, step):
                rows = min(step, total - start)
                with reading(path, ".npy"):
                    values = np.fromfile(stream, dtype, rows * width).reshape(rows, width)
                yield Block(as_numbers(values, path))

    return TableSource((total, width), blocks)


def load_archive(path: Path) -> dict[str, np.ndarray]:
    """Load every array of a .npz file."""
    with reading(path, ".npz"), open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        # A member that is no array comes as its bytes.
        return {key: value for key in archive.files if isinstance(value := archive[key], np.ndarray)}


def npz_source(path: Path, options: ReadingOptions) -> TableSource:
    """Read the table of a .npz archive: its one matrix, dense or compressed sparse, with names and labels beside it."""
    arrays = load_archive(path)
    values, used = _matrix(arrays, path)
    values = as_numbers(values, path)
    rows, columns = values.shape
    side = {key: value for key, value in arrays.items() if key not in used and value.ndim == 1}
    labels: dict[str, list[str]] = {}
    for label in options.labels:
        if label not in side or len(side[label]) not in (rows, columns):
            raise DataError(f"{path.name} has no labels '{label}'; it holds {listed(sorted(arrays), 12)}")
        labels[label] = [str(value) for value in side.pop(label)]
    sizes = {len(words) for words in labels.values()}
    if len(sizes) > 1:
        raise DataError(f"{path.name}: some of the labels are the rows', and others the columns'")
    notes: list[str] = []
    names = [
        _side_names(side, size, what, options.names, rows != columns, notes)
        for size, what in ((rows, "row"), (columns, "column"))
    ]
    of_rows = sizes <= {rows}
    block = Block(values, names[0] or [], list(labels.values()) if of_rows else ())
    return TableSource(
        values.shape,
        lambda most: iter([block]),
        column_names=names[1],
        column_labels={} if of_rows else labels,
        notes=notes,
    )


def _side_names(
    side: dict[str, np.ndarray], size: int, what: str, asked: str | None, unequal: bool, notes: list[str]
) -> list[str] | None:
    """Take names of rows or columns from the arrays beside a matrix: those that were asked for, or the first unique ones."""
    fitting = [key for key, value in side.items() if len(value) == size and value.dtype.kind == "U"]
    unique = [key for key in fitting if unequal and len(set(side[key].tolist())) == size]
    key = asked if asked in fitting else next(iter(unique), None)
    if key is None:
        return None
    notes.append(f"took the names of the {what}s from '{key}'")
    return side.pop(key).tolist()


def _matrix(arrays: dict[str, np.ndarray], path: Path) -> tuple[Any, set[str]]:
    """Return the one matrix of an archive, and the keys it was made of."""
    parts = {"data", "indices", "indptr", "shape"}
    if set(arrays) >= parts:
        return _sparse_matrix(arrays, path), parts | {"format"}
    key = the_matrix([key for key, value in arrays.items() if value.ndim == 2])
    if key is None:
        found = listed([f"{key} {value.shape}" for key, value in arrays.items()], 8) if arrays else "nothing"
        raise DataError(f"{path.name} should hold one matrix, or one called 'X'; it holds {found}")
    return arrays[key], {key}


def the_matrix(keys: list[str]) -> str | None:
    """Return which of several matrices is the table: the one called X, or the only one."""
    return "X" if "X" in keys else (keys[0] if len(keys) == 1 else None)


def _sparse_matrix(arrays: dict[str, np.ndarray], path: Path) -> Any:
    """Return the matrix of an archive that SciPy has written."""
    import scipy.sparse

    kind = arrays["format"].item() if "format" in arrays and arrays["format"].size == 1 else b"csr"
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    build = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix}.get(kind)
    if build is None:
        raise DataError(f"{path.name} holds a sparse matrix of the form '{kind}': save it as csr or csc")
    with reading(path, "sparse matrix"):
        content = (arrays["data"], arrays["indices"], arrays["indptr"])
        matrix = build(content, shape=tuple(arrays["shape"]))
    return checked_sparse(matrix, path)
