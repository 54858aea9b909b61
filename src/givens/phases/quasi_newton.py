"""What the last steps of a descent told of the curvature: the memory of the method of Broyden, Fletcher, Goldfarb and Shanno.

A step s that changed the slopes by y says that the Hessian takes s to y. With the last m of them as the rows of S and Y, the
inverse Hessian that agrees with all of them, and else with the diagonal W, is (Byrd, Nocedal and Schnabel 1994)

    H g = W g + Sᵀv − W Yᵀu,     u = R⁻¹ S g,     v = R⁻ᵀ((I + Y W Yᵀ) u − Y W g),

where R is the upper triangle of S Yᵀ. Each pair is divided by the root of s·y, so that the diagonal of R is 1. A new pair adds a
column to R⁻¹, and the oldest leaves by its first row and column: a handful of products, whatever m is. The rows of S and Y
alternate in one array, so that one product serves both.
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
        self.rows = np.empty((4 * self.most, size))
        self.inverses = np.zeros((2 * self.most, 2 * self.most))
        self.grams = np.zeros((2 * self.most, 2 * self.most))
        self.clear()

    def clear(self) -> None:
        """Forget all of it."""
        self.first = self.last = 0

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def scaling(self) -> float:
        """The size of the inverse Hessian along the last step, s·y / y·y."""
        return 1.0 / float(self.grams[self.last - 1, self.last - 1])

    def add(self, step: np.ndarray, change: np.ndarray) -> bool:
        """Keep a pair if it says something definite; whether it did."""
        from givens.kernels.quasi_newton import add

        if self.last == 2 * self.most:
            self._to_the_front()
        first = self.first + (self.last - self.first == self.most)
        if not add(self.rows, self.inverses, self.grams, first, self.last, step, change):
            return False
        self.first, self.last = first, self.last + 1
        return True

    def _to_the_front(self) -> None:
        first, last, kept = self.first, self.last, len(self)
        self.rows[: 2 * kept] = self.rows[2 * first : 2 * last].copy()
        for square in (self.inverses, self.grams):
            square[:kept, :kept] = square[first:last, first:last].copy()
        self.first, self.last = 0, kept

    def solve(self, slopes: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
        """H g, for the diagonal W of the weights, or a multiple of the identity."""
        first, last = self.first, self.last
        if first == last:
            return weights * slopes
        if isinstance(weights, float):
            from givens.kernels.quasi_newton import solve

            return solve(self.rows, self.inverses, self.grams, first, last, slopes, weights)
        start = weights * slopes
        rows, inverse = self.rows[2 * first : 2 * last], self.inverses[first:last, first:last]
        u = inverse @ (rows[::2] @ slopes)
        back = weights * (u @ rows[1::2])
        along = (u + rows[1::2] @ (back - start)) @ inverse
        start -= back
        start += along @ rows[::2]
        return start

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is to save."""
        kept = slice(self.first, self.last)
        return {
            "rows": self.rows[2 * self.first : 2 * self.last].copy(),
            "inverse": self.inverses[kept, kept].copy(),
            "gram": self.grams[kept, kept].copy(),
            "place": np.array(self.first),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Have what was saved, to the bit; a ValueError where the arrays contradict each other."""
        rows, inverse, gram = arrays["rows"], arrays["inverse"], arrays["gram"]
        number, place = len(inverse), int(arrays["place"])
        if (
            rows.shape != (2 * number, self.rows.shape[1])
            or inverse.shape != gram.shape
            or gram.shape != (number, number)
        ):
            raise ValueError("the remembered steps are not as many everywhere")
        if number > self.most or not 0 <= place <= 2 * self.most - number:
            raise ValueError("there are more remembered steps than are kept")
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
