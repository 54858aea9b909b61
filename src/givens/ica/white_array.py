"""White samples of data in memory, computed from the data tile by tile: they are never stored as a whole.

A descent holds one copy of the samples in white, rotated coordinates, Y, in the precision of the data. So a fit takes about as
much memory as the data do, in addition to the data.
"""

from __future__ import annotations

import numpy as np

from givens.ica.adaptive import tail_sums
from givens.ica.whitening import WhiteSpace
from givens.numerics import parallel
from givens.numerics.tiles import tiled_sum, tiles
from givens.objectives.base import Plan
from givens.objectives.columns import ROUGH, Columns
from givens.objectives.contrasts import Contrast

SAMPLE = 4096  # samples from which the size of a contrast is estimated


class WhiteArray:
    """Samples, the space in which they are white, and their weights.

    Parameters
    ----------
    X : array, shape (samples, features)
    space : WhiteSpace or None
        None if X is white already.
    weights : array, shape (samples,), optional
        Positive.

    Attributes
    ----------
    shape : tuple of int
        Samples and components.
    total : float
        The sum of the weights, or the number of samples.
    """

    def __init__(self, X: np.ndarray, space: WhiteSpace | None, weights: np.ndarray | None = None) -> None:
        self.X, self.space, self.weights = X, space, weights
        self.shape = (len(X), X.shape[1] if space is None else len(space.whitening))
        self.size = self.shape[0] * self.shape[1]
        self.dtype = X.dtype
        self.total = float(len(X)) if weights is None else float(weights.sum())

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        """Some samples in white coordinates."""
        X = self.X[which]
        return np.asarray(X, dtype=np.float64) if self.space is None else self.space.coordinates(X)

    def turned(self, which: slice, U: np.ndarray) -> np.ndarray:
        """Some samples in white coordinates, multiplied by U."""
        X = self.X[which]
        return X.astype(np.float64, copy=False) @ U if self.space is None else self.space.coordinates(X, U)

    def weights_of(self, which: slice | np.ndarray) -> np.ndarray | None:
        """The weights of some samples."""
        return None if self.weights is None else self.weights[which]

    def objective(self, contrast: Contrast) -> Columns:
        """The contrast summed over all samples."""
        if self.space is None:
            return Columns(self[:], contrast, weights=self.weights)
        return WhiteColumns(self, contrast)

    def tail_moments(self, U: np.ndarray) -> np.ndarray:
        """The means of the fourth power and of log cosh, of each column of ZU."""

        def sums(part: slice) -> np.ndarray:
            return tail_sums(self.turned(part, U), self.weights_of(part))

        return tiled_sum(tiles(self.shape[1], self.shape[0]), sums) / self.total


class WhiteColumns(Columns):
    """The sum of a contrast over the columns of ZU, white samples times U, which is computed from the data in one product."""

    def __init__(self, white: WhiteArray, contrast: Contrast) -> None:
        factors = None
        if white.weights is not None:
            factors, contrast = contrast.weighted(white.weights)
        self.white, self.factors = white, factors
        self.A = white  # type: ignore[assignment]
        self.weights, self.contrast = white.weights, contrast
        self.divisor, self.factor = 1.0, float(contrast.sense)
        self.n = self.active = white.shape[1]
        self.rough, self.single, self.sweeping, self.trace_slopes = ROUGH, False, False, True
        self.scale = self._size()

    def _sample_stride(self) -> int:
        return max(1, len(self.white) // SAMPLE)

    def _size(self) -> float:
        """The size of the contrast, extrapolated from evenly spaced samples."""
        part = slice(None, None, self._sample_stride())
        A = self._rows(part)
        contrast, scale = self.contrast, len(self.white) / len(A)
        if self.weights is not None:
            contrast = contrast.weighted(self.weights[part])[1]
        return scale * contrast.size(A) or 1.0

    def _rows(self, part: slice) -> np.ndarray:
        A = self.white[part]
        return A if self.factors is None else A * self.factors[part, None]

    def _cheaper(self, A: np.ndarray, rough: float, stride: int) -> Columns:
        other = super()._cheaper(A, rough, stride)
        other.__class__ = Columns
        return other

    def plan(self) -> Plan:
        """As for `Columns`; Y is rounded to the precision of the data once, and sums over it are in double precision."""
        return super().plan()._replace(rounding=0.0)

    def state(self, U: np.ndarray) -> np.ndarray:
        """Y = ZU, transposed, in the precision of the data."""
        Y = np.empty((self.n, len(self.white)), dtype=self.white.dtype)

        def tile(part: slice) -> None:
            turned = self.white.turned(part, U)
            if self.factors is not None:
                turned *= self.factors[part, None]
            Y[:, part] = turned.T

        parallel.each(tile, tiles(self.white.X.shape[1], len(self.white)))
        return Y

    def data(self) -> list[np.ndarray | str]:
        """The samples, the whitening, the contrast and the weights."""
        space, weights = self.white.space, self.weights
        assert space is not None
        return [self.white.X, space.W, repr(self.contrast), *([] if weights is None else [weights])]
