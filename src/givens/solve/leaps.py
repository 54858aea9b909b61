"""Leaps: rotations of all columns that the objective proposes, at the beginning of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.result import Stop
from givens.solve.phase import Phase
from givens.solve.run import Run
from givens.solve.state import Ending

LEAST = 1e-7  # leaps end when one gains less than this share of the value


class Leaps(Phase):
    """Apply the objective's proposals as long as they lower f.

    The phase ends at once if the objective proposes nothing.
    """

    name = "leaps"

    def __init__(self) -> None:
        self.begun = self.over = False
        self.last_memory: Any = None

    def advance(self, run: Run) -> float | Ending:
        """Apply a proposal. If f does not decrease, undo it, and try once more without the memory of earlier leaps."""
        run.settle()
        while not self.over:
            first, fresh = not self.begun, self.begun and self.last_memory is None
            proposal = run.objective.propose(run.state, self.last_memory, first)
            if proposal is None:
                self.over = True
                if first:
                    lacking = "the objective proposes no leaps (Objective.propose)"
                    return Ending(Stop.LACKING, phase=self.name, text=lacking)
                break
            rotation, memory = proposal
            gain = self._gain(run, rotation)
            self.begun = True
            if gain > 0.0:
                # The first leap may be a rough one, on few features.
                self.over = not first and gain <= LEAST * abs(run.value())
                self.last_memory = None if self.over else memory
                return gain
            self.over, self.last_memory = fresh, None
        return Ending(Stop.EXHAUSTED, phase=self.name)

    def _gain(self, run: Run, rotation: np.ndarray) -> float:
        """Leap, and return by how much f decreased; if it did not, leap back."""
        before = run.value()
        everything = [np.arange(run.shape.n)]
        run.rotate(everything, [rotation])
        gain = before - run.value()
        if not gain > 0.0:
            run.rotate(everything, [rotation.T])
        return gain

    def forget(self) -> None:
        """Discard the memory of earlier leaps, which a checkpoint does not save."""
        self.last_memory = None

    def memory(self) -> dict[str, np.ndarray]:
        """Whether there was a leap, and whether more are to come."""
        return {"begun": np.array(self.begun), "over": np.array(self.over)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore both."""
        self.begun, self.over = bool(arrays["begun"]), bool(arrays["over"])
