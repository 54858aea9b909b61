"""How a text file is written, found out from its first lines.

The separator is the one that cuts the first lines into the most fields, equally many in each. A record of
words over columns of numbers is a header; a first column of unique words is the rows' names.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from givens.io.table import DataError, listed

MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "?", ".", "-"])
LEADING = 1 << 18
MOST = 1 << 27
SAMPLE, FEW = 100, 5  # lines looked at


@dataclass
class Layout:
    """How a text file is written."""

    separator: str
    decimal: str
    skip: int  # bytes before the first record of numbers
    first_line: int  # its line, from 1
    header: list[str] | None  # one name a field
    names: int | None  # the field that holds the rows' names
    text: list[int]  # fields of text, left out unless one is the labels
    width: int  # fields a record
    encoding: str
    comments: int = 0
    labels: int | None = None  # the field that holds the rows' labels
    label_row: list[str] | None = None  # or the columns' labels, one a field
    label_name: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        """Return the fields that hold numbers."""
        return [k for k in range(self.width) if k != self.names and k != self.labels and k not in self.text]


def is_number(token: str, decimal: str = ".") -> bool:
    """Whether a token is a number or stands for a missing one."""
    token = token.strip()
    if token.lower() in MISSING:
        return True
    return "_" not in token and as_float(token, decimal) is not None


def as_float(token: str, decimal: str = ".") -> float | None:
    """Return the number, or None where there is none."""
    if decimal == ",":
        token = "text" if "." in token else token.replace(",", ".")
    try:
        return float(token)
    except ValueError:
        return None


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, through gzip if its name says so."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


def read_bytes(stream: IO[bytes], size: int, path: Path) -> bytes:
    """Read from a stream that may be a damaged gzip file."""
    try:
        return stream.read(size)
    except EOFError:
        raise DataError(
            f"{path.name} ends in the middle: the gzip file is truncated; copy or download it again"
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path.name} is a damaged gzip file ({error}); copy or download it again") from None


def split_records(text: str, separator: str) -> list[list[str]]:
    """Split text into records of stripped fields, as the compiled parser does."""
    if separator == " ":
        return [line.split() for line in text.splitlines() if line.strip()]
    rows = csv.reader(text.splitlines(keepends=True), delimiter=separator, skipinitialspace=True)
    try:
        stripped = [[token.strip() for token in row] for row in rows]
    except csv.Error as error:
        raise DataError(f"the file cannot be split into fields: {error}") from None
    return [row for row in stripped if any(row)]


def find_separator(lines: Sequence[str]) -> str:
    """Return the separator that cuts the lines into the most fields, equally many in each."""
    best, score = ",", 0.0
    for separator in "\t,;| ":
        try:
            widths = [len(row) for row in split_records("\n".join(lines), separator)]
        except DataError:  # a whole line as one field is more than the csv module takes
            continue
        if not widths or max(widths) < 2:
            continue
        usual = max(set(widths[1:] or widths), key=(widths[1:] or widths).count)
        agreed = sum(width == usual for width in widths) / len(widths)
        worth = agreed * min(usual, 50) * (1.0 if separator != " " else 0.5)
        if usual > 1 and worth > score:
            best, score = separator, worth
    return best


def decode(head: bytes, path: Path) -> tuple[str, str]:
    """Return the text of the first bytes and its encoding."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path.name} is UTF-16 text: save it as UTF-8")
    if b"\0" in head:
        raise DataError(f"{path.name} is not text (it holds zero bytes): is its ending right?")
    cut = head[: head.rfind(b"\n") + 1] or head
    try:
        return cut.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return cut.decode("latin-1"), "latin-1"


def leading(path: Path) -> bytes:
    """Return the first bytes of a file: LEADING, or as many as a few lines take where lines are long."""
    with open_bytes(path) as stream:
        head = read_bytes(stream, LEADING, path)
        while head.count(b"\n") < FEW and len(head) < MOST:
            more = read_bytes(stream, len(head), path)
            if not more:
                break
            head += more
    return head


def sampled(lines: Sequence[str]) -> list[str]:
    """Return the lines to look at: not more than SAMPLE, and fewer, but not below FEW, where they are long."""
    kept: list[str] = []
    for line in lines[:SAMPLE]:
        if len(kept) >= FEW and sum(map(len, kept)) > LEADING:
            break
        kept.append(line)
    return kept


def sniff(
    path: Path, labels: str | None = None, names: str | None = None, drop: Sequence[str] = ()
) -> Layout:
    """Find out how a text file is written."""
    head = leading(path)
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    text, encoding = decode(head[bom:], path)
    lines = text.splitlines(keepends=True)
    comments = 0
    while comments < len(lines) and (lines[comments].startswith("#") or not lines[comments].strip()):
        comments += 1
    body = lines[comments:]
    if not any(line.strip() for line in body):
        raise DataError(f"{path.name} {'holds no table, only comments' if text.strip() else 'is empty'}")
    sample = sampled(body)
    separator = find_separator([line for line in sample if line.strip()])
    records = split_records("".join(sample), separator)
    if not records:
        raise DataError(f"{path.name} holds no table")
    decimal = "."
    if separator in ";\t" and not _numeric_share(records, ".") > 0.5 and _numeric_share(records, ",") > 0.5:
        decimal = ","
    layout = Layout(separator, decimal, 0, 0, None, None, [], 0, encoding, comments)
    if encoding == "latin-1":
        layout.notes.append("the file is not UTF-8; its names were read as Latin-1")
    if decimal == ",":
        layout.notes.append("took the comma as the decimal sign")
    used = _find_header(layout, records)
    used += _find_columns(layout, records[used:], labels, names, drop, path)
    skipped = _skip_records(body, used)
    layout.first_line = comments + skipped + 1
    layout.skip = bom + sum(len(line.encode(encoding)) for line in lines[: comments + skipped])
    return layout


def _numeric_share(records: list[list[str]], decimal: str) -> float:
    tokens = [token for row in records[1:] for token in row[1:]] or [
        token for row in records for token in row
    ]
    tokens = tokens[:: max(1, len(tokens) // 1000)]
    return sum(is_number(token, decimal) for token in tokens) / max(1, len(tokens))


def _skip_records(lines: Sequence[str], used: int) -> int:
    """Return how many lines the first `used` records take."""
    at = 0
    while used:
        # A quoted name may hold a line break: the record goes on while its quotes are open.
        quotes = lines[at].count('"')
        filled = bool(lines[at].strip())
        at += 1
        while quotes % 2 and at < len(lines):
            quotes += lines[at].count('"')
            at += 1
        used -= filled
    return at


def _find_header(layout: Layout, records: list[list[str]]) -> int:
    """Find out whether the first record is a header; return how many records it takes."""
    first = records[0]
    rest = records[1:50]
    layout.width = (
        max({len(row) for row in rest}, key=[len(row) for row in rest].count) if rest else len(first)
    )
    short = len(first) == layout.width - 1
    if len(first) != layout.width and not short:
        layout.width = len(first)
    if not rest:
        if not all(is_number(token, layout.decimal) for token in first[1:] or first):
            raise DataError("the file has a header and no rows")
        return 0
    padded = ["", *first] if short else first
    columns = [[row[k] for row in rest if len(row) == layout.width] for k in range(layout.width)]
    words = [
        not is_number(padded[k], layout.decimal) and all(is_number(token, layout.decimal) for token in column)
        for k, column in enumerate(columns)
    ]
    blank_corner = padded[0] == "" and all(padded[1:]) and any(row[0] != "" for row in rest)
    textual = all(not is_number(token, layout.decimal) for token in padded)
    if short or any(words) or blank_corner or textual:
        layout.header = padded
        return 1
    return 0


def _find_columns(
    layout: Layout,
    records: list[list[str]],
    labels: str | None,
    names: str | None,
    drop: Sequence[str],
    path: Path,
) -> int:
    """Find the columns of names, labels and text; return 1 if the labels are the first row, and 0 if not."""
    whole = [row for row in records if len(row) == layout.width]
    columns = [[row[k] for row in whole] for k in range(layout.width)]
    wordy = [bool(c) and all(not is_number(token, layout.decimal) for token in c) for c in columns]
    header = layout.header or [""] * layout.width
    if names is not None:
        layout.names = _field(header, names, "--names", path)
    elif (wordy[0] and len(set(columns[0])) == len(columns[0])) or (
        layout.header is not None
        and (header[0] == "" or header[0].lower() in {"id", "index", "name", "names"})
    ):
        layout.names = 0
    used = 0
    if labels is not None:
        used = _find_labels(layout, whole, header, labels, path)
    dropped = [_field(header, name, "--drop", path) for name in drop]
    trailing = layout.width - 1
    if (
        layout.width > 1
        and header[trailing] == ""
        and not any(columns[trailing])
        and layout.header is not None
    ):
        dropped.append(trailing)
    left_out = [
        k for k in range(layout.width) if wordy[k] and k not in (layout.names, layout.labels, *dropped)
    ]
    layout.text = sorted({*dropped, *left_out})
    if left_out:
        called = listed([f"'{header[k]}'" if header[k] else str(k + 1) for k in left_out])
        plural = "s" if len(left_out) > 1 else ""
        layout.notes.append(f"left out the text column{plural} {called} (--labels takes one as labels)")
    if not layout.numbers:
        raise DataError(f"{path.name} has no column of numbers")
    return used


def _find_labels(layout: Layout, records: list[list[str]], header: list[str], labels: str, path: Path) -> int:
    """Find the labels: a column by its header, or one of the first rows by its name."""
    layout.label_name = labels
    if labels in header:
        layout.labels = header.index(labels)
        if layout.labels == layout.names:
            layout.names = None
        return 0
    if layout.names is not None or not header[0]:
        at = 0 if layout.names is None else layout.names
        if records and records[0][at] == labels:
            layout.label_row = records[0]
            layout.names = at
            return 1
    known = [name for name in header if name]
    raise DataError(
        f"{path.name} has no column '{labels}' for --labels, nor a first row of that name"
        + (f"; its columns are {listed(known, 8)}" if known else "; it has no header")
    )


def _field(header: list[str], name: str, option: str, path: Path) -> int:
    """Return the field of that name, or of that number where no name fits."""
    if name in header:
        return header.index(name)
    if name.isdigit() and 1 <= int(name) <= len(header):
        return int(name) - 1
    raise DataError(f"{path.name} has no column '{name}' for {option}; its columns are {listed(header, 8)}")
