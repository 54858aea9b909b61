"""The memory of descent: the last steps, from which limited-memory BFGS estimates the curvature.

If a step s changed the slopes by y, the Hessian maps s to y. Let the rows of S and Y be the last m steps and changes, from the
oldest to the newest, each divided by √(s·y), and let R be the upper triangle of S Yᵀ. The inverse H of the Hessian that BFGS
would learn from them, beginning with a diagonal matrix W, is (Nocedal 1980; Byrd, Nocedal and Schnabel 1994)

    H g  =  r + Sᵀ R⁻ᵀ (u − Y r),      u = R⁻¹ S g,      r = W (g − Yᵀ u).

A multiple of the identity for W makes descent slow where pairs of columns have very different curvatures. So W is learned too
(Gilbert and Lemaréchal 1989): its inverse becomes the diagonal of what BFGS would make of it,

    1/w_k  ←  1/w_k + y_k² / (s·y) − (s_k/w_k)² / Σ (s_k²/w_k),

and all w_k are then multiplied by one number, for which y·W y = s·y.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtrs

LEAST_SHARE = 1e-12  # the largest factor by which a pair may raise a weight is the inverse of it
LEAST_COSINE = 1e-10  # of a step and its change, below which their curvature may be rounding


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
        self.most = min(most, max(size, 1))
        # Rows begin..end are kept; where there is no room behind them, they are moved to the front.
        self.steps, self.changes = np.empty((2, 2 * self.most, size))
        self.products = np.zeros((2 * self.most, 2 * self.most))  # the upper triangle of S Yᵀ
        self.weights = np.empty(size)
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.begin = self.end = 0
        self.weights[:] = 1.0

    def __len__(self) -> int:
        return self.end - self.begin

    def add(self, step: np.ndarray, change: np.ndarray) -> bool:
        """Keep a step and the change of the slopes if the curvature along it is clearly positive; return whether it is."""
        curvature = float(step @ change)
        if not curvature > LEAST_COSINE * float(step @ step) ** 0.5 * float(change @ change) ** 0.5:
            return False
        s, y = step * curvature**-0.5, change * curvature**-0.5
        if self.end == len(self.steps):
            self.restore(self.arrays())
        if not len(self):
            self.weights[:] = 1.0 / (y @ y)
        self.steps[self.end], self.changes[self.end] = s, y
        self.end += 1
        self.begin = max(self.begin, self.end - self.most)
        self.products[self.begin : self.end, self.end - 1] = self.steps[self.begin : self.end] @ y
        inverse = 1.0 / self.weights
        along = s * inverse
        learned = inverse + y * y - along * along / (s @ along)
        # Positive, but for rounding errors.
        np.divide(1.0, learned, out=self.weights, where=learned > LEAST_SHARE * inverse)
        self.weights /= (self.weights * y) @ y
        return True

    def solve(self, slopes: np.ndarray, weights: np.ndarray | float | None = None) -> np.ndarray:
        """H g, with these weights on the diagonal of W, or with those that were learned."""
        if weights is None:
            weights = self.weights
        if not len(self):
            return weights * slopes
        kept = slice(self.begin, self.end)
        S, Y, Rt = self.steps[kept], self.changes[kept], self.products[kept, kept].T
        u = dtrtrs(Rt, S @ slopes, lower=1, trans=1)[0]
        r: np.ndarray = weights * (slopes - u @ Y)
        return r + dtrtrs(Rt, u - Y @ r, lower=1)[0] @ S

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies for a checkpoint, the oldest step first."""
        kept = slice(self.begin, self.end)
        return {
            "pairs": np.stack((self.steps[kept], self.changes[kept])),
            "products": self.products[kept, kept].copy(),
            "weights": self.weights.copy(),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""
        kept = len(arrays["products"])
        self.begin, self.end = 0, kept
        self.steps[:kept], self.changes[:kept] = arrays["pairs"]
        self.products[:kept, :kept] = arrays["products"]
        self.weights[:] = arrays["weights"]
