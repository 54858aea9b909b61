"""A table as a file holds it, and as an estimator takes it.

A `TableSource` is what each format is made into: blocks of rows, with names on either side. `to_table` reads one whole and turns
it the right way round (samples in rows), `chunks.py` reads it a few rows at a time, and `stores.py` gives it to Dask; all
refuse what no estimator could use. Every guess is a sentence in `notes`, so that a command can print it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

# What stands over a column of each kind, as `stem` has it: in small letters without blanks and signs, "id" and a plural's "s".
HEADINGS = {
    "samples": {"sample", "samplename", "cell", "barcode", "patient", "subject", "observation"},
    "variables": {
        "gene", "genename", "genesymbol", "hugosymbol", "symbol", "ensembl", "ensemblgene", "transcript",
        "probe", "probeset", "idref", "protein", "feature", "variable",
    },
    "names": {"", "id", "index", "name", "rowname"},
    "groups": {
        "cluster", "group", "clas", "batch", "label", "leiden", "louvain", "seuratcluster", "cohort", "treatment",
        "diagnosi", "target", "statu", "stage", "grade", "sex", "gender", "type", "celltype", "subtype", "site", "condition",
    },
    "times or row numbers": {
        "time", "t", "timestamp", "timepoint", "datetime", "sec", "second", "m", "msec", "millisecond", "minute", "hour",
        "day", "frame", "row", "rownumber", "no", "nr", "number", "step", "timestep", "samplenumber",
    },
}  # fmt: skip

Matrix: TypeAlias = "np.ndarray | sparse.csr_array | sparse.csc_array"
Words = tuple[list[str], list[list[str]]]  # names of rows, and a list for each column of labels


class DataError(ValueError):
    """What is wrong with a user's file, in one sentence that names the place and what to do."""


class OptionError(DataError):
    """What is wrong with the options of a command, whatever its file holds."""


@dataclass
class ReadingOptions:
    """How to read a table; what is left open is detected.

    Attributes
    ----------
    samples : "rows" or "columns", optional
        Which side is the samples; guessed if None.
    labels : str or sequence of str, optional
        The columns (or, for a table of variables in rows, the first rows) that hold the samples' labels.
    names : str, optional
        The column that holds the rows' names; detected if None. For .h5ad a column of var, for 10x Genomics one of the
        list of features ("id", "symbol").
    drop : sequence of str
        Columns to leave out.
    header : int, optional
        The row that holds the names of the columns, counted from 1 after those that `skip_rows` leaves out; 0 if none does.
        Detected if None. For CSV, TSV and Excel, as `skip_rows`.
    skip_rows : int
        How many rows to leave out at the top of the file, comments and blank ones included.
    impute : "median", "drop" or "keep", optional
        Fill in missing values with the median of their variable, leave out the samples that have any, or keep them as NaN.
        Refused if None. Medians are known only of a whole table.
    signals : bool
        Whether the variables are signals, of which there are fewer than samples: a table that is much wider than long then
        has its samples in columns, unless `samples` says otherwise.
    takes_labels, estimates : bool
        Whether advice may name --labels, and --impute em.
    by_rows : str
        The option of the command that reads some rows at a time, if any: "--stream" or "--cluster".
    """

    samples: str | None = None
    labels: str | Sequence[str] = ()
    names: str | None = None
    drop: Sequence[str] = ()
    header: int | None = None
    skip_rows: int = 0
    impute: str | None = None
    signals: bool = False
    takes_labels: bool = True
    estimates: bool = False
    by_rows: str = ""

    def __post_init__(self) -> None:
        self.labels = (
            [self.labels] if isinstance(self.labels, str) else list(dict.fromkeys(self.labels or ()))
        )
        self.drop = list(self.drop or ())
        for name, value in (("header", self.header), ("skip_rows", self.skip_rows)):
            if value is not None and (not isinstance(value, Integral) or value < 0):
                raise DataError(f"{name} must be a whole number of at least 0, not {value!r}")
        for word, side, allowed in (
            ("samples", self.samples, ("rows", "columns")),
            ("impute", self.impute, ("median", "drop", "keep")),
        ):
            if side not in (None, *allowed):
                raise DataError(f"{word} must be {' or '.join(map(repr, allowed))}, not {side!r}")
        if self.by_rows and self.samples == "columns":
            what = "file" if self.by_rows == "--stream" else "store"
            raise OptionError(
                f"{self.by_rows} reads samples as rows: transpose the {what}, or leave {self.by_rows} out"
            )

    @property
    def median(self) -> str:
        """What to advise where medians help missing values."""
        return f"{'--impute em, ' if self.estimates else ''}--impute median"

    def refuse_row_options(self, what: str) -> None:
        """Refuse to read something without rows of text by their numbers."""
        if self.header is not None or self.skip_rows:
            raise DataError(
                f"--header and --skip-rows are for CSV, TSV and Excel, not for {what}: leave them out"
            )

    def refuse_words(self, name: str) -> None:
        """Refuse labels and names for a file that holds numbers only."""
        for option, wanted in (("--labels", next(iter(self.labels), None)), ("--names", self.names)):
            if wanted is not None:
                raise DataError(f"{name} holds numbers only, so {option} {wanted} finds nothing")


@dataclass
class Block:
    """Some consecutive rows of a table."""

    values: Matrix
    names: list[str] = field(default_factory=list)  # empty where the file has none
    labels: Sequence[list[str]] = ()  # one list for each column of labels
    straight: bool = True  # whether each row of text is a line

    def selected(self, chosen: np.ndarray) -> Block:
        """Return the rows where `chosen` is true."""
        names = list(compress(self.names, chosen))
        return Block(self.values[chosen], names, [list(compress(words, chosen)) for words in self.labels])

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """Return consecutive blocks as one."""
        if len(blocks) == 1:
            return blocks[0]
        names = [name for block in blocks for name in block.names]
        labels = [
            [word for words in column for word in words]
            for column in zip(*(block.labels for block in blocks))
        ]
        values = np.concatenate([block.values for block in blocks])
        return cls(values, names, labels, all(block.straight for block in blocks))


@dataclass
class TableSource:
    """A table on disk, whatever its format: its rows, and what stands beside them, before anyone says which side is the samples.

    Attributes
    ----------
    shape : tuple of int
        Rows, None where only reading tells, and columns.
    blocks : callable
        Returns the rows in order, about so many bytes of numbers at a time.
    rows : object with `shape`, `dtype`, `sparse`, `lengths` and `__getitem__`, optional
        Reads any rows, on whatever machine; for formats that allow it.
    words : callable, optional
        The names and labels of the rows from one number to another, of such formats.
    column_names : list of str, optional
    column_labels : dict of str to list of str
        By what they are called; those of rows come in blocks.
    corner : str
        What stands over the names of rows.
    named : bool
        Whether the file names its rows, by more than numbers.
    samples : "rows" or "columns", optional
        Where the format itself says which.
    first_line : int
        1-based line of the first row in a text file; 0 where lines mean nothing.
    """

    shape: tuple[int | None, int]
    blocks: Callable[[int], Iterator[Block]]
    rows: Any = None
    words: Callable[[int, int], Words] | None = None
    column_names: list[str] | None = None
    column_labels: dict[str, list[str]] = field(default_factory=dict)
    corner: str = ""
    named: bool = False
    samples: str | None = None
    notes: list[str] = field(default_factory=list)
    first_line: int = 0

    @property
    def variables(self) -> list[str]:
        """The names of the columns, where rows are samples."""
        return self.column_names or numbered("variable", self.shape[1])


def held(values: Matrix, names: list[str] | None = None, **facts: Any) -> TableSource:
    """Return the source of a matrix in memory."""
    return TableSource(values.shape, lambda most: iter([Block(values, names or [])]), **facts)


@dataclass
class Table:
    """A matrix of samples (rows) and variables (columns) with their names.

    Attributes
    ----------
    values : array or scipy.sparse matrix of shape (samples, variables)
    samples, variables : list of str
        Names; made up ("sample 1", "variable 1") where the file has none.
    all_labels : dict of str to list of str
        Labels of the samples, by what they are called.
    notes : list of str
        What was guessed, and what was left out, in sentences.
    """

    values: Matrix
    samples: list[str]
    variables: list[str]
    all_labels: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def labels(self) -> list[str] | None:
        """The first labels, if there are any."""
        return next(iter(self.all_labels.values()), None)

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, variables)."""
        return self.values.shape


def count(number: int, noun: str) -> str:
    """Return the number and the noun, in the plural unless it is one.

    >>> count(1, "row"), count(12600, "value")
    ('1 row', '12,600 values')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Sequence[object], most: int = 3) -> str:
    """Return the first items as a list in words.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    shown = [str(item) for item in items[:most]]
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def stem(heading: str) -> str:
    """Return a heading as the lists of words have it.

    >>> stem("Gene Symbol"), stem("gene_ids"), stem("ID"), stem("sample-ID")
    ('genesymbol', 'gene', 'id', 'sample')
    """
    word = "".join(letter for letter in heading.lower() if letter.isalnum())
    word = word.removesuffix("s")
    return word.removesuffix("id") or word


def guess_samples(source: TableSource, block: Block, options: ReadingOptions) -> tuple[str, str]:
    """Return which side of a table is the samples ("rows" or "columns"), and why."""
    rows, columns = block.values.shape
    word = stem(source.corner)
    if source.samples is not None:
        return source.samples, "as the file's format has it"
    if options.labels:
        side = "columns" if source.column_labels else "rows"
        return side, f"since each of the {side} has a label"
    if word in HEADINGS["variables"]:
        return "columns", f"since the first column is headed '{source.corner}'"
    if word in HEADINGS["samples"] or word == "id":
        return "rows", f"since the first column is headed '{source.corner}'"
    if options.signals:
        return guess_times(rows, columns)
    named = block.names and not only_count(block.names)
    if named and look_like_variables(rows, columns):
        return (
            "columns",
            f"since {rows:,} named rows of {columns:,} columns look like genes or other variables",
        )
    return "rows", "as is usual"


def guess_times(rows: int, columns: int) -> tuple[str, str]:
    """Return which side of a table of signals is the samples, the points in time, and why.

    >>> guess_times(32, 30504)[0], guess_times(30504, 32)[0]
    ('columns', 'rows')
    """
    if rows >= columns:
        return "rows", "as is usual"
    size = f"{count(rows, 'row')} of {count(columns, 'column')}"
    # With ten times as many columns as rows, the rows are signals.
    if columns < 10 * rows:
        raise DataError(
            f"{size} may be samples or signals, and signals should have more samples than there are signals: "
            "say --samples columns if each row is a signal, or --samples rows"
        )
    return "columns", f"since {size} look like signals, which have more samples than there are signals"


def only_count(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2, ... or 1, 2, 3, ..., which says nothing about what they name.

    >>> only_count(["0", "1", "2"]), only_count(["1", "2"]), only_count(["2", "3"]), only_count([])
    (True, True, False, False)
    """
    return bool(names) and any(all(name == str(k) for k, name in enumerate(names, first)) for first in (0, 1))


def look_like_variables(rows: int, columns: int) -> bool:
    """Whether named rows are so many that they are rather genes than samples."""
    return rows >= 1000 and rows >= 3 * columns


def to_table(source: TableSource, options: ReadingOptions) -> Table:
    """Read a source whole, and turn it so that samples are rows."""
    block = Block.joined(list(source.blocks(sys.maxsize)))
    rows, columns = block.values.shape
    if rows == 0 or columns == 0:
        raise DataError(
            f"the table has {count(rows, 'row')} and {count(columns, 'column')} of numbers: nothing to do"
        )
    notes = list(source.notes)
    samples = options.samples
    if samples is None:
        samples, reason = guess_samples(source, block, options)
        other = "columns" if samples == "rows" else "rows"
        notes.append(f"took the {samples} as samples, {reason} (--samples {other} says otherwise)")
    labels = source.column_labels or dict(zip(options.labels, block.labels))
    labelled = "columns" if source.column_labels else "rows"
    if labels and labelled != samples:
        raise DataError(
            f"'{next(iter(labels))}' labels the {labelled}, but the samples are the {samples}: "
            f"say --samples {labelled}, or leave --labels out"
        )
    heading = f", or leave the column '{source.corner}' out (--drop)" if source.corner else ""
    check_names(block.names, "row", heading)
    check_names(source.column_names, "column")
    if options.impute is None:
        advice = f", or say {options.median} or --impute drop"
        check_finite(block.values, partial(place, source, block), advice)
    sides = [(block.names, rows), (source.column_names, columns)]
    values = block.values
    if samples == "columns":
        values = values.T.tocsr() if hasattr(values, "tocsr") else values.T
        sides.reverse()
    names = [found or numbered(noun, size) for noun, (found, size) in zip(("sample", "variable"), sides)]
    table = Table(values, names[0], names[1], labels, notes)
    return table if options.impute is None else imputed(table, options)


def imputed(table: Table, options: ReadingOptions) -> Table:
    """Return the table without missing values: filled in with medians, or without the samples that have any; or keep them."""
    note = ""
    if not hasattr(table.values, "tocsr"):
        missing = np.isnan(table.values)
        if options.impute == "drop":
            table, note = without_missing(table, missing, options)
        else:
            empty = [f"'{table.variables[j]}'" for j in np.flatnonzero(missing.all(axis=0))]
            if empty:
                raise DataError(
                    f"{count(len(empty), 'variable')} without any value, {listed(empty)}: leave out with --drop, "
                    "or from the file"
                )
            if options.impute == "median":
                note = fill_in_medians(table, missing)
        if missing.any() and note:
            table.notes.append(note)
    check_finite(
        table.values,
        lambda i, j: f"sample '{table.samples[i]}', variable '{table.variables[j]}'",
        missing=options.impute == "keep" and not hasattr(table.values, "tocsr"),
    )
    return table


def without_missing(table: Table, missing: np.ndarray, options: ReadingOptions) -> tuple[Table, str]:
    """Return the samples of a table without missing values, and a note."""
    complete = np.logical_not(missing.any(axis=1))
    if not complete.any():
        raise DataError(
            f"every sample has a missing value: {options.median}, or leave out the variables that hold them"
        )
    rows = Block(table.values, table.samples, list(table.all_labels.values())).selected(complete)
    labels = dict(zip(table.all_labels, rows.labels))
    note = f"left out {count(int((~complete).sum()), 'sample')} with missing values (--impute drop)"
    return Table(rows.values, rows.names, table.variables, labels, table.notes), note


def fill_in_medians(table: Table, missing: np.ndarray) -> str:
    """Put the medians of the variables in place of missing values, and return a note."""
    holed = np.flatnonzero(missing.any(axis=0))
    table.values = np.array(table.values, np.float64)
    medians = np.nanmedian(table.values[:, holed], axis=0)
    table.values[:, holed] = np.where(missing[:, holed], medians, table.values[:, holed])
    return (
        f"filled in {count(int(missing.sum()), 'missing value')} of {count(len(holed), 'variable')} "
        "with the variables' medians (--impute median)"
    )


def numbered(noun: str, number: int, first: int = 1) -> list[str]:
    """Return so many names for what has none.

    >>> numbered("factor", 2)
    ['factor 1', 'factor 2']
    """
    return [f"{noun} {k}" for k in range(first, first + number)]


def place(source: TableSource, block: Block, row: int, column: int) -> str:
    """Return where in the file a number stands, in words."""
    # Blank lines or broken names between the rows: a row's number does not give its line.
    lines = source.first_line and block.straight
    where = f"line {source.first_line + row:,}" if lines else f"row {row + 1:,}"
    if block.names:
        where += f" ('{block.names[row]}')"
    name = "" if source.column_names is None else f" ('{source.column_names[column]}')"
    return f"{where}, column {column + 1:,} of the numbers{name}"


def check_names(names: Sequence[str] | None, noun: str, otherwise: str = "") -> None:
    """Refuse names that stand for two things; `otherwise` says what else can be done about it."""
    if names is None or len(set(names)) == len(names):
        return
    doubled = [name for name, times in Counter(names).items() if times > 1]
    first = [k + 1 for k, name in enumerate(names) if name == doubled[0]]
    raise DataError(
        f"{count(len(doubled), f'{noun} name')} {'stands' if len(doubled) == 1 else 'stand'} more than once, "
        f"'{doubled[0]}' for {noun}s {listed(first)}: make them unique{otherwise}"
    )


def made_unique(names: Sequence[str]) -> tuple[list[str], int]:
    """Return names that stand for one thing each, made as anndata and scanpy make them, and how many were changed.

    >>> made_unique(["a", "b", "a", "a-1", "a"])
    (['a', 'b', 'a-2', 'a-1', 'a-3'], 2)
    """
    known = set(names)
    seen: set[str] = set()
    last: Counter[str] = Counter()
    unique: list[str] = []
    changed = 0
    for name in names:
        new = name
        if name in seen:
            changed += 1
            while new in known:
                last[name] += 1
                new = f"{name}-{last[name]}"
            known.add(new)
        seen.add(name)
        unique.append(new)
    return unique, changed


def note_unique(names: Sequence[str], notes: list[str]) -> list[str]:
    """Return unique names, and note how many were changed."""
    unique, changed = made_unique(names)
    if changed:
        old, new = next((a, b) for a, b in zip(names, unique) if a != b)
        notes.append(
            f"made {count(changed, 'name')} unique, as scanpy does: a second '{old}' is called '{new}'"
        )
    return unique


def check_finite(
    values: Any, where: Callable[[int, int], str], otherwise: str = "", missing: bool = False
) -> None:
    """Refuse infinity, and NaN unless `missing` allows it, and say how many there are and where.

    `otherwise` says what else helps missing values.
    """
    stored = values.data if hasattr(values, "tocoo") else values
    if stored.dtype.kind not in "fc":
        return
    # A finite sum clears the whole array without making another of its size; an infinite one proves nothing.
    with np.errstate(all="ignore"):
        if np.isfinite(stored.sum(dtype=np.float64)):
            return
    bad = np.isinf(stored) if missing else ~np.isfinite(stored)
    number = int(bad.sum())
    if not number:
        return
    holes = 0 if missing else int(np.isnan(stored).sum())
    if hasattr(values, "tocoo"):
        entries = values.tocoo()
        places = np.column_stack([entries.row[bad], entries.col[bad]])
    else:
        places = np.argwhere(bad)
    kinds = [text for many, text in ((holes, "missing (NaN)"), (number - holes, "infinite")) if many]
    shown = listed([where(int(row), int(column)) for row, column in places[:3]])
    shown += f" and {number - 3:,} more" if number > 3 else ""
    raise DataError(
        f"{count(number, 'value')} of {values.shape[0] * values.shape[1]:,} {'is' if number == 1 else 'are'} "
        f"{' or '.join(kinds)}, at {shown}: "
        f"fill them in, or leave out the rows or columns that hold them{otherwise if holes else ''}"
    )


def refuse_variables(source: TableSource, seen: int, option: str) -> None:
    """Refuse rows that are rather variables, by what stands over their names or by how many there are, for an option."""
    word, columns = stem(source.corner), source.shape[1]
    if word in HEADINGS["samples"] or word == "id":
        return
    if word in HEADINGS["variables"]:
        reason = f"the rows are headed '{source.corner}'"
    elif source.named and look_like_variables(seen, columns):
        reason = f"{seen:,} and more named rows of {columns:,} columns look like genes or other variables"
    else:
        return
    raise DataError(
        f"{reason}, so they are no samples, and {option} reads samples as rows: "
        f"transpose the file, leave {option} out, or say --samples rows"
    )
