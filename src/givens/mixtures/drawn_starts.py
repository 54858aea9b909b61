"""Further starts of EM, drawn as in k-means++, beside the solution from moments; and the choice of the best.

Real data are not mixtures of spherical Gaussians, and the solution from moments is then one start among others. Where moments
cannot tell the components apart, there is no such solution, and the starts here are the only ones. They are drawn from a sample
of the rows: k rows are the means, each drawn with a probability proportional to its squared distance from those already drawn,
the best of some trials (greedy k-means++; Arthur and Vassilvitskii 2007). All starts take a few steps of EM, the most likely
ones some more.

If each component has its own variance, the likelihood is unbounded: a component of a single row has the variance 0 and makes the
likelihood as large as the smallest allowed variance permits. Starts that end with such a component lose to all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from givens.data.rows import Rows
from givens.mixtures.em import refine
from givens.mixtures.model import Mixture
from givens.numerics import parallel
from givens.solve.starts import best_of

SAMPLE_ROWS = 1024
"""Maximum number of rows on which starts are compared."""

_SCREENING = 10  # steps of EM that every start takes
_FINALISTS = 5  # number of starts that take more steps
_STEPS = 80  # maximum number of these further steps
_MARGIN = 5.0  # a start is better if its log-likelihood, summed over the rows, is larger by more than this
_LEAST_ROWS = 2.0  # fewer rows do not determine the variance of a component


class _Trial(NamedTuple):
    mixture: Mixture
    log_likelihood: float


def better_start(
    rows: np.ndarray,
    k: int,
    *,
    than: Mixture | None,
    starts: int,
    seed: int,
    tol: float,
    common: bool,
    floor: float,
    beyond: int = 0,
) -> Mixture | None:
    """The most likely of some random starts after steps of EM; None if it is not clearly more likely on these rows than another.

    Parameters
    ----------
    rows : array of shape (n, d)
    k : int
        Number of components.
    than : Mixture or None
        The start to compare with, if there is one.
    starts, seed : int
        Number of starts to draw, and the seed of the random numbers.
    tol, common, floor, beyond
        As in `givens.mixtures.em.refine`.
    """

    def run(start: Mixture, steps: int) -> _Trial:
        found = refine(Rows(rows), start, steps=steps + 1, tol=tol, common=common, floor=floor, beyond=beyond)
        return _Trial(found.mixture, found.log_likelihood[-1])

    def screen(number: int) -> _Trial:
        rng = np.random.default_rng([seed, number])
        return run(drawn(rows, k, rng, common=common, floor=floor, beyond=beyond), _SCREENING)

    def sound(trial: _Trial) -> bool:
        return bool(trial.mixture.weights.min() * len(rows) >= _LEAST_ROWS)

    def merit(trial: _Trial) -> tuple[bool, float]:
        return sound(trial), trial.log_likelihood

    finals = (_FINALISTS, lambda trial: run(trial.mixture, _STEPS))
    best, _ = best_of(range(starts), screen, merit, further=[finals], each=parallel.each)
    if than is not None:
        least = run(than, _SCREENING + _STEPS).log_likelihood + tol + _MARGIN / len(rows)
        if not sound(best) or best.log_likelihood <= least:
            return None
    # Several starts often reach the same mixture, in different orders: which of them is best is a matter of rounding.
    order = np.lexsort(best.mixture.means.T[::-1])
    return Mixture(*(part[order] for part in best.mixture))


def drawn(
    rows: np.ndarray, k: int, rng: np.random.Generator, *, common: bool, floor: float, beyond: int = 0
) -> Mixture:
    """A mixture from k rows drawn as in k-means++: the weights, means and variances of the groups of rows nearest to each."""
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
        squares[np.arange(len(chosen)), chosen] = 0.0  # without rounding errors
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
