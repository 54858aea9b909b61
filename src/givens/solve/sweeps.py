"""Sweeps: rotations of pairs to their best angle, or of blocks of columns, in the order of a schedule.

    for blocks in schedule:                 # the blocks of a round share no column
        solve every block                   # only reads the state, so that threads can share the blocks
        apply all rotations                 # writes the state

With `schedule="random"` and blocks of two columns this is the paper's Algorithm 1.
"""

from __future__ import annotations

import math

import numpy as np

from givens.objectives.base import Blocks, PairSolutions, chosen
from givens.result import Stop
from givens.solve.run import Phase, Run
from givens.solve.state import Ending

JUDGED_SWEEPS = 4
"""The last sweeps whose gains tell how many are still to come."""


class Sweeps(Phase):
    """Rotate every block in the order of the schedule.

    The phase continues until the loop stops it, or gives way to another one that follows where its gains shrink so slowly that
    many sweeps are still to come: where f is flat in some directions, Newton's method ends the run in a few steps.
    """

    name = "sweeps"
    looks = False

    def __init__(self) -> None:
        self.gains: list[float] = []

    def advance(self, run: Run) -> float | Ending:
        """One sweep."""
        if (
            run.progress.phase + 1 < len(run.options.phases) and self._sweeps_left(run) > 30
        ):  # that is longer than Newton's method takes
            return Ending(Stop.SLOW)
        run.prepare_rotations()
        objective, progress = run.objective, run.progress
        rounds = run.options.schedule.sweep(run.shape, progress.rng, run.slopes)
        total = 0.0
        try:
            blocks = next(rounds)
            while True:
                gain = 0.0
                # Where the gains of disjoint blocks do not add up, each is solved after the one before it is applied.
                for share in (
                    (blocks,) if objective.separable else [blocks[k : k + 1] for k in range(len(blocks))]
                ):
                    gain += self._round(run, share)
                total += gain
                blocks = rounds.send(gain)
        except StopIteration:
            pass
        progress.sweeps += 1
        progress.gains = [*progress.gains, total][-run.options.schedule.patience :]
        self.gains = [*self.gains, total][-JUDGED_SWEEPS:]
        return total

    def _sweeps_left(self, run: Run) -> float:
        """How many sweeps it would take until one gains nothing, if their gains go on shrinking as the last ones did."""
        first, last = self.gains[:1], self.gains[-1:]
        least = max(run.tol, 1e-20) * run.objective.scale  # of 0, there would be infinitely many
        if len(self.gains) < JUDGED_SWEEPS or last[0] <= least:
            return 0.0
        shrinking = math.log(last[0] / first[0]) / (JUDGED_SWEEPS - 1)
        return math.log(least / last[0]) / shrinking if shrinking < 0.0 else math.inf

    def memory(self) -> dict[str, np.ndarray]:
        """The last gains."""
        return {"gains": np.array(self.gains)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore them."""
        self.gains = arrays["gains"].tolist()

    def _round(self, run: Run, blocks: Blocks) -> float:
        solved = search(run, blocks)
        if not solved.gains.min() > 0:
            turned = np.flatnonzero(solved.gains > 0)
            if not len(turned):
                return 0.0
            solved = chosen(solved, turned)
            blocks = (
                blocks[turned] if isinstance(blocks, np.ndarray) else [blocks[k] for k in turned.tolist()]
            )
        run.rotate(blocks, solved.rotations, solved)
        run.progress.rotations += len(blocks)
        return float(solved.gains.sum())


def search(run: Run, blocks: Blocks) -> PairSolutions:
    """Solve blocks, and note how exact that is."""
    solved = run.objective.solve(run.state, blocks, run.tol * run.objective.scale)
    run.progress.error = float(np.maximum(run.progress.error, solved.error))
    return solved
