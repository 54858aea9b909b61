"""Fourth-order contrasts: factor rotation and kurtosis.

    F(U) = Σ_j [ Σ y⁴ − (κ/p)(Σ y²)² ]        over the columns y of AU, of length p

κ = 0 is quartimax, 1 varimax. For one pair the best angle is ¼·atan2(P, Q); a block is turned in rounds of many pairs. Where the
rows of A lie in many places, `block_moments` solves blocks from sums over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from givens.numerics import parallel
from givens.objectives.base import Blocks, Look, Second, Solved
from givens.objectives.contrasts import (
    Contrast,
    Pairs,
    Solution,
    column_sums,
    entry_sum,
    look_flops,
    pair_derivatives,
    second_of_columns,
    second_sums,
)
from givens.schedules import tournament

LARGEST_BLOCK = 256
# Columns of a group that a thread turns against another group, and the most groups.
GROUP, MOST_GROUPS = 8, 16


class Orthomax(Contrast):
    """Σ y⁴ − (κ/p)(Σ y²)² over columns of length p, maximised.

    Parameters
    ----------
    kappa : float
        0: quartimax; 1: varimax; half the number of columns: equamax.
    """

    sense = -1
    degree = 4
    exact = True
    twice = True
    by_rows = True
    solves_gathered = True

    def __init__(self, kappa: float = 1.0) -> None:
        if not np.isfinite(kappa):
            raise ValueError(f"kappa must be finite, got {kappa!r}")
        self.kappa = float(kappa)

    def __repr__(self) -> str:
        return f"Orthomax(kappa={self.kappa:g})"

    def block(self, n: int) -> int:
        """All columns at once, up to a size."""
        return max(2, min(n, LARGEST_BLOCK))

    def look(self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, single: bool = False) -> Look:
        """One pass over Y."""
        look = self.look_from(self.sums(Y, active, Q, single), Y.shape[1])
        flops = look_flops(Y, active, Q, 6.0) + (2.0 * Y.size * len(Y) if self.kappa else 0.0)
        return look._replace(flops=flops)

    def sums(
        self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, single: bool = False
    ) -> tuple[np.ndarray, ...]:
        """The sums Σ y_i⁴, 4 Σ y_i³ y_j, 12 Σ y_i² y_j² and, where κ needs it, Σ y_i y_j."""
        from givens.kernels.scalar import fourth_look

        found = column_sums(fourth_look, Y, active, Q, 2 if self.kappa else 1, single)
        return tuple(found if self.kappa else found[:3])

    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """Less the part with κ."""
        fourths, M, S = sums[:3]
        active = len(fourths)
        if self.kappa:
            share, gram = self.kappa / rows, sums[3]
            every, gram = np.diagonal(gram), gram[:active]
            power = every[:active]
            fourths = fourths - share * power**2
            M = M - 4.0 * share * power[:, None] * gram
            S = S - share * (4.0 * power[:, None] * every + 8.0 * gram**2)
        return Look(self.sense * float(fourths.sum()), *pair_derivatives(self.sense * M, self.sense * S))

    def second(self, Y: np.ndarray, active: int, Q: np.ndarray) -> Second:
        """One pass over Y: Σ y_i³ y_j, Σ y_i² y_j y_k and Σ y_j y_k."""
        from givens.kernels.scalar import fourth_second

        M, T, gram = second_sums(fourth_second, Y, active, Q)
        if self.kappa:
            share = self.kappa / Y.shape[1]
            own = gram[:active]
            power = np.diagonal(gram)[:active]
            M -= 4.0 * share * power[:, None] * own
            T -= 4.0 * share * (power[:, None, None] * gram + 2.0 * own[:, :, None] * own[:, None, :])
        n = len(Y)
        flops = Y.shape[1] * (2.0 * n * (n + active) + n * (n + 1) * (1.0 + active))
        return second_of_columns(self.sense * M, self.sense * T, flops)

    def size(self, Y: np.ndarray) -> float:
        """Σ y⁴: positive whatever κ takes away."""
        from givens.kernels.scalar import fourth_look

        return entry_sum(fourth_look, Y)

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """The closed form."""
        from givens.kernels import quartic

        found = quartic.solve_pairs(Y, pairs, active, self.kappa / Y.shape[1], float(-self.sense))
        return (*found, pair_flops(pairs, active) * Y.shape[1])

    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """Every pair to its best angle, round by round, on a copy."""
        return *in_rounds(Y[block], active, self.kappa / Y.shape[1], -self.sense), None

    def gathered(self, Y: np.ndarray, blocks: Blocks, active: int) -> list[np.ndarray]:
        """The fourth and second moments of each pair, or of all columns of each block."""
        from givens.objectives import block_moments

        return block_moments.moments_of(Y, blocks)

    def solve_gathered(
        self, found: list[np.ndarray], blocks: Blocks, active: int, rows: int, enough: float
    ) -> Solved:
        """The closed form of every pair."""
        from givens.objectives import block_moments

        return block_moments.solved(found, blocks, active, self.kappa / rows, float(-self.sense), enough)

    def gains(self, sums: Sequence[np.ndarray], rows: int) -> float:
        """What all pairs together could gain, each by its best angle, from the sums of a look; all columns count."""
        from givens.kernels import quartic

        fourths, M, S = sums[:3]
        i, j = np.triu_indices(len(fourths), 1)
        gram = sums[3] if self.kappa else np.zeros_like(M)
        moments = np.column_stack(
            (
                fourths[i],
                M[i, j] / 4,
                S[i, j] / 12,
                M[j, i] / 4,
                fourths[j],
                gram[i, i],
                gram[i, j],
                gram[j, j],
            )
        )
        both = np.ones(len(i), dtype=bool)
        return float(quartic.solve_moments(moments, both, self.kappa / rows, float(-self.sense))[1].sum())


class Kurtosis(Orthomax):
    """Σ y⁴ over columns of whitened data: a monotone function of the summed kurtosis.

    Parameters
    ----------
    sign : {1, -1}
        1 maximises (heavy-tailed sources), −1 minimises (light-tailed ones).
    """

    # Kurtoses of independent sources are well conditioned: quasi-Newton steps end soon enough.
    twice = False

    def __init__(self, sign: int = 1) -> None:
        if sign not in (1, -1):
            raise ValueError(f"sign must be 1 or -1, got {sign!r}")
        super().__init__(kappa=0.0)
        self.sense = -sign

    def weighted(self, weights: np.ndarray) -> tuple[np.ndarray, Kurtosis]:
        """Σ w y⁴ is the sum of the fourth powers of w^¼ y."""
        return np.sqrt(np.sqrt(weights)), self

    def __repr__(self) -> str:
        return f"Kurtosis(sign={-self.sense})"


def in_rounds(Y: np.ndarray, active: int, kappa: float, sign: int) -> tuple[np.ndarray, float, int, float]:
    """Turn every pair of rows of Y exactly, in place: Q, the gain, how many pairs turned, and the flops."""
    from givens.kernels import quartic

    Qt = np.eye(len(Y))
    total, rotated = 0.0, 0
    for shares in _shares(len(Y), active):
        # Shares of a round have no row in common, so each thread may turn its own at once.
        found = parallel.each(
            lambda pairs: quartic.turn_pairs(Y, Qt, pairs, active, kappa, float(sign)), shares
        )
        rotated += sum(turned for _, turned in found)
        # One sum over the round: the order must not depend on how it was shared out.
        total += float(np.concatenate([gains for gains, _ in found]).sum())
    flops = _sweep_flops(len(Y), active) * Y.shape[1] + 6.0 * rotated * (Y.shape[1] + len(Y))
    return Qt.T.copy(), total, rotated, flops


def pair_flops(pairs: np.ndarray, active: int) -> float:
    """Flops per row of the data for solving pairs."""
    from givens.kernels.quartic import CROSSING, INSIDE

    both = int(np.sum(pairs[:, 1] < active))
    return INSIDE * both + CROSSING * (len(pairs) - both)


@cache
def _sweep_flops(size: int, active: int) -> float:
    """Flops per row of the data for solving all pairs once."""
    return sum(pair_flops(pairs, active) for shares in _shares(size, active) for pairs in shares)


@cache
def _shares(size: int, active: int) -> list[list[np.ndarray]]:
    """Rounds of shares of pairs: a tournament of groups, so that threads meet once for many pairs.

    The shares depend on the size only, not on the number of threads.
    """
    number = max(2, min(size // GROUP, MOST_GROUPS) // 2 * 2)
    groups = [np.arange(size)[part] for part in parallel.parts(size, number)]
    if len(groups) < 2:
        return []
    rounds = []
    for k, meetings in enumerate(tournament(len(groups))):
        shares = []
        for a, b in meetings:
            pairs = [] if k else [groups[g][inside] for g in (a, b) for inside in tournament(len(groups[g]))]
            for shift in range(len(groups[b])):
                other = groups[b][(np.arange(len(groups[a])) + shift) % len(groups[b])]
                pairs.append(np.column_stack((groups[a], other)))
            share = np.concatenate(pairs)
            shares.append(np.ascontiguousarray(share[share[:, 0] < active]))
        rounds.append(shares)
    return rounds
