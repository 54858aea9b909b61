"""What a phase is: something that lowers f step by step, and knows when it can do no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from givens.loop import Run


class Phase(ABC):
    """A way to lower f.

    Attributes
    ----------
    name : str
    verdict : str
        Why the phase ended, if its end means that the run has converged; else empty.
    """

    name: str
    verdict: str = ""

    @abstractmethod
    def advance(self, run: Run) -> float | None:
        """Make one step, and return by how much it lowered f; None if there is nothing more to do here."""

    @abstractmethod
    def describe(self, steps: int, run: Run) -> str:
        """Say what so many steps of this phase were, for `Result.method`."""

    def forget(self) -> None:  # noqa: B027 (most phases remember nothing)
        """The state was made anew: whatever a run that goes on from a checkpoint would not know is to be dropped."""

    def memory(self) -> dict[str, np.ndarray]:
        """What a checkpoint has to hold of this phase."""
        return {}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:  # noqa: B027
        """Go on from what a checkpoint held."""
