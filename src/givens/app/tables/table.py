"""A table as a file holds it, and as an estimator takes it.

A `Grid` is what a reader found: numbers in rows and columns, names on either side, text columns. `to_table`
turns it the right way round (samples in rows), picks the labels, and refuses what no estimator could use.
Every guess is a sentence in `notes`, so that a command can print it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

# What stands over a column of names, in small letters without blanks and signs, but for "id" and a plural's "s".
SAMPLE_WORDS = {"sample", "samplename", "cell", "barcode", "patient", "subject", "observation"}
VARIABLE_WORDS = {
    "gene", "genename", "genesymbol", "hugosymbol", "symbol", "ensembl", "ensemblgene", "transcript",
    "probe", "probeset", "idref", "protein", "feature", "variable",
}  # fmt: skip
NAME_WORDS = {"", "id", "index", "name", "rowname"}


class DataError(ValueError):
    """What is wrong with a user's file, in one sentence that names the place and what to do."""


class OptionError(DataError):
    """What is wrong with the options of a command, whatever its file holds."""


@dataclass
class Grid:
    """Numbers in rows and columns as a file has them, before anyone says which of the two are samples."""

    values: Any  # array or scipy.sparse matrix, (rows, columns)
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    corner: str = ""  # what stands over the row names
    labels: dict[str, list[str]] = field(
        default_factory=dict
    )  # of the rows, or of the columns: see `labels_of`
    labels_of: str = "rows"
    samples: str | None = None  # "rows" or "columns" where the format itself says which
    notes: list[str] = field(default_factory=list)
    first_line: int = 0  # 1-based line of the first row in a text file; 0 where lines mean nothing


@dataclass
class Table:
    """A matrix of samples (rows) and variables (columns) with their names.

    Attributes
    ----------
    values : array or scipy.sparse matrix of shape (samples, variables)
    samples, variables : list of str
        Names; made up ("sample 1", "variable 1") where the file has none.
    labels : list of str or None
        One for each sample.
    label_name : str
        What the labels are called.
    other_labels : dict of str to list of str
        Further labels, by what they are called.
    notes : list of str
        What was guessed, and what was left out, in sentences.
    """

    values: Any
    samples: list[str]
    variables: list[str]
    labels: list[str] | None = None
    label_name: str = ""
    notes: list[str] = field(default_factory=list)
    other_labels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def all_labels(self) -> dict[str, list[str]]:
        """All labels, by what they are called."""
        return {} if self.labels is None else {self.label_name: self.labels, **self.other_labels}

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, variables)."""
        return self.values.shape


def label_list(labels: str | Sequence[str] | None) -> list[str]:
    """Return the columns of labels as a list without repetitions.

    >>> label_list(None), label_list("kind"), label_list(["kind", "kind", "place"])
    ([], ['kind'], ['kind', 'place'])
    """
    return [labels] if isinstance(labels, str) else list(dict.fromkeys(labels or ()))


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


MUCH_WIDER = 10  # times as many columns as rows: these rows are signals, and no samples of an ICA


def guess_samples(grid: Grid, signals: bool = False) -> tuple[str, str]:
    """Return which side of a grid is the samples ("rows" or "columns"), and why.

    `signals` says that the variables are signals, of which there are fewer than samples.
    """
    rows, columns = grid.values.shape
    word = stem(grid.corner)
    if grid.samples is not None:
        return grid.samples, "as the file's format has it"
    if grid.labels:
        return grid.labels_of, f"since each of the {grid.labels_of} has a label"
    if word in VARIABLE_WORDS:
        return "columns", f"since the first column is headed '{grid.corner}'"
    if word in SAMPLE_WORDS or word == "id":
        return "rows", f"since the first column is headed '{grid.corner}'"
    if signals:
        return guess_times(rows, columns)
    named = grid.row_names is not None and not only_count(grid.row_names)
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
    if columns < MUCH_WIDER * rows:
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


def to_table(
    grid: Grid, samples: str | None = None, impute: str | None = None, signals: bool = False
) -> Table:
    """Turn a grid so that samples are rows; `samples` is "rows", "columns" or None for a guess.

    `impute` is what to do about missing values: "median", "drop", "keep" (as NaN), or None to refuse them. `signals` is for the
    guess.
    """
    rows, columns = grid.values.shape
    if rows == 0 or columns == 0:
        raise DataError(
            f"the table has {count(rows, 'row')} and {count(columns, 'column')} of numbers: nothing to do"
        )
    notes = list(grid.notes)
    if samples is None:
        samples, reason = guess_samples(grid, signals)
        other = "columns" if samples == "rows" else "rows"
        notes.append(f"took the {samples} as samples, {reason} (--samples {other} says otherwise)")
    elif samples not in ("rows", "columns"):
        raise DataError(f"samples must be 'rows' or 'columns', not {samples!r}")
    if grid.labels and grid.labels_of != samples:
        raise DataError(
            f"'{next(iter(grid.labels))}' labels the {grid.labels_of}, but the samples are the {samples}: "
            f"say --samples {grid.labels_of}, or leave --labels out"
        )
    heading = f", or leave the column '{grid.corner}' out (--drop)" if grid.corner else ""
    check_names(grid.row_names, "row", heading)
    check_names(grid.column_names, "column")
    if impute is None:
        check_finite(grid.values, lambda i, j: place(grid, i, j), IMPUTE)
    row_names = grid.row_names or numbered("sample" if samples == "rows" else "variable", rows)
    column_names = grid.column_names or numbered("variable" if samples == "rows" else "sample", columns)
    values = grid.values
    if samples == "columns":
        values, row_names, column_names = values.T, column_names, row_names
        values = values.tocsr() if hasattr(values, "tocsr") else values
    table = Table(values, row_names, column_names, notes=notes)
    for name, labels in grid.labels.items():
        if table.labels is None:
            table.labels, table.label_name = labels, name
        else:
            table.other_labels[name] = labels
    return table if impute is None else imputed(table, impute)


def imputed(table: Table, how: str) -> Table:
    """Return the table without missing values: filled in with medians, or without the samples that have any; or keep them."""
    if how not in ("median", "drop", "keep"):
        raise DataError(f"impute must be 'median', 'drop' or 'keep', not {how!r}")
    if hasattr(table.values, "tocsr"):
        check_finite(table.values, partial(place_in_table, table))
        return table
    missing = np.isnan(table.values)
    if how == "drop":
        kept = ~missing.any(axis=1)
        if not kept.any():
            raise DataError(
                "every sample has a missing value: --impute median, or leave out the variables that hold them"
            )
        table = selected(table, kept)
        left_out = len(kept) - int(kept.sum())
        note = f"left out {count(left_out, 'sample')} with missing values (--impute drop)"
    else:
        empty = np.flatnonzero(missing.all(axis=0))
        if len(empty):
            called = listed([f"'{table.variables[j]}'" for j in empty])
            raise DataError(
                f"{count(len(empty), 'variable')} without any value, {called}: leave out with --drop, or from the file"
            )
        if how == "keep":
            check_finite(np.where(missing, 0.0, table.values), partial(place_in_table, table))
            return table
        holed = np.flatnonzero(missing.any(axis=0))
        values = np.array(table.values, np.float64)
        values[:, holed] = np.where(
            missing[:, holed], np.nanmedian(values[:, holed], axis=0), values[:, holed]
        )
        table.values = values
        note = (
            f"filled in {count(int(missing.sum()), 'missing value')} of {count(len(holed), 'variable')} "
            "with the variables' medians (--impute median)"
        )
    if missing.any():
        table.notes.append(note)
    check_finite(table.values, partial(place_in_table, table))
    return table


def place_in_table(table: Table, sample: int, variable: int) -> str:
    """Return where in a table a number stands, in words."""
    return f"sample '{table.samples[sample]}', variable '{table.variables[variable]}'"


def selected(table: Table, kept: np.ndarray) -> Table:
    """Return some samples of a table."""

    def pick(words: list[str]) -> list[str]:
        return [word for word, keep in zip(words, kept) if keep]

    labels = None if table.labels is None else pick(table.labels)
    others = {name: pick(words) for name, words in table.other_labels.items()}
    return Table(
        table.values[kept],
        pick(table.samples),
        table.variables,
        labels,
        table.label_name,
        table.notes,
        others,
    )


def numbered(noun: str, number: int, first: int = 1) -> list[str]:
    """Return so many names for what has none.

    >>> numbered("factor", 2)
    ['factor 1', 'factor 2']
    """
    return [f"{noun} {k}" for k in range(first, first + number)]


def place(grid: Grid, row: int, column: int) -> str:
    """Return where in the file a number stands, in words."""
    where = f"line {grid.first_line + row:,}" if grid.first_line else f"row {row + 1:,}"
    if grid.row_names is not None:
        where += f" ('{grid.row_names[row]}')"
    name = "" if grid.column_names is None else f" ('{grid.column_names[column]}')"
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


IMPUTE = ", or say --impute median or --impute drop"


def check_finite(values: Any, where: Callable[[int, int], str], otherwise: str = "") -> None:
    """Refuse NaN and infinity, and say how many there are and where; `otherwise` says what else helps missing values."""
    stored = values.data if hasattr(values, "tocoo") else values
    if stored.dtype.kind not in "fc":
        return
    # A finite sum clears the whole array without making another of its size; an infinite one proves nothing.
    with np.errstate(all="ignore"):
        if np.isfinite(stored.sum(dtype=np.float64)):
            return
    if hasattr(values, "tocoo"):
        entries = values.tocoo()
        bad = ~np.isfinite(entries.data)
        places = np.column_stack([entries.row[bad], entries.col[bad]])
        missing = int(np.isnan(entries.data).sum())
    else:
        places = np.argwhere(~np.isfinite(values))
        missing = int(np.isnan(values).sum())
    if not len(places):
        return
    total = values.shape[0] * values.shape[1]
    kinds = [
        text for number, text in ((missing, "missing (NaN)"), (len(places) - missing, "infinite")) if number
    ]
    verb = "is" if len(places) == 1 else "are"
    shown = listed([where(int(row), int(column)) for row, column in places[:3]])
    shown += f" and {len(places) - 3:,} more" if len(places) > 3 else ""
    raise DataError(
        f"{count(len(places), 'value')} of {total:,} {verb} {' or '.join(kinds)}, "
        f"at {shown}: "
        f"fill them in, or leave out the rows or columns that hold them{otherwise if missing else ''}"
    )
