"""The base class of phases: a phase lowers f step by step, and says when it can do no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from givens.solve.loop import Run


class Phase(ABC):
    """A way to lower f.

    Attributes
    ----------
    name : str
    verdict : str
        Why the phase ended, if the run has then converged; else empty.
    unable : str
        What the objective lacks for this phase; empty if it lacks nothing.
    """

    name: str
    verdict: str = ""
    unable: str = ""

    @abstractmethod
    def advance(self, run: Run) -> float | None:
        """Make one step, and return by how much it lowered f; None if the phase is over."""

    @abstractmethod
    def describe(self, steps: int, run: Run) -> str:
        """Describe the steps of this phase, for `Result.method`."""

    def forget(self) -> None:  # noqa: B027 (most phases remember nothing)
        """Discard whatever is not in `memory`: the state was recomputed, and a resumed run must take the same steps."""

    def memory(self) -> dict[str, np.ndarray]:
        """The arrays of this phase that a checkpoint saves."""
        return {}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:  # noqa: B027
        """Restore the `memory` of a checkpoint."""
