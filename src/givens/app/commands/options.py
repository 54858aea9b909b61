"""The options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from givens.app.commands.session import Session
from givens.app.tables import DataError, OptionError, Table, TableRows, open_rows, read_table
from givens.app.tables.chunks import Chunk
from givens.app.tables.layout import refuse_row_options
from givens.app.tables.table import count

if TYPE_CHECKING:
    from givens.app.tables.stores import Store

LABELS_ADVICE = re.compile(
    r" \(--labels takes one as labels\)| or --labels(?= takes)|"
    r"--labels '.*?' takes it as labels, (if it is the first below the header, )?(or )?"
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet's formula may begin with


class Side(StrEnum):
    """Which side of the table is the samples."""

    rows = "rows"
    columns = "columns"


class Impute(StrEnum):
    """What to do about missing values."""

    median = "median"
    drop = "drop"


class ImputeOrEstimate(StrEnum):
    """What to do about missing values, for a model that can estimate them itself."""

    median = "median"
    drop = "drop"
    em = "em"


class Penalty(StrEnum):
    """The penalty of sparse PCA: ℓ1, as in the paper, or ℓ0."""

    l1 = "l1"
    l0 = "l0"


class Order(StrEnum):
    """The order of rotations, as `givens.schedules` names it."""

    random = "random"
    without_replacement = "without-replacement"
    cyclic = "cyclic"
    shuffled = "shuffled"
    tournament = "tournament"
    gradient = "gradient"


READING = "Reading the file"
FITTING = "Fitting"
CLUSTER = "On a Dask cluster"

Standardise = Annotated[
    bool,
    typer.Option(
        "--standardise",
        "--standardize",
        help="Divide each variable by its standard deviation.",
        rich_help_panel=READING,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", min=0, rich_help_panel=FITTING)]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Number of threads. Default: one per core, at most 8.",
        min=1,
        rich_help_panel=FITTING,
        show_default=False,
    ),
]

MissingValues = Annotated[
    ImputeOrEstimate | None,
    typer.Option(
        help="Replace missing values by the median of their variable, drop the samples that have any, or let the model "
        "estimate them (em).",
        rich_help_panel=READING,
    ),
]


@dataclass
class Running:
    """Where and how a model is fitted."""

    seed: Seed = 0
    threads: Threads = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local",
            help="Fit on a Dask cluster: the address of its scheduler, or local to start one on this machine. For zarr, .parquet "
            "and .h5ad, which are then read in chunks.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return the parameters of an estimator that these options are."""
        return {
            "random_state": self.seed,
            "threads": self.threads,
            "progress": session.interactive,
        }


@dataclass
class Source:
    """A file and the options for reading it."""

    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .mtx or .h5ad.", show_default=False
        ),
    ]
    samples: Annotated[
        Side | None,
        typer.Option(
            help="Whether rows or columns are the samples. Guessed if not given; the guess is shown.",
            rich_help_panel=READING,
        ),
    ] = None
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of labels for the samples. May be repeated; the first one colours the scatter plot.",
            rich_help_panel=READING,
        ),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the names of the rows. For .h5ad: a column of var; for 10x Genomics: id or symbol.",
            rich_help_panel=READING,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column to leave out. May be repeated.", rich_help_panel=READING
        ),
    ] = None
    header: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="ROW",
            help="The row with the names of the columns, counted from 1 after those of --skip-rows; 0 if there is none. "
            "Guessed if not given.",
            rich_help_panel=READING,
        ),
    ] = None
    skip_rows: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of rows to leave out at the top of the file, comments and blank ones included.",
            rich_help_panel=READING,
            show_default=False,
        ),
    ] = 0
    impute: Annotated[
        Impute | None,
        typer.Option(
            help="Replace missing values by the median of their variable, or drop the samples that have any.",
            rich_help_panel=READING,
        ),
    ] = None
    log2: Annotated[
        bool,
        typer.Option(
            "--log2",
            help="Take log2 of the values first; those below 1, or below --floor, are raised to it before.",
            rich_help_panel=READING,
        ),
    ] = False
    floor: Annotated[
        float | None,
        typer.Option(
            help="With --log2: raise smaller values to this one first. Default: 1.", rich_help_panel=READING
        ),
    ] = None

    takes_labels = True  # whether the command has --labels
    estimates = False  # whether the command has --impute em
    signals = False  # whether variables are signals, of which there are fewer than samples

    def __post_init__(self) -> None:
        if self.floor is not None and not self.log2:
            raise OptionError("--floor goes with --log2, and does nothing without it")
        if self.floor is not None and not self.floor > 0:
            raise OptionError(f"--floor must be above 0, since logarithms follow, not {self.floor:g}")
        self.least = 1.0 if self.floor is None else self.floor

    def _layout(self) -> dict[str, Any]:
        """What the readers are told about rows and columns."""
        return {
            "samples": self.samples and self.samples.value,
            "labels": self.labels,
            "names": self.names,
            "drop": self.drop or (),
        }

    def _rows_of_text(self) -> dict[str, Any]:
        """What the readers of tables are told about the first rows."""
        return {"header": self.header, "skip_rows": self.skip_rows}

    def refuse_row_options(self, what: str) -> None:
        """Refuse --header and --skip-rows for something that has no rows of text."""
        refuse_row_options(self.header, self.skip_rows, what)

    def _impute(self) -> str | None:
        """What the readers are told about missing values: the model estimates those that they keep."""
        return "keep" if self.impute == ImputeOrEstimate.em else self.impute and self.impute.value

    def table(self, session: Session, nouns: tuple[str, str] = ("sample", "variable")) -> Table:
        """Read the whole table, and print what was guessed; `nouns` are what its rows and columns are."""
        with session.step(f"reading {self.file.name}"), self.advice():
            table = read_table(
                self.file,
                **self._layout(),
                **self._rows_of_text(),
                impute=self._impute(),
                signals=self.signals,
            )
        table.notes = [self.advisable(note) for note in table.notes]
        session.say(f"read {self.file.name}: {' x '.join(map(count, table.shape, nouns))}")
        for note in table.notes:
            session.say(note)
        if self.log2:
            table.values, low = log2(table.values, self.least)
            table.notes.append(self.log2_note(f"{low:,} of them"))
            session.say(table.notes[-1])
        if session.excel_safe:
            table.samples, table.variables = no_formulas(table.samples), no_formulas(table.variables)
            table.label_name = no_formulas([table.label_name])[0]
            table.labels = None if table.labels is None else no_formulas(table.labels)
            table.other_labels = {
                no_formulas([name])[0]: no_formulas(words) for name, words in table.other_labels.items()
            }
        session.variables = table.variables
        return table

    def advisable(self, text: str) -> str:
        """Return a sentence with advice about those of --labels and --impute em that the command has."""
        if self.estimates:
            # In brackets stands what was done, elsewhere what could be.
            text = re.sub(r"(?<!\()--impute median", "--impute em, --impute median", text)
        return text if self.takes_labels else LABELS_ADVICE.sub("", text)

    @contextmanager
    def advice(self) -> Iterator[None]:
        """Let errors advise the options that the command has."""
        try:
            yield
        except DataError as error:
            raise type(error)(self.advisable(str(error))) from None

    def rows(self, session: Session) -> TableRows:
        """Open the file to read its rows a few at a time."""
        rows = open_rows(self.file, **self._layout(), **self._rows_of_text(), impute=self._impute())
        if session.excel_safe:
            rows.variables, rows.label_names = no_formulas(rows.variables), no_formulas(rows.label_names)
        session.variables = rows.variables
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
        self.refuse_row_options("what --cluster reads")
        with self.advice():
            store = open_store(self.file, **self._layout(), dense=dense)
        if self.log2:
            if hasattr(store.X._meta, "tocsr"):
                log2(store.X._meta, self.least)  # refuses a floor that would fill in zeros
            store.X = store.X.map_blocks(
                self.prepared, dtype=np.float64, meta=store.X._meta.astype(np.float64)
            )
            store.notes.append(self.log2_note("all of them that are"))
        if session.excel_safe:
            store.variables = no_formulas(store.variables)
            store.label_names = no_formulas(store.label_names)
        session.variables = store.variables
        for note in store.notes:
            session.say(note)
        return store

    def log2_note(self, low: str) -> str:
        """Return the note on logarithms; `low` says how many values are below the floor."""
        return f"took log2 of the values, {low} below {self.least:g} raised to {self.least:g} first (--floor)"

    def prepared(self, values: np.ndarray) -> np.ndarray:
        """Return the values of a chunk as they go into the model."""
        return log2(values, self.least)[0] if self.log2 else values


@dataclass
class EstimableSource(Source):
    """A file and the options for reading it, for a model that can estimate missing values."""

    impute: MissingValues = None  # type: ignore[assignment]

    estimates = True


@dataclass
class UnlabelledSource(Source):
    """A file and the options for reading it, for commands that have no use for labels."""

    labels: None = field(default=None, init=False)

    takes_labels = False


def named(session: Session, chunk: Chunk) -> Chunk:
    """Return a chunk with its names as they are written."""
    if not session.excel_safe:
        return chunk
    return Chunk(chunk.values, no_formulas(chunk.names), [no_formulas(words) for words in chunk.labels])


def dense(values: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return the values of a table, dense or sparse, as an array."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype)


def no_formulas(words: list[str]) -> list[str]:
    """Return the words, with an apostrophe before those that a spreadsheet would take for formulas.

    >>> no_formulas(["=1+1", "-4 C", "BRCA1"])
    ["'=1+1", "'-4 C", 'BRCA1']
    """
    return [f"'{word}" if word[:1] in FORMULA else word for word in words]


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
