"""The rows of a matrix, turned by U: Y = AU, which `Columns` sums over.

`HeldRows` are in memory: the state is Y, a copy of the rows. `PassedRows` are in chunks, on disk or on Dask: the state is U, and
every evaluation is one pass. It multiplies the original rows by U and sends sums over them, a pure function of a chunk and U,
which are added up by a tree.

| step | numbers that a chunk sends, for n columns |
|---|---|
| a look: value, slopes and curvatures of all pairs | 2n² + n, for varimax 3n² + n |
| a round of n/b blocks of b columns, fourth-order contrasts | q(q+1)/2 for each block, with q = 1 + b(b+1)/2 products |

Each worker gets U, n² numbers, once per pass. Keeping turned rows on the workers would save the product with U, but they would
take as much memory as the data, and after the loss of a worker all rotations would have to be repeated.

Both may have a `Space`, a transformation of the rows before they are turned, such as the whitening of ICA: it is computed tile by
tile, together with the product with U, so that white samples are never stored as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from givens.data.passes import EveryNth, Summary
from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import tiled_sum, tiles
from givens.objectives import fourth_moments
from givens.objectives.base import Blocks, Look, PairSolutions, Rotations
from givens.objectives.contrasts import Contrast
from givens.objectives.quartic import Orthomax
from givens.rotations import rotate_blocks

if TYPE_CHECKING:
    from givens.data.rows import Rows

SAMPLE_ROWS_PER_COLUMN = 96
"""Of the sample on which descent may begin: 5,000 rows give steps nearly as good as 50,000."""

MIN_SAMPLE_ROWS = 1024
"""Fewer rows are no sample, and of so few all pairs are solved at once."""

TURNED_ENTRIES = 1 << 19
"""Entries of a chunk that are turned at a time: 4 MB."""


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


class HeldRows:
    """Rows in memory: the state is Y.

    Parameters
    ----------
    A : array, shape (rows, features)
    space : Space, optional
        The transformation of rows. It is computed in double precision, and Y is rounded to the precision of A once.
    weights : array, shape (rows,), optional
        Positive.

    Attributes
    ----------
    count, n : int
        Numbers of rows and of columns.
    weight : float
        The sum of the weights, or the number of rows.
    stride : int
        The size of a contrast is estimated from one row in so many.
    """

    samples_fit = True  # samples of the rows fit into memory

    def __init__(self, A: np.ndarray, space: Space | None = None, weights: np.ndarray | None = None) -> None:
        self.A, self.space, self.weights = A, space, weights
        self.factors: np.ndarray | None = None  # of the rows after the transformation: roots of weights
        self.count, features = A.shape
        self.n = features if space is None else space.columns(features)
        self.weight = float(self.count) if weights is None else float(weights.sum())
        self.stride = 1 if space is None else max(1, self.count // MIN_SAMPLE_ROWS)

    def prepared(self, contrast: Contrast) -> tuple[HeldRows, Contrast, float]:
        """The rows for a contrast, the contrast with their weights, and the power of two by which they were divided."""
        other = copy(self)
        if self.weights is not None:
            other.factors, contrast = contrast.weighted(self.weights)
        if self.space is not None:
            return other, contrast, 1.0
        if other.factors is not None:
            other.A, other.factors = self.A * other.factors[:, None], None
        divisor = _rescaling(other.A, contrast)
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
        """Some columns of (AU)ᵀ, in double precision."""
        A = self.A[part]
        return (
            U.T @ A.astype(np.float64, copy=False).T if self.space is None else self.space.coordinates(A, U).T
        )

    def total(self, work: Callable[..., Any], U: np.ndarray, name: str) -> np.ndarray:
        """The sum of work((AU)ᵀ, weights) over tiles of rows; `name` is that of a pass over chunks."""

        def sums(part: slice) -> Any:
            return work(self._turned(part, U), None if self.weights is None else self.weights[part])

        return tiled_sum(tiles(self.n, self.count), sums)

    def state(self, U: np.ndarray) -> np.ndarray:
        """Y transposed, so that each column of AU is a contiguous row; U may have fewer columns than rows."""
        flop_counts.count(2.0 * self.count * self.n * U.shape[1])
        Y = np.empty((U.shape[1], self.count), dtype=self.A.dtype)

        def tile(part: slice) -> None:
            turned = self._turned(part, U)
            Y[:, part] = turned if self.factors is None else turned * self.factors[part]

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
            Q = np.asarray(rotations)
            shares = parallel.parts(len(blocks), parallel.width())
            parallel.each(lambda share: rotate_blocks(state, blocks[share], Q[share]), shares)
            return
        single = [np.asarray(Q, dtype=state.dtype) for Q in rotations]
        parallel.each(
            lambda part: rotate_blocks(state[:, part], blocks, single), tiles(len(blocks[0]), state.shape[1])
        )

    def block(self, contrast: Contrast) -> int:
        """All columns, up to 256, if pairs have a closed form; else a search of pairs is what takes the time."""
        return max(2, min(self.n, 256)) if contrast.exact else 2

    @property
    def rounding(self) -> float:
        """Relative error of slopes: rows in single precision are turned in it, and errors of eps in an angle cost eps²."""
        if self.A.dtype != np.float32 or self.space is not None:
            return 0.0
        return self.n * 4 * float(np.finfo(np.float32).eps)


class PassedRows:
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

    weights = None
    rounding = 0.0

    def __init__(self, rows: Rows, count: int, space: Space | None = None, label: str = "columns") -> None:
        self.rows, self.count, self.space, self.label = rows, count, space, label
        self.n = rows.n_features if space is None else space.columns(rows.n_features)
        self.weight = float(count)
        self.divisor = 1.0  # of rows without a space
        # Of more columns, the samples on which descent may begin would take more than 50 MB.
        self.samples_fit = self.n <= 256
        # The size of a contrast is estimated from that sample, so that it is read once.
        per_column = SAMPLE_ROWS_PER_COLUMN if self.samples_fit else 0
        self.stride = max(1, count // max(per_column * self.n, MIN_SAMPLE_ROWS))
        self._samples: dict[int, np.ndarray] = {}
        self._reading = Lock()  # several runs take turns with their passes

    def prepared(self, contrast: Contrast) -> tuple[PassedRows, Contrast, float]:
        """The rows for a contrast, the contrast, and the power of two by which rows are divided: that of evenly spaced ones."""
        if self.space is not None:
            return self, contrast, 1.0
        other = PassedRows(self.rows, self.count, label=self.label)
        A = self.sample(self.stride)
        other.divisor = _rescaling(A, contrast)
        other._samples = {self.stride: A / other.divisor}
        return other, contrast, other.divisor

    def sample(self, stride: int) -> np.ndarray:
        """One transformed row in `stride`; those of each stride are read once."""
        if stride not in self._samples:
            rows = self.rows.total(EveryNth(stride), f"{self.label}-sample").rows()
            self._samples[stride] = (
                rows.astype(np.float64) / self.divisor if self.space is None else self.space.coordinates(rows)
            )
        return self._samples[stride]

    @cached_property
    def _sent_space(self) -> Any:
        return self.rows.keep(self.space, f"{self.label}-space")

    def total(self, work: Callable[..., Any], U: np.ndarray, name: str) -> Any:
        """The sums of work((AU)ᵀ) over pieces of chunks, by one pass."""
        with self._reading:
            axes = np.ascontiguousarray(U.T) / self.divisor
            kept = [self._sent_space, self.rows.keep(axes, f"{self.label}-axes")]
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
        """All columns, whose fourth moments take one pass; of more than 16 some, for which turning rows takes as long as sums."""
        return max(2, self.n if self.n <= 16 else 8)


class TurnedTotal(Summary):
    """Sums over turned rows: those of work((AU)ᵀ), a sequence of arrays, over pieces of the rows."""

    space: Space | None
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
        step = min(max(64, TURNED_ENTRIES // rows.shape[1]), len(rows))
        axes = np.ascontiguousarray((self.V if self.space is None else self.space.axes(self.V)).T)
        # Used again for every piece, and no larger than the rows: new pages of memory would cost as much time as the sums.
        room, Y = np.empty((step, rows.shape[1])), np.empty((len(axes), step))
        for part in parallel.slices(len(rows), step):
            shifted = rows[part]
            if self.space is not None:
                shifted = self.space.shifted(shifted, room[: len(shifted)])
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


TurnedRows = HeldRows | PassedRows
"""What `Columns` sums over: `state` makes the state, `look` and `solve` read it, `apply` writes it."""


def _rescaling(A: np.ndarray, contrast: Contrast) -> float:
    """The power of two to divide A by; 1, which saves a copy, if fourth powers neither overflow nor underflow."""
    if contrast.degree is None:
        return 1.0
    factor = power_of_two(A)
    # Also in single precision, to which second derivatives are rounded.
    return 1.0 if abs(np.log2(factor)) <= 15 and A.dtype == np.float64 else factor
