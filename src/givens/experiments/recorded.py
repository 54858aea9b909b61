"""An objective that is watched at every rotation: the figures of the paper have flops or rotations on their axes, not sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from givens.objectives.base import Blocks, Leap, Objective, Rotations, Solved
from givens.rotations import rotate_blocks

Watch = Callable[[np.ndarray, int, float], None]


class Recorded(Objective):
    """The same objective, that calls `watch(U, rotations, flops)` after every round of rotations; for runs in one thread.

    Parameters
    ----------
    inner : Objective
    watch : callable
    """

    def __init__(self, inner: Objective, watch: Watch) -> None:
        self.inner = inner
        self.watch = watch
        self.n, self.active = inner.n, inner.active
        self.separable, self.sense, self.unit, self.dear = (
            inner.separable,
            inner.sense,
            inner.unit,
            inner.dear,
        )
        self.scale, self.floor, self.making = inner.scale, inner.floor, inner.making
        self.rotations = 0
        self.flops = 0.0
        self.made = False

    def prepare(self, start: np.ndarray) -> None:
        """Take the scale over, once it is settled."""
        self.inner.prepare(start)
        self.scale, self.floor = self.inner.scale, self.inner.floor

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The inner one's."""
        return self.inner.start(rng)

    def state(self, U: np.ndarray) -> Any:
        """The inner one's."""
        self.inner.enough = self.enough
        self.Ut = np.ascontiguousarray(U.T)
        # The loop makes a state at the start and, when it has repaired U, again.
        self.flops += self.making + (4.0 * self.n**3 if self.made else 0.0)
        self.made = True
        return self.inner.state(U)

    def value(self, state: Any) -> float:
        """The inner one's."""
        return self.inner.value(state)

    def gradient(self, state: Any) -> np.ndarray:
        """The inner one's."""
        return self.inner.gradient(state)

    def schedule(self) -> Any:
        """The inner one's."""
        return self.inner.schedule()

    def leap(self, state: Any, memory: Any, first: bool) -> Leap | None:
        """The inner one's."""
        leap = self.inner.leap(state, memory, first)
        self.flops += 0.0 if leap is None else leap.flops
        return leap

    def solve(self, state: Any, blocks: Blocks) -> Solved:
        """The inner one's."""
        solved = self.inner.solve(state, blocks)
        self.flops += solved.flops
        return solved

    def apply(self, state: Any, blocks: Blocks, rotations: Rotations) -> float:
        """Rotate, then show what came of it."""
        flops = self.inner.apply(state, blocks, rotations)
        # The loop keeps a U too, and counts what that takes: so does this count.
        self.flops += flops + rotate_blocks(self.Ut, blocks, rotations)
        self.rotations += len(blocks)
        self.watch(self.Ut.T, self.rotations, self.flops)
        return flops
