"""A task: the unit of work that is kept when a run is interrupted, and the settings that all tasks of a run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]


@dataclass(frozen=True)
class ExperimentSettings:
    """How an experiment is run.

    Attributes
    ----------
    quick : bool
        Small enough for a minute or so: smaller data, fewer cells, fewer seeds.
    seeds : int or None
        How many repetitions; None is the experiment's own number.
    data : path or None
        A folder with the real data sets; without it they are simulated.
    threads : int or None
        How many tasks run at the same time, by default as many as there are cores; they change the time only.
    """

    quick: bool = False
    seeds: int | None = None
    data: Path | None = None
    threads: int | None = None

    def key(self) -> dict[str, Any]:
        """What decides the numbers of a task, which is one repetition: neither threads nor how many repetitions there are."""
        key = asdict(self)
        del key["threads"], key["seeds"]
        key["data"] = None if self.data is None else str(self.data)
        return key

    def options(self) -> str:
        """The settings of the command line, without the path of the data."""
        words = ["--quick" if self.quick else "", f"--seeds {self.seeds}" if self.seeds else ""]
        return " ".join(filter(None, words))


class Task(NamedTuple):
    """One unit of work: a name for its file, what it does, and how long it takes beside the others."""

    name: str
    run: Callable[[], list[Row]]
    weight: float = 1.0
