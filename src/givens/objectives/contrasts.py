"""Contrasts: what `Columns` sums over the columns of AU, and the ones that are a plain Σ φ(y).

The fourth-order ones, whose angle has a closed form, are in `quartic`. A contrast works on arrays Y stored with one column
of the mathematics per contiguous row. The first `active` of them count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Protocol

import numpy as np

from givens.numerics import parallel
from givens.numerics.tiles import tiled_sum
from givens.rotations import rotate_blocks
from givens.schedules import tournament

Pairs = tuple[np.ndarray, np.ndarray, int, float]
"""Of some pairs: their rotations, gains, how many turn, and the flops spent."""

Solution = tuple[np.ndarray, float, int, float]
"""Of a block: Q, its gain, how many pairs turned, and the flops spent."""


# Flops per row of the data for one searched angle, near enough: some twenty looks at two turned columns. What φ itself takes
# is not known here.
SEARCH = 120.0


class Known(Protocol):
    """What one pass over Y has told, worth keeping while Y stays as it is."""

    def value(self) -> float:
        """f."""

    def slopes(self) -> np.ndarray:
        """As `Contrast.slopes`."""

    def solve(self, Y: np.ndarray, enough: float) -> Solution:
        """As `Contrast.solve_block`, for all columns. The Q may have an attribute `known`: what is known once Y has turned."""


class Contrast(ABC):
    """A sum over columns, and its pair problem.

    Attributes
    ----------
    sense : int
        1 if it is minimised, −1 if maximised; `value` gives what is minimised.
    degree : int or None
        Scaling the data by a scales the value by a**degree. None: no such law, and data are never rescaled.
    """

    sense: int = 1
    degree: int | None = None

    @abstractmethod
    def value(self, Y: np.ndarray, active: int) -> float:
        """Evaluate f."""

    @abstractmethod
    def size(self, Y: np.ndarray) -> float:
        """A positive size of f, for tolerances."""

    @abstractmethod
    def slopes(self, Y: np.ndarray, active: int) -> np.ndarray:
        """Σ_r ∂f/∂y_i(r)·y_j(r) for every active i and every j: an array of shape (active, n)."""

    @abstractmethod
    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """The best rotation of each pair."""

    @abstractmethod
    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """Turn all pairs of a block, on a copy of its rows, the first `active` of which count.

        A gain below `enough` need not be pursued.
        """

    def sample(self, Y: np.ndarray) -> np.ndarray:
        """Some samples, as `sweep` likes them best where all that is wanted is a start."""
        return Y

    def sweep(self, Y: np.ndarray, active: int) -> Solution:
        """Turn every pair of rows of Y by its best rotation, in place, in rounds."""
        Qt = np.eye(len(Y))
        total, rotated, flops = 0.0, 0, 0.0
        for pairs in tournament(len(Y)):
            pairs = pairs[pairs[:, 0] < active]
            shares = [pairs[part] for part in parallel.parts(len(pairs), parallel.width())]

            def turn(share: np.ndarray) -> Pairs:
                rotations, gains, turned, spent = self.solve_pairs(Y, share, active)
                return rotations, gains, turned, spent + rotate_blocks(Y, share, rotations)

            # Pairs of a round share no row, so each thread may turn its own at once.
            found = parallel.each(turn, shares)
            for share, (rotations, _, turned, spent) in zip(shares, found):
                flops += spent + rotate_blocks(Qt, share, rotations)
                rotated += turned
            # One sum over the round: the order must not depend on how it was shared out.
            total += float(np.concatenate([gains for _, gains, _, _ in found]).sum())
        return Qt.T.copy(), total, rotated, flops

    def know(self, Y: np.ndarray, active: int) -> Known | None:
        """What value, slopes and the solution of all columns have in common; None if there is no such thing."""
        return None

    def block(self, n: int) -> int:
        """How many of n columns to solve together if nobody says."""
        return 2

    def note(self) -> str:
        """What the result's message should add."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Scalar(Contrast):
    """Σ φ(y): a contrast of your own.

    Parameters
    ----------
    phi, dphi : callable
        φ and its derivative, functions of a float that numba can compile.
    pair : callable, optional
        The exact pair problem: two arrays x, y to (angle, gain), to be compiled too. Without it the angle is searched, by values
        on a grid and then by slopes; the result's message says that this is not exact.
    even : bool
        φ(−y) = φ(y). Then a quarter of the angles is enough.
    maximise : bool

    Examples
    --------
    Independent components by a robust contrast, in a few lines:

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, Scalar
    >>> def phi(y): return np.sqrt(1.0 + y * y)
    >>> def dphi(y): return y / np.sqrt(1.0 + y * y)
    >>> rng = np.random.default_rng(0)
    >>> turned = rng.laplace(size=(1000, 2)) @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> result = minimize(Columns(turned, Scalar(phi, dphi)))
    >>> result.converged
    True
    """

    def __init__(
        self,
        phi: Callable[[float], float],
        dphi: Callable[[float], float],
        pair: Callable[[np.ndarray, np.ndarray], tuple[float, float]] | None = None,
        *,
        even: bool = True,
        maximise: bool = False,
    ) -> None:
        from givens.kernels.compile import bound
        from givens.kernels.scalar import compile_scalar

        self.sense = -1 if maximise else 1
        self.exact = pair is not None
        self.name = getattr(phi, "__name__", "phi")
        phi_, dphi_, pair_ = (
            f if f is None or hasattr(f, "py_func") else bound(f) for f in (phi, dphi, pair)
        )
        self.compiled = compile_scalar(phi_, dphi_, pair_, even, float(self.sense))

    def __repr__(self) -> str:
        return f"Scalar({self.name})"

    def value(self, Y: np.ndarray, active: int) -> float:
        """Evaluate f."""
        total = self.sense * float(self.compiled.value(Y, active))
        if not np.isfinite(total):
            raise ValueError(f"the contrast {self!r} is not finite on this data: its sum is {total}")
        return total

    def size(self, Y: np.ndarray) -> float:
        """|Σ φ|, or 1."""
        return abs(self.value(Y, len(Y))) or 1.0

    def slopes(self, Y: np.ndarray, active: int) -> np.ndarray:
        """±Σ φ'(y_i) y_j."""

        def product(tile: np.ndarray) -> np.ndarray:
            out = np.empty((active, tile.shape[1]))
            self.compiled.slopes(tile, out)
            return out @ tile.T

        return self.sense * tiled_sum(product, Y)

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """Your pair problem, or the search."""
        return (*self.compiled.solve_pairs(Y, pairs, active), SEARCH * Y.shape[1] * len(pairs))

    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """A sweep of it."""
        Q, gain, turned = self.compiled.solve_block(Y[block], active)
        visited = active * (active - 1) // 2 + active * (len(block) - active)
        return Q, gain, turned, Y.shape[1] * (SEARCH * visited + 6.0 * turned)

    def note(self) -> str:
        """Say that the search is not exact."""
        return "" if self.exact else "angles by a safeguarded search over the slope, not exact"


@cache
def LogCosh() -> Scalar:
    """Σ log cosh y, minimised: a smooth |y|, for independent components of heavy-tailed sources.

    Compiled once per process.
    """
    return Scalar(log_cosh, _tanh)


def log_cosh(y: float) -> float:
    """log cosh y, without overflow."""
    return abs(y) + np.log1p(np.exp(-2.0 * abs(y))) - 0.6931471805599453


def _tanh(y: float) -> float:
    return np.tanh(y)
