"""Where to start a rotation: the best of several quick runs.

The orthomax criteria have local maxima, the more the less structure there is in the loadings. A run of exact pair rotations on
a small matrix takes less than a millisecond, so several are made, from the loadings as they are and from random rotations of
them, by *successive halving*: all run for a few sweeps, the better half runs for twice as many, and so on, until one is left.
Most runs are given up early, and the one that is left has converged or nearly so. On larger matrices a few runs go first: if they
converge within a few sweeps to the same value, the structure is clear and no others are needed.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from givens.rotation.criteria import orthomax

CANDIDATES = 16  # starts that are tried where this is cheap
FIRST_SWEEPS = 4
MOST_SWEEPS = 256  # of one candidate
TOLERANCE = 1e-9  # gain of a sweep relative to Σ l⁴ below which a candidate has converged
MARGIN = 1e-9  # relative to Σ l⁴: by how much a candidate must exceed the one before it in the list to be called better
SCOUTS = 4  # candidates that are enough where they agree
SCOUT_SWEEPS = 8
AGREED = 1e-6  # relative to Σ l⁴
CHEAP = 1e7  # flops of the first sweeps of all candidates below which no scouts are sent
BUDGET = 4e8  # flops for all candidates together: a few tenths of a second
PAIR_FLOPS = 25.0  # per row, to solve a pair and to turn it
SWEEPS_EACH = 20.0  # sweeps per candidate, the given-up ones included, where the landscape is rough


def affordable(rows: int, columns: int) -> int:
    """How many candidates are tried for a matrix of this shape; 1 where a run is expensive, and no time is spent on others."""
    return int(np.clip(BUDGET / max(SWEEPS_EACH * _sweep_flops(rows, columns), 1.0), 1, CANDIDATES))


def _sweep_flops(rows: int, columns: int) -> float:
    return columns * (columns - 1) / 2 * rows * PAIR_FLOPS


def explore(
    loadings: np.ndarray, kappa: float, candidates: int, tol: float, rng: np.random.Generator
) -> np.ndarray:
    """The rotation that the best of so many candidates reached; the first candidate is the identity.

    The loadings must be of a moderate size: their fourth powers are summed. The last candidate runs on until a sweep gains no
    more than `tol` times that sum, or for as many sweeps as it may make.
    """
    m = loadings.shape[1]
    starts = np.concatenate((np.eye(m)[None], _random_orthogonal(candidates - 1, m, rng)))
    size = float(np.sum(loadings**4))

    def begin(number: int) -> list[_Candidate]:
        return [_Candidate(loadings, kappa, start, size, k) for k, start in enumerate(starts[:number])]

    best = None
    if candidates > SCOUTS and candidates * FIRST_SWEEPS * _sweep_flops(*loadings.shape) > CHEAP:
        best = _agreed(begin(SCOUTS), size)
    if best is None:
        best = _by_halving(begin(candidates))
    best.finish(tol * size)
    return best.rotation


def _agreed(scouts: list[_Candidate], size: float) -> _Candidate | None:
    """The first of a few candidates, if all converge at once and to the same value: then the structure is clear."""
    for scout in scouts:
        scout.sweep(SCOUT_SWEEPS)
        if not scout.converged or abs(scout.merit - scouts[0].merit) > AGREED * size:
            return None
    return scouts[0]


def _by_halving(runs: list[_Candidate]) -> _Candidate:
    sweeps = FIRST_SWEEPS
    while len(runs) > 1 and sweeps <= MOST_SWEEPS:
        for run in runs:
            run.sweep(sweeps)
        runs = sorted(runs, key=lambda run: -run.merit)[: (len(runs) + 1) // 2]
        sweeps *= 2
    return runs[0]


def _random_orthogonal(number: int, order: int, rng: np.random.Generator) -> np.ndarray:
    """So many random orthogonal matrices; their determinants do not matter, since the signs of columns do not."""
    return np.linalg.qr(rng.standard_normal((number, order, order)))[0]


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

    def finish(self, little: float) -> None:
        self.little, self.converged = little, False
        self.sweep(MOST_SWEEPS)

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
