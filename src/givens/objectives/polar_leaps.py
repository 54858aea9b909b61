"""Leaps of sparse PCA: rotations of all columns at once, before the rotations of pairs begin.

The sparse PCA objective F(U) = Σ φ(AU), which is maximised, is convex in U, so for any matrix V, orthogonal or not,

    F(U) ≥ F(V) + 2⟨E, U − V⟩,   E = AᵀS(AV),

and the orthogonal U that maximises the right-hand side is the polar factor of E. If V is the last U, this is a step of the
Generalized Power Method, which is slow. Four things make it faster: V is extrapolated beyond the last U (by Nesterov's method,
and by a share of the last step); the first steps use only the strongest features, which hold most of the sum; products with S
use its non-zeros where they are few; and E is computed in single precision. The right-hand side is also a lower bound of F(U),
at no cost, and of the sum over all features if only some are used, since no feature contributes a negative term.

Single precision and an approximate polar factor (`givens.numerics.polar`) cost no accuracy: V may be any matrix and U any
orthogonal one, the loop evaluates F(U) in the precision of the data, and where leaps gain little, rotations of pairs take over
and converge.

Extrapolation also lifts entries above the threshold that plain steps never reach, so that components that had become zero come
back. A component without any entry above its level gets a random direction, orthogonal to the other components.
"""

from __future__ import annotations

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.polar import completed, rough_polar
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import GROUPS, tiles

FEW = 0.2  # share of non-zeros of S below which products through them are faster than matrix products
STEPS = 5  # maximum number of steps of a leap; in the first one, for each of its shares of the features
SHARES = (0.5, 0.85)  # shares of the largest possible sum that the features of the first leap hold
SLOW = 0.005  # steps on some of the features end when one gains less than this share of the sum
BEYOND = 0.3  # V is extrapolated beyond U by this share of the step from the last V


class PolarLeaps:
    """A series of leaps; features and matrices refer to the columns at its beginning.

    Attributes
    ----------
    reached : float
        A lower bound of the sum at U, up to the errors of single precision.
    """

    def __init__(self, Y: np.ndarray, levels: np.ndarray, l0: bool, shares: tuple[float, ...]) -> None:
        self.features = Features(Y, levels, l0)
        self.shares = shares
        self.Ut = np.eye(len(Y))
        self.V = self.before = self.Ut[: len(levels)]
        # A fixed seed, so that a resumed run ends in the same bits.
        self.fresh = np.random.default_rng(0).standard_normal(self.V.shape, dtype=np.float32)
        self.agreed = 0
        self.reached = -np.inf
        flop_counts.count(3.0 * Y.size + 3.0 * len(self.features.B))

    def go(self) -> np.ndarray | None:
        """Make a leap: the rotation from the last U to the new one; None if no entry exceeds its level."""
        last = self.Ut
        m, n = self.V.shape
        flop_counts.count(2.0 * n**3 + flop_counts.determinant(n))
        coarse, self.shares = self.shares, ()
        best = None
        for share in coarse or (1.0,):
            self.features.select(share)
            best = self._steps(SLOW if coarse else -np.inf)
        if best is None and coarse:
            # None of the selected features exceeds its level, but others may.
            self.features.select(1.0)
            best = self._steps(SLOW)
        if best is None:
            return None
        U, V, value, E = best
        self.Ut = completed(U)
        flop_counts.count(flop_counts.qr(n, m) + 3.0 * m * m * n + 6.0 * m * n)
        self.reached = value + 2.0 * float(np.vdot(E, self.Ut[:m] - V))
        if np.linalg.slogdet(self.Ut)[0] < 0:
            self.Ut[-1] *= -1.0  # the sum does not depend on the sign of a column
        return last @ self.Ut.T

    def _steps(self, slow: float) -> tuple[np.ndarray, np.ndarray, float, np.ndarray] | None:
        """Make steps on the selected features until one is slow: the best U, its V, F(V), E; None if no level is exceeded."""
        m, n = self.V.shape
        bound = most = -np.inf
        for _ in range(STEPS):
            V = self.V
            value, E = self.features.linearise(V)
            if value == 0.0:
                return None
            if slow > 0.0:
                # Zero components get other directions in every step of the first leap: extrapolated, they may exceed a level.
                self.fresh = np.roll(self.fresh, 1, axis=1)
            U = rough_polar(E, self.fresh)
            flop_counts.count(9.0 * m * n)
            step = U - V
            previous, bound = bound, value + 2.0 * float(np.vdot(E, step))
            self.agreed = self.agreed + 1 if bound >= previous else 0
            self.V = U + BEYOND * step + self.agreed / (self.agreed + 3.0) * (U - self.before)
            self.before = U
            if bound > most:
                most, best = bound, (U, V, value, E)
            if bound - previous < slow * bound:
                break
        return best


class Features:
    """The features that can exceed a level, the strongest first, one per contiguous row, in single precision.

    They are divided by a power of two, so that nothing overflows or underflows.
    """

    def __init__(self, Y: np.ndarray, levels: np.ndarray, l0: bool) -> None:
        from givens.kernels import linear

        self.l0 = l0
        cut = _pieces(Y.shape[1], len(Y))
        norms = np.sqrt(
            np.concatenate(
                parallel.each(lambda t: np.einsum("ij,ij->j", Y[:, t], Y[:, t], dtype=np.float64), cut)
            )
        )
        least = float(levels.min())
        order = np.argsort(-norms)
        self.number = int(np.count_nonzero(norms > least))
        norms, rank = norms[order], np.empty_like(order)
        rank[order] = np.arange(len(order))
        self.unit = power_of_two(norms[0]) if self.number else 1.0
        self.levels = (levels / self.unit).astype(np.float32)
        self.B = np.empty((self.number, len(Y)), dtype=np.float32)
        parallel.each(lambda t: linear.lay_out(Y[:, t], rank[t], 1.0 / self.unit, self.B), cut)
        # Cumulated upper bounds of what features contribute at any U.
        self.most = np.cumsum((norms[: self.number] - least) ** 2)
        self.density = float(np.mean(np.abs(Y[: len(levels), ::64]) > levels[:, None]))

    def select(self, share: float) -> None:
        """Select the strongest features, which hold this share of the largest possible sum."""
        if share < 1.0 and len(self.most):
            self.number = int(np.searchsorted(self.most, share * self.most[-1])) + 1
        else:
            self.number = len(self.B)

    def linearise(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """F(V) and E; V and E are stored transposed, with a row for each component."""
        from givens.kernels import linear, threshold

        sparse = self.density < FEW
        V = V.astype(np.float32)
        m, n = V.shape

        def part(rows: slice) -> tuple[float, np.ndarray, int]:
            E = np.zeros((m, n), dtype=np.float32)
            total, nonzeros = 0.0, 0
            for tile in _tiles(rows.stop - rows.start, n):
                B = self.B[rows.start + tile.start : rows.start + tile.stop]
                T = V @ B.T
                if sparse:
                    value, count = linear.linearise(T, self.levels, self.l0, B, E)
                else:
                    value, count = threshold.shrink(T, self.levels, self.l0, T)
                    E += T @ B
                total += value
                nonzeros += count
            return total, E, nonzeros

        found = parallel.each(part, _pieces(self.number, n))
        E = found[0][1].astype(np.float64)
        for _, other, _ in found[1:]:
            E += other
        square = self.unit**2
        E *= square
        nonzeros = sum(count for _, _, count in found)
        entries = self.number * m
        self.density = nonzeros / max(entries, 1)
        flop_counts.count(
            2.0 * n * entries + (2.0 * n + 3.0) * (nonzeros if sparse else entries) + m * n * len(found)
        )
        return square * sum(value for value, _, _ in found), E


def _pieces(features: int, n: int) -> list[slice]:
    """Pieces for threads, of two tiles or more: passing a smaller one to a thread takes longer than its work."""
    return parallel.parts(
        features, min(GROUPS, features // (2 * _tiles(features, n)[0].stop) + 1) if features else 1
    )


def _tiles(features: int, n: int) -> list[slice]:
    """Tiles of twice the usual size, since single precision takes half the memory."""
    return tiles(n // 2, features)
