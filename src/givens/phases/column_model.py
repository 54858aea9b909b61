"""Second derivatives of a sum over columns, learned from the steps of a descent.

If f is a sum over columns, column j of the gradient ∂f/∂U depends on column j of U only. Each step of descent gives for every
column its move and the change of its gradient. From these, n symmetric matrices of order n are learned (Griewank and Toint
1982), in far fewer steps than one matrix for all pairs of columns. The other part of the second derivatives, due to columns
that rotate instead of moving along a straight line, is known exactly from ∂f/∂U.

A step minimises this quadratic model within a radius (a trust region), which is set by comparing the actual with the predicted
decrease of f. Far from a minimum the model is poor, and following it would lead to the nearest minimum, which is often not the
best: there only steps inside the radius are made.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MOST_COLUMNS = 40  # with more, n matrices of order n cost more time than they save
FIRST_RADIUS = 0.1  # times √n; radii are norms of the angles of all pairs
# No step that ends at the radius is proposed where the norm of the slopes is above this share of the largest norm so far,
STEEP = 0.05
# or before this number of steps is known (or n, if that is larger).
LEAST_STEPS = 12
INEXACT = 0.1  # conjugate gradients stop at this share of the slopes, or at a smaller one
MOST_PRODUCTS = 500
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius


class Proposal(NamedTuple):
    """A step: the antisymmetric K, the predicted decrease of f, whether the step ends at the radius, and the flops spent."""

    K: np.ndarray
    promised: float
    bounded: bool
    flops: float


class ColumnModel:
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

    def learn(self, move: np.ndarray, change: np.ndarray) -> float:
        """Learn from the moves of the columns, as rows, and the changes of their gradients, as columns; return the flops."""
        if self.matrices is None:
            if not move.any():
                return 0.0
            self.matrices = self._begin(move, change)
        self.largest = self._learn(self.matrices, move, change, self.largest)
        self.steps += 1
        return 6.0 * self.n**3

    def propose(self, Ut: np.ndarray, E: np.ndarray, slope: float) -> Proposal | None:
        """The best step from U, given the gradient E and the norm of the slopes; None where too little is known."""
        self.steepest = max(self.steepest, slope)
        if self.matrices is None:
            return None
        exact = min(INEXACT, math.sqrt(slope / self.steepest))
        K, promised, bounded, products = self._bounded_step(
            self.matrices, Ut, E, self.radius, exact, MOST_PRODUCTS
        )
        if not promised > 0.0 or (
            bounded and (self.steps < max(LEAST_STEPS, self.n) or slope > STEEP * self.steepest)
        ):
            return None
        return Proposal(K, promised, bounded, 8.0 * products * self.n**3)

    def judge(self, step: Proposal, kept: float) -> None:
        """Set the radius by `kept`, the ratio of the actual to the predicted decrease of f."""
        if kept < POOR:
            self.radius = POOR * math.sqrt(0.5 * float(np.vdot(step.K, step.K)))
        elif kept > GOOD and step.bounded:
            self.radius *= 2.0

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""
        if self.matrices is None:
            return {}
        numbers = np.array([self.steps, self.radius, self.steepest, self.largest])
        return {"matrices": self.matrices, "column_model": numbers}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit; raise a ValueError if their size is wrong, or if they are not finite."""
        if "matrices" not in arrays:
            return
        matrices, numbers = arrays["matrices"], arrays["column_model"]
        if matrices.shape != (self.n,) * 3 or matrices.dtype != np.float64 or numbers.shape != (4,):
            raise ValueError("the second derivatives of columns are of another order")
        if not (np.isfinite(matrices).all() and np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise ValueError("the second derivatives of columns are not finite")
        self.matrices = matrices.copy()
        self.steps = int(numbers[0])
        self.radius, self.steepest, self.largest = (float(number) for number in numbers[1:])
