"""The options that several commands share."""

from __future__ import annotations

import functools
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from givens.app.commands.session import Session, argument, option, option_group
from givens.app.tables import DataError, OptionError, ReadingOptions, Table, TableRows, open_rows, read_table
from givens.app.tables.table import count

if TYPE_CHECKING:
    from givens.app.tables.stores import Store


Side = Literal["rows", "columns"]
Impute = Literal["median", "drop"]
ImputeOrEstimate = Literal["median", "drop", "em"]
Penalty = Literal["l1", "l0"]
# As `givens.schedules` names them.
Order = Literal["random", "without-replacement", "cyclic", "shuffled", "tournament", "gradient"]

reading = functools.partial(option, panel="Reading the file")
fitting = functools.partial(option, panel="Fitting")
standardise_option = reading(
    False, "Divide each variable by its standard deviation.", "--standardise", "--standardize"
)
seed_option = fitting(0, "Seed of the random numbers.", min=0)
threads_option = fitting(None, "Number of threads. Default: one per core, at most 8.", min=1)


@option_group
class Running:
    """Where and how a model is fitted."""

    seed: int = seed_option
    threads: int | None = threads_option
    cluster: str | None = option(
        None,
        "Fit on a Dask cluster: the address of its scheduler, or local to start one on this machine. For zarr, .parquet "
        "and .h5ad, which are then read in chunks.",
        metavar="ADDRESS|local",
        panel="On a Dask cluster",
    )

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return the parameters of an estimator that these options are."""
        return {
            "random_state": self.seed,
            "threads": self.threads,
        }


@option_group
class Source:
    """A file and the options for reading it."""

    file: Path = argument("CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .mtx or .h5ad.")
    samples: Side | None = reading(
        None, "Whether rows or columns are the samples. Guessed if not given; the guess is shown."
    )
    labels: list[str] | None = reading(
        None,
        "A column of labels for the samples. May be repeated; the first one colours the scatter plot.",
        metavar="COLUMN",
    )
    names: str | None = reading(
        None,
        "The column with the names of the rows. For .h5ad: a column of var; for 10x Genomics: id or symbol.",
        metavar="COLUMN",
    )
    drop: list[str] | None = reading(None, "A column to leave out. May be repeated.", metavar="COLUMN")
    header: int | None = reading(
        None,
        "The row with the names of the columns, counted from 1 after those of --skip-rows; 0 if there is none. "
        "Guessed if not given.",
        min=0,
        metavar="ROW",
    )
    skip_rows: int = reading(
        0,
        "Number of rows to leave out at the top of the file, comments and blank ones included.",
        min=0,
        show_default=False,
    )
    impute: Impute | None = reading(
        None, "Replace missing values by the median of their variable, or drop the samples that have any."
    )
    log2: bool = reading(
        False,
        "Take log2 of the values first; those below 1, or below --floor, are raised to it before.",
        "--log2",
    )
    floor: float | None = reading(None, "With --log2: raise smaller values to this one first. Default: 1.")

    takes_labels = True  # whether the command has --labels
    estimates = False  # whether the command has --impute em
    signals = False  # whether variables are signals, of which there are fewer than samples

    def __post_init__(self) -> None:
        if self.floor is not None and not self.log2:
            raise OptionError("--floor goes with --log2, and does nothing without it")
        if self.floor is not None and not self.floor > 0:
            raise OptionError(f"--floor must be above 0, since logarithms follow, not {self.floor:g}")
        self.least = 1.0 if self.floor is None else self.floor

    def reading(self) -> dict[str, Any]:
        """What the readers are told: the model estimates the missing values that they keep."""
        names = [one.name for one in fields(ReadingOptions) if hasattr(self, one.name)]
        given = {name: getattr(self, name) for name in names}
        return given | {"impute": "keep" if self.impute == "em" else self.impute}

    def table(self, session: Session, nouns: tuple[str, str] = ("sample", "variable")) -> Table:
        """Read the whole table, and print what was guessed; `nouns` are what its rows and columns are."""
        with session.step(f"reading {self.file.name}"):
            table = read_table(self.file, **self.reading())
        session.say(f"read {self.file.name}: {' x '.join(map(count, table.shape, nouns))}")
        for note in table.notes:
            session.say(note)
        if self.log2:
            table.values, low = log2(table.values, self.least)
            table.notes.append(self.log2_note(f"{low:,} of them"))
            session.say(table.notes[-1])
        if session.excel_safe:
            table.samples, table.variables = no_formulas(table.samples), no_formulas(table.variables)
            names = no_formulas(list(table.all_labels))
            table.all_labels = dict(zip(names, map(no_formulas, table.all_labels.values())))
        session.variables = table.variables
        return table

    def rows(self, session: Session) -> TableRows:
        """Open the file to read its rows a few at a time."""
        rows = open_rows(self.file, **self.reading())
        rows.notes.append("took the rows as samples, as --stream does")
        for note in rows.notes:
            session.say(note)
        return rows

    def store(self, session: Session, dense: bool) -> Store:
        """Open a store whose rows Dask reads in chunks."""
        from givens.app.tables.stores import open_store

        if self.impute is not None:
            raise OptionError(
                "--impute needs the whole table: leave --cluster out, or fill in missing values before"
            )
        options = ReadingOptions(**self.reading())
        options.refuse_row_options("what --cluster reads")
        store = open_store(self.file, **self.reading(), dense=dense)
        if self.log2:
            if hasattr(store.X._meta, "tocsr"):
                log2(store.X._meta, self.least)  # refuses a floor that would fill in zeros
            store.X = store.X.map_blocks(
                self.prepared, dtype=np.float64, meta=store.X._meta.astype(np.float64)
            )
            store.notes.append(self.log2_note("all of them that are"))
        for note in store.notes:
            session.say(note)
        return store

    def log2_note(self, low: str) -> str:
        """Return the note on logarithms; `low` says how many values are below the floor."""
        return f"took log2 of the values, {low} below {self.least:g} raised to {self.least:g} first (--floor)"

    def prepared(self, values: np.ndarray) -> np.ndarray:
        """Return the values of a chunk as they go into the model."""
        return log2(values, self.least)[0] if self.log2 else values


@option_group
class EstimableSource(Source):
    """A file and the options for reading it, for a model that can estimate missing values."""

    impute: ImputeOrEstimate | None = reading(  # type: ignore[assignment]
        None,
        "Replace missing values by the median of their variable, drop the samples that have any, "
        "or let the model estimate them (em).",
    )

    estimates = True


@option_group
class UnlabelledSource(Source):
    """A file and the options for reading it, for commands that have no use for labels."""

    labels: None = field(default=None, init=False)

    takes_labels = False


def dense(values: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return the values of a table, dense or sparse, as an array."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype)


def no_formulas(words: list[str]) -> list[str]:
    """Return the words, with an apostrophe before those that a spreadsheet would take for formulas.

    >>> no_formulas(["=1+1", "-4 C", "BRCA1"])
    ["'=1+1", "'-4 C", 'BRCA1']
    """
    # What a spreadsheet's formula may begin with
    return [f"'{word}" if word[:1] in ("=", "+", "-", "@", "\t", "\r") else word for word in words]


def log2(values: Any, floor: float) -> tuple[Any, int]:
    """Return log2 of the values, and how many were raised to the floor first."""
    if hasattr(values, "tocsr"):
        if floor != 1:
            raise DataError("a sparse table needs --floor 1, so that its zeros stay zeros under --log2")
        result = values.tocsr().astype(np.float64)
        low = result.shape[0] * result.shape[1] - int(
            (result.data >= 1).sum()
        )  # with the zeros that are not stored
        result.data = np.log2(np.maximum(result.data, 1))
        result.eliminate_zeros()
        return result, low
    return np.log2(np.maximum(values, floor)), int((values < floor).sum())
