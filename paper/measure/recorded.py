"""An objective that is watched at every rotation: the figures of the paper have flops or rotations on their axes, not sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Rotations
from givens.rotations import rotate_blocks

Watch = Callable[[np.ndarray, int, float], None]


class Recorded(Objective):
    """The same objective, that calls `watch(U, rotations, flops)` after every round of rotations; for runs in one thread.

    The flops are those of the run up to the round; that of the loop's own U is counted after it.

    Parameters
    ----------
    inner : Objective
    watch : callable

    Attributes
    ----------
    gained : float
        By how much rotations have lowered f.
    """

    def __init__(self, inner: Objective, watch: Watch) -> None:
        self.inner = inner
        self.watch = watch
        self.shape, self.active, self.separable = inner.shape, inner.active, inner.separable
        self.scale, self.factor, self.method = inner.scale, inner.factor, inner.method
        self.rotations = 0
        self.gained = 0.0

    def start(self, rng: np.random.Generator) -> np.ndarray | Objective:
        """The inner one's."""
        return self.inner.start(rng)

    def state(self, U: np.ndarray) -> Any:
        """The inner one's."""
        self.Ut = np.ascontiguousarray(U.T)
        return self.inner.state(U)

    def look(self, state: Any, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """The inner one's."""
        return self.inner.look(state, Q, slopes)

    def solve(self, state: Any, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """The inner one's."""
        solved = self.inner.solve(state, blocks, min_gain)
        self.gained += float(np.sum(solved.gains))
        return solved

    def apply(
        self, state: Any, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate, then show what came of it."""
        self.inner.apply(state, blocks, rotations, solutions)
        with flop_counts.uncounted():
            rotate_blocks(self.Ut, blocks, rotations)
        self.rotations += len(blocks)
        self.watch(self.Ut.T, self.rotations, flop_counts.so_far())
