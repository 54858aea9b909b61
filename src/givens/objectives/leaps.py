"""Leaps: all columns turned at once towards sparse components, before the rotations of pairs begin.

The sparse PCA objective F(U) = Σ φ(AU) is convex in U, so at any matrix V, orthogonal or not,

    F(U) ≥ F(V) + 2⟨E, U − V⟩,   E = AᵀS(AV),

and the orthogonal U that raises the right-hand side most is the polar factor of E. With V the last U this is a step of the
Generalized Power Method, which creeps. Three things make it leap: V lies beyond the last U, the further the more steps agreed
(Nesterov's extrapolation, V = U + k/(k+3)·(U − U_before)); the first steps see the strongest features only, which hold most of
the sum; and S is used through its non-zeros. The bound also says, at no cost, what U is worth at least, over all features even
where only some were seen, since no feature counts negatively.

Extrapolation matters for more than speed: it carries entries across the threshold that the plain step leaves below for ever, so
that components which had died come back. Rotations of pairs take over where leaps gain little: they are exact, and converge.
Where much of Y exceeds the threshold, products through non-zeros save nothing, and rotations are faster from the beginning.
"""

from __future__ import annotations

import numpy as np

from givens import lapack, parallel
from givens.objectives.tiles import GROUPS, tiles

FEW = 0.15  # share of non-zeros of S below which products through them are faster than matrix products
STEPS = 5  # of one leap
SHARES = (0.5, 0.85)  # of what could be gained: so much the features hold that the first leaps see
COARSE = (
    0.3,
    0.7,
)  # the same where leaps are of no use, and rotations begin with the strongest features instead
LEAST = 1e-6  # a leap that gains less than this share of the sum is the last one


class Leaps:
    """A run of leaps: features and matrices are those at its beginning.

    Attributes
    ----------
    reached : float
        What the sum is at least at U.
    flops : float
        Of the last leap.
    again : bool
        Whether another leap is worth its while.
    """

    def __init__(self, Y: np.ndarray, levels: np.ndarray, l0: bool, shares: tuple[float, ...]) -> None:
        self.features = Features(Y, levels, l0)
        self.shares = list(shares)
        self.Ut = np.eye(len(Y))
        self.V = self.before = self.Ut[: len(levels)]
        self.agreed = 0
        self.reached = -np.inf
        self.preparing = 2.0 * Y.size + 3.0 * len(self.features.B)
        self.flops = 0.0
        self.again = True

    def go(self) -> np.ndarray | None:
        """Leap, and return the rotation from the last U to the new one; None if nothing exceeds a level or is gained."""
        m, n = self.V.shape
        last, Ut = self.Ut, None
        self.flops = self.preparing + 2.0 * n**3 + lapack.determinant(n)
        self.preparing = 0.0
        bound = reached = -np.inf
        self.features.take(self.shares[0] if self.shares else 1.0)
        for _ in range(STEPS):
            value, E, flops = self.features.linearise(self.V)
            self.flops += flops + lapack.svd(m, n) + 2.0 * m * m * n + 7.0 * m * n
            if value == 0.0:
                return None
            left, _, right = np.linalg.svd(E)
            U = left @ right[:m]
            previous, bound = bound, value + 2.0 * float(np.vdot(E, U - self.V))
            self.agreed = self.agreed + 1 if bound >= previous else 0
            self.V = U + self.agreed / (self.agreed + 3.0) * (U - self.before)
            self.before = U
            if bound > reached:
                reached, Ut = bound, np.concatenate((U, right[m:]))
        assert Ut is not None
        if np.linalg.slogdet(Ut)[0] < 0:
            Ut[-1] *= -1.0  # the sum does not see the sign of a column
        self.again = bool(self.shares) or reached - self.reached > LEAST * reached
        if self.shares:
            del self.shares[0]
        self.Ut, self.reached = Ut, reached
        return last @ Ut.T


class Features:
    """The features that can count, the strongest first, one per contiguous row."""

    def __init__(self, Y: np.ndarray, levels: np.ndarray, l0: bool) -> None:
        self.levels, self.l0 = levels, l0
        cut = _pieces(Y.shape[1], len(Y))
        norms = np.sqrt(
            np.concatenate(
                parallel.each(lambda t: np.einsum("ij,ij->j", Y[:, t], Y[:, t], dtype=np.float64), cut)
            )
        )
        least = float(levels.min())
        order = np.flatnonzero(norms > least)
        order = order[np.argsort(-norms[order], kind="stable")]
        self.B = np.empty((len(order), len(Y)))

        def copy(part: slice) -> None:
            self.B[part] = Y[:, order[part]].T

        parallel.each(copy, _pieces(len(order), len(Y)))
        # No rotation gets more than this out of a feature.
        self.most = np.cumsum((norms[order] - least) ** 2)
        self.density = float(np.mean(np.abs(Y[: len(levels), ::64]) > levels[:, None]))
        self.number = len(order)

    def take(self, share: float) -> None:
        """Work on the strongest features that hold a share of what could be had."""
        if share < 1.0 and len(self.most):
            self.number = int(np.searchsorted(self.most, share * self.most[-1])) + 1
        else:
            self.number = len(self.B)

    def strongest(self, share: float) -> np.ndarray:
        """The rows of A that hold a share of what could be had."""
        self.take(share)
        return self.B[: self.number]

    def linearise(self, V: np.ndarray) -> tuple[float, np.ndarray, float]:
        """F(V) and E, of which V holds the rows; and the flops."""
        from givens.kernels import linear, threshold

        sparse = self.density < FEW
        shape = V.shape

        def part(rows: slice) -> tuple[float, np.ndarray, int]:
            E = np.zeros(shape)
            total, nonzeros = 0.0, 0
            for tile in tiles(shape[1], rows.stop - rows.start):
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

        found = parallel.each(part, _pieces(self.number, shape[1]))
        E = found[0][1]
        for _, other, _ in found[1:]:
            E += other
        nonzeros = sum(count for _, _, count in found)
        entries = self.number * shape[0]
        self.density = nonzeros / max(entries, 1)
        flops = 2.0 * shape[1] * entries + (2.0 * shape[1] + 3.0) * (nonzeros if sparse else entries)
        flops += V.size * (len(found) - 1.0)
        return sum(value for value, _, _ in found), E, flops


def _pieces(features: int, n: int) -> list[slice]:
    """Pieces for threads: of two tiles or more, since handing over a small one takes longer than its work."""
    return parallel.parts(
        features, min(GROUPS, features // (2 * tiles(n, features)[0].stop) + 1) if features else 1
    )
