"""What the steps of a descent tell of the second derivatives of f, where f is a sum over columns.

Then the gradient ∂f/∂U of f holds the gradient of each column in its own column, which changes with that column only. A step of
all columns gives every column a pair of vectors, its move and the change of its gradient, and from these pairs n symmetric
matrices of order n are learned (Griewank and Toint 1982): in far fewer steps than one matrix for all pairs of columns. The other
part of the second derivatives, due to columns that turn instead of moving along a straight line, is known exactly from ∂f/∂U.

A step is the minimum of the quadratic function within a radius (a trust region). The radius is set by how well f kept what the
function promised. Far from a minimum the function says little, and following it would lead to the nearest minimum, which is often
not the best: there such steps are made only where they stay inside the radius.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MOST_COLUMNS = 40  # with more, n matrices of order n cost more time than they save
FIRST_RADIUS = 0.1  # times √n: the root of the sum of the squared angles of all pairs
STEEP = (
    0.05  # of the steepest slopes: where they are larger, a step that the radius cuts short is left to others
)
LEAST_STEPS = 12  # and at least n: before so many steps are known, too
INEXACT = 0.1  # of the slopes: what conjugate gradients leave at most
MOST_PRODUCTS = 500
POOR, GOOD = 0.25, 0.75  # shares of the promised fall


class Proposal(NamedTuple):
    """A step: the antisymmetric K, how far f should fall, whether the radius cut it short, and the flops that it took."""

    K: np.ndarray
    promised: float
    bounded: bool
    flops: float


class ColumnModel:
    """The quadratic function that the steps so far describe.

    Parameters
    ----------
    n : int
        The order of U.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.clear()

    def clear(self) -> None:
        """Forget all of it."""
        self.matrices: np.ndarray | None = None
        self.steps = 0
        self.radius = FIRST_RADIUS * math.sqrt(self.n)
        self.steepest = 0.0

    def learn(self, move: np.ndarray, change: np.ndarray) -> float:
        """Columns moved so, as rows, and their gradients changed so, as columns; returns the flops."""
        from givens.kernels.column_model import begin, learn

        if self.matrices is None:
            if not move.any():
                return 0.0
            self.matrices = begin(move, change)
        learn(self.matrices, move, change)
        self.steps += 1
        return 6.0 * self.n**3

    def propose(self, Ut: np.ndarray, E: np.ndarray, slope: float) -> Proposal | None:
        """The best step from U, where f has the gradient E and this norm of the slopes; None where too little is known."""
        from givens.kernels.column_model import bounded_step

        self.steepest = max(self.steepest, slope)
        if self.matrices is None:
            return None
        exact = min(INEXACT, math.sqrt(slope / self.steepest))
        K, promised, bounded, products = bounded_step(self.matrices, Ut, E, self.radius, exact, MOST_PRODUCTS)
        if not promised > 0.0 or (
            bounded and (self.steps < max(LEAST_STEPS, self.n) or slope > STEEP * self.steepest)
        ):
            return None
        return Proposal(K, promised, bounded, 8.0 * products * self.n**3)

    def judge(self, step: Proposal, kept: float) -> None:
        """Set the radius by the share of the promised fall that f kept."""
        if kept < POOR:
            self.radius = POOR * math.sqrt(0.5 * float(np.vdot(step.K, step.K)))
        elif kept > GOOD and step.bounded:
            self.radius *= 2.0

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save."""
        if self.matrices is None:
            return {}
        return {"matrices": self.matrices, "column_model": np.array([self.steps, self.radius, self.steepest])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Have what was saved, to the bit; a ValueError where it is not of this size, or not finite."""
        if "matrices" not in arrays:
            return
        matrices, numbers = arrays["matrices"], arrays["column_model"]
        if matrices.shape != (self.n,) * 3 or matrices.dtype != np.float64 or numbers.shape != (3,):
            raise ValueError("the second derivatives of columns are of another order")
        if not (np.isfinite(matrices).all() and np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise ValueError("the second derivatives of columns are not finite")
        self.matrices = matrices.copy()
        self.steps, self.radius, self.steepest = int(numbers[0]), float(numbers[1]), float(numbers[2])
