"""Fourth moments: all angles of a block at once, or its pairs in rounds.

The criterion Σ_j [ Σ y⁴ − κ (Σ y²)² ] over the rows y of Y goes, if one pair turns by θ, with ¼(P sin 4θ + Q cos 4θ), and P
and Q of *all* pairs are entries of two matrix products:

    P_ij = 4 (Σ y_i³y_j − Σ y_i y_j³) + ...        Q_ij = Σ y_i⁴ + Σ y_j⁴ − 6 Σ y_i²y_j² + ...

So a block that is nearly there is not turned pair by pair: all its angles ¼·atan2(P, Q) are taken at once, as one
rotation, and kept if that really gains. What the pairs feel of each other shows in how P changed after the last such step;
the next takes it into account, by the update of Broyden, Fletcher, Goldfarb and Shanno. A block that is far away is turned
in rounds, each pair exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from givens.numerics import parallel
from givens.numerics.tiles import tiled_sum
from givens.objectives.contrasts import Solution
from givens.schedules import tournament

# Beyond this angle (in radians) the pairs of a block feel each other too much to be turned at once.
TOGETHER = 0.35
MOST_TOGETHER = 50
# While the angles promise more than this share of Σ y⁴, moments in single precision tell enough to take the next ones.
ROUGH = 1e-5
# Columns of a group that a thread turns against another group, and the most groups.
GROUP, MOST_GROUPS = 8, 16


@dataclass(frozen=True)
class FourthMoments:
    """What one pass over Y tells: Σ y_i³y_j and, where κ needs it, Σ y_i y_j; the value, and the slope of every pair.

    Σ y_i²y_j² decides only how far to turn. It is None until somebody wants to, and `stale` once Y has turned, which near
    the end hardly changes it. `rough` moments were found in single precision.
    """

    third: np.ndarray
    second: np.ndarray
    kappa: float
    sign: int
    square: np.ndarray | None = None
    stale: bool = True
    rough: bool = False

    @classmethod
    def of(cls, Y: np.ndarray, kappa: float, sign: int) -> FourthMoments:
        """Of the rows of Y; `sign` is 1 where the criterion is maximised, −1 where it is minimised."""

        def products(tile: np.ndarray) -> np.ndarray:
            cubes = _cubes(tile)
            return np.array([cubes @ tile.T, tile @ tile.T]) if kappa else (cubes @ tile.T)[None]

        sums = tiled_sum(products, Y, copy=False)
        return cls(sums[0], sums[1] if kappa else np.zeros_like(sums[0]), kappa, sign)

    def value(self) -> float:
        """The criterion, with its sign reversed where it is maximised; the diagonal of Σ y_i³y_j is Σ y_i⁴."""
        power = np.diagonal(self.second)
        return -self.sign * float(np.sum(np.diagonal(self.third) - self.kappa * power**2))

    def slopes(self) -> np.ndarray:
        """∓4 (Σ y_i³ y_j − κ Σ y_i² Σ y_i y_j)."""
        return -4.0 * self.sign * (self.third - self.kappa * np.diagonal(self.second)[:, None] * self.second)

    def solve(self, Y: np.ndarray, enough: float) -> Solution:
        """Turn the rows of Y: all at once where that gains what the angles promise, else in rounds, on a copy."""
        Q, gain, turned, tried = self._together(Y, enough)
        if turned >= 0:
            return Q, gain, turned, tried
        Q, gain, turned, flops = in_rounds(Y.copy(), len(Y), self.kappa, self.sign)
        return Q, gain, turned, tried + flops

    def _together(self, Y: np.ndarray, enough: float) -> Solution:
        """All angles at once, again and again; −1 rotations if that is no use here."""
        size, rows = Y.shape
        moments, flops = self, 0.0
        if self.square is None or (self.stale and self.angles().promised > 0.5 * enough):
            moments = replace(self, square=_square(Y), stale=False)
            flops = rows * (size + 1.0 * size**2)
        Q = np.eye(size)
        fourths = float(np.trace(self.third))
        noise = 1e-13 * fourths
        total, rotated = 0.0, 0
        last: tuple[np.ndarray, np.ndarray] | None = None
        # Tile by tile the data pass through Q on their way into the moments: nothing is written before Q is final.
        for _ in range(MOST_TOGETHER):
            angles = moments.angles()
            promised = angles.promised
            if np.abs(angles.theta).max(initial=0.0) > TOGETHER:
                rotated = rotated or -1
                break
            if promised <= 0.5 * enough or promised == 0:
                break
            theta = angles.theta if last is None else angles.corrected(*last)
            turned = Q @ _cayley(theta)
            # No sum of fourth powers can leave the range of single precision if the sum of all of them is well inside.
            after = moments.turned(Y, turned, rough=promised > ROUGH * fourths and 1e-20 < fourths < 1e30)
            flops += rows * (2.0 * size + 4.0 * size**2)
            gain = moments.value() - after.value()
            if promised <= noise:
                # Too small for a difference of values to show; the angles' own prediction is better.
                gain = promised if gain > -noise else 0.0
            if gain < 0.5 * promised:
                rotated = rotated or -1
                break
            last = theta, angles.P
            Q, moments = turned, after
            total += gain
            rotated += int(np.count_nonzero(theta))
        return Q, total, rotated, flops

    def turned(self, Y: np.ndarray, Q: np.ndarray, rough: bool = False) -> FourthMoments:
        """Of the rows of QᵀY, but for Σ y_i²y_j²."""
        kind = np.float32 if rough else np.float64
        Qt = np.ascontiguousarray(Q.T, dtype=kind)

        def products(tile: np.ndarray) -> np.ndarray:
            tile = Qt @ tile.astype(kind, copy=False)
            third = _cubes(tile) @ tile.T
            # Every tile is added up in double precision.
            return np.array([third, tile @ tile.T] if self.kappa else [third], dtype=np.float64)

        sums = tiled_sum(products, Y, copy=False)
        second = sums[1] if self.kappa else self.second
        return replace(self, third=sums[0], second=second, stale=True, rough=rough)

    def angles(self) -> Angles:
        """The best angle of every pair i < j by itself."""
        assert self.square is not None
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
        P, Q = np.triu(self.sign * P, 1), np.triu(self.sign * Q, 1)
        # Below rounding, no angle.
        noise = 4 * np.finfo(float).eps * (fourth[:, None] + fourth[None])
        P[np.abs(P) <= np.minimum(noise, np.abs(Q))] = 0
        radius = np.hypot(P, Q)
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = np.where(Q > 0, P * (P / (radius + Q)), radius - Q) / 4
        theta = np.where((Q < 0) & (radius - Q <= 16 * noise), 0.0, np.arctan2(P, Q) / 4)
        return Angles(P, Q, theta, float(gain[theta != 0].sum()))


@dataclass(frozen=True)
class Angles:
    """P, Q and θ of every pair i < j, and what all angles gain together if no pair feels another."""

    P: np.ndarray
    Q: np.ndarray
    theta: np.ndarray
    promised: float

    def corrected(self, step: np.ndarray, before: np.ndarray) -> np.ndarray:
        """θ, with what the last step, which found P as it was `before`, tells of how pairs feel each other."""
        change = before - self.P
        curvature = float(np.sum(step * change))
        if curvature <= 0:
            return self.theta
        along = float(np.sum(step * self.P)) / curvature
        theta = np.arctan2(self.P - along * change, np.where(self.theta == 0, np.inf, self.Q)) / 4
        theta += step * (along - float(np.sum(change * theta)) / curvature)
        # To second order this is half of what the slopes promise; a promise that disagrees is not to be trusted.
        expected = 0.5 * float(np.sum(theta * self.P))
        return theta if 0.5 * self.promised < expected < 2.0 * self.promised else self.theta


def in_rounds(Y: np.ndarray, active: int, kappa: float, sign: int) -> Solution:
    """Turn every pair of rows of Y exactly, in place."""
    from givens.kernels import quartic

    Qt = np.eye(len(Y))
    total, rotated, flops = 0.0, 0, 0.0
    for shares in _shares(len(Y), active):
        # Shares of a round have no row in common, so each thread may turn its own at once.
        found = parallel.each(
            lambda pairs: quartic.turn_pairs(Y, Qt, pairs, active, kappa, float(sign)), shares
        )
        for pairs, (_, turned) in zip(shares, found):
            rotated += turned
            flops += pair_flops(pairs, active) * Y.shape[1] + 6.0 * turned * (Y.shape[1] + len(Y))
        # One sum over the round: the order must not depend on how it was shared out.
        total += float(np.concatenate([gains for gains, _ in found]).sum())
    return Qt.T.copy(), total, rotated, flops


def pair_flops(pairs: np.ndarray, active: int) -> float:
    """Flops per row of the data for solving pairs."""
    from givens.kernels.quartic import CROSSING, INSIDE

    both = int(np.sum(pairs[:, 1] < active))
    return INSIDE * both + CROSSING * (len(pairs) - both)


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


def _square(Y: np.ndarray) -> np.ndarray:
    def product(tile: np.ndarray) -> np.ndarray:
        squares = tile * tile
        return squares @ squares.T

    return tiled_sum(product, Y, copy=False)


def _cubes(tile: np.ndarray) -> np.ndarray:
    # Not `tile**3`: a power costs fifty times a product.
    cubes = tile * tile
    cubes *= tile
    return cubes


def _cayley(theta: np.ndarray) -> np.ndarray:
    """One rotation that turns every pair i < j by its angle, to second order; exactly, where only one angle is not 0."""
    # Not the matrix exponential, which says the same to that order: importing SciPy's takes as long as all the rest.
    half = np.tan(theta / 2)
    skew = half.T - half
    identity = np.eye(len(theta))
    return np.linalg.solve(identity - skew, identity + skew)
