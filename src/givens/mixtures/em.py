"""Expectation-maximisation for spherical mixtures, from a given start.

A step is two matrix products per tile of rows: responsibilities from means·xᵀ, new means from responsibilities·x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from givens.data.rows import Rows
from givens.data.sums import Sums
from givens.mixtures.model import Mixture
from givens.solve.iterate import iterate


class _Expectation(Sums):
    """Sums over rows of r, r xᵀ, r‖x‖² and log p(x), with r the responsibilities under a mixture."""

    def __init__(self, mixture: Mixture, unit: float, origin: np.ndarray | None, beyond: int) -> None:
        k, d = mixture.means.shape
        super().__init__((k,), (k, d), (k,), ())
        self.mixture = mixture
        self.unit = unit
        self.origin = origin
        self.beyond = beyond

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.asarray(rows, dtype=float)
        if self.unit != 1.0:
            x = x * self.unit
        if self.origin is not None:
            x = x - self.origin
        energy = np.einsum("nd,nd->n", x, x)
        r, log_density = self.mixture.responsibilities(x, energy, self.beyond)
        return r.sum(axis=1), r @ x, r @ energy, np.asarray(log_density.sum())


class Refined(NamedTuple):
    """The mixture, the mean log-likelihood before each step, and whether the last step gained less than the tolerance."""

    mixture: Mixture
    log_likelihood: list[float]
    converged: bool


def refine(
    data: Rows,
    mixture: Mixture,
    *,
    steps: int,
    tol: float,
    common: bool,
    floor: float,
    unit: float = 1.0,
    origin: np.ndarray | None = None,
    beyond: int = 0,
) -> Refined:
    """Take at most `steps` steps of EM; stop when a step gains no more than `tol` in mean log-likelihood.

    Parameters
    ----------
    data : Rows
        The rows, read once per step.
    mixture : Mixture
        The start, in the coordinates of unit·x − origin.
    steps, tol : int, float
        Maximum number of steps, and the gain at which they stop.
    common : bool
        One variance for all components.
    floor : float
        Smallest variance, which a component of equal rows gets.
    unit, origin : float, array or None
        Rows x are replaced by unit·x − origin.
    beyond : int, default=0
        Number of further directions, in which all rows are equal and which have no coordinates. They count for the variances.
    """

    def step(mixture: Mixture) -> tuple[float, Mixture]:
        sums = data.total(_Expectation(mixture, unit, origin, beyond), "mixture-expectation")
        mass, first, energy, log_density = sums.totals()
        following = _maximise(mixture, mass, first, energy, common=common, floor=floor, beyond=beyond)
        return float(log_density) / sums.count, following

    found = iterate(step, mixture, tol, steps)
    return Refined(found.following, found.values, found.converged)


def _maximise(
    mixture: Mixture,
    mass: np.ndarray,
    first: np.ndarray,
    energy: np.ndarray,
    *,
    common: bool,
    floor: float,
    beyond: int,
) -> Mixture:
    d = first.shape[1] + beyond
    # A component to which no row belongs keeps its mean and variance.
    alive = mass > 10 * np.finfo(float).eps
    share = np.where(alive, mass, 1.0)
    means = np.where(alive[:, None], first / share[:, None], mixture.means)
    spread = np.maximum(energy - mass * np.sum(means**2, axis=1), 0.0) / d
    if common:
        variances = np.full(len(mass), spread.sum() / mass.sum())
    else:
        variances = np.where(alive, spread / share, mixture.variances)
    return Mixture(mass / mass.sum(), means, np.maximum(variances, floor))
