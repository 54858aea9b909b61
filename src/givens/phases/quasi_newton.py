"""What the last steps of a descent told of the curvature: the memory of the method of Broyden, Fletcher, Goldfarb and Shanno.

A step s that changed the slopes by y says that the Hessian takes s to y. With the last m of them as the rows of S and Y, the
inverse Hessian that agrees with all of them, and else with the diagonal W, is (Byrd, Nocedal and Schnabel 1994)

    H g = W g + Sᵀv − W Yᵀu,     u = R⁻¹ S g,     v = R⁻ᵀ((I + Y W Yᵀ) u − Y W g),

where R is the upper triangle of S Yᵀ. Each pair is divided by the root of s·y, so that the diagonal of R is 1. A new pair adds a
column to R⁻¹, and the oldest leaves by its first row and column: a handful of products with m rows, whatever m is.
"""

from __future__ import annotations

import numpy as np


class Memory:
    """The last steps, and the change of slopes in each.

    Parameters
    ----------
    size : int
        How many numbers a step has.
    most : int
        How many steps are kept.
    """

    def __init__(self, size: int, most: int) -> None:
        self.most = min(most, max(size, 1))
        # Twice the room: the rows move to the front once in `most` steps only.
        self.steps = np.empty((2 * self.most, size))
        self.changes = np.empty((2 * self.most, size))
        self.clear()

    def clear(self) -> None:
        """Forget all of it."""
        self.first = self.last = 0
        self.inverse = np.empty((0, 0))
        self.gram = np.empty((0, 0))

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def scaling(self) -> float:
        """The s·s-free size of the inverse Hessian along the last step, s·y / y·y."""
        return 1.0 / float(self.gram[-1, -1])

    def add(self, step: np.ndarray, change: np.ndarray) -> bool:
        """Keep a pair if it says something definite; whether it did."""
        curvature = float(step @ change)
        if not curvature > 1e-10 * float(np.sqrt((step @ step) * (change @ change))):
            return False
        if len(self) == self.most:
            self.first += 1
            self.inverse, self.gram = self.inverse[1:, 1:], self.gram[1:, 1:]
        if self.last == len(self.steps):
            kept = len(self)
            for rows in (self.steps, self.changes):
                rows[:kept] = rows[self.first : self.last].copy()
            self.first, self.last = 0, kept
        root = curvature**-0.5
        np.multiply(step, root, out=self.steps[self.last])
        np.multiply(change, root, out=self.changes[self.last])
        self.last += 1
        self._extend()
        return True

    def _extend(self) -> None:
        """The new column of R⁻¹ and of Y Yᵀ."""
        S, Y = self.steps[self.first : self.last], self.changes[self.first : self.last]
        old = len(S) - 1
        inverse, gram = np.zeros((old + 1, old + 1)), np.empty((old + 1, old + 1))
        inverse[:old, :old], gram[:old, :old] = self.inverse, self.gram
        inverse[:old, old] = self.inverse @ (S[:old] @ Y[old])
        inverse[:old, old] *= -1.0
        inverse[old, old] = 1.0
        gram[old] = gram[:, old] = Y @ Y[old]
        self.inverse, self.gram = inverse, gram

    def solve(self, slopes: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
        """H g, for the diagonal W of the weights, or a multiple of the identity."""
        start = weights * slopes
        if self.first == self.last:
            return start
        S, Y = self.steps[self.first : self.last], self.changes[self.first : self.last]
        u = self.inverse @ (S @ slopes)
        if isinstance(weights, float):
            inner = weights * (self.gram @ u)
        else:
            inner = Y @ (weights * (u @ Y))
        v = (u + inner - Y @ start) @ self.inverse
        start += v @ S
        start -= weights * (u @ Y)
        return start

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save."""
        kept = slice(self.first, self.last)
        return {
            "steps": self.steps[kept].copy(),
            "changes": self.changes[kept].copy(),
            "inverse": self.inverse,
            "gram": self.gram,
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Have what was saved, to the bit."""
        self.first, self.last = 0, len(arrays["steps"])
        self.steps[: self.last], self.changes[: self.last] = arrays["steps"], arrays["changes"]
        self.inverse, self.gram = arrays["inverse"], arrays["gram"]
