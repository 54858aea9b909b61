"""The memory of descent: the last steps, from which limited-memory BFGS estimates the curvature.

If a step s changed the slopes by y, the Hessian maps s to y. H g, where H is the inverse of the Hessian that BFGS would learn
from the last m steps, takes two loops over them (Nocedal 1980): one from the last step to the first, which subtracts changes of
slopes from g, and one back, which adds steps. In between g is multiplied by the diagonal matrix W that BFGS begins with.

A multiple of the identity for W makes descent slow where pairs of columns have very different curvatures. So W is learned too
(Gilbert and Lemaréchal 1989): its inverse becomes the diagonal of what BFGS would make of it,

    1/w_k  ←  1/w_k + y_k² / (s·y) − (s_k/w_k)² / Σ (s_k²/w_k),

and all w_k are then multiplied by one number, for which y·W y = s·y.
"""

from __future__ import annotations

import numpy as np


class Memory:
    """The last steps, and the change of slopes in each.

    Parameters
    ----------
    size : int
        Length of a step.
    most : int
        Number of steps to keep.
    """

    def __init__(self, size: int, most: int) -> None:
        from givens.kernels.quasi_newton import add, solve

        self._add, self._solve = add, solve
        self.most = min(most, max(size, 1))
        # A step and the change of slopes alternate, both divided by √(s·y). The oldest pair is overwritten.
        self.rows = np.empty((2 * self.most, size))
        self.weights, self.shares = np.empty(size), np.empty(self.most)
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.place = self.kept = 0
        self.weights[:] = 1.0

    def __len__(self) -> int:
        return self.kept

    def add(self, step: np.ndarray, change: np.ndarray) -> bool:
        """Keep a step and the change of the slopes if the curvature along it is clearly positive; return whether it is."""
        if not self._add(self.rows, self.weights, self.place, self.kept == 0, step, change):
            return False
        self.place = (self.place + 1) % self.most
        self.kept = min(self.kept + 1, self.most)
        return True

    def solve(self, slopes: np.ndarray, weights: np.ndarray | float | None = None) -> np.ndarray:
        """H g, with these weights on the diagonal of W, or with those that were learned."""
        if weights is None:
            weights = self.weights
        if not self.kept:
            return weights * slopes
        if not isinstance(weights, np.ndarray):
            weights = np.full(len(slopes), weights)
        out = slopes.copy()
        self._solve(self.rows, self.place, self.kept, weights, out, self.shares)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint, the oldest step first."""
        order = np.arange(self.place - self.kept, self.place) % self.most
        size = self.rows.shape[1]
        pairs = self.rows.reshape(self.most, 2 * size)[order]
        return {"rows": pairs.reshape(2 * self.kept, size), "weights": self.weights.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""
        number = len(arrays["rows"]) // 2
        self.rows[: 2 * number], self.weights[:] = arrays["rows"], arrays["weights"]
        self.kept, self.place = number, number % self.most
