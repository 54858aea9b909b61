"""Sweeps: rotations of pairs to their best angle, or of blocks of columns, in the order of a schedule.

    for blocks in schedule:                 # the blocks of a round share no column
        solve every block                   # only reads the state, so threads can share it
        apply all rotations                 # writes the state

With `schedule="random"` and blocks of two columns this is the paper's Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.objectives.base import Blocks, Solved
from givens.result import Stop
from givens.solve.phase import Phase
from givens.solve.run import Run
from givens.solve.state import Ending

FIRST_PAIRS = 16  # of many pairs, so many are solved to see how long the others take
LITTLE = 2e6  # flops that take less time than threads need to begin
JUDGED = 4  # sweeps whose gains tell how many are still to come
LONG = 30  # sweeps that take longer than Newton's method
NEGLIGIBLE = 1e-20  # relative to the scale: a gain that is no reason for another sweep


class Sweeps(Phase):
    """Rotate every block in the order of the schedule.

    The phase continues until the loop stops it, or gives way to another one that follows where its gains shrink so slowly that
    many sweeps are still to come: where f is flat in some directions, Newton's method ends the run in a few steps.
    """

    name = "sweeps"

    def __init__(self) -> None:
        self.gains: list[float] = []

    def advance(self, run: Run) -> float | Ending:
        """One sweep."""
        if run.progress.phase + 1 < len(run.options.phases) and self._sweeps_left(run) > LONG:
            return Ending(Stop.EXHAUSTED, phase=self.name)
        run.complete()
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
        self.gains = [*self.gains, total][-JUDGED:]
        return total

    def _sweeps_left(self, run: Run) -> float:
        """How many sweeps it would take until one gains nothing, if their gains go on shrinking as the last ones did."""
        first, last = self.gains[:1], self.gains[-1:]
        least = max(run.tol, NEGLIGIBLE) * run.objective.scale
        if len(self.gains) < JUDGED or last[0] <= least:
            return 0.0
        shrinking = math.log(last[0] / first[0]) / (JUDGED - 1)
        return math.log(least / last[0]) / shrinking if shrinking < 0.0 else math.inf

    def memory(self) -> dict[str, np.ndarray]:
        """The last gains."""
        return {"gains": np.array(self.gains)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore them."""
        self.gains = arrays["gains"].tolist()

    def _round(self, run: Run, blocks: Blocks) -> float:
        solved = solve(run, blocks)
        run.progress.exactness = max(run.progress.exactness, solved.exactness)
        rotations, gains, payload = solved.rotations, solved.gains, solved.payload
        if not gains.min() > 0:
            turned = gains > 0
            if not turned.any():
                return 0.0
            gains = gains[turned]
            which = np.flatnonzero(turned).tolist()
            payload = None if payload is None else [payload[k] for k in which]
            if isinstance(blocks, np.ndarray):
                blocks, rotations = blocks[turned], np.asarray(rotations)[turned]
            else:
                blocks, rotations = [blocks[k] for k in which], [rotations[k] for k in which]
        run.rotate(blocks, rotations, payload)
        run.progress.rotations += solved.rotated
        return float(gains.sum())


def solve(run: Run, blocks: Blocks) -> Solved:
    """Solve blocks in the threads of the pool; the result does not depend on how they share the blocks."""
    objective, state, min_gain = run.objective, run.state, run.tol * run.objective.scale
    width = 1 if run.plan.at_once else min(parallel.width(), len(blocks))
    if width == 1:
        return objective.solve(state, blocks, min_gain)
    shares = [blocks[part] for part in parallel.parts(len(blocks), width)]
    solved = parallel.each(lambda share: objective.solve(state, share, min_gain), shares)
    return _together(solved, isinstance(blocks, np.ndarray))


def solve_pairs(run: Run, pairs: np.ndarray) -> Solved:
    """Solve many pairs, in the threads of the pool unless the flops of the first ones show that threads cost more time."""
    if run.plan.at_once or len(pairs) <= FIRST_PAIRS:
        return solve(run, pairs)
    min_gain = run.tol * run.objective.scale
    first, rest = pairs[:FIRST_PAIRS], pairs[FIRST_PAIRS:]
    with flop_counts.job(flop_counts.Flops()) as counter:
        begun = run.objective.solve(run.state, first, min_gain)
    # Plain functions do not know their flops.
    if counter.flops == 0.0 or counter.flops * len(rest) > LITTLE * len(first):
        return _together([begun, solve(run, rest)], True)
    return _together([begun, run.objective.solve(run.state, rest, min_gain)], True)


def _together(solved: Sequence[Solved], pairs: bool) -> Solved:
    """The shares of a round, in their order, as one."""
    payloads = [part.payload for part in solved if part.payload is not None]
    return Solved(
        np.concatenate([part.rotations for part in solved])
        if pairs
        else [Q for part in solved for Q in part.rotations],
        np.concatenate([part.gains for part in solved]),
        sum(part.rotated for part in solved),
        [found for payload in payloads for found in payload] if len(payloads) == len(solved) else None,
        max(part.exactness for part in solved),
        float(np.max([part.error for part in solved])),
    )
