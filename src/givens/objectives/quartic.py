"""Fourth-order contrasts: factor rotation and kurtosis.

    F(U) = Σ_j [ Σ y⁴ − (κ/p)(Σ y²)² ]        over the columns y of AU, of length p

κ = 0 is quartimax, 1 varimax. For one pair the best angle is ¼·atan2(P, Q), and P and Q of *all* pairs are entries of
two matrix products, Σ y_i³y_j and Σ y_i²y_j². So a block that is nearly there is not turned pair by pair: all its angles
are taken at once, as the exponential of one skew matrix, and kept if that really gains. Otherwise its pairs are turned in
rounds, each exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens import parallel
from givens.objectives.contrasts import Contrast, Pairs, Solution
from givens.objectives.tiles import tiled_sum
from givens.rotations import rotate_blocks
from givens.schedules import tournament

# Beyond this angle (in radians) the pairs of a block feel each other too much to be turned at once.
TOGETHER = 0.35
MOST_TOGETHER = 50
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

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray, active: int) -> Pairs:
        """The closed form."""
        from givens.kernels import quartic

        found = quartic.solve_pairs(Y, pairs, active, self.kappa / Y.shape[1], float(-self.sense))
        both = int(np.sum(pairs[:, 1] < active))
        return (*found, float(Y.shape[1]) * (quartic.INSIDE * both + quartic.CROSSING * (len(pairs) - both)))

    def solve_block(self, Y: np.ndarray, block: np.ndarray, active: int, enough: float) -> Solution:
        """All angles at once where that gains what they promise; else round by round on a copy."""
        whole = len(block) == len(Y)
        tried = 0.0
        if active == len(block):
            Q, gain, turned, tried = self._together(Y if whole else Y[block], enough)
            if turned >= 0:
                return Q, gain, turned, tried
        Q, gain, turned, flops = self._in_rounds(Y.copy() if whole else Y[block], active)
        return Q, gain, turned, tried + flops

    def _in_rounds(self, Y: np.ndarray, active: int) -> Solution:
        size = len(Y)
        Qt = np.eye(size)
        total, rotated, flops = 0.0, 0, 0.0
        for pairs in tournament(size):
            pairs = pairs[pairs[:, 0] < active]
            shares = [pairs[part] for part in parallel.parts(len(pairs), parallel.width())]

            def turn_share(share: np.ndarray) -> Pairs:
                rotations, gains, turned, spent = self.solve_pairs(Y, share, active)
                return rotations, gains, turned, spent + rotate_blocks(Y, share, rotations)

            # Pairs of a round share no row, so each thread may turn its own at once.
            found = parallel.each(turn_share, shares)
            for share, (rotations, _, turned, spent) in zip(shares, found):
                flops += spent + rotate_blocks(Qt, share, rotations)
                rotated += turned
            # One sum over the round: the order must not depend on how it was shared out.
            total += float(np.concatenate([gains for _, gains, _, _ in found]).sum())
        return Qt.T.copy(), total, rotated, flops

    def _together(self, Y: np.ndarray, enough: float) -> Solution:
        """All angles at once, again and again; −1 rotations if that is no use here."""
        size, rows = Y.shape
        Q = np.eye(size)
        first = moments = _Moments.of(Y, self.kappa)
        noise = 1e-13 * moments.size()
        total, rotated = 0.0, 0
        # A product of two different arrays, and symmetric ones at half the price.
        flops = rows * (2.0 * size + (4.0 if self.kappa else 3.0) * size**2)
        # Tile by tile the data pass through Q on their way into the moments: nothing is written before Q is final.
        for _ in range(MOST_TOGETHER):
            theta, promised = moments.angles(-self.sense)
            if np.abs(theta).max(initial=0.0) > TOGETHER:
                return Q, total, rotated or -1, flops
            if promised <= 0.5 * enough or promised == 0:
                break
            turned = Q @ _cayley(theta)
            after = first.turned(Y, turned)
            flops += rows * (2.0 * size + 4.0 * size**2)
            gain = -self.sense * (after.criterion() - moments.criterion())
            if promised <= noise:
                # Too small for a difference of values to show; the angles' own prediction is better.
                gain = promised if gain > -noise else 0.0
            if gain < 0.5 * promised:
                return Q, total, rotated or -1, flops
            Q, moments = turned, after
            total += gain
            rotated += int(np.count_nonzero(theta))
        return Q, total, rotated, flops


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


@dataclass(frozen=True)
class _Moments:
    """Σ y_i³y_j and Σ y_i²y_j², and, where κ needs it, Σ y_i y_j."""

    third: np.ndarray
    square: np.ndarray
    second: np.ndarray
    kappa: float

    @classmethod
    def of(cls, Y: np.ndarray, kappa: float) -> _Moments:
        """Of the rows of Y."""

        def products(tile: np.ndarray) -> np.ndarray:
            squares = tile * tile
            both = [(squares * tile) @ tile.T, squares @ squares.T]
            return np.array([*both, tile @ tile.T] if kappa else both)

        sums = tiled_sum(products, Y)
        return cls(sums[0], sums[1], sums[2] if kappa else np.zeros_like(sums[0]), kappa / Y.shape[1])

    def turned(self, Y: np.ndarray, Q: np.ndarray) -> _Moments:
        """Of the rows of QᵀY, but for Σ y_i²y_j², which decides only how far to turn and hardly changes near the end."""
        Qt = np.ascontiguousarray(Q.T)

        def products(tile: np.ndarray) -> np.ndarray:
            tile = Qt @ tile
            return (tile * tile * tile) @ tile.T

        second = Qt @ self.second @ Q if self.kappa else self.second
        return _Moments(tiled_sum(products, Y), self.square, second, self.kappa)

    def angles(self, sign: int) -> tuple[np.ndarray, float]:
        """θ of every pair i < j, and what they gain together if no pair feels another."""
        fourth = np.diagonal(self.square)
        power = np.diagonal(self.second)
        difference = power[:, None] - power[None]
        P = 4 * (self.third - self.third.T) - 4 * self.kappa * difference * self.second
        Q = (
            fourth[:, None]
            + fourth[None]
            - 6 * self.square
            - self.kappa * (difference**2 - 4 * self.second**2)
        )
        P, Q = np.triu(sign * P, 1), np.triu(sign * Q, 1)
        # Below rounding, no angle.
        noise = 4 * np.finfo(float).eps * (fourth[:, None] + fourth[None])
        P[np.abs(P) <= np.minimum(noise, np.abs(Q))] = 0
        radius = np.hypot(P, Q)
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = np.where(Q > 0, P * (P / (radius + Q)), radius - Q) / 4
        theta = np.where((Q < 0) & (radius - Q <= 16 * noise), 0.0, np.arctan2(P, Q) / 4)
        return theta, float(gain[theta != 0].sum())

    def size(self) -> float:
        """Σ y⁴."""
        return float(np.trace(self.third))

    def criterion(self) -> float:
        """What is maximised or minimised; the diagonal of Σ y_i³y_j is Σ y_i⁴."""
        return float(np.sum(np.diagonal(self.third) - self.kappa * np.diagonal(self.second) ** 2))


def _cayley(theta: np.ndarray) -> np.ndarray:
    """One rotation that turns every pair i < j by its angle, to second order; exactly, where only one angle is not 0."""
    # Not the matrix exponential, which says the same to that order: importing SciPy's takes as long as all the rest.
    half = np.tan(theta / 2)
    skew = half.T - half
    identity = np.eye(len(theta))
    return np.linalg.solve(identity - skew, identity + skew)


def _sums(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from givens.kernels import quartic

    parts = parallel.each(lambda rows: quartic.sums(Y[rows]), parallel.parts(len(Y), parallel.width()))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
