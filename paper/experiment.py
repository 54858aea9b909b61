"""The interface of an experiment: tasks that run one by one, a figure of their numbers, and claims that these support or not.

A task is the unit that is kept when a run is interrupted: its rows are written as soon as it is done, and a further run of
the same experiment goes on behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paper.measure.task import ExperimentSettings, Row, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paper.measure.tables import Data

__all__ = ["PAPER", "Claim", "Experiment", "ExperimentSettings", "Row", "Task"]

PAPER, LIBRARY = ABOUT = ("the paper's algorithms", "ours")


@dataclass(frozen=True)
class Claim:
    """A sentence, what was measured, the verdict (one of `verdicts.VERDICTS`), and whose algorithm it is about."""

    statement: str
    measured: str
    verdict: str
    about: str = PAPER


class Experiment(ABC):
    """One figure of the paper, or some of its theorems.

    Attributes
    ----------
    name : str
        As the command line knows it.
    title : str
        One line.
    about : str
        What is done, in a few sentences.
    measured : str
        The module whose code, with all that it imports, decides the numbers.
    """

    name: str
    title: str
    about: str
    measured: str

    def table(self, settings: ExperimentSettings) -> Data | None:
        """The real data, or their simulated substitute; None for an experiment on random problems."""
        return None

    def source(self, settings: ExperimentSettings) -> str:
        """Which data these are, for the title of the figure."""
        table = self.table(settings)
        assert table is not None, "an experiment without a table describes its data itself"
        return table.source

    def file(self, settings: ExperimentSettings) -> str | None:
        """The name of the file of real data, if there is one."""
        table = self.table(settings)
        return None if table is None else table.file

    @abstractmethod
    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """The tasks of the experiment."""

    @abstractmethod
    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Draw the numbers."""

    @abstractmethod
    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """The paper's claims, with verdicts."""
