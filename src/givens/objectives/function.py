"""Any function of an orthogonal matrix, given as a callable.

A pair problem g(θ) = f(U·G(i, j, θ)) is periodic, so it is interpolated by harmonics and the sum minimised globally
(`givens.searches`). If f is a polynomial of degree p in the entries of U, 2p+1 evaluations make that exact.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from givens.objectives.base import Blocks, Objective, Rotations, Solved
from givens.rotations import rotate_blocks, turn
from givens.searches import closed_forms as searches
from givens.searches.harmonics import Harmonics
from givens.support.arguments import whole

EPS = float(np.finfo(np.float64).eps)
# The fourth-order central difference errs by h⁴ and by eps/h: this is where the two meet.
_STEP = EPS**0.2


@dataclass
class FunctionState:
    """U (stored transposed), f there, and how many points the last search needed."""

    Ut: np.ndarray
    value: float
    points: int = 8


def _minimum(harmonics: Harmonics, noise: float) -> tuple[float, float]:
    from givens.kernels.harmonics import minimum

    return minimum(harmonics.a, harmonics.b, noise)


class Function(Objective):
    """A function f(U) -> float of an orthogonal matrix of order n.

    Parameters
    ----------
    f : callable
        Gets an n x n array of its own, returns a real number.
    n : int
        The order of U.
    degree : int, optional
        f is a polynomial of this degree in the entries of U: every pair problem is then exact from 2·degree+1 evaluations.
        Without it, harmonics are added until nothing changes, up to 64; the result's message says if that was not enough.
    gradient : callable, optional
        The matrix ∂f/∂U of partial derivatives, as in Euclidean space. Makes the gradient norm cheap, and the schedule by
        gradient possible.

    Examples
    --------
    The rotation nearest to a matrix (orthogonal Procrustes):

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Function
    >>> M = np.random.default_rng(0).standard_normal((4, 4))
    >>> f = Function(lambda U: -np.sum(U * M), n=4, degree=1, gradient=lambda U: -M)
    >>> result = minimize(f, determinant="both", random_state=0)
    >>> bool(np.isclose(-result.value, np.linalg.svd(M)[1].sum()))
    True
    """

    separable = False

    def __init__(
        self,
        f: Callable[[np.ndarray], float],
        n: int,
        degree: int | None = None,
        gradient: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of U, got {type(f).__name__}")
        self.f = f
        self.n = self.active = whole(n, "n", 1)
        self.degree = None if degree is None else whole(degree, "degree", 0)
        self.euclidean = gradient
        self.dear = gradient is None
        self.probes = np.zeros(0)
        self.noise = 0.0
        self.capped = False

    def __call__(self, U: np.ndarray) -> float:
        """Evaluate f, or say what is wrong with what it returned."""
        value = self.f(U)
        # What nearly every f returns needs no closer look.
        if not isinstance(value, float) and isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
            value = value.item()
        if not isinstance(value, float | Real):
            kind = (
                f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            )
            raise TypeError(f"f must return a real number, but it returned {kind}")
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(
                f"f must be finite, but it returned {value} for an orthogonal U (‖U‖∞ = {np.abs(U).max():.3g})"
            )
        return value

    def prepare(self, start: np.ndarray) -> None:
        """Take the scale of f from its values around the start; they also tell this f from another one."""
        self.capped = False
        along = self._turned(start)
        values = [along(theta) for theta in (0.0, 1.0, 2.0, 4.0)]
        self.probes = np.array(values)
        self.scale = float(np.abs(self.probes).max()) or 1.0
        # What rounding in a well-written f may amount to: no difference below it is believed.
        self.noise = 32 * EPS * self.scale
        if self.degree is not None:
            # Every entry of U is linear in (cos θ, sin θ) along that curve too, so f has no harmonic above its degree.
            claimed = searches.polynomial(along, self.degree, at_zero=values[0]).harmonics
            error = float(np.abs(claimed(np.array([0.0, 1.0, 2.0, 4.0])) - self.probes).max())
            if error > 1e-8 * self.scale:
                raise ValueError(
                    f"f is not a polynomial of degree {self.degree} in U: it differs from every such polynomial by "
                    f"{error:.3g}, {error / self.scale:.1e} of its size; give its true degree, or none"
                )

    def _turned(self, start: np.ndarray) -> Callable[[float], float]:
        """f along the curve on which columns (0, 1), (2, 3), ... turn by the same angle."""

        def along(theta: float) -> float:
            U = start.copy()
            for i in range(0, self.n - 1, 2):
                U[:, i : i + 2] = U[:, i : i + 2] @ turn(theta)
            return self(U)

        return along

    def data(self) -> list[np.ndarray]:
        """The values around the start: two functions that agree on them are taken for one."""
        return [self.probes]

    def state(self, U: np.ndarray) -> FunctionState:
        """U itself, and f there."""
        return FunctionState(np.ascontiguousarray(U.T), self(U.copy()))

    def value(self, state: FunctionState) -> float:
        """Evaluate f."""
        return state.value

    def solve(self, state: FunctionState, blocks: Blocks) -> Solved:
        """Search over θ for every pair of every block, one after the other."""
        rotations, gains, rotated = [], [], 0
        for block in blocks:
            Q, gain, turned = self._solve_block(state, block)
            rotations.append(Q)
            gains.append(gain)
            rotated += turned
        return Solved(
            np.array(rotations) if isinstance(blocks, np.ndarray) else rotations,
            np.array(gains),
            rotated,
            0.0,
        )

    def _solve_block(self, state: FunctionState, block: np.ndarray) -> tuple[np.ndarray, float, int]:
        size = len(block)
        Vt = state.Ut.copy()
        Q = np.eye(size)
        value, total, rotated = state.value, 0.0, 0
        for a in range(size):
            for b in range(a + 1, size):
                found = self._search(Vt, (int(block[a]), int(block[b])), value, state)
                if not self._worth(found):
                    continue
                G = turn(found.theta)
                Vt[block[[a, b]]] = G.T @ Vt[block[[a, b]]]
                Q[:, [a, b]] = Q[:, [a, b]] @ G
                value -= found.gain
                total += found.gain
                rotated += 1
        return Q, total, rotated

    def _search(
        self, Vt: np.ndarray, pair: tuple[int, int], value: float, state: FunctionState
    ) -> searches.Search:
        i, j = pair

        def g(theta: float) -> float:
            U = Vt.T.copy()
            c, s = math.cos(theta), math.sin(theta)
            U[:, i] = c * Vt[i] + s * Vt[j]
            U[:, j] = c * Vt[j] - s * Vt[i]
            return self(U)

        if self.degree is not None:
            return searches.polynomial(g, self.degree, at_zero=value, noise=self.noise, minimum=_minimum)
        found = searches.periodic(g, points=state.points, at_zero=value, noise=self.noise, minimum=_minimum)
        # Only hints: they change how many evaluations the next search takes, and the message, not what is found.
        state.points = min(max(8, 4 * found.harmonics.order), 4 * searches.MAX_HARMONICS)
        self.capped |= not found.resolved
        return found

    def _worth(self, found: searches.Search) -> bool:
        """Whether the gain is more than rounding in f can feign.

        A far jump must gain more than the noise. A small turn inside the basin of θ = 0 is judged by the slope there, which
        is known as well as the values are: differences of values alone would tell only the root of that.
        """
        if found.gain <= 0:
            return False
        if found.gain > self.noise:
            return True
        order = max(found.harmonics.order, 1)
        slope = abs(float(found.harmonics(0.0, 1)))
        # A search that ran out of harmonics has judged its slope itself.
        small = abs(found.theta) < 1e-3 / order if found.resolved else abs(found.theta) < 1e-2
        return small and (slope > self.noise * order or not found.resolved)

    def apply(self, state: FunctionState, blocks: Blocks, rotations: Rotations) -> float:
        """Rotate U, and evaluate f there."""
        rotate_blocks(state.Ut, blocks, rotations)
        state.value = self(state.Ut.T.copy())
        return 0.0

    def gradient(self, state: FunctionState) -> np.ndarray:
        """EᵀU − UᵀE from the Euclidean gradient E, or by central differences, four evaluations a pair."""
        if self.euclidean is not None:
            U = state.Ut.T.copy()
            E = np.asarray(self.euclidean(U), dtype=np.float64)
            if E.shape != U.shape:
                raise ValueError(
                    f"gradient must return a matrix of shape {U.shape}, but it returned shape {E.shape}"
                )
            if not np.isfinite(E).all():
                raise ValueError("gradient must be finite, but it returned NaN or infinity")
            product = E.T @ U
            return product - product.T
        slopes = np.zeros((self.n, self.n))
        for i in range(self.n):
            for j in range(i + 1, self.n):
                slopes[i, j] = self._difference(state.Ut, i, j)
        return slopes

    def _difference(self, Ut: np.ndarray, i: int, j: int) -> float:
        values = []
        for step in (-2, -1, 1, 2):
            U = Ut.T.copy()
            U[:, [i, j]] = U[:, [i, j]] @ turn(step * _STEP)
            values.append(self(U))
        return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * _STEP)

    def fingerprint(self) -> str:
        """Identify the function by its values around the start."""
        return hashlib.sha256(f"{super().fingerprint()} {self.degree}".encode()).hexdigest()

    def notes(self, state: FunctionState) -> str:
        """Say if a search ran out of harmonics."""
        if not self.capped:
            return ""
        return f"some pair problems have more than {searches.MAX_HARMONICS} harmonics, so their minima may not be global"
