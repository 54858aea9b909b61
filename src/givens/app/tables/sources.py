"""Which format a file has: what its ending says, and whether its first bytes agree."""

from __future__ import annotations

import gzip
from pathlib import Path

from givens.app.tables.leading import open_bytes, read_bytes
from givens.app.tables.table import DataError

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


def table_file(path: Path) -> Path:
    """Return the file that holds the table: of a folder of 10x Genomics, its matrix."""
    if path.is_dir():
        return next((path / name for name in MATRICES if (path / name).is_file()), path)
    return path


def find_format(path: Path) -> str:
    """Return the format of a file: text, parquet, npy, npz, mtx, h5ad or xlsx.

    The ending decides; a file whose first bytes say otherwise is refused, since what it holds is then
    anyone's guess.
    """
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if path.is_dir():
        raise DataError(f"{path} is a folder without {' or '.join(MATRICES)}; name a file in it")
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, and a table is read more than once: save it in a file first"
        )
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
    try:
        with open(path, "rb") as stream:
            head = stream.read(16)
        if zipped and not head.startswith(b"\x1f\x8b"):
            raise DataError(f"{path.name} ends in .gz and is not a gzip file")
        if zipped:
            with open_bytes(path) as stream:
                head = read_bytes(stream, 16, path)
    except gzip.BadGzipFile as error:
        raise DataError(f"{path.name} is a damaged gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    if not head:
        raise DataError(f"{path.name} is empty")
    found = next((value for magic, value in MAGIC.items() if head.startswith(magic)), ("text", NOUNS["text"]))
    if found[0] != kind and not (kind == "xlsx" and found[0] == "npz"):
        wanted = NOUNS[kind]
        raise DataError(f"{path.name} does not hold {wanted}, as its ending says, but {_seen(found)}")
    return kind


def _seen(found: tuple[str, str]) -> str:
    return "something else" if found[0] == "text" else found[1]
