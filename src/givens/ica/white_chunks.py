"""White samples of data that are read in chunks, from disk or on Dask: every sum over them is a pass.

Nothing is kept but the way to the white space and an even sample of the rows, on which a descent begins. A look at U is a pass
over the chunks: each is whitened and turned in one product, and leaves value, slopes and curvatures, which add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from givens.cluster import Summary
from givens.ica.adaptive import TailSums, tail_sums
from givens.ica.white_array import WhiteColumns
from givens.ica.whitening import WhiteSpace
from givens.moments.repeated_rows import RepeatedRows
from givens.objectives.base import Blocks, Look, Rotations, Solved
from givens.objectives.columns import LARGE, LEAST
from givens.objectives.contrasts import Contrast
from givens.rotations import rotate_blocks

PIECE = 1 << 20  # entries of a chunk that are whitened at a time


class WhiteChunks:
    """Rows that can be gone through again and again, and the space in which they are white.

    Parameters
    ----------
    rows : RepeatedRows
    space : WhiteSpace
    samples : int
        How many rows there are.

    Attributes
    ----------
    shape : tuple of int
        Samples and components.
    total : float
        The sum of the weights, which are 1.
    """

    weights = None

    def __init__(self, rows: RepeatedRows, space: WhiteSpace, samples: int) -> None:
        self.rows, self.space = rows, space
        self.shape = (samples, len(space.W))
        self.size = samples * self.shape[1]
        self.dtype = np.dtype(np.float64)
        self.total = float(samples)
        self._samples: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def objective(self, contrast: Contrast) -> ChunkedColumns:
        """The contrast summed over all samples."""
        return ChunkedColumns(self, contrast)

    def __getitem__(self, which: slice) -> np.ndarray:
        """An even sample of the rows, in white coordinates: read once."""
        stride = which.step or 1
        if stride not in self._samples:
            found = self.rows.total(_EvenRows(stride), "ica-sample")
            self._samples[stride] = self.space.coordinates(np.concatenate(found.found))
        return self._samples[stride]

    def sample(self, stride: int) -> tuple[np.ndarray, None]:
        """Every so many-th sample, and that all count alike."""
        return self[::stride], None

    def tail_sums(self, U: np.ndarray) -> TailSums:
        """What tells heavy from light tails of the columns of U."""
        products, squares = self.rows.total(_Tails(self.space, U), "ica-tails").sums
        return TailSums(products / self.total, 1.0 - squares / self.total)

    def fourth_moments(self, U: np.ndarray) -> np.ndarray:
        """The mean fourth power of each column of U."""
        return self.rows.total(_Fourths(self.space, U), "ica-kurtosis").sums[0] / self.total


class ChunkedColumns(WhiteColumns):
    """The sum of a contrast over the columns of white samples times U, where samples stay in their chunks; the state is U."""

    white: WhiteChunks  # type: ignore[assignment]

    def __init__(self, white: WhiteChunks, contrast: Contrast) -> None:
        if not contrast.by_rows:
            raise ValueError(f"{contrast!r} is no sum over rows: it needs all samples in memory")
        super().__init__(white, contrast)  # type: ignore[arg-type]

    def _sample_stride(self) -> int:
        return max(1, len(self.white) // max(LARGE * self.n, LEAST))

    def state(self, U: np.ndarray) -> np.ndarray:
        """A copy of U, transposed."""
        return np.ascontiguousarray(U.T)

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """A pass over the chunks."""
        V = state.T if Q is None else state.T @ Q
        found = self.white.rows.total(_Looks(self.white.space, V, self.contrast), "ica-look")
        value, first, second = found.sums
        return Look(float(value), first, second, found.flops)

    def solve(self, state: np.ndarray, blocks: Blocks, enough: float = 0.0) -> Solved:
        """Not here: exact searches go through the samples of a pair hundreds of times."""
        raise NotImplementedError("pairs of columns are not searched where samples are read in chunks")

    def apply(
        self,
        state: np.ndarray,
        blocks: Blocks,
        rotations: Rotations,
        payload: Sequence[Any] | None = None,
    ) -> float:
        """Rotate the columns of U."""
        return rotate_blocks(state, blocks, rotations)

    def data(self) -> list[np.ndarray | str]:
        """The way to white samples, which tells these data from others, and the contrast."""
        space = self.white.space
        return [space.W, space.origin, np.array([space.unit, len(self.white)]), repr(self.contrast)]


class _TurnedSums(Summary):
    """Sums over samples in the coordinates of V's columns."""

    def __init__(self, space: WhiteSpace, V: np.ndarray) -> None:
        self.space, self.V = space, V
        self.sums: tuple[Any, ...] = ()

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        """The sums over a few samples, one per row of Y."""
        raise NotImplementedError

    def add(self, rows: np.ndarray) -> None:
        """A few rows at a time: how many depends on their length only."""
        for part in _pieces(rows):
            self._gain(self._of(self.space.coordinates(part, self.V)))

    def merge(self, other: Self) -> None:
        """Add the sums."""
        self._gain(other.sums)

    def _gain(self, sums: tuple[Any, ...]) -> None:
        if not sums:
            return
        self.sums = tuple(a + b for a, b in zip(self.sums, sums)) if self.sums else sums


class _Looks(_TurnedSums):
    """Value, slopes and curvatures of a contrast."""

    flops = 0.0

    def __init__(self, space: WhiteSpace, V: np.ndarray, contrast: Contrast) -> None:
        super().__init__(space, V)
        self.contrast = contrast

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        look = self.contrast.look(np.ascontiguousarray(Y.T), Y.shape[1])
        self.flops += look.flops + 2.0 * len(Y) * self.space.W.size
        return look.value, look.slopes, look.curvatures

    def merge(self, other: Self) -> None:
        """Add the sums and the flops."""
        super().merge(other)
        self.flops += other.flops


class _Tails(_TurnedSums):
    """Σ φ'(y_i) y_j and Σ φ'(y_i)², of log cosh."""

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        found = tail_sums(Y.shape, lambda part: Y[part])
        return found.products * len(Y), (1.0 - found.outward) * len(Y)


class _Fourths(_TurnedSums):
    """Σ y_i⁴."""

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        squares = Y * Y
        return (np.einsum("ij,ij->j", squares, squares),)


class _EvenRows(Summary):
    """Every so many-th row, from the first of all on."""

    def __init__(self, stride: int) -> None:
        self.stride = stride
        self.next = 0
        self.found: list[np.ndarray] = []

    def begin(self, first: int) -> Self:
        """Of the rows from number `first` on."""
        other = type(self)(self.stride)
        other.next = -first % self.stride
        return other

    def add(self, rows: np.ndarray) -> None:
        """Those of them that are in the sample."""
        if self.next < len(rows):
            self.found = [*self.found, np.array(rows[self.next :: self.stride])]
        self.next = (self.next - len(rows)) % self.stride if self.next < len(rows) else self.next - len(rows)

    def merge(self, other: Self) -> None:
        """Those of the rows that follow."""
        self.found = [*self.found, *other.found]


def _pieces(rows: np.ndarray) -> Iterator[np.ndarray]:
    step = max(64, PIECE // rows.shape[1])
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
