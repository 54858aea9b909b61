"""A mixture of spherical Gaussians: its parameters and its density."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from givens.data.sums import TILE
from givens.numerics import parallel
from givens.numerics.scaling import binary_exponent


class Mixture(NamedTuple):
    """Weights (k,), means (k, d) and variances (k,)."""

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def moved(self, unit: float, origin: np.ndarray | float) -> Mixture:
        """The mixture of unit·x − origin."""
        return Mixture(self.weights, self.means * unit - origin, self.variances * unit * unit)

    def log_joint(self, x: np.ndarray, energy: np.ndarray, beyond: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Log of w_i p(x | i), shape (k, n), without a term that depends on the row only, and that term; energy is ‖x‖².

        `beyond` is the number of further directions, in which all rows and means are equal and which have no coordinates.
        """
        d = x.shape[1] + beyond
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        constant = logs - np.sum(self.means**2, axis=1) / (2 * self.variances)
        constant -= d / 2 * np.log(2 * np.pi * self.variances)
        joint = (self.means / self.variances[:, None]) @ x.T + constant[:, None]
        if self.common:
            return joint, energy / (-2 * self.variances[0])
        joint -= energy / (2 * self.variances[:, None])
        return joint, np.zeros(len(x))

    @property
    def common(self) -> bool:
        """Whether all variances are the same."""
        return bool(np.all(self.variances == self.variances[0]))

    def responsibilities(
        self, x: np.ndarray, energy: np.ndarray, beyond: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """p(i | x), shape (k, n), and log p(x), shape (n,)."""
        joint, rest = self.log_joint(x, energy, beyond)
        top = joint.max(axis=0)
        joint -= top
        np.exp(joint, out=joint)
        total = joint.sum(axis=0)
        joint /= total
        return joint, top + np.log(total) + rest


def posterior(mixture: Mixture, X: np.ndarray, unit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """p(i | x), shape (n, k), and log p(x), shape (n,), of every row; the mixture is that of unit·x.

    Rows are shifted by the mean of the mixture and divided by its standard deviation, so nothing cancels or overflows.
    """
    inner = 2.0 ** -binary_exponent(np.sqrt(mixture.variances.max()))
    origin = (mixture.weights @ mixture.means) * inner
    moved = mixture.moved(inner, origin)
    log_unit = mixture.means.shape[1] * (np.log(unit) + np.log(inner))
    shares = np.empty((len(X), len(mixture.weights)))
    log_density = np.empty(len(X))

    def tile(start: int) -> None:
        rows = slice(start, start + TILE)
        x = np.asarray(X[rows], dtype=float) * unit * inner - origin
        share, density = moved.responsibilities(x, np.einsum("nd,nd->n", x, x))
        shares[rows] = share.T
        log_density[rows] = density + log_unit

    parallel.each(tile, range(0, len(X), TILE))
    return shares, log_density
