"""White samples of data that are read in chunks, from disk or on Dask: every sum over them is a pass over the data.

Only the whitening and a sample of evenly spaced rows, on which a descent begins, are kept. An evaluation of the contrast at U is
one pass: each chunk is multiplied by the whitening and U in one product, and its value, slopes and curvatures are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.data.rows import Rows
from givens.data.summary import EveryNth
from givens.ica.adaptive import tail_sums
from givens.ica.whitening import WhiteSpace
from givens.objectives.chunked_columns import ChunkedColumns, TurnedSums
from givens.objectives.columns import LARGE, LEAST
from givens.objectives.contrasts import Contrast


class WhiteChunks:
    """Rows that can be read repeatedly, and the space in which they are white.

    Parameters
    ----------
    rows : Rows
    space : WhiteSpace
    samples : int
        Number of rows.

    Attributes
    ----------
    shape : tuple of int
        Samples and components.
    total : float
        The number of samples, whose weights are all 1.
    """

    weights = None

    def __init__(self, rows: Rows, space: WhiteSpace, samples: int) -> None:
        self.rows, self.space = rows, space
        self.shape = (samples, len(space.W))
        self.size = samples * self.shape[1]
        self.dtype = np.dtype(np.float64)
        self.total = float(samples)
        self._samples: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def objective(self, contrast: Contrast) -> WhiteChunkColumns:
        """The contrast summed over all samples."""
        return WhiteChunkColumns(self, contrast)

    def __getitem__(self, which: slice) -> np.ndarray:
        """Evenly spaced rows in white coordinates; those of each stride are read once."""
        stride = which.step or 1
        if stride not in self._samples:
            sample = self.rows.total(EveryNth(stride), "ica-sample")
            self._samples[stride] = self.space.coordinates(sample.rows())
        return self._samples[stride]

    def _axes(self, U: np.ndarray) -> list[Any]:
        return [self.rows.keep(self.space, "ica-space"), self.rows.keep(U.T, "ica-axes")]

    def tail_moments(self, U: np.ndarray) -> np.ndarray:
        """The means of the fourth power and of log cosh, of each column of ZU."""
        return self.rows.total(_Tails(), "ica-tails", self._axes(U)).sums[0] / self.total


class WhiteChunkColumns(ChunkedColumns):
    """The sum of a contrast over the columns of ZU, white samples times U, computed where the chunks are."""

    label = "ica"

    def __init__(self, white: WhiteChunks, contrast: Contrast) -> None:
        if not contrast.by_rows:
            raise ValueError(f"{contrast!r} is no sum over rows: it needs all samples in memory")
        self.white = white
        self.divisor, self.factor = 1.0, float(contrast.sense)
        self.active = white.shape[1]
        self._hold(white.rows, len(white), white.space, contrast, self.active)
        sample = self._rows(slice(None, None, max(1, len(white) // max(LARGE * self.n, LEAST))))
        self.scale = len(white) / len(sample) * contrast.size(sample) or 1.0

    def _rows(self, part: slice) -> np.ndarray:
        return self.white[part]

    def data(self) -> list[np.ndarray | str]:
        """The whitening, which identifies the data, and the contrast."""
        space = self.white.space
        return [space.W, space.origin, np.array([space.unit, len(self.white)]), repr(self.contrast)]


class _Tails(TurnedSums):
    """Σ y_i⁴ and Σ log cosh y_i."""

    def _of(self, Y: np.ndarray) -> tuple[Any, ...]:
        return (tail_sums(Y.T),)
