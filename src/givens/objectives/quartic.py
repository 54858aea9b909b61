"""Fourth-order contrasts: factor rotation and kurtosis.

    F(U) = Σ_j [ Σ y⁴ − (κ/p)(Σ y²)² ]        over the columns y of AU, of length p

κ = 0 is quartimax, 1 varimax. For one pair the best angle is ¼·atan2(P, Q); how blocks are turned is in `fourth`.
"""

from __future__ import annotations

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import tiled_sum
from givens.objectives.contrasts import Contrast, Pairs, Solution
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

    def value(self, Y: np.ndarray, active: int) -> float:
        """Evaluate f, the criterion with its sign reversed where it is maximised."""
        squares, fourths = _sums(Y[:active])
        return self.sense * float(np.sum(fourths - self.kappa / Y.shape[1] * squares**2))

    def size(self, Y: np.ndarray) -> float:
        """Σ y⁴: positive whatever κ takes away."""
        return float(_sums(Y)[1].sum())

    def slopes(self, Y: np.ndarray, active: int) -> np.ndarray:
        """±4 (Σ y_i³ y_j − (κ/p) Σ y_i² Σ y_i y_j)."""
        # Not `tile**3`: a power costs fifty times a product.
        W = tiled_sum(lambda tile: (tile[:active] * tile[:active] * tile[:active]) @ tile.T, Y)
        if self.kappa:
            second = tiled_sum(lambda tile: tile[:active] @ tile.T, Y)
            W -= self.kappa / Y.shape[1] * np.diagonal(second)[:, None] * second
        return 4.0 * self.sense * W

    def sample(self, Y: np.ndarray) -> np.ndarray:
        """In single precision, in which a sweep takes half the time."""
        return (Y / power_of_two(Y)).astype(np.float32)

    def sweep(self, Y: np.ndarray, active: int) -> Solution:
        """Turn every pair of rows of Y by its best rotation, in place, in few rounds of many pairs."""
        return in_rounds(Y, active, self.kappa / Y.shape[1], -self.sense)

    def know(self, Y: np.ndarray, active: int) -> FourthMoments | None:
        """The moments of Y, where all columns count."""
        return FourthMoments.of(Y, self.kappa / Y.shape[1], -self.sense) if active == len(Y) else None

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """The closed form."""
        from givens.kernels import quartic

        found = quartic.solve_pairs(Y, pairs, active, self.kappa / Y.shape[1], float(-self.sense))
        return (*found, pair_flops(pairs, active) * Y.shape[1])

    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """All angles at once where that gains what they promise; else round by round on a copy."""
        Y = Y[block]
        known = self.know(Y, active)
        if known is None:
            return self.sweep(Y, active)
        Q, gain, turned, flops = known.solve(Y, enough)
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


def _sums(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from givens.kernels import quartic

    parts = parallel.each(lambda rows: quartic.sums(Y[rows]), parallel.parts(len(Y), parallel.width()))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
