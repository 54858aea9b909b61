"""Starts of EM beside the moments' solution, drawn as k-means++ does, and which of them is worth going on with.

Real data are no mixture of spherical Gaussians, and the moments' solution is then one start among others. A few others are
drawn on a sample of the rows: k of them as means, each with a probability that grows with the squared distance to those already
drawn, the best of some trials (greedy k-means++; Arthur and Vassilvitskii 2007). All make a few steps of EM, the most likely ones
some more.

With variances of their own the likelihood has no bound: a component that holds one row alone has the variance 0 and
makes the likelihood as large as the least variance allows. Starts that end with such a component are not counted.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from givens.cluster import Summary
from givens.mixtures.em import refine
from givens.mixtures.model import Mixture
from givens.moments.repeated_rows import Parts
from givens.numerics import parallel

SAMPLE_ROWS = 1024
"""Rows on which starts are compared, at most."""

_SCREENING = 10  # steps of EM that every start makes
_FINALISTS = 5  # how many of them go on
_STEPS = 80  # for so many steps at most
_MARGIN = 5.0  # by which the log-likelihood of all rows together must be larger
_LEAST_ROWS = 2.0  # with fewer a component tells nothing about its variance


class _Trial(NamedTuple):
    mixture: Mixture
    log_likelihood: float


class EveryNth(Summary):
    """The rows whose numbers are multiples of `step`."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.next = 0
        self.found: list[np.ndarray] = []

    def begin(self, first: int) -> Self:
        """Go on counting at `first`."""
        other = type(self)(self.step)
        other.next = first
        return other

    def add(self, rows: np.ndarray) -> None:
        """Take every step-th of these rows."""
        self.found = [*self.found, np.array(rows[-self.next % self.step :: self.step])]
        self.next += len(rows)

    def merge(self, other: Self) -> None:
        """Take in those of the rows that follow."""
        self.found, self.next = self.found + other.found, other.next

    def rows(self) -> np.ndarray:
        """All of them."""
        return np.concatenate(self.found)


def better_start(
    rows: np.ndarray,
    mixture: Mixture,
    *,
    starts: int,
    seed: int,
    tol: float,
    common: bool,
    floor: float,
    beyond: int = 0,
) -> Mixture | None:
    """A start that is clearly more likely on these rows than `mixture`, after steps of EM on both; None if none is found.

    Parameters
    ----------
    rows : array of shape (n, d)
    mixture : Mixture
        The start to be compared with.
    starts, seed : int
        How many others to draw.
    tol, common, floor, beyond
        As in `givens.mixtures.em.refine`.
    """
    k = len(mixture.weights)

    def run(start: Mixture, steps: int) -> _Trial:
        found = refine(
            Parts(rows), start, steps=steps + 1, tol=tol, common=common, floor=floor, beyond=beyond
        )
        return _Trial(found.mixture, found.log_likelihood[-1])

    def screen(number: int) -> _Trial:
        rng = np.random.default_rng([seed, number])
        return run(drawn(rows, k, rng, common=common, floor=floor, beyond=beyond), _SCREENING)

    def sound(trial: _Trial) -> bool:
        return bool(trial.mixture.weights.min() * len(rows) >= _LEAST_ROWS)

    trials = sorted(
        filter(sound, parallel.each(screen, range(starts))), key=lambda trial: -trial.log_likelihood
    )
    trials = parallel.each(lambda trial: run(trial.mixture, _STEPS), trials[:_FINALISTS])
    best = max(filter(sound, trials), key=lambda trial: trial.log_likelihood, default=None)
    least = run(mixture, _SCREENING + _STEPS).log_likelihood + tol + _MARGIN / len(rows)
    if best is None or best.log_likelihood <= least:
        return None
    return best.mixture


def drawn(
    rows: np.ndarray, k: int, rng: np.random.Generator, *, common: bool, floor: float, beyond: int = 0
) -> Mixture:
    """A mixture about k rows that lie apart: weights, means and variances of the rows nearest to each."""
    energy = np.einsum("nd,nd->n", rows, rows)
    trials = 2 + int(np.log(k))
    nearest = np.full(len(rows), np.inf)
    owner = np.zeros(len(rows), dtype=np.intp)
    for number in range(k):
        if number == 0:
            chances = None
        else:
            total = nearest.sum()
            chances = nearest / total if total > 0 else None
        chosen = rng.choice(len(rows), trials if number else 1, p=chances)
        squares = np.maximum(energy[chosen, None] + energy - 2 * (rows[chosen] @ rows.T), 0.0)
        squares[np.arange(len(chosen)), chosen] = 0.0  # whatever rounding leaves
        best = int(np.argmin(np.minimum(squares, nearest).sum(axis=1)))
        owner = np.where(squares[best] < nearest, number, owner)
        nearest = np.minimum(squares[best], nearest)
    members = np.zeros((k, len(rows)))
    members[owner, np.arange(len(rows))] = 1.0
    mass = np.maximum(members.sum(axis=1), 1.0)
    means = (members @ rows) / mass[:, None]
    spread = np.maximum(members @ energy - mass * np.sum(means**2, axis=1), 0.0) / (rows.shape[1] + beyond)
    variances = np.full(k, spread.sum() / mass.sum()) if common else spread / mass
    return Mixture(mass / mass.sum(), means, np.maximum(variances, floor))
