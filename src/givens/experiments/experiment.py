"""What an experiment is: tasks that can be done one by one, a figure of their numbers, and claims to be held against them.

A task is the unit that is kept when a run is interrupted: its rows are written as soon as it is done, and a further run of
the same experiment with the same settings goes on behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


@dataclass(frozen=True)
class ExperimentSettings:
    """How an experiment is run.

    Attributes
    ----------
    quick : bool
        Small enough for a minute: smaller data, fewer cells, fewer seeds.
    seeds : int or None
        How many repetitions; None is the experiment's own number.
    data : path or None
        A folder with the real data sets; without it they are simulated.
    threads : int or None
        As everywhere: they change the time only.
    """

    quick: bool = False
    seeds: int | None = None
    data: Path | None = None
    threads: int | None = None

    def key(self) -> dict[str, Any]:
        """What decides the numbers: everything but the threads."""
        key = asdict(self)
        del key["threads"]
        key["data"] = None if self.data is None else str(self.data)
        return key

    def options(self) -> str:
        """As the command line has them, but for the data: where they lie on this machine is nobody's business."""
        words = ["--quick" if self.quick else "", f"--seeds {self.seeds}" if self.seeds else ""]
        return " ".join(filter(None, words))


class Task(NamedTuple):
    """One unit of work: a name for its file, what it does, and how long it takes beside the others."""

    name: str
    run: Callable[[], list[Row]]
    weight: float = 1.0


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured, and whether it holds (None: it cannot be told)."""

    statement: str
    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]


class Experiment(ABC):
    """One figure of the paper.

    Attributes
    ----------
    name : str
        As the command line knows it.
    title : str
        One line.
    about : str
        What is done, in a few sentences.
    """

    name: str
    title: str
    about: str

    @abstractmethod
    def source(self, settings: ExperimentSettings) -> str:
        """Which data these are: the figure's title says so."""

    def file(self, settings: ExperimentSettings) -> str | None:
        """The name of the file of real data, if there is one."""
        return None

    @abstractmethod
    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """All that has to be done."""

    @abstractmethod
    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Draw the numbers."""

    @abstractmethod
    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Hold the paper's sentences against the numbers."""
