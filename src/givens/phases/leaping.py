"""Leaps: rotations of all columns that the objective itself proposes, for the beginning of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from givens.phases.phase import Phase
from givens.support.arguments import counted

if TYPE_CHECKING:
    from givens.loop import Run


class Leaps(Phase):
    """Take the objective's proposals as long as f falls by them.

    Of an objective that proposes nothing, this phase is over at once.
    """

    name = "leaps"

    def __init__(self) -> None:
        self.memory_of_last: Any = None

    def advance(self, run: Run) -> float | None:
        """Leap; where f does not fall, take it back and try once more without what the leaps before have told."""
        objective, progress = run.objective, run.progress
        while progress.leaps >= 0:
            before = run.value()
            fresh = progress.leaps > 0 and self.memory_of_last is None
            leap = objective.propose(run.state, self.memory_of_last, progress.leaps == 0)
            if leap is None:
                break
            progress.flops += leap.flops + run.turn(leap.rotation)
            gain = before - run.value()
            if gain > 0.0:
                progress.leaps = progress.leaps + 1 if leap.again else -1
                self.memory_of_last = leap.memory if leap.again else None
                return gain
            progress.flops += run.turn(leap.rotation.T)
            self.memory_of_last = None
            progress.leaps = 1
            if fresh:
                break
        progress.leaps, self.memory_of_last = -1, None
        return None

    def forget(self) -> None:
        """A run that goes on from a checkpoint does not know the leaps before either."""
        self.memory_of_last = None

    def describe(self, steps: int, run: Run) -> str:
        """As "4 leaps"."""
        return counted(steps, "leap", "leaps")
