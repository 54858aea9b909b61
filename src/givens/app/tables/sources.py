"""Which format a file has, by its ending and its first bytes, and the reader of each: all make a `TableSource`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from givens.app.tables.leading import open_bytes, read_bytes
from givens.app.tables.table import DataError, ReadingOptions, TableSource


class Format(NamedTuple):
    """A format that is read."""

    noun: str
    endings: tuple[str, ...]  # of its files
    magic: bytes  # what they begin with
    reader: str  # module and function that open it as a `TableSource`


FORMATS = {
    "text": Format("CSV or TSV text", (".csv", ".tsv", ".txt", ".tab"), b"", "text.text_source"),
    "parquet": Format("a Parquet file", (".parquet", ".pq"), b"PAR1", "parquet.parquet_source"),
    "npy": Format("a NumPy array (.npy)", (".npy",), b"\x93NUMPY", "arrays.npy_source"),
    "npz": Format("a NumPy archive (.npz)", (".npz",), b"PK\x03\x04", "arrays.npz_source"),
    "mtx": Format(
        "a Matrix Market file (.mtx)", (".mtx",), b"%%MatrixMarket", "matrix_market.matrix_market_source"
    ),
    "h5ad": Format("an HDF5 file (.h5ad)", (".h5ad",), b"\x89HDF\r\n\x1a\n", "annotated.h5ad_source"),
    "zarr": Format("a zarr store", (), b"", "annotated.zarr_source"),
    "xlsx": Format("an Excel file (.xlsx)", (".xlsx",), b"PK\x03\x04", "excel.excel_source"),
}
# What other files begin with, and what they are.
FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive (.npz, or a spreadsheet such as .xlsx)",
    b"\x1f\x8b": "a gzip file (.gz)",
    b"\x80\x04": "a Python pickle, which is never opened",
    b"\x80\x05": "a Python pickle, which is never opened",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel file, which must be saved as CSV",
}


def open_source(path: Path, options: ReadingOptions, kind: str) -> TableSource:
    """Open a file of a known format."""
    if kind not in ("text", "xlsx"):
        options.refuse_row_options(path.name)
        if options.drop and kind != "parquet":
            raise DataError(
                f"--drop is for CSV, TSV, Excel and Parquet; {path.name} has no columns that are not numbers"
            )
    if options.by_rows and kind in ("npz", "mtx", "xlsx"):
        raise DataError(
            f"{path.name}: {kind} keeps no rows together, so it cannot be streamed; save it as CSV or .npy"
        )
    if kind in ("npy", "mtx") and options.labels:
        raise DataError(f"{path.name} holds numbers only, so --labels {options.labels[0]} finds nothing")
    if kind == "npy" and options.names is not None:
        raise DataError(f"--names is not for .npy; {path.name} has no column of names")
    module, name = FORMATS[kind].reader.split(".")
    reader = getattr(import_module(f"givens.app.tables.{module}"), name)
    return reader(parquet_files(path) if kind == "parquet" else path, options)


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, part.2 before part.10; or the file itself."""

    def natural(part: Path) -> list[Any]:
        return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", part.name)]

    return sorted(path.glob("*.parquet"), key=natural) if path.is_dir() else [path]


def table_file(path: Path) -> Path:
    """Return the file that holds the table: of a folder of 10x Genomics, its matrix."""
    if path.is_dir():
        return next(
            (path / name for name in ("matrix.mtx", "matrix.mtx.gz") if (path / name).is_file()), path
        )
    return path


def folder_format(path: Path) -> str | None:
    """Return the format of a folder: zarr, parquet, or None."""
    if any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup")):
        return "zarr"
    return "parquet" if parquet_files(path) else None


def store_format(path: Path) -> str:
    """Return the format of a file or folder, if it can be read in chunks."""
    if path.is_dir():
        kind = folder_format(path)
        if kind is None:
            raise DataError(
                f"{path} is a folder without zarr arrays or .parquet files, which --cluster reads in chunks"
            )
        return kind
    kind = find_format(path)
    if kind not in ("parquet", "h5ad"):
        raise DataError(
            f"{path.name} is {FORMATS[kind].noun}, which --cluster cannot read in chunks: "
            "save it as zarr, Parquet or .h5ad, or leave --cluster out"
        )
    return kind


def find_format(path: Path) -> str:
    """Return the format of a file: text, parquet, npy, npz, mtx, h5ad or xlsx; or of a folder: parquet or zarr.

    The ending decides; a file whose first bytes say otherwise is refused, since what it holds is then
    anyone's guess.
    """
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if path.is_dir():
        kind = folder_format(path)
        if kind is None:
            raise DataError(f"{path} is a folder without matrix.mtx or matrix.mtx.gz; name a file in it")
        return kind
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, and a table is read more than once: save it in a file first"
        )
    kind, zipped = _by_ending(path)
    head = _first_bytes(path, zipped)
    if not head:
        raise DataError(f"{path.name} is empty")
    if kind == "text":
        agrees = not head.startswith(tuple(_magic_nouns()))
    else:
        agrees = head.startswith(FORMATS[kind].magic)
    if not agrees:
        seen = next(
            (noun for magic, noun in _magic_nouns().items() if head.startswith(magic)), "something else"
        )
        raise DataError(f"{path.name} does not hold {FORMATS[kind].noun}, as its ending says, but {seen}")
    return kind


def _magic_nouns() -> dict[bytes, str]:
    """What files with these first bytes are."""
    return {form.magic: form.noun for form in FORMATS.values() if form.magic} | FOREIGN_MAGIC


def _by_ending(path: Path) -> tuple[str, bool]:
    """Return the format that the ending of a file says, and whether the file is zipped."""
    zipped = path.suffix.lower() == ".gz"
    ending = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    kind = next((kind for kind, form in FORMATS.items() if ending in form.endings), None)
    if kind is None:
        known = ", ".join(ending for form in FORMATS.values() for ending in form.endings)
        raise DataError(
            f"{path.name} has an ending that says nothing; one of {known} is needed (text also with .gz)"
        )
    if zipped and kind not in ("text", "mtx"):
        raise DataError(f"{path.name}: only text and Matrix Market are read gzipped; unpack it first")
    return kind, zipped


def _first_bytes(path: Path, zipped: bool) -> bytes:
    """Return the first bytes of what a file holds, unpacked."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(16)
        if not zipped:
            return head
        if not head.startswith(b"\x1f\x8b"):
            raise DataError(f"{path.name} ends in .gz and is not a gzip file")
        with open_bytes(path) as stream:
            return read_bytes(stream, 16, path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
