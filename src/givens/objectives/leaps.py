"""Leaps: all columns turned at once towards sparse components, before the rotations of pairs begin.

The sparse PCA objective F(U) = Σ φ(AU) is convex in U, so at any matrix V, orthogonal or not,

    F(U) ≥ F(V) + 2⟨E, U − V⟩,   E = AᵀS(AV),

and the orthogonal U that raises the right-hand side most is the polar factor of E. With V the last U this is a step of the
Generalized Power Method, which creeps. Four things make it leap: V lies beyond the last U, the further the more steps agreed
(Nesterov's extrapolation, and a share of the last step itself); the first steps see the strongest features only, which hold most
of the sum; S is used through its non-zeros where they are few; and E is worked out in single precision. The bound also says, at
no cost, what U is worth at least, over all features even where only some were seen, since no feature counts negatively.

Single precision and a rough polar factor (`givens.numerics.polar`) cost no accuracy: a step may start from any V and may lead
to any orthogonal U, whose worth the loop looks up in the precision of the data, and rotations of pairs take over where leaps
gain little: they are exact, and converge.

Extrapolation matters for more than speed: it carries entries across the threshold that the plain step leaves below for ever, so
that components which had died come back. A component with nothing above its level gets a random direction at right angles to
the living ones.
"""

from __future__ import annotations

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.polar import completed, rough_polar
from givens.numerics.scaling import power_of_two
from givens.numerics.tiles import GROUPS, tiles

FEW = 0.2  # share of non-zeros of S below which products through them are faster than matrix products
STEPS = 5  # of one leap; and of each share of the features in the first one, at most
SHARES = (0.5, 0.85)  # of what could be gained: so much the features hold that the first leap sees
SLOW = 0.005  # a step on some of the features that gains less than this share of the sum is their last one
BEYOND = 0.3  # V lies beyond U by this share of the step from the last V
LEAST = 1e-7  # a leap that gains less than this share of the sum is the last one


class PolarLeaps:
    """A run of leaps: features and matrices are those at its beginning.

    Attributes
    ----------
    reached : float
        What the sum is at least at U, but for the errors of single precision.
    flops : float
        Of the last leap.
    again : bool
        Whether another leap is worth its while.
    """

    def __init__(self, Y: np.ndarray, levels: np.ndarray, l0: bool, shares: tuple[float, ...]) -> None:
        self.features = Features(Y, levels, l0)
        self.shares = shares
        self.Ut = np.eye(len(Y))
        self.V = self.before = self.Ut[: len(levels)]
        # The same every time, so that a run that goes on from a checkpoint ends in the same bits.
        self.fresh = np.random.default_rng(0).standard_normal(self.V.shape, dtype=np.float32)
        self.agreed = 0
        self.reached = -np.inf
        self.preparing = 3.0 * Y.size + 3.0 * len(self.features.B)
        self.flops = 0.0
        self.again = True

    def go(self) -> np.ndarray | None:
        """Leap, and return the rotation from the last U to the new one; None if nothing exceeds a level or is gained."""
        last, before = self.Ut, self.reached
        m, n = self.V.shape
        self.flops = self.preparing + 2.0 * n**3 + flop_counts.determinant(n)
        self.preparing = 0.0
        coarse, self.shares = self.shares, ()
        best = None
        for share in coarse or (1.0,):
            self.features.take(share)
            best = self._steps(SLOW if coarse else -np.inf)
        if best is None and coarse:
            # None of the features that were taken exceeds its level: another may.
            self.features.take(1.0)
            best = self._steps(SLOW)
        if best is None:
            return None
        U, V, value, E = best
        self.Ut = completed(U)
        self.flops += flop_counts.qr(n, m) + 3.0 * m * m * n + 6.0 * m * n
        self.reached = value + 2.0 * float(np.vdot(E, self.Ut[:m] - V))
        if np.linalg.slogdet(self.Ut)[0] < 0:
            self.Ut[-1] *= -1.0  # the sum does not see the sign of a column
        self.again = bool(coarse) or self.reached - before > LEAST * self.reached
        return last @ self.Ut.T

    def _steps(self, slow: float) -> tuple[np.ndarray, np.ndarray, float, np.ndarray] | None:
        """Steps on the features that were taken, until one is slow: the best U, its V, F(V), E. None if no level is exceeded."""
        m, n = self.V.shape
        bound = most = -np.inf
        for _ in range(STEPS):
            V = self.V
            value, E, flops = self.features.linearise(V)
            if value == 0.0:
                return None
            if slow > 0.0:
                # Other directions in every step of the first leap: extrapolated, they are long, and find something to live on.
                self.fresh = np.roll(self.fresh, 1, axis=1)
            U, spent = rough_polar(E, self.fresh)
            self.flops += flops + spent + 9.0 * m * n
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
    """The features that can count, the strongest first, one per contiguous row, in single precision.

    All in units of a power of two, so that nothing overflows or underflows.
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
        parallel.each(lambda t: linear.lay(Y[:, t], rank[t], 1.0 / self.unit, self.B), cut)
        # No rotation gets more than this out of a feature.
        self.most = np.cumsum((norms[: self.number] - least) ** 2)
        self.density = float(np.mean(np.abs(Y[: len(levels), ::64]) > levels[:, None]))

    def take(self, share: float) -> None:
        """Work on the strongest features that hold a share of what could be had."""
        if share < 1.0 and len(self.most):
            self.number = int(np.searchsorted(self.most, share * self.most[-1])) + 1
        else:
            self.number = len(self.B)

    def linearise(self, V: np.ndarray) -> tuple[float, np.ndarray, float]:
        """F(V) and E, of which V holds the rows; and the flops."""
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
        flops = (
            2.0 * n * entries
            + (2.0 * n + 3.0) * (nonzeros if sparse else entries)
            + m * n * float(len(found))
        )
        return square * sum(value for value, _, _ in found), E, flops


def _pieces(features: int, n: int) -> list[slice]:
    """Pieces for threads: of two tiles or more, since handing over a small one takes longer than its work."""
    return parallel.parts(
        features, min(GROUPS, features // (2 * _tiles(features, n)[0].stop) + 1) if features else 1
    )


def _tiles(features: int, n: int) -> list[slice]:
    """Numbers of single precision take half the room."""
    return tiles(n // 2, features)
