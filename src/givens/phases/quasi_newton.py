"""The memory of descent: the last steps, from which limited-memory BFGS estimates the curvature.

If a step s changed the slopes by y, the Hessian maps s to y. With the last m steps and changes as the rows of S and Y, and W the
diagonal matrix that the estimate starts from, the inverse Hessian is (Byrd, Nocedal and Schnabel 1994)

    H g = W g + Sᵀv − W Yᵀu,     u = R⁻¹ S g,     v = R⁻ᵀ((I + Y W Yᵀ) u − Y W g),

where R is the upper triangle of S Yᵀ. Each pair (s, y) is divided by √(s·y), so that the diagonal of R is 1. A new pair adds a
column to R⁻¹, and dropping the oldest one removes its first row and column: a few matrix products for any m. The rows of S and Y
alternate in one array, so that one product serves both.
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
        # Twice the rows that are needed, so that they move to the front only once in `most` steps.
        self.rows = np.empty((4 * self.most, size))
        self.inverses = np.zeros((2 * self.most, 2 * self.most))
        self.grams = np.zeros((2 * self.most, 2 * self.most))
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.first = self.last = 0

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def scaling(self) -> float:
        """The inverse curvature along the last step, s·y / y·y."""
        return 1.0 / float(self.grams[self.last - 1, self.last - 1])

    def add(self, step: np.ndarray, change: np.ndarray) -> bool:
        """Keep a step and the change of the slopes if the curvature along it is clearly positive; return whether it is."""
        if self.last == 2 * self.most:
            self._move_to_front()
        first = self.first + (self.last - self.first == self.most)
        if not self._add(self.rows, self.inverses, self.grams, first, self.last, step, change):
            return False
        self.first, self.last = first, self.last + 1
        return True

    def _move_to_front(self) -> None:
        first, last, kept = self.first, self.last, len(self)
        self.rows[: 2 * kept] = self.rows[2 * first : 2 * last].copy()
        for square in (self.inverses, self.grams):
            square[:kept, :kept] = square[first:last, first:last].copy()
        self.first, self.last = 0, kept

    def solve(self, slopes: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
        """H g, where W has the weights on its diagonal; a float is a multiple of the identity."""
        first, last = self.first, self.last
        if first == last:
            return weights * slopes
        if isinstance(weights, float):
            return self._solve(self.rows, self.inverses, self.grams, first, last, slopes, weights)
        start = weights * slopes
        rows, inverse = self.rows[2 * first : 2 * last], self.inverses[first:last, first:last]
        u = inverse @ (rows[::2] @ slopes)
        back = weights * (u @ rows[1::2])
        along = (u + rows[1::2] @ (back - start)) @ inverse
        start -= back
        start += along @ rows[::2]
        return start

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""
        kept = slice(self.first, self.last)
        return {
            "rows": self.rows[2 * self.first : 2 * self.last].copy(),
            "inverse": self.inverses[kept, kept].copy(),
            "gram": self.grams[kept, kept].copy(),
            "place": np.array(self.first),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit; raise a ValueError if they contradict each other."""
        rows, inverse, gram = arrays["rows"], arrays["inverse"], arrays["gram"]
        number, place = len(inverse), int(arrays["place"])
        if (
            rows.shape != (2 * number, self.rows.shape[1])
            or inverse.shape != gram.shape
            or gram.shape != (number, number)
        ):
            raise ValueError("the arrays of remembered steps differ in length")
        if number > self.most or not 0 <= place <= 2 * self.most - number:
            raise ValueError("there are more remembered steps than the memory holds")
        with np.errstate(over="ignore", invalid="ignore"):
            triangle, squares = np.triu(rows[::2] @ rows[1::2].T), rows[1::2] @ rows[1::2].T
            good = np.allclose(np.diagonal(triangle), 1.0, atol=1e-6) and np.allclose(
                gram, squares, rtol=1e-6, atol=0
            )
            rounding = 1e-6 * max(
                1.0, float(np.abs(inverse).max(initial=0.0) * np.abs(triangle).max(initial=0.0))
            )
            if not good or not np.allclose(inverse @ triangle, np.eye(number), atol=rounding):
                raise ValueError("the remembered steps contradict each other")
        self.first = place
        self.last = place + number
        kept = slice(self.first, self.last)
        self.rows[2 * self.first : 2 * self.last] = rows
        self.inverses[kept, kept], self.grams[kept, kept] = inverse, gram
