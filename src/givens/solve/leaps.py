"""Leaps: rotations of all columns that the objective proposes, at the beginning of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from givens.solve.phase import Phase
from givens.support.arguments import counted

if TYPE_CHECKING:
    from givens.solve.loop import Run


class Leaps(Phase):
    """Apply the objective's proposals as long as they lower f.

    The phase ends at once if the objective proposes nothing.
    """

    name = "leaps"

    def __init__(self) -> None:
        self.last_memory: Any = None

    def advance(self, run: Run) -> float | None:
        """Apply a proposal. If f does not decrease, undo it, and try once more without the memory of earlier leaps."""
        objective, progress = run.objective, run.progress
        while progress.leaps >= 0:
            before = run.value()
            fresh = progress.leaps > 0 and self.last_memory is None
            leap = objective.propose(run.state, self.last_memory, progress.leaps == 0)
            if leap is None:
                if progress.leaps == 0:
                    self.unable = "the objective proposes no leaps (Objective.propose)"
                break
            progress.flops += leap.flops + run.turn(leap.rotation)
            gain = before - run.value()
            if gain > 0.0:
                progress.leaps = progress.leaps + 1 if leap.again else -1
                self.last_memory = leap.memory if leap.again else None
                return gain
            progress.flops += run.turn(leap.rotation.T)
            self.last_memory = None
            progress.leaps = 1
            if fresh:
                break
        progress.leaps, self.last_memory = -1, None
        return None

    def forget(self) -> None:
        """Discard the memory of earlier leaps, which a checkpoint does not save."""
        self.last_memory = None

    def describe(self, steps: int, run: Run) -> str:
        """For example "4 leaps"."""
        return counted(steps, "leap", "leaps")
