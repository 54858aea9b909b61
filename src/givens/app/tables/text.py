"""CSV and TSV, plain or gzipped, read in blocks of whole records.

`layout.py` says how the file is written. Lines without quotation marks go to NumPy's reader, many at a time: it is exact to the
last bit. From the first quotation mark on, which may hold separators and ends of lines, and where NumPy finds something that is
no number, the csv module splits the lines into fields. These are read one by one, so that an error names the field.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np

from givens.app.tables.layout import MISSING, as_float, is_number, sniff
from givens.app.tables.leading import TABLE_END, line_batches
from givens.app.tables.records import UnclosedQuoteError, records, single_blanks
from givens.app.tables.table import Block, DataError, ReadingOptions, TableSource, count


class TextRows:
    """The rows of a delimited text file, read in blocks of whole records.

    Parameters
    ----------
    path : Path
        The file; gzipped if it ends in .gz.
    options : ReadingOptions
        What is known of its rows and columns.
    block : int
        Letters read at a time.
    """

    # Letters read at a time: with their numbers some 20 MB
    def __init__(self, path: Path, options: ReadingOptions | None = None, block: int = 1 << 22) -> None:
        self.path = path
        self.block = block
        self.options = options or ReadingOptions()
        self.layout = sniff(path, self.options)
        self.numbers = self.layout.numbers
        names_at = [] if self.layout.names is None else [self.layout.names]
        self.texts = [*names_at, *self.layout.labels.values()]

    @property
    def column_names(self) -> list[str] | None:
        """Return the names of the columns of numbers."""
        header = self.layout.header
        return None if header is None else [header[k] or f"column {k + 1}" for k in self.numbers]

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, block after block."""
        batches = self._batches()
        line = self.layout.first_line
        for lines in batches:
            if any('"' in text for text in lines):
                yield from self._from_records(chain(lines, chain.from_iterable(batches)), line)
                return
            block = self._whole(lines, line)
            yield from [block] if block is not None else self._from_records(lines, line)
            line += len(lines)

    def _batches(self) -> Iterator[list[str]]:
        """Yield the lines, without the one that ends the table of a series matrix at the end of a file."""
        layout = self.layout
        held: list[str] = []
        for lines in line_batches(self.path, layout.encoding, layout.first_line - 1, self.block):
            lines = held + lines
            held = [lines.pop()] if TABLE_END.match(lines[-1]) else []
            yield lines

    def _whole(self, lines: list[str], line: int) -> Block | None:
        """Return the rows of lines without quotation marks as NumPy reads them, or None where not all are numbers."""
        separator = self.layout.separator
        rows: list[str] = []
        for at, text in enumerate(single_blanks(lines) if separator == " " else lines):
            if text.isspace() and (separator == " " or separator not in text):
                continue
            self._check_width(text.count(separator) + 1, line + at)
            rows.append(text)
        if not rows:
            return None
        words = [[text.split(separator, k + 1)[k].strip() for text in rows] for k in self.texts]
        try:
            values = np.loadtxt(
                _with_points(rows, self.layout.decimal),
                delimiter=separator,
                usecols=self.numbers,
                comments=None,
                ndmin=2,
            )
        except ValueError:
            return None
        return self._block(values, words, len(rows) == len(lines))

    def _from_records(self, lines: Iterable[str], line: int) -> Iterator[Block]:
        """Yield the rows of lines as the csv module splits them."""
        most = max(1, self.block // (8 * len(self.numbers)))
        values, words, first = array("d"), [list[str]() for _ in self.texts], line
        rows, last = 0, line - 1
        for at, fields in self._records(lines, line):
            values.extend(self._parsed(fields, at))
            for column, k in zip(words, self.texts):
                column.append(fields[k])
            rows, last = rows + 1, at
            if rows == most:
                yield self._block(np.array(values).reshape(rows, -1), words, last - first + 1 == rows)
                values, words, first, rows = array("d"), [[] for _ in self.texts], last + 1, 0
        if rows:
            yield self._block(np.array(values).reshape(rows, -1), words, last - first + 1 == rows)

    def _block(self, values: np.ndarray, words: list[list[str]], straight: bool) -> Block:
        named = self.layout.names is not None
        return Block(values, words[0] if named else [], words[1:] if named else words, straight)

    def _records(self, lines: Iterable[str], line: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the records, each as long as it should be, with their lines."""
        try:
            for at, fields in records(lines, self.layout.separator):
                self._check_width(len(fields), line + at)
                yield line + at, fields
        except UnclosedQuoteError as error:
            raise DataError(
                f"{self.path.name}, line {line + error.line:,}: a quotation mark is opened and never closed"
            ) from None

    def _check_width(self, width: int, line: int) -> None:
        if width != self.layout.width:
            raise DataError(
                f"{self.path.name}, line {line:,} has {count(width, 'field')} where the others have "
                f"{self.layout.width:,}: the rows must be equally long"
            )

    def _parsed(self, fields: list[str], line: int) -> list[float]:
        """Return the numbers of a record as Python reads them, or say which field holds none."""
        tokens = [fields[k] for k in self.numbers]
        try:
            if self.layout.decimal == "." and "_" not in "".join(tokens):
                return list(map(float, tokens))
        except ValueError:
            pass  # one of them is missing, or no number
        return [self._number(fields, line, k) for k in self.numbers]

    def _number(self, fields: list[str], line: int, column: int) -> float:
        token = fields[column]
        value = np.nan if token.lower() in MISSING else as_float(token, self.layout.decimal)
        if value is None or "_" in token:
            self._refuse(fields, line, column)
        return value

    def _refuse(self, fields: list[str], line: int, column: int) -> NoReturn:
        header, token = self.layout.header, fields[column]
        name = f" ('{header[column]}')" if header is not None and header[column] else ""
        shown = " ".join(token.split()) if len(token) <= 40 else token[:37] + "..."
        words = sum(not is_number(fields[k], self.layout.decimal) for k in self.numbers)
        if self.layout.names is not None and len(self.numbers) > 1 and 2 * words > len(self.numbers):
            called = fields[self.layout.names]
            first = "" if line == self.layout.first_line else "if it is the first below the header, "
            advice = (
                f"--labels '{called}' takes it as labels, {first}or " if self.options.takes_labels else ""
            )
            raise DataError(
                f"{self.path.name}, line {line:,}: the row '{called}' holds text, such as '{shown}', and no numbers: "
                f"{advice}leave the row out of the file"
            )
        takes = "--drop or --labels" if self.options.takes_labels else "--drop"
        raise DataError(
            f"{self.path.name}, line {line:,}, column {column + 1:,}{name}: "
            f"'{shown}' is not a number ({takes} takes a column out of the numbers)"
        )


def _with_points(rows: list[str], decimal: str) -> list[str]:
    """Return lines with decimal commas as lines with points; those that have points already hold no such numbers."""
    if decimal == ".":
        return rows
    if any("." in row for row in rows):
        raise ValueError("points among decimal commas")
    return [row.replace(",", ".") for row in rows]


def text_source(path: Path, options: ReadingOptions) -> TableSource:
    """Open a CSV or TSV file."""
    rows = TextRows(path, options)
    layout = rows.layout
    if layout.labels and layout.label_rows:
        column, row = next(iter(layout.labels)), next(iter(layout.label_rows))
        raise DataError(
            f"{path.name}: '{column}' labels the rows and '{row}' the columns, and only one of them can be samples"
        )
    if layout.label_rows and options.by_rows:
        raise DataError(
            f"'{next(iter(layout.label_rows))}' is a row, so the samples are columns, "
            "and only samples in rows can be streamed"
        )

    def blocks(most: int) -> Iterator[Block]:
        empty = True
        for block in rows.blocks():
            empty = False
            yield block
        if empty:
            raise DataError(f"{path.name} has a header and no rows")

    return TableSource(
        (None, len(rows.numbers)),
        blocks,
        column_names=rows.column_names,
        column_labels={name: [row[k] for k in layout.numbers] for name, row in layout.label_rows.items()},
        corner=layout.header[layout.names] if layout.names is not None and layout.header is not None else "",
        named=layout.names is not None and not layout.counted,
        notes=list(layout.notes),
        first_line=layout.first_line,
    )
