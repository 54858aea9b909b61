"""The options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from givens.cli.session import Session
from givens.io import DataError, Table, TableRows, open_rows, read_table
from givens.io.table import VARIABLE_WORDS, count, stem


class Side(StrEnum):
    """Which side of the table is the samples."""

    rows = "rows"
    columns = "columns"


class Penalty(StrEnum):
    """The paper's penalty, or the counting one."""

    l1 = "l1"
    l0 = "l0"


READING = "Reading the file"
RESULTS = "Results"
FITTING = "Fitting"

File = Annotated[
    Path,
    typer.Argument(help="CSV or TSV (also .gz), .parquet, .npy, .npz, .mtx or .h5ad.", show_default=False),
]
Samples = Annotated[
    Side | None,
    typer.Option(help="Which side is the samples; guessed, aloud, if not given.", rich_help_panel=READING),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column that holds the samples' labels.", rich_help_panel=READING
    ),
]
Names = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that holds the rows' names.", rich_help_panel=READING),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A column to leave out; may be given again.", rich_help_panel=READING
    ),
]
Log2 = Annotated[bool, typer.Option("--log2", help="Take log2 of the values first.", rich_help_panel=READING)]
Floor = Annotated[
    float | None,
    typer.Option(
        help="Raise smaller values to this one before --log2; 1 if not given.", rich_help_panel=READING
    ),
]
Standardise = Annotated[
    bool,
    typer.Option(
        "--standardise", "--standardize", help="Divide by the standard deviations.", rich_help_panel=READING
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.", rich_help_panel=RESULTS)]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=RESULTS)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=RESULTS)
]
Seed = Annotated[int, typer.Option(help="Of the random numbers.", rich_help_panel=FITTING)]
Threads = Annotated[
    int | None,
    typer.Option(help="All cores if not given.", min=1, rich_help_panel=FITTING, show_default=False),
]


@dataclass
class Source:
    """The file and how to read it: what the reading options of a command come to."""

    file: Path
    samples: Side | None = None
    labels: str | None = None
    names: str | None = None
    drop: list[str] | None = None
    log2: bool = False
    floor: float | None = None

    def __post_init__(self) -> None:
        if self.floor is not None and not self.log2:
            raise DataError("--floor goes with --log2, and does nothing without it")
        if self.floor is not None and not self.floor > 0:
            raise DataError(f"--floor must be above 0, since logarithms follow, not {self.floor:g}")
        self.least = 1.0 if self.floor is None else self.floor

    def table(self, session: Session, nouns: tuple[str, str] = ("sample", "variable")) -> Table:
        """Read the whole table, and say aloud what was guessed; `nouns` are what its rows and columns are."""
        side = None if self.samples is None else self.samples.value
        with session.step(f"reading {self.file.name}"):
            table = read_table(
                self.file, samples=side, labels=self.labels, names=self.names, drop=self.drop or ()
            )
        session.say(f"read {self.file.name}: {' x '.join(map(count, table.shape, nouns))}")
        for note in table.notes:
            session.say(note)
        if self.log2:
            table.values, low = log2(table.values, self.least)
            table.notes.append(f"took log2 of the values, {low:,} of them raised to {self.least:g} first")
            session.say(table.notes[-1])
        return table

    def rows(self, session: Session) -> TableRows:
        """Open the file to read its rows a few at a time."""
        if self.samples is Side.columns:
            raise DataError("--stream reads samples as rows: transpose the file, or leave --stream out")
        rows = open_rows(self.file, labels=self.labels, names=self.names, drop=self.drop or ())
        if self.samples is None and stem(rows.corner) in VARIABLE_WORDS:
            raise DataError(
                f"the rows are headed '{rows.corner}', so they are no samples, and --stream reads samples as rows: "
                "transpose the file, leave --stream out, or say --samples rows"
            )
        rows.notes.append("took the rows as samples, as --stream does")
        if self.log2:
            rows.notes.append(f"took log2 of the values, smaller ones raised to {self.least:g} first")
        for note in rows.notes:
            session.say(note)
        return rows

    def prepared(self, values: np.ndarray) -> np.ndarray:
        """Return the values of a chunk as they go into the model."""
        return log2(values, self.least)[0] if self.log2 else values


def log2(values: Any, floor: float) -> tuple[Any, int]:
    """Return log2 of the values, and how many were raised to the floor first."""
    if hasattr(values, "tocsr"):
        if floor != 1:
            raise DataError("a sparse table needs --floor 1, so that its zeros stay zeros under --log2")
        result = values.tocsr().astype(np.float64)
        low = int((result.data < 1).sum())
        result.data = np.log2(np.maximum(result.data, 1))
        result.eliminate_zeros()
        return result, low
    return np.log2(np.maximum(values, floor)), int((values < floor).sum())
