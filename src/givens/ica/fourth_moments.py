"""Moments up to the fourth, summed over a stream of samples, and the kurtosis of all rotations from them.

With the monomials m(x) = (1, x_a, x_a x_b for a ≤ b) of samples about an origin, the matrix Σ m mᵀ has every moment up to the
fourth. The mean and the whitening follow from it, and so do the fourth moments of white samples, T = E[z⊗z⊗z⊗z]. The sum of
fourth powers that `contrast="kurtosis"` maximises is then

    Σ_t Σ_j (Z U)_tj⁴ = N Σ_j T(u_j, u_j, u_j, u_j),

which takes as many operations as the tensor has entries, whatever the number of samples. As a function of the angle of one pair
of columns it is A + B cos 4θ + C sin 4θ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from givens.data.rows import unit_of
from givens.data.sums import TILE, Sums, too_large
from givens.ica.whitening import WhiteSpace
from givens.objectives.base import Blocks, Look, Objective, Plan, Rotations, Solved
from givens.objectives.contrasts import Contrast, pair_derivatives
from givens.rotations import rotate_blocks, turn

NOTHING = 1e-28  # relative to the scale; smaller gains are rounding errors of slopes
COLUMNS = 512  # samples whose monomials are computed at once


class MonomialSums(Sums):
    """Σ m mᵀ of the monomials up to degree 2 of the rows unit·x − origin."""

    def __init__(self, origin: np.ndarray, unit: float) -> None:
        size = monomials(len(origin))
        super().__init__((size, size))
        self.origin, self.unit = origin, unit

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        d = len(self.origin)
        x = np.ascontiguousarray((np.asarray(rows, dtype=np.float64) * self.unit - self.origin).T)
        total = np.zeros((monomials(d), monomials(d)))
        with np.errstate(over="ignore", invalid="ignore"):  # `central` reports overflow
            for start in range(0, x.shape[1], COLUMNS):
                m = self._monomials(x[:, start : start + COLUMNS])
                total += m @ m.T
        return (total,)

    @staticmethod
    def _monomials(x: np.ndarray) -> np.ndarray:
        d = len(x)
        m = np.empty((monomials(d), x.shape[1]))
        m[0], m[1 : d + 1] = 1.0, x
        place = d + 1
        for a in range(d):
            np.multiply(x[a], x[a:], out=m[place : place + d - a])
            place += d - a
        return m


def monomials(d: int) -> int:
    """The number of monomials of degree 0, 1 and 2 in d variables."""
    return 1 + d + d * (d + 1) // 2


class FourthMoments:
    """Central moments up to the fourth of a stream of rows, summed about the mean of the first rows.

    The sums have the same bits however the rows are divided into batches.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.ica.fourth_moments import FourthMoments
    >>> X = np.random.default_rng(0).laplace(size=(500, 3)) + 4.0
    >>> stream = FourthMoments()
    >>> for part in np.array_split(X, 7):
    ...     stream = stream.with_rows(part)
    >>> mean, covariance, fourth = stream.central()
    >>> C = X - X.mean(axis=0)
    >>> bool(np.allclose(fourth, np.einsum("ta,tb,tc,td->abcd", C, C, C, C) / 500))
    True
    """

    def __init__(self) -> None:
        self.head: list[np.ndarray] = []
        self.sums: MonomialSums | None = None

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return sum(map(len, self.head)) if self.sums is None else self.sums.count

    @property
    def unit(self) -> float:
        """The power of two by which rows are multiplied."""
        return self._all().unit

    def with_rows(self, rows: np.ndarray) -> FourthMoments:
        """A copy of this stream to which these rows are added."""
        other = FourthMoments()
        if self.sums is None:
            room = TILE - self.count
            other.head = [*self.head, np.array(rows[:room])]
            if other.count < TILE:
                return other
            other.sums, other.head, rows = other._from_head(), [], rows[room:]
        else:
            other.sums = self.sums.begin(0)
        other.sums.add(rows)
        return other

    def _from_head(self) -> MonomialSums:
        head = np.concatenate(self.head)
        unit = unit_of(head)
        sums = MonomialSums((np.asarray(head, dtype=float) * unit).mean(axis=0), unit)
        sums.add(head)
        return sums

    def _all(self) -> MonomialSums:
        return self._from_head() if self.sums is None else self.sums

    def central(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean, the covariance and E[x⊗x⊗x⊗x] about the mean, of rows multiplied by `unit`."""
        sums = self._all()
        d = len(sums.origin)
        M = sums.totals()[0] / sums.count
        if not np.isfinite(M).all():
            raise too_large(sums.unit, "rows", "fourth powers")
        pairs = np.empty((d, d), dtype=np.intp)
        a, b = np.triu_indices(d)
        pairs[a, b] = pairs[b, a] = np.arange(len(a)) + d + 1
        mean = M[0, 1 : d + 1]
        second = M[0, pairs]
        third = M[1 : d + 1][:, pairs]
        fourth = M[np.ix_(pairs.ravel(), pairs.ravel())].reshape(d, d, d, d)
        outer = np.multiply.outer(mean, mean)
        # E[Π (x − μ)] = m4 − Σ μ m3 + Σ μμ m2 − 3 μμμμ, summed over the 4 and the 6 ways to choose the indices of μ.
        lower = np.multiply.outer(mean, third)
        for axis in range(4):
            fourth = fourth - np.moveaxis(lower, 0, axis)
        products = np.multiply.outer(outer, second)
        for first in range(4):
            for other in range(first + 1, 4):
                fourth = fourth + np.moveaxis(products, (0, 1), (first, other))
        fourth = fourth - 3.0 * np.multiply.outer(outer, outer)
        return sums.origin + mean, second - outer, fourth


class TensorKurtosis(Objective):
    """−N Σ_j T(u_j, u_j, u_j, u_j) of a symmetric tensor T of order 4: minus the sum of fourth powers of N samples.

    Parameters
    ----------
    T : array, shape (n, n, n, n)
        Symmetric.
    samples : float, default=1.0
        N.
    """

    def __init__(self, T: np.ndarray, samples: float = 1.0) -> None:
        self.n = self.active = len(T)
        a, b = np.triu_indices(self.n)
        self.a, self.b = a, b
        # Each pair of indices is stored once; pairs off the diagonal count twice.
        self.T = np.ascontiguousarray(T.reshape(self.n**2, self.n**2)[np.ix_(a * self.n + b, a * self.n + b)])
        self.times = np.where(a == b, 1.0, 2.0)
        self.samples = float(samples)
        self.factor = -1.0
        self.scale = self.samples * float(np.abs(np.einsum("iiii->i", T)).sum()) or 1.0

    def plan(self) -> Plan:
        """Descent, and sweeps at the end."""
        return Plan(phases=("descent", "sweeps"))

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Start at the identity, the principal axes."""
        return np.eye(self.n)

    def state(self, U: np.ndarray) -> np.ndarray:
        """A copy of U, transposed."""
        return np.ascontiguousarray(U.T)

    def _moments(self, V: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T(w_i, w_i, w_i, v_j) and T(w_i, w_i, v_j, v_j), of the columns of W and V."""
        halves = self.T @ (W[self.a] * W[self.b] * self.times[:, None])
        H = np.empty((W.shape[1], self.n, self.n))
        H[:, self.a, self.b] = H[:, self.b, self.a] = halves.T
        along = np.einsum("iab,bi->ia", H, W)
        return along @ V, np.einsum("aj,iaj->ij", V, H @ V)

    def value(self, state: np.ndarray) -> float:
        """Evaluate f."""
        return self.look(state).value

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """The value and the derivatives of all pairs, from the tensor."""
        V = state.T if Q is None else state.T @ Q
        third, second = self._moments(V, V)
        M, S = -4.0 * self.samples * third, -12.0 * self.samples * second
        flops = 2.0 * self.n * (self.T.size + 2.0 * self.n**3)
        return Look(-self.samples * float(np.trace(third)), *pair_derivatives(M, S), flops)

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> Solved:
        """Solve the pairs of each block one after the other, in closed form."""
        rotations, gains, rotated, pairs = [], [], 0, 0
        for block in blocks:
            V, Q, total = state[block].T.copy(), np.eye(len(block)), 0.0
            for i in range(len(block)):
                for j in range(i + 1, len(block)):
                    theta, gain = self._best_angle(V[:, [i, j]])
                    pairs += 1
                    if gain > 0.0:
                        G = turn(theta)
                        V[:, [i, j]], Q[:, [i, j]] = V[:, [i, j]] @ G, Q[:, [i, j]] @ G
                        total += gain
                        rotated += 1
            rotations.append(Q)
            gains.append(total)
        found: Rotations = np.array(rotations) if isinstance(blocks, np.ndarray) else rotations
        return Solved(found, np.array(gains), rotated, 4.0 * pairs * self.T.size)

    def _best_angle(self, pair: np.ndarray) -> tuple[float, float]:
        """The angle that minimises −N (A + B cos 4θ + C sin 4θ), and its gain; zeros if the gain is a rounding error."""
        third, second = self._moments(pair, pair)
        B = 0.25 * float(third[0, 0] + third[1, 1] - 6.0 * second[0, 1])
        C = float(third[0, 1] - third[1, 0])
        size = float(np.hypot(B, C))
        # Where B is positive, size − B is computed as C²/(size + B), in which nothing cancels.
        gain = self.samples * (C * C / (size + B) if B > 0 else size - B)
        if gain <= NOTHING * self.scale:
            return 0.0, 0.0
        return 0.25 * float(np.arctan2(C, B)), gain

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate the columns of U."""
        return rotate_blocks(state, blocks, rotations)

    def data(self) -> list[np.ndarray | str]:
        """The tensor."""
        return [self.T, np.array(self.samples)]


class WhiteMoments:
    """White samples of which only the fourth moments are known.

    Parameters
    ----------
    space : WhiteSpace
    fourth : array, shape (features, features, features, features)
        Fourth moments about the mean, of rows divided by `space.unit`.
    samples : int
    """

    def __init__(self, space: WhiteSpace, fourth: np.ndarray, samples: int) -> None:
        self.shape = (samples, len(space.W))
        self.total = float(samples)
        T = fourth
        for _ in range(4):
            # Contracts the first index, which becomes the last: after four times, every index.
            T = np.tensordot(T, space.W, axes=(0, 1))
        self.T = T

    def objective(self, contrast: Contrast) -> TensorKurtosis:
        """The sum of fourth powers."""
        return TensorKurtosis(self.T, self.total)

    def tail_moments(self, U: np.ndarray) -> np.ndarray:
        """The mean fourth power of each column of ZU; and NaN for the means of log cosh, which are unknown."""
        fourth = np.einsum("abcd,aj,bj,cj,dj->j", self.T, U, U, U, U, optimize=True)
        return np.stack((fourth, np.full(len(fourth), np.nan)))
