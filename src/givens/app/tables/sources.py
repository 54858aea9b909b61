"""Which format a file has, by its ending and its first bytes, and the reader of each: all make a `TableSource`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from givens.app.tables.leading import open_bytes, read_bytes
from givens.app.tables.table import DataError, ReadingOptions, TableSource

ENDINGS = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".tab": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".h5ad": "h5ad",
    ".xlsx": "xlsx",
}
READERS = {
    "text": ("text", "text_source"),
    "parquet": ("parquet", "parquet_source"),
    "npy": ("arrays", "npy_source"),
    "npz": ("arrays", "npz_source"),
    "mtx": ("matrix_market", "matrix_market_source"),
    "h5ad": ("annotated", "h5ad_source"),
    "zarr": ("annotated", "zarr_source"),
    "xlsx": ("excel", "excel_source"),
}
MAGIC = {
    b"\x93NUMPY": ("npy", "a NumPy array (.npy)"),
    b"PAR1": ("parquet", "a Parquet file"),
    b"\x89HDF\r\n\x1a\n": ("h5ad", "an HDF5 file (.h5ad)"),
    b"%%MatrixMarket": ("mtx", "a Matrix Market file (.mtx)"),
    b"PK\x03\x04": (
        "npz",
        "a zip archive (.npz, or a spreadsheet such as .xlsx)",
    ),
    b"\x1f\x8b": ("gz", "a gzip file (.gz)"),
    b"\x80\x04": ("pickle", "a Python pickle, which is never opened"),
    b"\x80\x05": ("pickle", "a Python pickle, which is never opened"),
    b"%PDF": ("pdf", "a PDF document"),
    b"\xd0\xcf\x11\xe0": ("xls", "an old Excel file, which must be saved as CSV"),
}
NOUNS = {
    "text": "CSV or TSV text",
    **dict(MAGIC.values()),
    "npz": "a NumPy archive (.npz)",
    "xlsx": "an Excel file (.xlsx)",
}
MATRICES = ("matrix.mtx", "matrix.mtx.gz")  # of 10x Genomics


ZARR = ("zarr.json", ".zarray", ".zgroup")


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
    module, name = READERS[kind]
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
        return next((path / name for name in MATRICES if (path / name).is_file()), path)
    return path


def folder_format(path: Path) -> str | None:
    """Return the format of a folder: zarr, parquet, or None."""
    if any((path / name).is_file() for name in ZARR):
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
            f"{path.name} is {NOUNS[kind]}, which --cluster cannot read in chunks: "
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
            raise DataError(f"{path} is a folder without {' or '.join(MATRICES)}; name a file in it")
        return kind
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, and a table is read more than once: save it in a file first"
        )
    kind, zipped = _by_ending(path)
    head = _first_bytes(path, zipped)
    if not head:
        raise DataError(f"{path.name} is empty")
    found = next((value for magic, value in MAGIC.items() if head.startswith(magic)), ("text", NOUNS["text"]))
    if found[0] != kind and not (kind == "xlsx" and found[0] == "npz"):
        wanted = NOUNS[kind]
        raise DataError(f"{path.name} does not hold {wanted}, as its ending says, but {_seen(found)}")
    return kind


def _by_ending(path: Path) -> tuple[str, bool]:
    """Return the format that the ending of a file says, and whether the file is zipped."""
    zipped = path.suffix.lower() == ".gz"
    ending = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    kind = ENDINGS.get(ending)
    if kind is None:
        known = ", ".join(ENDINGS)
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


def _seen(found: tuple[str, str]) -> str:
    return "something else" if found[0] == "text" else found[1]
