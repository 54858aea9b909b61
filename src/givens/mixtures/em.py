"""Mixtures of spherical Gaussians: their density, expectation-maximisation, and starts for it.

A step of EM is two matrix products per tile of rows: responsibilities from means·xᵀ, new means from responsibilities·x.

Real data are not mixtures of spherical Gaussians, and the solution from moments is then one start among others. Where moments
cannot tell the components apart, there is no such solution, and the other starts are the only ones. They are drawn as in
k-means++ from a sample of the rows: k rows are the means, each drawn with a probability proportional to its squared distance from
those already drawn, the best of some trials (greedy k-means++; Arthur and Vassilvitskii 2007). All starts take a few steps of EM,
the most likely ones some more.

If each component has its own variance, the likelihood is unbounded: a component of a single row has the variance 0 and makes the
likelihood as large as the smallest allowed variance permits. Starts that end with such a component lose to all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from givens.data.passes import TILE, Sums
from givens.data.rows import Rows
from givens.data.third_moments import shifted
from givens.numerics import parallel
from givens.numerics.scaling import binary_exponent
from givens.solve.outer_loops import Iterated, best_of, iterate

SAMPLE_ROWS = 1024
"""Maximum number of rows on which starts are compared."""

_SCREENING = 10  # steps of EM that every start takes
_FINALISTS = 5  # number of starts that take more steps
_STEPS = 80  # maximum number of these further steps
_MARGIN = 5.0  # a start is better if its log-likelihood, summed over the rows, is larger by more than this
_LEAST_ROWS = 2.0  # fewer rows do not determine the variance of a component


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
        x = shifted(X[rows], unit * inner, origin)
        share, density = moved.responsibilities(x, np.einsum("nd,nd->n", x, x))
        shares[rows] = share.T
        log_density[rows] = density + log_unit

    parallel.each(tile, range(0, len(X), TILE))
    return shares, log_density


class _Expectation(Sums):
    """Sums over rows of r, r xᵀ, r‖x‖² and log p(x), with r the responsibilities under a mixture."""

    mass: np.ndarray
    first: np.ndarray
    energy: np.ndarray
    log_density: float

    def __init__(self, mixture: Mixture, unit: float, origin: np.ndarray | float, beyond: int) -> None:
        k, d = mixture.means.shape
        super().__init__(mass=(k,), first=(k, d), energy=(k,), log_density=())
        self.mixture = mixture
        self.unit = unit
        self.origin = origin
        self.beyond = beyond

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        x = shifted(rows, self.unit, self.origin)
        energy = np.einsum("nd,nd->n", x, x)
        r, log_density = self.mixture.responsibilities(x, energy, self.beyond)
        return r.sum(axis=1), r @ x, r @ energy, np.asarray(log_density.sum())


@dataclass(frozen=True)
class EM:
    """What steps of expectation-maximisation keep to.

    Attributes
    ----------
    common : bool
        One variance for all components.
    floor : float
        Smallest variance, which a component of equal rows gets.
    tol : float
        Steps stop when one gains no more than this in mean log-likelihood.
    beyond : int, default=0
        Number of further directions, in which all rows are equal and which have no coordinates. They count for the variances.
    """

    common: bool
    floor: float
    tol: float
    beyond: int = 0

    def refine(
        self, data: Rows, mixture: Mixture, steps: int, unit: float = 1.0, origin: np.ndarray | float = 0.0
    ) -> Iterated[Mixture]:
        """Take at most so many steps; their values are the mean log-likelihoods before each of them.

        Parameters
        ----------
        data : Rows
            The rows, read once per step.
        mixture : Mixture
            The start, in the coordinates of unit·x − origin.
        steps : int
            Maximum number of steps.
        unit, origin : float, array or float
            Rows x are replaced by unit·x − origin.
        """

        def step(mixture: Mixture) -> tuple[float, Mixture]:
            sums = data.total(_Expectation(mixture, unit, origin, self.beyond), "mixture-expectation")
            following = self.fitted(sums.mass, sums.first, sums.energy, mixture)
            return float(sums.log_density) / sums.count, following

        return iterate(step, mixture, self.tol, steps)

    def fitted(
        self, mass: np.ndarray, first: np.ndarray, energy: np.ndarray, before: Mixture | None = None
    ) -> Mixture:
        """The mixture of groups of rows, from sums over each: of the shares of rows in it, of x and of ‖x‖².

        A component to which no row belongs keeps its mean and variance from before.
        """
        d = first.shape[1] + self.beyond
        alive = mass > 10 * np.finfo(float).eps
        share = np.where(alive, mass, 1.0)
        means = first / share[:, None]
        if before is not None:
            means = np.where(alive[:, None], means, before.means)
        spread = np.maximum(energy - mass * np.sum(means**2, axis=1), 0.0) / d
        if self.common:
            variances = np.full(len(mass), spread.sum() / mass.sum())
        else:
            variances = (
                spread / share if before is None else np.where(alive, spread / share, before.variances)
            )
        return Mixture(mass / mass.sum(), means, np.maximum(variances, self.floor))

    def drawn(self, rows: np.ndarray, k: int, rng: np.random.Generator) -> Mixture:
        """The mixture of the groups of rows nearest to each of k rows, which are drawn as in k-means++."""
        energy = np.einsum("nd,nd->n", rows, rows)
        trials = 2 + int(np.log(k))
        nearest = np.full(len(rows), np.inf)
        owner = np.zeros(len(rows), dtype=np.intp)
        for number in range(k):
            total = nearest.sum()
            chances = nearest / total if number and total > 0 else None
            chosen = rng.choice(len(rows), trials if number else 1, p=chances)
            squares = np.maximum(energy[chosen, None] + energy - 2 * (rows[chosen] @ rows.T), 0.0)
            squares[np.arange(len(chosen)), chosen] = 0.0  # without rounding errors
            best = int(np.argmin(np.minimum(squares, nearest).sum(axis=1)))
            owner = np.where(squares[best] < nearest, number, owner)
            nearest = np.minimum(squares[best], nearest)
        members = np.zeros((k, len(rows)))
        members[owner, np.arange(len(rows))] = 1.0
        return self.fitted(np.maximum(members.sum(axis=1), 1.0), members @ rows, members @ energy)

    def better_start(
        self, rows: np.ndarray, k: int, than: Mixture | None, starts: int, seed: int
    ) -> Mixture | None:
        """The most likely of some random starts after steps; None if it is not clearly more likely on these rows than another.

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

        def run(start: Mixture, steps: int) -> Iterated[Mixture]:
            return self.refine(Rows(rows), start, steps + 1)

        def screen(number: int) -> Iterated[Mixture]:
            return run(self.drawn(rows, k, np.random.default_rng([seed, number])), _SCREENING)

        def merit(trial: Iterated[Mixture]) -> tuple[bool, float]:
            return bool(trial.following.weights.min() * len(rows) >= _LEAST_ROWS), trial.values[-1]

        finals = (_FINALISTS, lambda trial: run(trial.following, _STEPS))
        best, _ = best_of(range(starts), screen, merit, further=[finals], each=parallel.each)
        if than is not None:
            least = run(than, _SCREENING + _STEPS).values[-1] + self.tol + _MARGIN / len(rows)
            if not merit(best) > (True, least):
                return None
        # Several starts often reach the same mixture, in different orders: which of them is best is a matter of rounding.
        order = np.lexsort(best.following.means.T[::-1])
        return Mixture(*(part[order] for part in best.following))
