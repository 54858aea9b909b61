"""`Columns` of a dask array: the rows of the matrix stay in their chunks, and only sums over rows are sent.

The state is U. Every step is one pass over the chunks, which computes a pure function of a chunk and U: the rows of the chunk are
rotated by one matrix product, and sums over them are added up by a tree.

| step | numbers that a chunk sends, for n columns |
|---|---|
| a look: value, slopes and curvatures of all pairs | 2n² + n, for varimax 3n² + n |
| a round of n/2 pairs, fourth-order contrasts | 8 for each pair: 4n |
| a round of n/b blocks of b columns | (b+3 over 4) fourth and b(b+1)/2 second moments for each block |

Every pass multiplies the original rows by U. Keeping rotated rows on the workers would save this product, but they would take
as much memory as the data, and after the loss of a worker all rotations would have to be repeated. Workers get U once as a
matrix, and then the rotations of each round, until these have as many numbers as the matrix; then U is sent again. So a sweep
sends about n² numbers to every worker, for any number of rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from givens.data.rows import Rows
from givens.data.summary import EveryNth, Summary
from givens.numerics.scaling import power, power_of_two
from givens.objectives.base import Blocks, Look, Plan, Rotations, Solved
from givens.objectives.columns import LARGEST, ROUGH, Columns, as_contrast, checked_active
from givens.objectives.contrasts import Contrast
from givens.rotations import rotate_blocks
from givens.schedules import Schedule, Tournament

PIECE = 1 << 19  # number of entries of a chunk that are rotated at a time
WHOLE = 16
"""Up to this number, all columns are one block, whose fourth moments are computed in one pass."""

BLOCK = 8
"""Size of blocks of more columns: for about a hundred columns, rotating rows and summing moments then take the same time."""

MOST_SAMPLED = 256
"""With more columns, the samples on which descent may begin would be too large for one machine."""


class Coordinates(Protocol):
    """A transformation of the rows of a chunk, before they are rotated."""

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """The transformed rows: shifted, times the axes."""

    def shifted(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The rows in another unit and about another origin, in float64; in `out`, or not copied where nothing changes."""

    def axes(self, V: np.ndarray) -> np.ndarray:
        """What shifted rows are multiplied by, including V."""


class Divided:
    """Rows divided by a power of two."""

    def __init__(self, divisor: float) -> None:
        self.divisor = divisor

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """Divide, in double precision."""
        return self.shifted(rows)

    def shifted(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Divide, in double precision."""
        if self.divisor == 1.0 and rows.dtype == np.float64:
            return rows
        return np.divide(rows, self.divisor, out=out, dtype=np.float64)

    def axes(self, V: np.ndarray) -> np.ndarray:
        """V itself."""
        return V


class TurnedAxes:
    """Uᵀ, here and on the workers, which were sent a matrix and the rotations since then."""

    def __init__(self, rows: Rows, space: Any, Ut: np.ndarray, label: str) -> None:
        self.rows, self.space, self.Ut, self.label = rows, space, Ut, label
        self._send()

    def _send(self) -> None:
        self.kept = [self.space, self.rows.keep(self.Ut.copy(), f"{self.label}-axes")]
        self.numbers = 0

    def turn(self, blocks: Blocks, rotations: Rotations) -> float:
        """Rotate columns of U; return the flops."""
        flops = rotate_blocks(self.Ut, blocks, rotations)
        self.numbers += sum(len(block) ** 2 + len(block) for block in blocks)
        if self.numbers >= self.Ut.size:
            self._send()
        else:
            self.kept.append(self.rows.keep((blocks, rotations), f"{self.label}-rotations"))
        return flops

    def turned(self, Q: np.ndarray | None) -> list[Any]:
        """What `TurnedSums.given` needs for U, or for U @ Q."""
        if Q is None:
            return self.kept
        return [self.space, self.rows.keep(np.ascontiguousarray((self.Ut.T @ Q).T), f"{self.label}-axes")]


class ChunkedColumns(Columns):
    """The sum of a contrast over the columns of AU, for a dask array A; made by `Columns(A, ...)`."""

    label = "columns"  # name of the passes on Dask's dashboard

    def __init__(
        self,
        A: Any,
        contrast: str | Contrast,
        active: int | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        if weights is not None:
            raise ValueError("weights are for rows in memory: leave them out with a dask array")
        rows, contrast = Rows(A), as_contrast(contrast)
        if not contrast.by_rows:
            raise ValueError(f"{contrast!r} is not a sum over rows, so it needs all of them in memory")
        self.active = checked_active(active, rows.shape[1])
        self.extent = extent = rows.total(Extent(contrast), "columns-extent")
        degree = contrast.degree
        self.divisor = 1.0 if 1 / LARGEST <= extent.unit <= LARGEST or degree is None else extent.unit
        self.factor = contrast.sense * (1.0 if degree is None else power(self.divisor, degree))
        self.scale = extent.size * power(extent.unit / self.divisor, degree or 0) or 1.0
        self._hold(rows, rows.shape[0], Divided(self.divisor), contrast, rows.shape[1])

    def _hold(self, rows: Rows, count: int, space: Coordinates, contrast: Contrast, columns: int) -> None:
        """Set the attributes: the chunks, their number of rows, and the transformation of rows."""
        self.rows, self.count, self.contrast, self.n = rows, count, contrast, columns
        self.here = space
        self.space = rows.keep(space, f"{self.label}-coordinates")
        self.weights = None
        self.rough, self.single, self.sweeping, self.trace_slopes = ROUGH, False, False, True

    def coarse(self) -> Columns | None:
        """Evenly spaced rows, read once; None if there are many columns."""
        if self.n > MOST_SAMPLED:
            return None
        return super().coarse()

    def _height(self) -> int:
        return self.count

    def _twice(self) -> bool:
        return False

    def _rows(self, part: slice) -> np.ndarray:
        sample = self.rows.total(EveryNth(part.step or 1), "columns-sample")
        return self.here.coordinates(sample.rows())

    def _cheaper(self, A: np.ndarray, rough: float, stride: int) -> Columns:
        other = super()._cheaper(A, rough, stride)
        other.__class__ = Columns
        return other

    def plan(self) -> Plan:
        """Sweeps for few columns of a fourth-order contrast; else descent, then sweeps if possible."""
        phases: tuple[str, ...] = ("descent", "sweeps") if self.contrast.solves_gathered else ("descent",)
        if self.contrast.solves_gathered and self.n <= WHOLE:
            phases = ("sweeps",)
        return Plan(
            phases=phases, schedule=self._schedule(), coarse=self.coarse, rough=self.rough, at_once=True
        )

    def _schedule(self) -> Schedule:
        return Tournament(block=max(2, self.n if self.n <= WHOLE else BLOCK))

    def state(self, U: np.ndarray) -> TurnedAxes:  # type: ignore[override]
        """U, which is sent to the workers."""
        return TurnedAxes(self.rows, self.space, np.ascontiguousarray(U.T, dtype=np.float64), self.label)

    def value(self, state: TurnedAxes) -> float:  # type: ignore[override]
        """Evaluate f."""
        return self.look(state).value

    def look(self, state: TurnedAxes, Q: np.ndarray | None = None, slopes: bool = True) -> Look:  # type: ignore[override]
        """Value, slopes and curvatures, by one pass."""
        found = self.rows.total(LookSums(self.contrast, self.active), f"{self.label}-look", state.turned(Q))
        look = self.contrast.look_from(found.sums, self.count)
        left = None if look.gains is None else 0.5 * float(look.gains().sum())
        if left is not None and np.isnan(left):
            left = None
        return look._replace(flops=self._flops(4.0 * self.active), left=left)

    def solve(self, state: TurnedAxes, blocks: Blocks, min_gain: float = 0.0) -> Solved:  # type: ignore[override]
        """Solve all blocks, by one pass."""
        if not self.contrast.solves_gathered:
            raise ValueError(
                f"pairs of columns of {self.contrast!r} are searched in memory only, and the rows are in chunks: use "
                'phases=["descent"]'
            )
        empty = GatheredBlocks(self.contrast, blocks, self.active)
        found = self.rows.total(empty, f"{self.label}-round", state.turned(None)).found
        solved = self.contrast.solve_gathered(found, blocks, self.active, self.count, min_gain)
        return solved._replace(flops=solved.flops + self._flops(0.0))

    def _flops(self, per_entry: float) -> float:
        """Flops of rotating all rows, and `per_entry` more for every entry."""
        return self.count * self.n * (2.0 * self.n + per_entry)

    def apply(  # type: ignore[override]
        self,
        state: TurnedAxes,
        blocks: Blocks,
        rotations: Rotations,
        payload: Sequence[Any] | None = None,
    ) -> float:
        """Rotate the columns of U."""
        return state.turn(blocks, rotations)

    def data(self) -> list[np.ndarray | str]:
        """The squared norms of columns and the size of f, which identify the data; the lengths of chunks; the contrast."""
        assert self.rows.chunks is not None
        lengths = [str(length) for length in self.rows.chunks.X.chunks[0]]
        return [
            self.extent.squares,
            np.array([self.extent.unit, self.extent.size]),
            *lengths,
            repr(self.contrast),
        ]


class Extent(Summary):
    """A power of two near the largest |entry|; the contrast's size and the squared norms of columns of rows divided by it."""

    def __init__(self, contrast: Contrast) -> None:
        self.contrast = contrast
        self.unit, self.size = 0.0, 0.0
        self.squares: np.ndarray = np.zeros(0)

    def add(self, rows: np.ndarray) -> None:
        """Add rows, in a unit of their own."""
        other = copy(self)
        other.unit = power_of_two(rows)
        part = np.ascontiguousarray(rows, dtype=np.float64) / other.unit
        other.squares = np.einsum("ij,ij->j", part, part)
        if self.contrast.degree is None:
            part *= other.unit
        other.size = self.contrast.size(part)
        self._take(other)

    def end(self) -> None:
        """Discard the contrast, which is not sent."""
        self.degree = self.contrast.degree or 0
        del self.contrast

    def merge(self, other: Self) -> None:
        """Add sums, in the larger of the two units."""
        self._take(other)

    def _take(self, other: Extent) -> None:
        if not len(other.squares):
            return
        if not len(self.squares):
            self.unit, self.size, self.squares = other.unit, other.size, other.squares
            return
        degree = (self.contrast.degree or 0) if hasattr(self, "contrast") else self.degree
        unit = max(self.unit, other.unit)
        mine, others = self.unit / unit, other.unit / unit
        self.size = self.size * power(mine, degree) + other.size * power(others, degree)
        self.squares = self.squares * mine**2 + other.squares * others**2
        self.unit = unit


class TurnedSums(Summary):
    """Sums over rotated rows."""

    space: Coordinates
    V: np.ndarray
    sums: tuple[Any, ...] = ()

    def given(self, kept: Sequence[Any]) -> Self:
        """With what `TurnedAxes.turned` keeps: the transformation of rows, Uᵀ, and the rotations since then."""
        other = copy(self)
        other.space, Ut, *rounds = kept
        if rounds:
            Ut = Ut.copy()
            for blocks, rotations in rounds:
                rotate_blocks(Ut, blocks, rotations)
        other.V = Ut.T
        return other

    def add(self, rows: np.ndarray) -> None:
        """Add rows in pieces, whose size depends on the length of rows only."""
        step = max(64, PIECE // rows.shape[1])
        axes = np.ascontiguousarray(self.space.axes(self.V).T)
        # Used again for every piece: new arrays of this size would cost as much time as the sums.
        room, Y = np.empty((step, rows.shape[1])), np.empty((len(axes), step))
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            shifted = self.space.shifted(piece, room[: len(piece)])
            if len(piece) < step:
                Y = np.empty((len(axes), len(piece)))
            self._take(self._of(np.dot(axes, shifted.T, out=Y)))

    def end(self) -> None:
        """Discard everything but the sums."""
        del self.space, self.V

    def merge(self, other: Self) -> None:
        """Add the sums."""
        self._take(other.sums)

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        """The sums over some rows; Y has a contiguous row for every column, and is overwritten with the next rows."""
        raise NotImplementedError

    def _take(self, sums: tuple[Any, ...]) -> None:
        if sums:
            self.sums = tuple(a + b for a, b in zip(self.sums, sums)) if self.sums else sums


class LookSums(TurnedSums):
    """The sums that a contrast's look needs."""

    def __init__(self, contrast: Contrast, active: int) -> None:
        self.contrast, self.active = contrast, active

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        return self.contrast.sums(Y, self.active)

    def end(self) -> None:
        """Discard everything but the sums."""
        super().end()
        del self.contrast


class GatheredBlocks(TurnedSums):
    """What `Contrast.solve_gathered` needs."""

    def __init__(self, contrast: Contrast, blocks: Blocks, active: int) -> None:
        self.contrast, self.active = contrast, active
        self.blocks: Blocks = blocks

    @property
    def found(self) -> Any:
        """What was gathered from all rows."""
        return self.sums[0]

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        return (self.contrast.gathered(Y, self.blocks, self.active),)

    def _take(self, sums: tuple[Any, ...]) -> None:
        if sums:
            self.sums = (self.contrast.joined(self.sums[0], sums[0]),) if self.sums else sums

    def end(self) -> None:
        """Discard the blocks, which are not sent."""
        super().end()
        self.blocks = []
