"""CSV and TSV, plain or gzipped, read in blocks of whole records.

`layout.py` says how the file is written. A block of many lines of few columns, without quotation marks and with as many
separators in each line as there should be, goes to pandas as it is. Otherwise the lines are cut at the fields of text, and all
the numbers, row after row, go to pandas as one long column: a column of its own for each variable would cost more than the
numbers in a wide table. Where pandas finds something that is no number, the block is read again, field by field, so that the
error names the field.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from givens.app.tables.layout import DETECT_ALL, MISSING, Layout, ReadingOptions, as_float, is_number, sniff
from givens.app.tables.leading import LONGEST_LINE, TABLE_END, open_bytes, read_bytes, too_long
from givens.app.tables.records import UnclosedQuoteError, lines_of, records
from givens.app.tables.table import DataError, Grid, count
from givens.support.extras import require

BLOCK_BYTES = 1 << 22  # bytes
ARROW_BYTES = 1 << 20  # bytes from which it pays to load Arrow
NARROW = 1000  # columns up to which a block is read as a table
LONG_LINE = 1 << 20  # bytes of a line that is looked at twice before it is split
UNUSED = "\x01"  # separates nothing: the numbers are one column
SPELLINGS = sorted(
    {"".join(letters) for word in MISSING for letters in product(*({c, c.upper()} for c in word))}
)
# A number of at most 15 digits without an exponent is a whole number below 2**53 over a power of ten below 10**16, both exact:
# one division rounds it correctly. Only longer ones need the slower parser of pandas 2.
DIGITS = bytes(
    ord("0") if chr(k).isdigit() and k < 128 else (ord("e") if chr(k) in "eE" else ord(" "))
    for k in range(256)
)


@dataclass
class TextBlock:
    """Some consecutive rows of a file; `straight` if each of them is a line."""

    values: np.ndarray
    names: list[str] | None
    labels: list[list[str]]
    straight: bool


@dataclass
class Cut:
    """The rows of a block: the fields of text that are wanted, by their columns, and the numbers as one column of text."""

    rows: int
    words: dict[int, list[str]]
    numbers: bytes


class TextRows:
    """The rows of a delimited text file, read in blocks of whole records.

    Parameters
    ----------
    path : Path
        The file; gzipped if it ends in .gz.
    options : ReadingOptions
        What is known of its rows and columns.
    block : int
        Bytes read at a time.
    layout : Layout, optional
        The layout of the file; detected if None.
    """

    def __init__(
        self,
        path: Path,
        options: ReadingOptions = DETECT_ALL,
        block: int = BLOCK_BYTES,
        layout: Layout | None = None,
    ) -> None:
        self.path = path
        self.block = block
        self.layout = sniff(path, options) if layout is None else layout
        self.numbers = self.layout.numbers
        names_at = [] if self.layout.names is None else [self.layout.names]
        self.texts = [*names_at, *self.layout.labels.values()]

    @property
    def column_names(self) -> list[str] | None:
        """Return the names of the columns of numbers."""
        header = self.layout.header
        return None if header is None else [header[k] or f"column {k + 1}" for k in self.numbers]

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the rows, block after block."""
        for data, line in self._pieces():
            whole = self._read_whole(data)
            if whole is not None:
                yield whole
                continue
            cut = self._cut(data) or self._cut_quoted(data, line)
            if not cut.rows:
                continue
            values = read_numbers(cut.numbers, self.layout.decimal)
            if values is None or len(values) != cut.rows * len(self.numbers):
                values = self._judged(data, line)
            yield TextBlock(
                values.reshape(cut.rows, len(self.numbers)),
                None if self.layout.names is None else cut.words[self.layout.names],
                [cut.words[k] for k in self.layout.labels.values()],
                line_ends(data.rstrip(b"\r\n")) + 1 == cut.rows,
            )

    def _read_whole(self, data: bytes) -> TextBlock | None:
        """Return the rows of a block read by one call, or None where that is not sure to be right, or slower."""
        layout = self.layout
        if (
            layout.width > NARROW
            or b"\0" in data
            or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n"))
        ):
            return None
        data = data if data.endswith(b"\n") else data + b"\n"
        ends = field_ends(data, layout.separator.encode(), layout.width)
        if ends is None or len(ends) < layout.width // 8:
            return None
        quoted = b'"' in data
        if quoted and (self.texts != [0] or not only_first_quoted(data, ends)):
            return None
        kinds: dict[int, Any] = dict.fromkeys(self.texts, str) | dict.fromkeys(self.numbers, np.float64)
        frame = read_frame(data, layout, kinds, quoted)
        if frame is None or len(frame) != len(ends):
            return None
        words = {k: [word.strip() for word in frame[k].tolist()] for k in self.texts}
        return TextBlock(
            frame[self.numbers].to_numpy(np.float64),
            None if layout.names is None else words[layout.names],
            [words[k] for k in layout.labels.values()],
            True,
        )

    def _pieces(self) -> Iterator[tuple[bytes, int]]:
        """Yield bytes that hold whole records, with the line that they begin at."""
        line, rest = self.layout.first_line, b""
        with open_bytes(self.path) as stream:
            read_bytes(stream, self.layout.skip, self.path)
            fresh = read_bytes(stream, self.block, self.path)
            while fresh:
                following = read_bytes(stream, self.block, self.path)
                data = rest + fresh if following else without_table_end(rest + fresh)
                end = self._whole(data) if following else len(data)
                if end:
                    yield data[:end], line
                elif len(data) > LONGEST_LINE:
                    raise too_long(self.path, line)
                line += line_ends(data[:end])
                rest, fresh = data[end:], following

    def _whole(self, data: bytes) -> int:
        """Return how many bytes hold whole records, where the data begin with one and the file goes on after them."""
        # A carriage return at the very end may be half of a line's end.
        end = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1
        if b'"' not in data or all(is_closed(line) for line in data[:end].splitlines()):
            return end
        lines = lines_of(data[:end].decode("latin-1"))
        try:
            for _ in records(lines, self.layout.separator):
                pass
        except UnclosedQuoteError as error:
            return sum(map(len, lines[: error.line]))
        return end

    def _cut(self, data: bytes) -> Cut | None:
        """Return the rows of a block by its separators, or None where a row is ragged or quoted beyond its first field."""
        layout, separator = self.layout, self.layout.separator.encode()
        # Nearly always the numbers stand together at the end, and need not be split one by one.
        first = layout.width - len(self.numbers)
        together = self.numbers == list(range(first, layout.width))
        plain, blank = b'"' not in data, separator == b" "
        words: dict[int, list[bytes]] = {k: [] for k in self.texts}
        numbers: list[bytes] = []
        for line in data.splitlines():
            if not line or (line.isspace() and (blank or separator not in line)):
                continue
            name = None
            if not plain and line[:1] == b'"' and 0 in words:
                name, _, line = line[1:].partition(b'"')
                line = b"." + line
            if not plain and b'"' in line:
                return None
            fields = (b" ".join(line.split()) if blank else line).split(separator, first if together else -1)
            if len(fields) != (first + 1 if together else layout.width):
                return None
            if name is not None:
                if fields[0] != b".":
                    return None
                fields[0] = name
            for k, column in words.items():
                column.append(fields[k])
            numbers.append(fields[-1] if together else separator.join([fields[k] for k in self.numbers]))
        body = b"\n".join([*numbers, b""])
        if not is_regular(body, separator, len(numbers), len(self.numbers)):
            return None
        decoded = {
            k: [word.decode(layout.encoding, "replace").strip() for word in column]
            for k, column in words.items()
        }
        return Cut(len(numbers), decoded, body.replace(separator, b"\n"))

    def _cut_quoted(self, data: bytes, line: int) -> Cut:
        """Return the rows of a block by the csv module, or say which row is not as long as the others."""
        separator = self.layout.separator.encode()
        for at, long in enumerate(data.splitlines()):
            # Not split first: millions of fields would take gigabytes.
            if len(long) > LONG_LINE and b'"' not in long and separator != b" ":
                self._check_width(long.count(separator) + 1, line + at)
        words: dict[int, list[str]] = {k: [] for k in self.texts}
        numbers: list[str] = []
        rows = 0
        for _, fields in self._records(data, line):
            rows += 1
            for k, column in words.items():
                column.append(fields[k])
            numbers += [fields[k] for k in self.numbers]
        return Cut(rows, words, "\n".join([*numbers, ""]).encode())

    def _records(self, data: bytes, line: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of a block, each as long as it should be, with their lines."""
        try:
            for at, fields in records(
                lines_of(data.decode(self.layout.encoding, "replace")), self.layout.separator
            ):
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

    def _judged(self, data: bytes, line: int) -> np.ndarray:
        """Return the numbers of a block as Python reads them, or say which field holds none."""
        values: list[float] = []
        for at, fields in self._records(data, line):
            for k in self.numbers:
                value = np.nan if fields[k].lower() in MISSING else as_float(fields[k], self.layout.decimal)
                if value is None or "_" in fields[k]:
                    self._refuse(fields, at, k)
                values.append(value)
        return np.array(values)

    def _refuse(self, fields: list[str], line: int, column: int) -> NoReturn:
        header, token = self.layout.header, fields[column]
        name = f" ('{header[column]}')" if header is not None and header[column] else ""
        shown = " ".join(token.split()) if len(token) <= 40 else token[:37] + "..."
        words = sum(not is_number(fields[k], self.layout.decimal) for k in self.numbers)
        if self.layout.names is not None and len(self.numbers) > 1 and 2 * words > len(self.numbers):
            called = fields[self.layout.names]
            first = "" if line == self.layout.first_line else "if it is the first below the header, "
            raise DataError(
                f"{self.path.name}, line {line:,}: the row '{called}' holds text, such as '{shown}', and no numbers: "
                f"--labels '{called}' takes it as labels, {first}or leave the row out of the file"
            )
        raise DataError(
            f"{self.path.name}, line {line:,}, column {column + 1:,}{name}: "
            f"'{shown}' is not a number (--drop or --labels takes a column out of the numbers)"
        )


def is_closed(line: bytes) -> bool:
    """Whether a line is plainly a record of its own: without quotation marks, or with nothing but its first field in them."""
    return b'"' not in line or (line[:1] == b'"' and line.count(b'"') == 2)


def line_ends(data: bytes) -> int:
    """Return how many lines end in the data."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else ends


def is_regular(body: bytes, separator: bytes, rows: int, columns: int) -> bool:
    """Whether each of the lines has as many fields as there should be columns.

    >>> is_regular(b"1,2\\n3,4\\n", b",", 2, 2), is_regular(b"1,2,3\\n4\\n", b",", 2, 2)
    (True, False)
    """
    letters = np.frombuffer(body, np.uint8)
    ends, places = np.flatnonzero(letters == ord("\n")), np.flatnonzero(letters == ord(separator))
    if len(ends) != rows or len(places) != rows * (columns - 1):
        return False
    inside = places.reshape(rows, columns - 1)
    # The separators of a row, as many as there should be, all stand between the ends of the row before and of its own.
    return columns == 1 or bool((inside[:, -1] < ends).all() and (inside[1:, 0] > ends[:-1]).all())


def without_table_end(data: bytes) -> bytes:
    """Return the last bytes of a file without the line that ends the table of a series matrix."""
    at = data.rfind(b"!")
    return (
        data[:at]
        if at >= 0 and data[at - 1 : at] in (b"", b"\n", b"\r") and TABLE_END.match(data[at:])
        else data
    )


def field_ends(data: bytes, separator: bytes, width: int) -> np.ndarray | None:
    """Return where each field of each line ends, rows x width; None where a line has more or fewer fields.

    >>> field_ends(b"a,1\\nb,2\\n", b",", 2).tolist(), field_ends(b"a\\nb,1,2\\n", b",", 2)
    ([[1, 3], [5, 7]], None)
    """
    letters = np.frombuffer(data, np.uint8)
    places = np.flatnonzero((letters == ord("\n")) | (letters == ord(separator)))
    if len(places) % width:
        return None
    ends = places.reshape(-1, width)
    # As many lines as rows, each ending where a row does.
    if data.count(b"\n") != len(ends) or not (letters[ends[:, -1]] == ord("\n")).all():
        return None
    return ends


def only_first_quoted(data: bytes, ends: np.ndarray) -> bool:
    """Whether the first field of each line stands in quotation marks, and nothing else has any."""
    letters = np.frombuffer(data, np.uint8)
    starts = np.concatenate(([0], ends[:-1, -1] + 1))
    first = (letters[starts] == ord('"')) & (letters[ends[:, 0] - 1] == ord('"')) & (ends[:, 0] - starts > 1)
    return bool(first.all()) and data.count(b'"') == 2 * len(ends)


def exact_parser(pandas: Any, data: bytes, decimal: str) -> dict[str, str]:
    """Return the option with which pandas reads these numbers to the last bit: from 3.1 on it does so by default."""
    if tuple(int(part) for part in pandas.__version__.split(".")[:2]) >= (3, 1):
        return {}
    return {"float_precision": "high" if has_short_numbers(data, decimal) else "round_trip"}


def read_frame(data: bytes, layout: Layout, kinds: dict[int, Any], quoted: bool) -> Any:
    """Return these columns of whole lines as a data frame; None if one of them holds something that is no number.

    Where it is installed, large blocks are read by Arrow: exact to the last bit, and in half the time.
    """
    pandas = require("pandas", extra="cli")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if len(data) >= ARROW_BYTES and find_spec("pyarrow") is not None:
                return read_by_arrow(data, layout, kinds, quoted)
            return pandas.read_csv(
                io.BytesIO(data),
                sep=layout.separator,
                header=None,
                usecols=sorted(kinds),
                dtype=kinds,
                decimal=layout.decimal,
                encoding=layout.encoding,
                encoding_errors="replace",
                skipinitialspace=layout.separator != " ",
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                na_filter=False,
                **exact_parser(pandas, data, layout.decimal),
            )
    except (ValueError, OverflowError, Warning):
        return None


def read_by_arrow(data: bytes, layout: Layout, kinds: dict[int, Any], quoted: bool) -> Any:
    """Return these columns of whole lines as a data frame."""
    import pyarrow
    from pyarrow import csv as arrow

    names = [str(k) for k in range(layout.width)]
    types = {
        str(k): pyarrow.float64() if kind is np.float64 else pyarrow.string() for k, kind in kinds.items()
    }
    table = arrow.read_csv(
        io.BytesIO(data),
        read_options=arrow.ReadOptions(column_names=names, encoding=layout.encoding, use_threads=False),
        parse_options=arrow.ParseOptions(delimiter=layout.separator, quote_char='"' if quoted else False),
        convert_options=arrow.ConvertOptions(
            column_types=types,
            include_columns=[str(k) for k in sorted(kinds)],
            null_values=[],
            decimal_point=layout.decimal,
        ),
    )
    frame = table.to_pandas()
    frame.columns = [int(name) for name in frame.columns]
    return frame


def read_numbers(column: bytes, decimal: str) -> np.ndarray | None:
    """Return a column of text as float64, exact to the last bit, NaN where nothing stands; None if pandas finds no numbers."""
    pandas = require("pandas", extra="cli")
    if b"\0" in column:  # would end the number before it
        return None
    exact = exact_parser(pandas, column, decimal)
    # Whether a field stands for a missing number is asked only where one of them is no number: it takes as long as reading it.
    for missing in ({"na_filter": False}, {"keep_default_na": False, "na_values": SPELLINGS}):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                frame = pandas.read_csv(
                    io.BytesIO(column),
                    sep=UNUSED,
                    header=None,
                    names=["number"],
                    dtype=np.float64,
                    decimal=decimal,
                    encoding="latin-1",
                    skipinitialspace=True,
                    skip_blank_lines=False,
                    quoting=csv.QUOTE_NONE,
                    **exact,
                    **missing,
                )
            return frame["number"].to_numpy()
        except (ValueError, OverflowError, Warning):
            continue
    return None


def has_short_numbers(column: bytes, decimal: str) -> bool:
    """Whether no number of a column has more than 15 digits or an exponent."""
    kinds = column.translate(DIGITS, delete=decimal.encode())
    return b"0" * 16 not in kinds and b"0e" not in kinds


def read_text(path: Path, options: ReadingOptions) -> Grid:
    """Read a whole CSV or TSV file."""
    rows = TextRows(path, options)
    layout = rows.layout
    blocks = list(rows.blocks())
    if not blocks:
        raise DataError(f"{path.name} has a header and no rows")
    # By rows, whatever the blocks: sums over another order of memory may round otherwise.
    values = blocks[0].values if len(blocks) == 1 else np.concatenate([block.values for block in blocks])
    values = np.ascontiguousarray(values)
    # Blank lines or broken names between the rows: a row's number no longer gives its line.
    straight = all(block.straight for block in blocks)
    grid = Grid(values, column_names=rows.column_names, notes=list(layout.notes))
    grid.first_line = layout.first_line if straight else 0
    if layout.names is not None:
        grid.row_names = [name for block in blocks for name in block.names or ()]
        grid.corner = layout.header[layout.names] if layout.header is not None else ""
    for k, name in enumerate(layout.labels):
        grid.labels[name] = [label for block in blocks for label in block.labels[k]]
    if layout.labels and layout.label_rows:
        column, row = next(iter(layout.labels)), next(iter(layout.label_rows))
        raise DataError(
            f"{path.name}: '{column}' labels the rows and '{row}' the columns, and only one of them can be samples"
        )
    if layout.label_rows:
        grid.labels_of = "columns"
        grid.labels = {name: [row[k] for k in layout.numbers] for name, row in layout.label_rows.items()}
    return grid
