"""Where to start a rotation: the best of several quick runs.

The orthomax criteria have local maxima, the more the less structure there is in the loadings. A run of exact pair rotations on
a small matrix takes less than a millisecond, so several are made, from the loadings as they are and from random rotations of
them, by *successive halving*: all run for a few sweeps, the better half runs for twice as many, and so on, until one is left.
Most runs are given up early, and the one that is left has converged or nearly so.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from givens.rotation.criteria import orthomax
from givens.rotations import random_orthogonal

CANDIDATES = 16  # starts that are tried where this is cheap
FIRST_SWEEPS = 4
MOST_SWEEPS = 256  # of one candidate
TOLERANCE = 1e-9  # gain of a sweep relative to Σ l⁴ below which a candidate has converged
MARGIN = 1e-9  # relative to Σ l⁴: by how much a candidate must exceed the one before it in the list to be called better
BUDGET = 4e8  # flops for all candidates together: a few tenths of a second
PAIR_FLOPS = 25.0  # per row, to solve a pair and to turn it
SWEEPS_EACH = 20.0  # sweeps per candidate, the given-up ones included, where the landscape is rough


def affordable(rows: int, columns: int) -> int:
    """How many candidates are tried for a matrix of this shape; 1 where a run is expensive, and no time is spent on others."""
    sweep = columns * (columns - 1) / 2 * rows * PAIR_FLOPS
    return int(np.clip(BUDGET / max(SWEEPS_EACH * sweep, 1.0), 1, CANDIDATES))


def explore(loadings: np.ndarray, kappa: float, candidates: int, rng: np.random.Generator) -> np.ndarray:
    """The rotation that the best of so many candidates reached; the first candidate is the identity.

    The loadings must be of a moderate size: their fourth powers are summed.
    """
    m = loadings.shape[1]
    starts = [np.eye(m)] + [random_orthogonal(m, rng, determinant=1) for _ in range(candidates - 1)]
    size = float(np.sum(loadings**4))
    runs = [_Candidate(loadings, kappa, start, size, k) for k, start in enumerate(starts)]
    sweeps = FIRST_SWEEPS
    while len(runs) > 1 and sweeps <= MOST_SWEEPS:
        for run in runs:
            run.sweep(sweeps)
        runs = sorted(runs, key=lambda run: -run.merit)[: (len(runs) + 1) // 2]
        sweeps *= 2
    return runs[0].rotation


class _Candidate:
    """One run of exact pair rotations, all on one thread."""

    def __init__(
        self, loadings: np.ndarray, kappa: float, start: np.ndarray, size: float, number: int
    ) -> None:
        self.kappa = kappa
        self.handicap = number * MARGIN * size
        # One column of the mathematics per contiguous row.
        self.Y = np.ascontiguousarray((loadings @ start).T)
        self.Ut = np.ascontiguousarray(start.T)
        self.little = TOLERANCE * size
        self.converged = False

    def sweep(self, times: int) -> None:
        from givens.kernels.quartic import turn_pairs

        columns, rows = self.Y.shape
        for _ in range(times):
            if self.converged:
                return
            gains, _ = turn_pairs(self.Y, self.Ut, _all_pairs(columns), columns, self.kappa / rows, 1.0)
            self.converged = float(gains.sum()) <= self.little

    @property
    def merit(self) -> float:
        """The criterion; of candidates that only rounding tells apart the first is best: loadings at their maximum stay there."""
        return orthomax(self.Y.T, self.kappa) - self.handicap

    @property
    def rotation(self) -> np.ndarray:
        return np.ascontiguousarray(self.Ut.T)


@cache
def _all_pairs(columns: int) -> np.ndarray:
    return np.column_stack(np.triu_indices(columns, 1))
