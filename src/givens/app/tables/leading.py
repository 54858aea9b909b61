"""The bytes of a text file, and its first lines, from which its layout is detected.

A table may come with lines of comment before it: those that begin with '#', or with '!' as in the series
matrices of the Gene Expression Omnibus, whose tables end with such a line too; or with "sep=;", for Excel.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from givens.app.tables.records import lines_of
from givens.app.tables.table import DataError

LEADING_BYTES = 1 << 18
LONGEST_LINE_BYTES = 1 << 26  # bytes of a line
SAMPLE_LINES = 100
FEWEST_LINES = 5  # that are looked at, however long they are
TABLE_END = re.compile(r"!\w+_table_end\s*$")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, through gzip if its name says so."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else open(path, "rb")


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a gzip file."""
    try:
        yield
    except EOFError:
        raise DataError(
            f"{path.name} ends in the middle: the gzip file is truncated; copy or download it again"
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path.name} is a damaged gzip file ({error}); copy or download it again") from None


def read_bytes(stream: IO[bytes], size: int, path: Path) -> bytes:
    """Read from a stream that may be a damaged gzip file."""
    with unpacking(path):
        return stream.read(size)


def line_batches(path: Path, encoding: str, skip: int, size: int) -> Iterator[list[str]]:
    """Yield the lines after the first `skip`, each with its end, in lists of about `size` letters."""
    with (
        unpacking(path),
        open_bytes(path) as binary,
        io.TextIOWrapper(cast(io.BufferedReader, binary), encoding, "replace", newline="") as stream,
    ):
        for _ in range(skip):
            stream.readline()
        line = skip + 1
        while text := stream.read(size):
            last = stream.readline(LONGEST_LINE_BYTES)
            lines = lines_of(text + last)
            if len(last) == LONGEST_LINE_BYTES:
                raise too_long(path, line + len(lines) - 1)
            yield lines
            line += len(lines)


def too_long(path: Path, line: int) -> DataError:
    """Return the refusal of a line that is longer than any table's."""
    return DataError(
        f"{path.name}, line {line:,} is longer than {LONGEST_LINE_BYTES >> 20} MB, and no table has such lines: "
        "is it another kind of file?"
    )


def decode(head: bytes, path: Path) -> tuple[str, str]:
    """Return the text of the first bytes and its encoding."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path.name} is UTF-16 text: save it as UTF-8")
    if b"\0" in head:
        raise DataError(f"{path.name} is not text (it holds zero bytes): is its ending right?")
    cut = head[: head.rfind(b"\n") + 1] or head[: head.rfind(b"\r") + 1] or head
    try:
        # The codec leaves out a byte order mark.
        return cut.decode("utf-8-sig"), "utf-8-sig"
    except UnicodeDecodeError:
        return cut.decode("latin-1"), "latin-1"


@dataclass
class Leading:
    """The first lines of a file, with their ends: comments, then the table."""

    comments: list[str]
    table: list[str]
    encoding: str


def leading(path: Path, skip: int = 0, commented: bool = True) -> Leading:
    """Return the first lines: LEADING_BYTES of them, or as many as comments and a few more take.

    The first `skip` lines count as comments, whatever they hold; with `commented=False` no others do.
    """
    with open_bytes(path) as stream:
        head = read_bytes(stream, LEADING_BYTES, path)
        while _table_lines(head, skip) < FEWEST_LINES and len(head) < 1 << 27:
            more = read_bytes(stream, len(head), path)
            if not more:
                break
            head += more
            if len(head) - max(head.rfind(b"\n"), head.rfind(b"\r")) > LONGEST_LINE_BYTES:
                raise too_long(path, len(head.splitlines()))
    text, encoding = decode(head, path)
    lines = lines_of(text)
    comments = skip
    while commented and comments < len(lines) and _is_comment(lines[comments]):
        comments += 1
    if not any(line.strip() for line in lines[comments:]):
        if skip:
            raise DataError(
                f"{path.name} has no row after line {skip:,}: --skip-rows or --header counts too many"
            )
        raise DataError(f"{path.name} {'holds no table, only comments' if text.strip() else 'is empty'}")
    return Leading(lines[:comments], lines[comments:], encoding)


def _is_comment(line: str) -> bool:
    return (
        line.startswith(("#", "!"))
        or not line.strip()
        or re.fullmatch(r'"?sep=.?"?\s*', line, re.IGNORECASE) is not None
    )


def _table_lines(head: bytes, skip: int) -> int:
    """Return how many whole lines there are after those to skip and the comments, as far as it matters."""
    number = 0
    for line in head.splitlines(keepends=True)[skip:]:
        number += line.endswith((b"\n", b"\r")) and not line.startswith((b"#", b"!"))
        if number == FEWEST_LINES:
            break
    return number


def sampled(lines: Sequence[str]) -> list[str]:
    """Return the lines to look at: not more than SAMPLE_LINES, and fewer, but not below FEWEST_LINES, where they are long."""
    kept: list[str] = []
    for line in lines[:SAMPLE_LINES]:
        if len(kept) >= FEWEST_LINES and sum(map(len, kept)) > LEADING_BYTES:
            break
        if TABLE_END.match(line):
            break
        kept.append(line)
    return kept
