"""The rows of a matrix, turned by U: Y = AU, which `Columns` sums over.

`HeldRows` are in memory: the state is Y, a copy of the rows. `passed_rows` has rows in chunks, whose state is U. Both may have a
`Space`, a transformation of the rows before they are turned, such as the whitening of ICA: it is computed tile by tile, together
with the product with U, so that white samples are never stored as such.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Protocol

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import tiled_sum, tiles
from givens.objectives.base import Blocks, Look, PairSolutions, Rotations
from givens.objectives.contrasts import Contrast

# Rows per column of the sample on which a run may begin, by descent or by sweeps, and its smallest number of rows.
SAMPLE_ROWS, SWEPT_ROWS, LEAST = 96, 24, 1024
SIZE_ROWS = 4096
"""Rows of a sample from which the size of a contrast is estimated, if nothing else is made of it."""

LARGEST_BLOCK = 256  # columns of a block that is rotated pair by pair on a copy
LARGEST = 2.0**15  # fourth powers of numbers between its inverse and this fit into single precision


class Space(Protocol):
    """A transformation of rows: shifted, then multiplied by axes."""

    def columns(self, features: int) -> int:
        """How many columns rows of so many features have afterwards."""

    def coordinates(self, rows: np.ndarray, U: np.ndarray | None = None) -> np.ndarray:
        """The transformed rows in float64; with U, multiplied by it."""

    def shifted(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The rows in another unit and about another origin, in float64; in `out`, or not copied where nothing changes."""

    def axes(self, U: np.ndarray) -> np.ndarray:
        """What shifted rows are multiplied by, including U."""


class TurnedRows(ABC):
    """What `Columns` asks of its rows; `state` makes the state, which the methods below it read, and `apply` writes.

    Attributes
    ----------
    passed : bool
        Whether an evaluation is a pass over chunks.
    count, n : int
        Numbers of rows and of columns.
    weights : array or None
        Those of the rows.
    weight : float
        The sum of the weights, or the number of rows.
    stride : int
        The size of a contrast is estimated from one row in so many.
    samples_fit : bool
        Whether samples of the rows, on which descent may begin, fit into memory.
    """

    passed: bool = False
    count: int
    n: int
    weights: np.ndarray | None = None
    weight: float
    stride: int
    samples_fit: bool = True

    @property
    def rounding(self) -> float:
        """Relative rounding error of slopes."""
        return 0.0

    @abstractmethod
    def prepared(self, contrast: Contrast) -> tuple[TurnedRows, Contrast, float]:
        """The rows for a contrast, the contrast with their weights, and the power of two by which they were divided."""

    @abstractmethod
    def sample(self, stride: int) -> np.ndarray:
        """One transformed row in `stride`."""

    @abstractmethod
    def total(self, work: Callable[..., Any], U: np.ndarray, name: str) -> Any:
        """The sum of work((AU)ᵀ, weights) over some rows at a time; `name` is that of the pass over chunks."""

    @abstractmethod
    def state(self, U: np.ndarray) -> np.ndarray:
        """What rotates with U."""

    @abstractmethod
    def look(
        self, state: np.ndarray, contrast: Contrast, active: int, Q: np.ndarray | None, slopes: bool
    ) -> Look:
        """Value, slopes and curvatures at U, or at UQ; only the value without `slopes`, if that is cheaper."""

    @abstractmethod
    def solve(
        self, state: np.ndarray, contrast: Contrast, active: int, blocks: Blocks, min_gain: float
    ) -> PairSolutions:
        """Solve the blocks of a round."""

    @abstractmethod
    def apply(self, state: np.ndarray, blocks: Blocks, rotations: Rotations) -> None:
        """Rotate columns of the state."""

    @abstractmethod
    def block(self, contrast: Contrast) -> int:
        """The default size of blocks."""


class HeldRows(TurnedRows):
    """Rows in memory: the state is Y.

    Parameters
    ----------
    A : array, shape (rows, features)
    space : Space, optional
        The transformation of rows. It is computed in double precision, and Y is rounded to the precision of A once.
    weights : array, shape (rows,), optional
        Positive.
    """

    def __init__(self, A: np.ndarray, space: Space | None = None, weights: np.ndarray | None = None) -> None:
        self.A, self.space, self.weights = A, space, weights
        self.factors: np.ndarray | None = None  # of the rows after the transformation: roots of weights
        self.count, features = A.shape
        self.n = features if space is None else space.columns(features)
        self.weight = float(self.count) if weights is None else float(weights.sum())
        self.stride = 1 if space is None else max(1, self.count // SIZE_ROWS)

    def prepared(self, contrast: Contrast) -> tuple[HeldRows, Contrast, float]:
        """The rows for a contrast, the contrast with their weights, and the power of two by which they were divided."""
        other = copy(self)
        if self.weights is not None:
            other.factors, contrast = contrast.weighted(self.weights)
        if self.space is not None:
            return other, contrast, 1.0
        if other.factors is not None:
            other.A, other.factors = self.A * other.factors[:, None], None
        divisor = rescaling(other.A, contrast)
        if divisor != 1.0:
            other.A = other.A / other.A.dtype.type(divisor)
        return other, contrast, divisor

    def at(self, which: slice | np.ndarray) -> np.ndarray:
        """Some transformed rows."""
        return self.A[which] if self.space is None else self.space.coordinates(self.A[which])

    def sample(self, stride: int) -> np.ndarray:
        """One transformed row in `stride`."""
        part = slice(None, None, stride)
        return self.at(part) if self.factors is None else self.at(part) * self.factors[part, None]

    def _turned(self, part: slice, U: np.ndarray) -> np.ndarray:
        """Some rows times U, in double precision."""
        A = self.A[part]
        return A.astype(np.float64, copy=False) @ U if self.space is None else self.space.coordinates(A, U)

    def total(self, work: Callable[..., Any], U: np.ndarray, name: str) -> np.ndarray:
        """The sum of work((AU)ᵀ, weights) over tiles of rows; `name` is that of a pass over chunks."""

        def sums(part: slice) -> Any:
            return work(self._turned(part, U).T, None if self.weights is None else self.weights[part])

        return tiled_sum(tiles(self.n, self.count), sums)

    def state(self, U: np.ndarray) -> np.ndarray:
        """Y transposed, so that each column of AU is a contiguous row; U may have fewer columns than rows."""
        flop_counts.count(2.0 * self.count * self.n * U.shape[1])
        Y = np.empty((U.shape[1], self.count), dtype=self.A.dtype)
        Ut = np.ascontiguousarray(U.T, dtype=self.A.dtype)

        def tile(part: slice) -> None:
            if self.space is None:
                np.matmul(Ut, self.A[part].T, out=Y[:, part])
                return
            turned = self._turned(part, U)
            if self.factors is not None:
                turned *= self.factors[part, None]
            Y[:, part] = turned.T

        parallel.each(tile, tiles(self.A.shape[1], self.count))
        return Y

    def look(
        self, state: np.ndarray, contrast: Contrast, active: int, Q: np.ndarray | None, slopes: bool
    ) -> Look:
        """Value, slopes and curvatures, by one pass over Y, or over YQ tile by tile."""
        return contrast.look_from(contrast.sums(state, active, Q, slopes), state.shape[1])

    def solve(
        self, state: np.ndarray, contrast: Contrast, active: int, blocks: Blocks, min_gain: float
    ) -> PairSolutions:
        """Solve the contrast's pair problem for each pair; for each larger block, rotate its pairs on a copy of its columns."""
        return contrast.solve(state, blocks, active, min_gain)

    def apply(self, state: np.ndarray, blocks: Blocks, rotations: Rotations) -> None:
        """Rotate columns of Y."""
        if isinstance(blocks, np.ndarray):
            from givens.kernels.rotate import rotate_rows

            flop_counts.count(6.0 * len(blocks) * state.shape[1])
            Q = np.asarray(rotations)
            shares = parallel.parts(len(blocks), parallel.width())
            parallel.each(lambda share: rotate_rows(state, blocks[share], Q[share]), shares)
            return
        flop_counts.count(sum(2 * len(block) ** 2 for block in blocks) * state.shape[1])
        if len(blocks) == 1 and len(blocks[0]) == len(state):
            _turn(state, rotations[0])
            return

        def part(work: tuple[int, slice]) -> None:
            block, rows = work
            Qt = np.ascontiguousarray(rotations[block].T, dtype=state.dtype)
            state[blocks[block], rows] = Qt @ state[blocks[block], rows]

        cut = tiles(len(blocks[0]), state.shape[1])
        parallel.each(part, [(k, rows) for k in range(len(blocks)) for rows in cut])

    def block(self, contrast: Contrast) -> int:
        """All columns, up to 256, if pairs have a closed form; else a search of pairs is what takes the time."""
        return max(2, min(self.n, LARGEST_BLOCK)) if contrast.exact else 2

    @property
    def rounding(self) -> float:
        """Relative error of slopes: rows in single precision are turned in it, and errors of eps in an angle cost eps²."""
        if self.A.dtype != np.float32 or self.space is not None:
            return 0.0
        return self.n * 4 * float(np.finfo(np.float32).eps)


def _turn(Y: np.ndarray, Q: np.ndarray) -> None:
    """Rotate all columns, without gathering those of a block."""
    Qt = np.ascontiguousarray(Q.T, dtype=Y.dtype)

    def tile(part: slice) -> None:
        Y[:, part] = Qt @ Y[:, part]

    parallel.each(tile, tiles(len(Y) // 2, Y.shape[1]))


def rescaling(A: np.ndarray, contrast: Contrast) -> float:
    """The power of two to divide A by; 1, which saves a copy, if fourth powers neither overflow nor underflow."""
    if contrast.degree is None:
        return 1.0
    factor = power_of_two(A)
    return 1.0 if 1 / LARGEST <= factor <= LARGEST and A.dtype == np.float64 else factor
