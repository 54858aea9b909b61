"""The layout of a text file, detected from its first lines.

The separator is the one that cuts the first lines into the most fields, equally many in each. A record of
words over columns of numbers is a header; a first column of unique words is the rows' names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from givens.app.tables.leading import leading, sampled
from givens.app.tables.records import records
from givens.app.tables.table import (
    HEADINGS,
    DataError,
    ReadingOptions,
    count,
    listed,
    only_count,
    stem,
)

SEPARATORS = "\t,;| "
MOST_FIELDS = 1 << 23
MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "?", ".", "-"])
UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*")  # what pandas makes of an empty heading


@dataclass
class Layout:
    """The layout of a text file."""

    separator: str
    decimal: str
    first_line: int  # that of the first record of numbers, from 1
    header: list[str] | None  # one name a field
    names: int | None  # the field that holds the rows' names
    text: list[int]  # fields of text, left out unless one is the labels
    width: int  # fields a record
    encoding: str
    labels: dict[str, int] = field(default_factory=dict)  # the fields that hold the rows' labels
    label_rows: dict[str, list[str]] = field(default_factory=dict)  # or the columns' labels, one a field
    notes: list[str] = field(default_factory=list)
    counted: bool = False  # whether the rows' names only count them, as pandas' index does

    @property
    def numbers(self) -> list[int]:
        """Return the fields that hold numbers."""
        others = {self.names, *self.labels.values(), *self.text}
        return [k for k in range(self.width) if k not in others]

    def numeric(self, token: str) -> bool:
        """Whether a token is a number, or stands for a missing one."""
        return is_number(token, self.decimal)


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


def split_records(lines: Sequence[str], separator: str) -> list[tuple[int, list[str]]]:
    """Split first lines, which may end inside quotation marks, into records that hold anything, each with its line."""
    return [(line, row) for line, row in records(lines, separator, closed=False) if any(row)]


def find_separator(lines: Sequence[str]) -> str:
    """Return the separator that cuts the lines into the most fields, equally many in each."""
    best, score = ",", 0.0
    for separator in SEPARATORS:
        try:
            widths = [len(row) for _, row in split_records(lines, separator)]
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


def sniff(path: Path, options: ReadingOptions) -> Layout:
    """Detect the layout of a text file, as far as the options leave it open."""
    above = options.skip_rows + max(
        0, (options.header or 0) - 1
    )  # the lines above the header that was asked for
    first = leading(path, above, commented=not options.header)
    sample = sampled(first.table)
    for k, line in enumerate(sample):
        if max(map(line.count, SEPARATORS)) > MOST_FIELDS:
            raise DataError(
                f"{path.name}, line {len(first.comments) + k + 1:,} has more than {MOST_FIELDS:,} fields, "
                "and no table has so many columns: is it another kind of file?"
            )
    separator = find_separator([line for line in sample if line.strip()])
    found = split_records(sample, separator)
    if not found:
        raise DataError(f"{path.name} holds no table")
    starts, records = [line for line, _ in found], [row for _, row in found]
    decimal = "."
    if separator in ";\t| " and not _numeric_share(records, ".") > 0.5 and _numeric_share(records, ",") > 0.5:
        decimal = ","
    layout = Layout(separator, decimal, 0, None, None, [], 0, first.encoding)
    if first.encoding == "latin-1":
        layout.notes.append("the file is not UTF-8; its names were read as Latin-1")
    if decimal == ",":
        layout.notes.append("took the comma as the decimal sign")
    place = f"{path.name}, line {len(first.comments) + 1:,}"
    if options.header and starts[0] > 0:
        raise DataError(f"{place} is empty, and --header says that it holds the names of the columns")
    used = _find_header(layout, records, options.header, place)
    used += Fields(layout, records[used:], options, path).find()
    layout.first_line = len(first.comments) + [*starts, len(first.table)][used] + 1
    return layout


def _numeric_share(records: list[list[str]], decimal: str) -> float:
    tokens = [token for row in records[1:] for token in row[1:]] or [
        token for row in records for token in row
    ]
    tokens = tokens[:: max(1, len(tokens) // 1000)]
    return sum(is_number(token, decimal) for token in tokens) / max(1, len(tokens))


def _find_header(layout: Layout, records: list[list[str]], asked: int | None, place: str) -> int:
    """Find out how wide the table is and whether the first record is a header; return how many records it takes.

    `asked` is what the user says: 0 for no header, another number where the first record is one. `place` is that of the record.
    """
    first, rest = records[0], records[1:50]
    widths = [len(row) for row in rest or records]
    layout.width = max(set(widths), key=widths.count)
    if asked == 0:
        return 0
    if not rest:
        if asked is None and all(map(layout.numeric, first[1:] or first)):
            return 0
        raise DataError("the file has a header and no rows")
    header = _padded(first, rest, layout.width)
    if len(header) != layout.width:
        if asked is not None or (len(rest) > 1 and len(set(widths)) == 1):
            raise DataError(
                f"{place} has {count(len(first), 'field')}, and the rows below it have {layout.width:,}: "
                "--skip-rows leaves out rows above the table, and --header says which of the others holds the names"
            )
        layout.width = len(first)
    if asked is None and header[1:] != first and not _names_columns(layout, header, rest):
        return 0
    layout.header = header
    if asked is None:
        _note_numbers(layout, header)
    return 1


def _note_numbers(layout: Layout, header: list[str]) -> None:
    """Note a header of mostly whole numbers, unless its first field is blank, which no row of numbers is likely to have."""
    numeric = sum(token.isdigit() for token in header)
    if header[0] and 2 * numeric > len(header):
        which = "they" if numeric >= len(header) - 1 else "most of them"
        layout.notes.append(
            f"took the first row as names of the columns, though {which} are whole numbers (--header 0 says otherwise)"
        )


def _padded(first: list[str], rest: list[list[str]], width: int) -> list[str]:
    """Return a header that is one short with the heading that it lacks: that of the names, as R writes it, or of a last column
    that is empty since the rows end with a separator."""
    if len(first) != width - 1:
        return first
    ended = not any(row[-1] for row in rest if len(row) == width)
    return [*first, ""] if ended else ["", *first]


def _names_columns(layout: Layout, first: list[str], rest: list[list[str]]) -> bool:
    """Whether the first record names the columns of those below it."""
    words = [not layout.numeric(token) for token in first]
    if all(words) or (first[0] == "" and all(first[1:]) and any(row[0] != "" for row in rest)):
        return True
    columns = [[row[k] for row in rest if len(row) == layout.width] for k in range(layout.width)]
    over_numbers = (word and all(map(layout.numeric, column)) for word, column in zip(words, columns))
    return any(over_numbers) or _above_labels(layout, columns) or _names_by_numbers(layout, first, columns)


def _above_labels(layout: Layout, columns: list[list[str]]) -> bool:
    """Whether a row holds words, two or more, and no numbers where other rows hold numbers: labels, below what they label."""

    def measured(token: str) -> bool:
        return token.lower() not in MISSING and layout.numeric(token)

    numeric = [column for column in columns[1:] if any(map(measured, column))]
    return any(
        sum(not layout.numeric(token) for token in row) > 1 and not any(map(measured, row))
        for row in zip(*numeric)
    )


def _names_by_numbers(layout: Layout, first: list[str], columns: list[list[str]]) -> bool:
    """Whether the first record is a header of whole numbers: years, identifiers, or what pandas writes for want of names.

    Under a heading of words for a column of words they are, if they rise over columns with fractions, or if the heading says
    that names follow. Without such a column they are if they only count the columns, over fractions.
    """
    named = not any(map(layout.numeric, [first[0], *columns[0]]))
    numbers = first[1:] if named else first
    if len(numbers) < 3 or not all(token.isdigit() for token in numbers) or len(set(numbers)) < len(numbers):
        return False
    whole = re.compile(r"\s*[-+]?\d*\s*")
    fractions = any(
        not whole.fullmatch(token) and layout.numeric(token) for column in columns[named:] for token in column
    )
    if not named:
        return only_count(numbers) and fractions
    known = stem(first[0]) in HEADINGS["names"] | HEADINGS["samples"] | HEADINGS["variables"]
    rising = all(int(a) < int(b) for a, b in pairwise(numbers))
    return known or (rising and fractions)


def names_rows(heading: str) -> bool:
    """Whether pandas and R write this heading over the names or numbers of rows."""
    return stem(heading) in HEADINGS["names"] or UNNAMED.fullmatch(heading) is not None


class Fields:
    """What the fields of the first records are: names, labels, text or numbers."""

    def __init__(self, layout: Layout, records: list[list[str]], options: ReadingOptions, path: Path) -> None:
        self.layout, self.options, self.path = layout, options, path
        self.rows = [row for row in records if len(row) == layout.width]
        self.columns = [[row[k] for row in self.rows] for k in range(layout.width)]
        self.header = layout.header or [""] * layout.width

    def find(self) -> int:
        """Find the columns of names, labels and text; return how many rows of labels come first."""
        layout, header = self.layout, self.header
        dropped = [self._field(name, "--drop") for name in self.options.drop]
        self._find_names(dropped)
        for label in self.options.labels:
            self._find_labels(label)
        dropped += self._trailing()
        taken = {layout.names, *layout.labels.values(), *dropped}
        others = [k for k in range(layout.width) if k not in taken]
        named = [k for k in others if layout.header and names_rows(header[k])]
        counting = [k for k in named if only_count(self.columns[k])]
        layout.notes += [f"left out {self._called(k)}, which counts the rows" for k in counting]
        wordy = [k for k in others if self._only_words(k)]
        layout.text = sorted({*dropped, *counting, *wordy})
        self._note_text(wordy)
        if not layout.numbers:
            raise DataError(f"{self.path.name} has no column of numbers")
        used = len(layout.label_rows)
        if layout.names is not None or layout.header is not None:
            self._ask(self.rows[used:])
        return used

    def _called(self, k: int) -> str:
        return f"'{self.header[k] or f'column {k + 1}'}'"

    def _only_words(self, k: int) -> bool:
        return bool(self.rows) and not any(map(self.layout.numeric, self.columns[k]))

    def _find_names(self, dropped: list[int]) -> None:
        """Find the column of the rows' names."""
        layout, asked = self.layout, self.options.names
        if asked is not None:
            layout.names = self._field(asked, "--names")
        elif 0 not in dropped and self._first_holds_names():
            layout.names = 0
        if layout.names is None:
            return
        layout.counted = only_count(self.columns[layout.names])
        if layout.counted and asked is None:
            called = f"'{self.header[0]}'" if self.header[0] else "the first column"
            layout.notes.append(f"took {called}, which counts the rows, as their names")

    def _first_holds_names(self) -> bool:
        """Whether the first column holds the rows' names, by its heading or because it is made of unique words."""
        column = self.columns[0]
        unique = len(set(column)) == len(column)
        if unique and self._only_words(0):
            return True
        if self.layout.header is None:
            return False
        heading = stem(self.header[0])
        if heading in HEADINGS["names"] or (names_rows(self.header[0]) and only_count(column)):
            return True
        # Under "gene" or "patient" words are names even where some of them stand twice (which is then said); numbers
        # may be measurements, unless they look like identifiers.
        identifiers = unique and all(token.isdigit() for token in column)
        words = not all(map(self.layout.numeric, column))
        return heading in HEADINGS["samples"] | HEADINGS["variables"] and (words or identifiers)

    def _find_labels(self, labels: str) -> None:
        """Find the labels: a column by its header, or the next of the first rows by its name."""
        layout, header = self.layout, self.header
        if labels in header:
            layout.labels[labels] = header.index(labels)
            if layout.labels[labels] == layout.names:
                layout.names = None
            return
        at = layout.names or 0
        rows = self.rows[len(layout.label_rows) :]
        if (layout.names is not None or not header[0]) and rows and rows[0][at] == labels:
            layout.label_rows[labels] = rows[0]
            layout.names = at
            return
        known = [name for name in header if name]
        raise DataError(
            f"{self.path.name} has no column '{labels}' for --labels, nor a first row of that name"
            + (f"; its columns are {listed(known, 8)}" if known else "; it has no header")
        )

    def _field(self, name: str, option: str) -> int:
        """Return the field of that name, or of that number where no name fits."""
        if name in self.header:
            return self.header.index(name)
        if name.isdigit() and 1 <= int(name) <= len(self.header):
            return int(name) - 1
        raise DataError(
            f"{self.path.name} has no column '{name}' for {option}; its columns are {listed(self.header, 8)}"
        )

    def _trailing(self) -> list[int]:
        """Return the last columns if they have no heading and are empty, as where every line ends with a separator."""
        width = first = self.layout.width
        while first > 1 and not any(self.columns[first - 1]):
            heading = self.header[first - 1]
            if heading and not UNNAMED.fullmatch(heading):
                break
            first -= 1
        if first < width:
            one = width - first == 1
            which = "the last column" if one else f"the last {width - first} columns"
            self.layout.notes.append(
                f"left out {which}, which {'has' if one else 'have'} no heading and {'is' if one else 'are'} empty "
                f"in the first {len(self.rows):,} rows"
            )
        return list(range(first, width))

    def _note_text(self, left_out: list[int]) -> None:
        """Note the columns of text that are left out; refuse those of numbers as people write them."""
        # 1,234.5 or 1 234,5, per cent, money: numbers to a reader, words to a parser.
        written = re.compile(r"[-+]?[$€£]?\s?(\d{1,3}([,.' \u00a0\u202f]\d{3})+|\d+)([.,]\d+)?\s?[%$€£]?")
        for k in left_out:
            if all(map(written.fullmatch, self.columns[k])):
                name = f" ('{self.header[k]}')" if self.header[k] else ""
                raise DataError(
                    f"{self.path.name}, column {k + 1:,}{name} holds numbers as people write them, "
                    f"such as '{self.columns[k][0]}': write them without signs for thousands, per cent or currency"
                )
        if left_out:
            called = listed([f"'{self.header[k]}'" if self.header[k] else str(k + 1) for k in left_out])
            plural = "s" if len(left_out) > 1 else ""
            advice = " (--labels takes one as labels)" if self.options.takes_labels else ""
            self.layout.notes.append(f"left out the text column{plural} {called}{advice}")

    def _ask(self, rows: list[list[str]]) -> None:
        """Ask about columns that look like numbers of groups, then like time: they stay variables unless told."""
        headings = {k: self.header[k] for k in self.layout.numbers}
        questions = []
        for k, name in headings.items():
            tokens = {row[k] for row in rows}
            few = len(tokens) <= max(2, len(rows) // 2) and all(token.isdigit() for token in tokens)
            if stem(name) in HEADINGS["groups"] and few:
                advice = f"--labels '{name}' takes it as labels, " if self.options.takes_labels else ""
                what = "it looks like numbers of groups"
                questions.append((name, what, f"{advice}--drop '{name}' leaves it out"))
        for k, name in headings.items():
            if stem(name) in HEADINGS["times or row numbers"] and len(rows) > 2 and self._rises(k, rows):
                advice = f"--drop '{name}' leaves it out, --names '{name}' takes it as the names of the rows"
                questions.append((name, "it rises from row to row, as time does", advice))
        self.layout.notes += [
            f"took '{name}' as a variable, though {what}: is it? ({advice})"
            for name, what, advice in questions
        ]

    def _rises(self, k: int, rows: list[list[str]]) -> bool:
        values = [as_float(row[k], self.layout.decimal) for row in rows]
        return all(a is not None and b is not None and a < b for a, b in pairwise(values))
