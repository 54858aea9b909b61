"""A measure of independence that needs no signs: how far from Gaussian the sources are, whether their tails are heavy or light.

The contrast with signs is smallest at the sources only if each sign is right, and the signs are not known before the sources
are. The deviation of a source y of variance 1 from a Gaussian variable ν,

    h_j = E[log cosh y_j] − E[log cosh ν],

is negative for heavy tails and positive for light ones. The sum of h_j² is an approximation of negentropy (Hyvärinen 1999), and
large at the sources. So a run begins with

    f(U) = −Σ_j h_j² / (2 h₀),

per sample. Its slopes are those of log cosh times −h_j / h₀: a column whose sign is uncertain has little weight, and can change
its sign on the way. The run ends with −Σ_j |h_j|, which is the contrast with the signs −sign(h_j), up to a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from givens.objectives.base import Look
from givens.objectives.contrasts import LogCosh, pair_derivatives
from givens.objectives.turned_rows import TurnedRows

GAUSSIAN_MEAN = 0.37456720749143796  # E[log cosh ν], by quadrature
TYPICAL_DEVIATION = 0.03
"""h₀: |h| of Laplace and uniform sources are 0.036 and 0.027, so that their weights are about 1."""


class NonGaussianity(LogCosh):
    """−Σ_j h_j² / (2 h₀) or −Σ_j |h_j|, times the number of samples; for descent only, as pairs are not searched.

    Parameters
    ----------
    squared : bool
    """

    def __init__(self, squared: bool) -> None:
        super().__init__()
        self.squared = squared

    def deviations(self, values: np.ndarray, rows: int) -> tuple[np.ndarray, float]:
        """h_j, from the sums of log cosh over all rows; and the number of samples, which is the sum of their weights."""
        total = float(self.counts.sum()) if len(self.counts) else float(rows)
        return values / total - GAUSSIAN_MEAN, total

    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """Value, slopes and curvatures: from those of log cosh, by the chain rule."""
        values, *products = sums
        h, total = self.deviations(values, rows)
        if not products:
            return Look(self._of(h, total))
        M, S = products
        weights = -h / TYPICAL_DEVIATION if self.squared else np.where(h <= 0, 1.0, -1.0)
        M, S = weights[:, None] * M, weights[:, None] * S
        if self.squared:
            S -= (sums[1] ** 2) / (total * TYPICAL_DEVIATION)
        return Look(self._of(h, total), *pair_derivatives(M, S))

    def _of(self, h: np.ndarray, total: float) -> float:
        sizes = 0.5 / TYPICAL_DEVIATION * h * h if self.squared else np.abs(h)
        return self._finite(-total * float(sizes.sum()))

    def __repr__(self) -> str:
        return f"NonGaussianity(squared={self.squared})"


def tail_moments(white: TurnedRows, U: np.ndarray) -> np.ndarray:
    """The means of the fourth power and of log cosh, of each column of ZU, white samples times U."""
    return np.asarray(white.total(_tail_sums, U, "tails")) / white.weight


def _tail_sums(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Σ y⁴ and Σ log cosh y over each row y of Y, whose entries may have weights."""
    room = Y * Y

    def total() -> np.ndarray:
        return room.sum(axis=1) if weights is None else room @ weights

    room *= room
    fourth = total()
    np.abs(Y, out=room)
    sizes = total()
    room *= -2.0
    np.exp(room, out=room)
    room += 1.0
    room *= 0.5
    np.log(room, out=room)  # log cosh y = |y| + log((1 + e^(−2|y|)) / 2)
    return np.stack((fourth, sizes + total()))


def tail_signs(means: np.ndarray) -> np.ndarray:
    """1 for each source with heavy tails, −1 for light tails, from the means of log cosh."""
    return np.where(means <= GAUSSIAN_MEAN, 1, -1)
