"""Second derivatives of a sum over columns, learned from the steps of a descent.

If f is a sum over columns, column j of the gradient ∂f/∂U depends on column j of U only. Each step of descent gives for every
column its move and the change of its gradient. From these, n symmetric matrices of order n are learned (Griewank and Toint
1982), in far fewer steps than one matrix for all pairs of columns. The other part of the second derivatives, due to columns
that rotate instead of moving along a straight line, is known exactly from ∂f/∂U.

A step minimises this quadratic model within a radius (`trust_region`).
"""

from __future__ import annotations

import math

import numpy as np

from givens.objectives.base import Look
from givens.phases.conjugate_gradients import MOST_PRODUCTS
from givens.phases.trust_region import LearnedModel, Proposal

MOST_COLUMNS = 40  # with more, n matrices of order n cost more time than they save
FIRST_RADIUS = 0.1  # times √n; radii are norms of the angles of all pairs
# Steps that end at the radius are proposed when this number of steps is known (or n, if that is larger).
LEAST_STEPS = 12


class ColumnModel(LearnedModel):
    """The quadratic model.

    Parameters
    ----------
    n : int
        The order of U.
    """

    def __init__(self, n: int) -> None:
        from givens.kernels.column_model import begin, bounded_step, learn

        self._begin, self._learn, self._bounded_step = begin, learn, bounded_step
        self.n = n
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.matrices: np.ndarray | None = None
        self.steps = 0
        self.radius = FIRST_RADIUS * math.sqrt(self.n)
        self.steepest = 0.0
        self.largest = 0.0

    @property
    def known(self) -> bool:
        """Whether there was a step."""
        return self.matrices is not None

    @property
    def reliable(self) -> bool:
        """Whether enough steps are known."""
        return self.steps >= max(LEAST_STEPS, self.n)

    def learn(self, move: np.ndarray, before: Look, after: Look) -> float:
        """Learn from the moves of the columns, as rows, and the looks at both ends; return the flops."""
        assert before.gradient is not None
        assert after.gradient is not None
        change = after.gradient - before.gradient
        if self.matrices is None:
            if not move.any():
                return 0.0
            self.matrices = self._begin(move, change)
        self.largest = self._learn(self.matrices, move, change, self.largest)
        self.steps += 1
        return 6.0 * self.n**3

    def minimum(self, Ut: np.ndarray, look: Look, little: float) -> Proposal:
        """The minimum of the model within the radius."""
        K, promised, bounded, products = self._bounded_step(
            self.matrices, Ut, look.gradient, self.radius, little, MOST_PRODUCTS
        )
        return Proposal(K, promised, bounded, 8.0 * products * self.n**3)

    @staticmethod
    def size(K: np.ndarray) -> float:
        """The norm of the angles of all pairs."""
        return math.sqrt(0.5 * float(np.vdot(K, K)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""
        if self.matrices is None:
            return {}
        numbers = np.array([self.steps, self.radius, self.steepest, self.largest])
        return {"matrices": self.matrices, "column_model": numbers}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""
        if "matrices" not in arrays:
            return
        numbers = arrays["column_model"]
        self.matrices = arrays["matrices"].copy()
        self.steps = int(numbers[0])
        self.radius, self.steepest, self.largest = (float(number) for number in numbers[1:])
