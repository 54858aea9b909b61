"""A text as records of fields, split by the csv module.

A line ends with a line feed, a carriage return or both, and with nothing else: `str.splitlines` would also cut at form feeds and
at Unicode's separators of lines, which may stand in names.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator

from givens.app.tables.table import DataError

END = "end"  # of the lines: a record of its own, unless a quotation mark is still open there


class UnclosedQuoteError(Exception):
    """A quotation mark is opened and never closed; `line` is where its record begins, from 0."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def lines_of(text: str) -> list[str]:
    """Return the lines, each with its end.

    >>> lines_of("a\\u2028b\\r\\nc\\rd")
    ['a\\u2028b\\r\\n', 'c\\r', 'd']
    """
    return list(io.StringIO(text, newline=""))


def records(lines: Iterable[str], separator: str, closed: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank: its line, from 0, and its fields without blanks around them.

    With `closed=False` the lines may end inside quotation marks.

    >>> list(records(['"a b"  c\\n', "\\n", "1 2\\n"], " "))
    [(0, ['a b', 'c']), (2, ['1', '2'])]
    """
    ended: list[bool] = []
    source = single_blanks(lines) if separator == " " else lines
    rows = csv.reader(_and_end(source, ended), delimiter=separator, skipinitialspace=True)
    line = 0
    try:
        for row in rows:
            if ended and row != [END] and closed:
                raise UnclosedQuoteError(line)
            if ended:
                return
            fields = [token.strip() for token in row]
            if len(fields) > 1 or (fields and fields[0]):
                yield line, fields
            line = rows.line_num
    except csv.Error as error:
        raise DataError(f"the file cannot be split into fields: {error}") from None


def _and_end(lines: Iterable[str], ended: list[bool]) -> Iterator[str]:
    yield from lines
    ended.append(True)
    yield END


def single_blanks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with one blank between fields, which is all that the csv module splits at."""
    for line in lines:
        yield (
            line.replace("\t", " ").rstrip() if '"' in line else re.sub(r"[ \t\r\n]+", " ", line).strip(" ")
        ) + "\n"
