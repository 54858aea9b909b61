"""Where to start a rotation: the best of several quick runs.

The orthomax criteria have local maxima, the more the less structure there is in the loadings. A run of exact pair rotations on
a small matrix takes less than a millisecond, so several are made, from the loadings as they are and from random rotations of
them, by *successive halving*: all run for a few sweeps, the better half runs for twice as many, and so on, until one is left.
Most runs are given up early, and the one that is left has converged or nearly so. On larger matrices one to four runs go first:
if they converge within a few sweeps and to the same value, the structure is clear and no others are needed. Loadings without
structure take ten times as many sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from givens.numerics import parallel
from givens.schedules import Shape, all_pairs
from givens.solve.starts import best_of, one_by_one

CANDIDATES = 16  # starts that are tried where this is cheap
FIRST_SWEEPS = 4
MOST_SWEEPS = 256  # of one candidate
CANDIDATE_TOL = 1e-9  # gain of a sweep relative to Σ l⁴ below which a candidate has converged
CANDIDATE_MARGIN = 1e-9  # relative to Σ l⁴: by how much a candidate must exceed the one before it in the list to be called better
SCOUTS = 4  # candidates that are enough where they agree
SCOUT_SWEEPS = 10
AGREED = 1e-6  # relative to Σ l⁴
CHEAP = 1e7  # flops of the first sweeps of all candidates below which no scouts are sent
SCOUT_BUDGET = 3e8  # flops of the scouts
BUDGET = 4e9  # flops of all candidates together: a few tenths of a second
PAIR_FLOPS = 25.0  # per row, to solve a pair and to turn it
SWEEPS_EACH = 20.0  # sweeps per candidate, the given-up ones included, where the landscape is rough
MANY_FACTORS = 20  # from here on quasi-Newton steps end a slow run sooner than sweeps


@dataclass(frozen=True)
class Found:
    """The rotation to start from, and whether a sweep there would gain next to nothing."""

    rotation: np.ndarray
    converged: bool


def affordable(rows: int, columns: int) -> int:
    """How many candidates are tried for a matrix of this shape; 1 where a run is expensive, and no time is spent on others.

    Two columns have one angle, which is found exactly.
    """
    if columns <= 2:
        return 1
    return int(np.clip(BUDGET / max(SWEEPS_EACH * _sweep_flops(rows, columns), 1.0), 1, CANDIDATES))


def _sweep_flops(rows: int, columns: int) -> float:
    return columns * (columns - 1) / 2 * rows * PAIR_FLOPS


def explore(
    loadings: np.ndarray, kappa: float, candidates: int, tol: float, rng: np.random.Generator
) -> Found:
    """The rotation that the best of so many candidates reached; the first candidate is the identity.

    The loadings must be of a moderate size: their fourth powers are summed. The last candidate runs on until a sweep gains no
    more than `tol` times that sum, if the factors are few, or for as many sweeps as it may make.
    """
    rows, m = loadings.shape
    flops = _sweep_flops(rows, m)
    size = float(np.sum((loadings * loadings) ** 2))
    pairs = all_pairs(Shape(m, m))
    runs = [_Candidate(loadings, kappa, pairs, np.eye(m), size, 0)]
    best = None
    if candidates * FIRST_SWEEPS * flops > CHEAP:
        scouts = int(np.clip(SCOUT_BUDGET / (SCOUT_SWEEPS * flops), 1, min(SCOUTS, candidates)))
        runs += _from_random(loadings, kappa, pairs, scouts - 1, size, rng, first=1)
        best = _agreed(runs, size)
    if best is None:
        runs += _from_random(loadings, kappa, pairs, candidates - len(runs), size, rng, first=len(runs))
        best = _by_halving(runs, flops)
    if best.converged or m < MANY_FACTORS:
        best.finish(tol * size)
    return Found(np.ascontiguousarray(best.Ut.T), best.converged)


def _from_random(
    loadings: np.ndarray,
    kappa: float,
    pairs: np.ndarray,
    number: int,
    size: float,
    rng: np.random.Generator,
    first: int,
) -> list[_Candidate]:
    """So many candidates at random rotations; determinants do not matter, since the signs of columns do not."""
    order = loadings.shape[1]
    starts = np.linalg.qr(rng.standard_normal((number, order, order)))[0]
    return [_Candidate(loadings, kappa, pairs, start, size, first + k) for k, start in enumerate(starts)]


def _agreed(scouts: list[_Candidate], size: float) -> _Candidate | None:
    """The first of a few candidates, if all converge at once and to the same value: then the structure is clear."""
    scouts[0].sweep(SCOUT_SWEEPS)
    if not scouts[0].converged:
        return None
    parallel.each(partial(_Candidate.sweep, times=SCOUT_SWEEPS), scouts[1:])
    merit = scouts[0].merit
    agree = all(scout.converged and abs(scout.merit - merit) <= AGREED * size for scout in scouts)
    return scouts[0] if agree else None


def _by_halving(runs: list[_Candidate], flops: float) -> _Candidate:
    """The candidate that is left; each round takes about as long as the first one."""
    sweeps, number = FIRST_SWEEPS, (len(runs) + 1) // 2
    rounds = []
    while number > 1 and sweeps < MOST_SWEEPS:
        sweeps *= 2
        rounds.append((number, partial(_Candidate.sweep, times=sweeps)))
        number = (number + 1) // 2
    # Handing over to other threads would take longer than cheap rounds.
    each = parallel.each if len(runs) * FIRST_SWEEPS * flops > CHEAP else one_by_one
    first = partial(_Candidate.sweep, times=FIRST_SWEEPS)
    return best_of(runs, first, lambda run: run.merit, further=rounds, each=each)[0]


class _Candidate:
    """One run of exact pair rotations, all on one thread.

    `merit` is the criterion; of candidates that only rounding tells apart the first is best: loadings at their maximum
    stay there.
    """

    def __init__(
        self,
        loadings: np.ndarray,
        kappa: float,
        pairs: np.ndarray,
        start: np.ndarray,
        size: float,
        number: int,
    ) -> None:
        # One column of the mathematics per contiguous row.
        self.Ut = np.ascontiguousarray(start.T)
        self.Y = self.Ut @ loadings.T
        self.pairs, self.gains = pairs, np.empty(len(pairs))
        self.share = kappa / len(loadings)
        self.little = CANDIDATE_TOL * size
        self.converged = False
        squares = self.Y * self.Y
        powers = squares.sum(axis=1)
        self.merit = float(np.vdot(squares, squares) - self.share * (powers @ powers))
        self.merit -= number * CANDIDATE_MARGIN * size

    def sweep(self, times: int) -> _Candidate:
        """Up to so many sweeps more; returns the candidate itself."""
        from givens.kernels.quartic import turn_pairs

        if not self.converged:
            last, gain = turn_pairs(
                self.Y, self.Ut, self.pairs, len(self.Y), self.share, 1.0, self.gains, times, self.little
            )
            self.converged = last <= self.little
            self.merit += gain
        return self

    def finish(self, little: float) -> None:
        """Run on until a sweep gains no more than this."""
        self.little, self.converged = little, False
        self.sweep(MOST_SWEEPS)
