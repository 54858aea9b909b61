"""Mixtures of spherical Gaussians: their density, expectation-maximisation, and starts for it.

The log-density of a component is linear in the sufficient statistics s(x) = (x, ‖x‖², 1). So a step of EM is two matrix products
per tile of rows: responsibilities from the coefficients of all components times s, and the sums of the responsibilities times s,
from which weights, means and variances follow.

Real data are not mixtures of spherical Gaussians, and the solution from moments is then one start among others. Where moments
cannot tell the components apart, there is no such solution, and the other starts are the only ones. They are drawn as in
k-means++ from a sample of the rows: k rows are the means, each drawn with a probability proportional to its squared distance from
those already drawn, the best of some trials (greedy k-means++; Arthur and Vassilvitskii 2007). After some steps of EM the most
likely one is the start for all rows.

If each component has its own variance, the likelihood is unbounded: a component of a single row has the variance 0 and makes the
likelihood as large as the smallest allowed variance permits. Starts that end with such a component lose to all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from givens.data.passes import TILE_ROWS, Sums
from givens.data.rows import Rows
from givens.data.third_moments import shifted
from givens.numerics import parallel
from givens.numerics.scaling import EPS, binary_exponent
from givens.solve.outer_loops import Iterated, best_of, iterate


class Mixture(NamedTuple):
    """Weights (k,), means (k, d) and variances (k,)."""

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def moved(self, unit: float, origin: np.ndarray | float) -> Mixture:
        """The mixture of unit·x − origin."""
        return Mixture(self.weights, self.means * unit - origin, self.variances * unit * unit)

    def responsibilities(self, s: np.ndarray, beyond: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """p(i | x), shape (k, n), and log p(x), shape (n,), from the statistics of rows.

        `beyond` is the number of further directions, in which all rows and means are equal and which have no coordinates.
        """
        d = self.means.shape[1] + beyond
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights)
        constant -= d / 2 * np.log(2 * np.pi * self.variances)
        constant -= np.sum(self.means**2, axis=1) / (2 * self.variances)
        coefficients = self.means / self.variances[:, None], -0.5 / self.variances, constant
        joint = np.column_stack(coefficients) @ s.T
        largest = joint.max(axis=0)
        joint -= largest
        np.exp(joint, out=joint)
        total = joint.sum(axis=0)
        joint /= total
        return joint, largest + np.log(total)


def statistics(rows: np.ndarray, unit: float = 1.0, origin: np.ndarray | float = 0.0) -> np.ndarray:
    """s(x) = (x, ‖x‖², 1) of every row, after x is replaced by unit·x − origin."""
    s = np.ones((len(rows), rows.shape[1] + 2))
    x = s[:, :-2]
    x[:] = shifted(rows, unit, origin)
    s[:, -2] = np.einsum("nd,nd->n", x, x)
    return s


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

    def tile(rows: slice) -> None:
        share, density = moved.responsibilities(statistics(X[rows], unit * inner, origin))
        shares[rows] = share.T
        log_density[rows] = density + log_unit

    parallel.each(tile, parallel.slices(len(X), TILE_ROWS))
    return shares, log_density


class _Expectation(Sums):
    """Sums over rows of r s(x)ᵀ and log p(x), with r the responsibilities under a mixture."""

    sums: np.ndarray
    log_density: float

    def __init__(self, mixture: Mixture, em: EM) -> None:
        k, d = mixture.means.shape
        super().__init__(sums=(k, d + 2), log_density=())
        self.mixture, self.em = mixture, em

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        s = statistics(rows, self.em.unit, self.em.origin)
        r, log_density = self.mixture.responsibilities(s, self.em.beyond)
        return r @ s, np.asarray(log_density.sum())


@dataclass(frozen=True)
class EM:
    """Steps of expectation-maximisation.

    Attributes
    ----------
    common : bool
        One variance for all components.
    floor : float
        Smallest variance, which a component of equal rows gets.
    min_gain : float
        Steps stop when one gains no more than this in mean log-likelihood.
    beyond : int, default=0
        Number of further directions, in which all rows are equal and which have no coordinates. They count for the variances.
    unit, origin : float, array or float
        Rows x are replaced by unit·x − origin, and mixtures are those of such rows.
    """

    common: bool
    floor: float
    min_gain: float
    beyond: int = 0
    unit: float = 1.0
    origin: np.ndarray | float = 0.0

    def refine(self, data: Rows, mixture: Mixture, steps: int) -> Iterated[Mixture]:
        """Take at most so many steps from a mixture; values are the mean log-likelihoods of the start and after each step.

        The rows are read once for the start and once for each step.
        """

        def step(mixture: Mixture) -> tuple[float, Mixture]:
            found = data.total(_Expectation(mixture, self), "mixture-expectation")
            return float(found.log_density) / found.count, self.fitted(found.sums, mixture)

        return iterate(step, mixture, self.min_gain, steps + 1)

    def fitted(self, sums: np.ndarray, last: Mixture) -> Mixture:
        """The mixture of groups of rows, from the sums of the statistics over each.

        A component to which no row belongs keeps its mean and variance.
        """
        first, energy, mass = sums[:, :-2], sums[:, -2], sums[:, -1]
        d = first.shape[1] + self.beyond
        alive = mass > 10 * EPS
        share = np.where(alive, mass, 1.0)
        means = np.where(alive[:, None], first / share[:, None], last.means)
        spread = np.maximum(energy - mass * np.sum(means**2, axis=1), 0.0) / d
        if self.common:
            variances = np.full(len(mass), spread.sum() / mass.sum())
        else:
            variances = np.where(alive, spread / share, last.variances)
        return Mixture(mass / mass.sum(), means, np.maximum(variances, self.floor))

    def drawn(self, s: np.ndarray, k: int, rng: np.random.Generator) -> Mixture:
        """The mixture of the groups of rows nearest to each of k rows, which are drawn as in k-means++."""
        rows, energy = s[:, :-2], s[:, -2]
        nearest = np.full(len(rows), np.inf)
        owner = np.zeros(len(rows), dtype=np.intp)
        for number in range(k):
            total = nearest.sum()
            chances = nearest / total if number and total > 0 else None
            chosen = rng.choice(len(rows), 2 + int(np.log(k)) if number else 1, p=chances)
            squares = np.maximum(energy[chosen, None] + energy - 2 * (rows[chosen] @ rows.T), 0.0)
            squares[np.arange(len(chosen)), chosen] = 0.0  # without rounding errors
            best = int(np.argmin(np.minimum(squares, nearest).sum(axis=1)))
            owner = np.where(squares[best] < nearest, number, owner)
            nearest = np.minimum(squares[best], nearest)
        sums = np.equal.outer(np.arange(k), owner) @ s
        sums[:, -1] = np.maximum(sums[:, -1], 1.0)  # equal rows may leave groups empty
        return self.fitted(sums, Mixture(sums[:, -1], sums[:, :-2], sums[:, -2]))

    def better_start(
        self, rows: np.ndarray, k: int, than: Mixture | None, starts: int, seed: int
    ) -> Mixture | None:
        """The most likely of some random starts after 20 steps; None if it is not clearly more likely on these rows than another.

        Parameters
        ----------
        rows : array of shape (n, d)
        k : int
            Number of components.
        than : Mixture or None
            The start to compare with, if there is one.
        starts, seed : int
            Number of starts to draw, and the seed of the random numbers.
        """
        s = statistics(rows, self.unit, self.origin)

        def run(start: Mixture) -> Iterated[Mixture]:
            return self.refine(Rows(rows), start, 20)

        def merit(trial: Iterated[Mixture]) -> tuple[bool, float]:
            # Fewer than two rows do not determine the variance of a component.
            return bool(trial.last.weights.min() * len(rows) >= 2), trial.values[-1]

        def drawn(number: int) -> Iterated[Mixture]:
            return run(self.drawn(s, k, np.random.default_rng([seed, number])))

        best, _ = best_of(range(starts), drawn, merit, each=parallel.each)
        if than is not None:
            # Clearly: by 5 in the log-likelihood of all these rows, so that chance and rounding do not choose.
            least = run(than).values[-1] + self.min_gain + 5 / len(rows)
            if not merit(best) > (True, least):
                return None
        # Several starts often reach the same mixture, in different orders: which of them is best is a matter of rounding.
        order = np.lexsort(best.last.means.T[::-1])
        return Mixture(*(part[order] for part in best.last))
