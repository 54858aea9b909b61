"""The base class of phases: a phase lowers f step by step, until it can do no more or another one would gain more."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from givens.result import Stop
from givens.solve.run import Run
from givens.solve.state import Ending


class Phase(ABC):
    """A way to lower f.

    A phase that is entered is a new object: it knows nothing of the steps before.

    Attributes
    ----------
    name : str
    looks : bool
        Whether each step begins with a look, whose flops it counts.
    """

    name: str
    looks = True

    @abstractmethod
    def advance(self, run: Run) -> float | Ending:
        """Make one step, and return by how much it lowered f; or say why the phase is over.

        The run ends with the phase if that counts as converged, or if no other phase follows.
        """

    def forget(self) -> None:  # noqa: B027 (most phases remember nothing)
        """Discard whatever is not in `memory`: the state was recomputed, and a resumed run must take the same steps."""

    def memory(self) -> dict[str, np.ndarray]:
        """The arrays of this phase that a checkpoint saves."""
        return {}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:  # noqa: B027
        """Restore the `memory` of a checkpoint."""

    def _ending(
        self, stop: Stop, limit: float = math.nan, number: float = math.nan, text: str = ""
    ) -> Ending:
        """Why this phase is over."""
        return Ending(stop, limit, number, self.name, text)
