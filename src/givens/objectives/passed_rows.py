"""Rows in chunks, on disk or on Dask: the state is U, and every evaluation is one pass.

A pass multiplies the original rows by U and sends sums over them, a pure function of a chunk and U, which are added up by a tree.

| step | numbers that a chunk sends, for n columns |
|---|---|
| a look: value, slopes and curvatures of all pairs | 2n² + n, for varimax 3n² + n |
| a round of n/b blocks of b columns, fourth-order contrasts | q(q+1)/2 for each block, with q = 1 + b(b+1)/2 products |

Each worker gets U, n² numbers, once per pass. Keeping turned rows on the workers would save the product with U, but they would
take as much memory as the data, and after the loss of a worker all rotations would have to be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any, Self

import numpy as np

from givens.data.passes import EveryNth, Summary
from givens.data.rows import Rows
from givens.numerics import flop_counts, parallel
from givens.objectives import fourth_moments
from givens.objectives.base import Blocks, Look, PairSolutions, Rotations
from givens.objectives.contrasts import Contrast
from givens.objectives.quartic import Orthomax
from givens.objectives.turned_rows import LEAST, SAMPLE_ROWS, SIZE_ROWS, Space, TurnedRows, rescaling
from givens.rotations import rotate_blocks

MOST_SAMPLED = 256
"""With more columns, the samples on which descent may begin would be too large for one machine."""

PIECE = 1 << 19  # number of entries of a chunk that are turned at a time
WHOLE = 16
"""Up to this number, all columns are one block, whose fourth moments are computed in one pass."""

BLOCK = 8
"""Size of blocks of more columns: for about a hundred columns, turning rows and summing moments then take the same time."""


@dataclass(frozen=True)
class Divided:
    """Rows divided by a power of two."""

    divisor: float

    def columns(self, features: int) -> int:
        """As many as features."""
        return features

    def coordinates(self, rows: np.ndarray, U: np.ndarray | None = None) -> np.ndarray:
        """The rows over the divisor."""
        return self.shifted(rows) if U is None else self.shifted(rows) @ U

    def shifted(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Divide, in double precision."""
        if self.divisor == 1.0 and rows.dtype == np.float64:
            return rows
        return np.divide(rows, self.divisor, out=out, dtype=np.float64)

    def axes(self, U: np.ndarray) -> np.ndarray:
        """U itself."""
        return U


class PassedRows(TurnedRows):
    """Rows in chunks, which can be read repeatedly: the state is Uᵀ.

    Parameters
    ----------
    rows : Rows
    count : int
        Number of rows.
    space : Space, optional
        The transformation of rows.
    label : str, default="columns"
        Begins the names of the passes on Dask's dashboard.
    """

    passed = True

    def __init__(self, rows: Rows, count: int, space: Space | None = None, label: str = "columns") -> None:
        self.rows, self.count, self.space, self.label = rows, count, space, label
        self.n = rows.n_features if space is None else space.columns(rows.n_features)
        self.weight = float(count)
        self.samples_fit = self.n <= MOST_SAMPLED
        # The sample on which descent may begin, so that it is read once.
        self.stride = max(1, count // (max(SAMPLE_ROWS * self.n, LEAST) if self.samples_fit else SIZE_ROWS))
        self._samples: dict[int, np.ndarray] = {}
        self._reading = Lock()  # several runs take turns with their passes

    def prepared(self, contrast: Contrast) -> tuple[PassedRows, Contrast, float]:
        """The rows for a contrast, the contrast, and the power of two by which rows are divided: that of evenly spaced ones."""
        if self.space is not None:
            return self, contrast, 1.0
        A = self.sample(self.stride).astype(np.float64, copy=False)
        divisor = rescaling(A, contrast)
        other = PassedRows(self.rows, self.count, Divided(divisor), self.label)
        other._samples = {self.stride: A / divisor}
        return other, contrast, divisor

    def sample(self, stride: int) -> np.ndarray:
        """One transformed row in `stride`; those of each stride are read once."""
        if stride not in self._samples:
            rows = self.rows.total(EveryNth(stride), f"{self.label}-sample").rows()
            self._samples[stride] = rows if self.space is None else self.space.coordinates(rows)
        return self._samples[stride]

    @cached_property
    def _sent_space(self) -> Any:
        return self.rows.keep(self.space, f"{self.label}-space")

    def total(self, work: Callable[..., Any], U: np.ndarray, name: str) -> Any:
        """The sums of work((AU)ᵀ) over pieces of chunks, by one pass."""
        with self._reading:
            kept = [self._sent_space, self.rows.keep(np.ascontiguousarray(U.T), f"{self.label}-axes")]
            return self.rows.total(TurnedTotal(work), f"{self.label}-{name}", kept).sums

    def state(self, U: np.ndarray) -> np.ndarray:
        """Uᵀ, a copy."""
        return np.array(U.T, dtype=np.float64, order="C")

    def look(
        self, state: np.ndarray, contrast: Contrast, active: int, Q: np.ndarray | None, slopes: bool
    ) -> Look:
        """Value, slopes and curvatures, by one pass."""
        U = state.T if Q is None else state.T @ Q
        with flop_counts.uncounted():  # workers have no counter
            sums = self.total(partial(contrast.sums, active=active), U, "look")
        flop_counts.count(self._flops(4.0 * active))
        return contrast.look_from(sums, self.count)

    def solve(
        self, state: np.ndarray, contrast: Contrast, active: int, blocks: Blocks, min_gain: float
    ) -> PairSolutions:
        """Solve all blocks of a fourth-order contrast, by one pass."""
        if not isinstance(contrast, Orthomax):
            raise ValueError(
                f"pairs of columns of {contrast!r} are searched in memory only, and the rows are in chunks: use "
                'method="descent"'
            )
        grams = self.total(partial(fourth_moments.packed_grams, blocks=blocks), state.T, "round")
        kappa, sign = contrast.kappa / self.count, float(-contrast.sense)
        flop_counts.count(self._flops(0.0))
        return fourth_moments.solved(grams, blocks, active, kappa, sign, min_gain)

    def _flops(self, per_entry: float) -> float:
        """Flops of turning all rows, and `per_entry` more for every entry."""
        return self.count * self.n * (2.0 * self.n + per_entry)

    def apply(self, state: np.ndarray, blocks: Blocks, rotations: Rotations) -> None:
        """Rotate columns of U."""
        rotate_blocks(state, blocks, rotations)

    def block(self, contrast: Contrast) -> int:
        """The default size of blocks."""
        return max(2, self.n if self.n <= WHOLE else BLOCK)


class TurnedTotal(Summary):
    """Sums over turned rows: those of work((AU)ᵀ), a sequence of arrays, over pieces of the rows."""

    space: Space
    V: np.ndarray

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work = work
        self.sums: Sequence[np.ndarray] = ()

    def given(self, kept: Sequence[Any]) -> Self:
        """With the transformation of rows, and Uᵀ."""
        other = copy(self)
        other.space, Ut = kept
        other.V = Ut.T
        return other

    def add(self, rows: np.ndarray) -> None:
        """Add rows in pieces, whose size depends on the length of rows only."""
        step = min(max(64, PIECE // rows.shape[1]), len(rows))
        axes = np.ascontiguousarray(self.space.axes(self.V).T)
        # Used again for every piece, and no larger than the rows: new pages of memory would cost as much time as the sums.
        room, Y = np.empty((step, rows.shape[1])), np.empty((len(axes), step))
        for part in parallel.slices(len(rows), step):
            shifted = self.space.shifted(rows[part], room[: part.stop - part.start])
            self._take(self.work(np.matmul(axes, shifted.T, out=Y[:, : len(shifted)])))

    def end(self) -> None:
        """Discard everything but the sums."""
        del self.space, self.V, self.work

    def merge(self, other: Self) -> None:
        """Add the sums."""
        self._take(other.sums)

    def _take(self, sums: Sequence[np.ndarray]) -> None:
        if len(sums):
            self.sums = tuple(a + b for a, b in zip(self.sums, sums)) if len(self.sums) else tuple(sums)
