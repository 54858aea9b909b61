"""Fourth-order contrasts: factor rotation and kurtosis.

    F(U) = Σ_j [ Σ y⁴ − (κ/p)(Σ y²)² ]        over the columns y of AU, of length p

κ = 0 is quartimax, 1 varimax. For one pair the best angle is ¼·atan2(P, Q); how blocks are turned is in `fourth`.
"""

from __future__ import annotations

import numpy as np

from givens.numerics.scaling import power_of_two
from givens.objectives.base import Look
from givens.objectives.contrasts import (
    Contrast,
    Pairs,
    Solution,
    column_sums,
    entry_sum,
    look_flops,
    pair_derivatives,
)
from givens.objectives.fourth import FourthMoments, in_rounds, pair_flops

LARGEST_BLOCK = 256


class Orthomax(Contrast):
    """Σ y⁴ − (κ/p)(Σ y²)² over columns of length p, maximised.

    Parameters
    ----------
    kappa : float
        0: quartimax; 1: varimax; half the number of columns: equamax.
    """

    sense = -1
    degree = 4

    def __init__(self, kappa: float = 1.0) -> None:
        if not np.isfinite(kappa):
            raise ValueError(f"kappa must be finite, got {kappa!r}")
        self.kappa = float(kappa)

    def __repr__(self) -> str:
        return f"Orthomax(kappa={self.kappa:g})"

    def block(self, n: int) -> int:
        """All columns at once, up to a size."""
        return max(2, min(n, LARGEST_BLOCK))

    def look(self, Y: np.ndarray, active: int, Q: np.ndarray | None = None) -> Look:
        """One pass over Y: Σ y_i⁴, Σ y_i³ y_j, Σ y_i² y_j² and, where κ needs it, Σ y_i y_j."""
        from givens.kernels.scalar import fourth_look

        fourths, M, S, gram = column_sums(fourth_look, Y, active, Q, 2 if self.kappa else 1)
        flops = look_flops(Y, active, Q, 6.0)
        if self.kappa:
            share = self.kappa / Y.shape[1]
            every, gram = np.diagonal(gram), gram[:active]
            power = every[:active]
            fourths = fourths - share * power**2
            M = M - 4.0 * share * power[:, None] * gram
            S = S - share * (4.0 * power[:, None] * every + 8.0 * gram**2)
            flops += 2.0 * Y.size * len(Y)
        return Look(
            self.sense * float(fourths.sum()), *pair_derivatives(self.sense * M, self.sense * S), flops
        )

    def size(self, Y: np.ndarray) -> float:
        """Σ y⁴: positive whatever κ takes away."""
        from givens.kernels.scalar import fourth_look

        return entry_sum(fourth_look, Y)

    def sample(self, Y: np.ndarray) -> np.ndarray:
        """In single precision, in which a sweep takes half the time."""
        return (Y / power_of_two(Y)).astype(np.float32)

    def sweep(self, Y: np.ndarray, active: int) -> Solution:
        """Turn every pair of rows of Y by its best rotation, in place, in few rounds of many pairs."""
        return in_rounds(Y, active, self.kappa / Y.shape[1], -self.sense)

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """The closed form."""
        from givens.kernels import quartic

        found = quartic.solve_pairs(Y, pairs, active, self.kappa / Y.shape[1], float(-self.sense))
        return (*found, pair_flops(pairs, active) * Y.shape[1])

    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """All angles at once where that gains what they promise; else round by round on a copy."""
        Y = Y[block]
        if active < len(Y):
            return self.sweep(Y, active)
        moments = FourthMoments.of(Y, self.kappa / Y.shape[1], -self.sense)
        Q, gain, turned, flops = moments.solve(Y, enough)
        return Q, gain, turned, flops + 2.0 * Y.shape[1] * len(block) ** 2


class Kurtosis(Orthomax):
    """Σ y⁴ over columns of whitened data: a monotone function of the summed kurtosis.

    Parameters
    ----------
    sign : {1, -1}
        1 maximises (heavy-tailed sources), −1 minimises (light-tailed ones).
    """

    def __init__(self, sign: int = 1) -> None:
        if sign not in (1, -1):
            raise ValueError(f"sign must be 1 or -1, got {sign!r}")
        super().__init__(kappa=0.0)
        self.sense = -sign

    def __repr__(self) -> str:
        return f"Kurtosis(sign={-self.sense})"
