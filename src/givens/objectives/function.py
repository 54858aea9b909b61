"""Any function of an orthogonal matrix, given as a callable.

With its gradient E = ∂f/∂U the slopes of all pairs are EᵀU − UᵀE. Without it, slopes and curvatures are finite differences, from
two evaluations per pair, and from four more where all slopes are small.

A pair problem g(θ) = f(U·G(i, j, θ)) is periodic. It is interpolated by a sum of harmonics, whose global minimum is found
(`givens.searches`). If f is a polynomial of degree p in the entries of U, 2p+1 evaluations make this exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from numbers import Real
from threading import Lock
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.numerics.cayley import turned
from givens.numerics.scaling import EPS, power_of_two
from givens.objectives.base import Blocks, Look, NotFinite, Objective, Plan, Rotations, Solved
from givens.rotations import check_orthogonal, random_orthogonal, rotate_blocks, turn
from givens.searches import closed_forms as searches
from givens.searches.harmonics import Harmonics
from givens.support.arguments import whole

_INTERPOLATED = "angles of pairs by interpolation, which can miss a narrow minimum"
_CAPPED = (
    f"some pair problems have more than {searches.MAX_HARMONICS} harmonics, so their minima may not be global"
)
_COUNTING = Lock()  # several threads may call a function
# Steps at which the two errors of a central difference, of order h^p and eps/h, are equal, for p = 4 and 2.
_STEP, _SMALL_STEP = EPS**0.2, EPS ** (1 / 3)
# If all slopes are below this, relative to the scale, they are computed by the difference of order 4.
_SMALL = 1e-5
# A gradient that differs from a finite difference by more than this share is wrong.
_AGREE = 1e-4
# Steps from whose values the noise of f is estimated.
_SHORT = (1.5e-6, 2e-6, 2.5e-6, 3e-6, 4e-6)
# Relative to the values of f: a larger difference between two values for one matrix is no rounding error.
_REPEATS = 1e-8
# Angles at which f is evaluated before the run; with a gradient, only the first two.
PROBES = (0.0, 1.0, 2.0, 4.0)
_NEAR = 1e-3  # the share of these angles if f is infinite there
# Functions whose values are smaller or larger are divided by a power of two, their `factor`.
USUAL = 1e-100, 1e100


@dataclass
class FunctionState:
    """Uᵀ, the value of f if it is known, and the number of points with which the next search begins."""

    Ut: np.ndarray
    value: float | None = None
    points: int = 8


Jacobian = Callable[[np.ndarray], np.ndarray] | bool | None


def _minimum(harmonics: Harmonics, noise: float) -> tuple[float, float]:
    from givens.kernels.harmonics import minimum

    return minimum(harmonics.a, harmonics.b, noise)


@cache
def _slopes_of() -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, bool]]:
    from givens.kernels.cayley import slopes_of

    return slopes_of  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _probe_place(n: int) -> np.ndarray:
    """The rotation near which functions are evaluated before the run."""
    return random_orthogonal(n, np.random.default_rng(0), determinant=1)


@lru_cache(maxsize=8)
def _direction(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random angles of all pairs, a vector of norm 1, and the antisymmetric matrix of these angles."""
    angles = np.triu(np.random.default_rng(0).standard_normal((n, n)), 1)
    angles /= np.linalg.norm(angles)
    return angles, angles.T - angles


class Function(Objective):
    """A function f(U) -> float of an orthogonal matrix of order n.

    Parameters
    ----------
    f : callable
        Gets a copy of U, an n x n array, and returns a real number.
    n : int
        The order of U.
    degree : int, optional
        The degree of f, if it is a polynomial in the entries of U: every pair problem is then solved exactly by 2·degree+1
        evaluations. Without it, harmonics are added until they predict f at three further angles, up to 64. This can miss a
        minimum that is narrower than the angles are apart; the result's message says so, and if 64 are not enough.
    jac : callable or True, optional
        The matrix ∂f/∂U of partial derivatives, in Euclidean space: a function of U, or True if f returns the value and this
        matrix. `givens.autodiff` computes it for functions written in PyTorch, JAX or autograd.
    check_jac : bool, default=True
        Compare `jac` with a finite difference once, before the run.
    near : array, optional
        An orthogonal matrix where f is finite, if f is infinite for others. `minimize` takes the start.

    Attributes
    ----------
    evaluations : int
        Number of calls of f so far.

    Notes
    -----
    f must always return the same number for the same matrix. It may return infinity (a barrier), but not at the start: steps of
    descent stay where f is finite. Rotations of two columns, and so certificates, need a function that is finite everywhere.
    Before the run f is evaluated a few times near a fixed rotation, and where it is infinite there, at `near`. `minimize` calls
    it from several threads only if its argument `threads` is given. During a run BLAS uses one thread per call.

    Examples
    --------
    The rotation nearest to a matrix (orthogonal Procrustes):

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Function
    >>> M = np.random.default_rng(0).standard_normal((4, 4))
    >>> f = Function(lambda U: -np.sum(U * M), n=4, degree=1, jac=lambda U: -M)
    >>> result = minimize(f, determinant="both", random_state=0)
    >>> bool(np.isclose(-result.value, np.linalg.svd(M)[1].sum()))
    True
    """

    separable = False

    def __init__(
        self,
        f: Callable[[np.ndarray], Any],
        n: int,
        degree: int | None = None,
        jac: Jacobian = None,
        *,
        check_jac: bool = True,
        near: np.ndarray | None = None,
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of U, got {type(f).__name__}")
        self.f = f
        self.n = whole(n, "n", 1)
        self.active = self._columns()
        self.degree = None if degree is None else whole(degree, "degree", 0)
        if not (jac is None or isinstance(jac, bool) or callable(jac)):
            raise TypeError(f"jac must be a function of U, or True, got {type(jac).__name__}")
        self.jac = jac or None
        self.evaluations = 0
        # With a BLAS of one thread, as during the run: others would spin for a tenth of a second after these evaluations.
        with parallel.pool(parallel.width()):
            self._probe(check_jac, near)

    def _columns(self) -> int:
        """The number of columns of U."""
        return self.n

    def __call__(self, U: np.ndarray) -> float:
        """Evaluate f, and check what it returned."""
        value = self._evaluate(U)
        if self.jac is True:
            value = self._both(value)[0]
        return self._number(value)

    def _value(self, U: np.ndarray) -> float:
        value = self(U) / self.factor
        if value == math.inf:
            raise NotFinite(
                "f returned inf where two columns are rotated; searches of their angle need a function that is finite "
                "everywhere, descent along a gradient does not (jac=, phases='descent', certify=False)"
            )
        return value

    def _evaluate(self, U: np.ndarray) -> Any:
        with _COUNTING:
            self.evaluations += 1
        return self.f(U)

    def _both(self, returned: Any) -> tuple[Any, Any]:
        if isinstance(returned, tuple | list) and len(returned) == 2:
            return returned[0], returned[1]
        raise TypeError(
            f"with jac=True f must return the value and the gradient, but it returned {type(returned).__name__}"
        )

    def _number(self, value: Any) -> float:
        # Nearly every f returns a float: it is checked first.
        if not isinstance(value, float) and isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
            if value.dtype in (np.float32, np.float16):
                raise TypeError(
                    f"f must compute in double precision, but it returned a number of type {value.dtype}; convert its data to "
                    "float64"
                )
            value = value.item()
        if not isinstance(value, float | Real):
            kind = (
                f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            )
            raise TypeError(f"f must return a real number, but it returned {kind}")
        value = float(value)
        if math.isnan(value) or value == -math.inf:
            raise NotFinite(
                f"f must be finite, or inf where it is not defined, but it returned {value} for an orthogonal matrix"
            )
        return value

    def _probe(self, check_jac: bool, near: np.ndarray | None) -> None:
        """Set the scale of f from its values near a fixed matrix; for checkpoints, these values also identify f.

        Where f is infinite there, `near` and a small part of the angles replace the matrix and the angles.
        """
        place, size = self._place(), 1.0
        values, slopes = self._probed(place, size)
        if math.inf in values and near is not None:
            columns = self.active if self.active < self.n else None
            place, size = check_orthogonal(near, name="near", columns=columns), _NEAR
            if len(place) != self.n:
                raise ValueError(f"near is of order {len(place)}, but n = {self.n}")
            values, slopes = self._probed(place, size)
        if math.inf in values:
            where = "the rotation where it is first evaluated" if near is None else "the start"
            raise ValueError(f"f is infinite near {where}; give a start around which it is finite")
        largest = max(map(abs, values))
        if largest and not USUAL[0] < largest < USUAL[1]:
            # Squares of values and slopes would overflow or vanish.
            self.factor = power_of_two(largest)
            values = [value / self.factor for value in values]
            slopes = None if slopes is None else slopes / self.factor
        self.probes = np.array(values)
        self.scale = float(np.abs(self.probes).max()) or 1.0
        # An estimate of the rounding errors of f: smaller differences are ignored.
        self.noise = 32 * EPS * self.scale
        if self.degree is not None:
            self._check_degree(place, values[0], self.degree)
        if slopes is not None and check_jac and self.n > 1:
            self._compare(place, values[0], slopes)

    def _probed(self, place: np.ndarray, size: float) -> tuple[list[float], np.ndarray | None]:
        """Values of f near a place, by angles of this size, some of which may be infinite; and the slopes there, with `jac`."""
        if self.jac is not None:
            first, slopes, _ = self._with_gradient(place)
            second = self._with_gradient(self._turn(place, size * PROBES[1]))[0]
            return [first, second], slopes
        values = [self(self._turn(place, size * theta)) for theta in PROBES]
        again = self(self._turn(place, size * PROBES[0]))
        if math.inf not in values and not abs(again - values[0]) <= _REPEATS * max(map(abs, values)):
            raise ValueError(
                f"f must return the same number for the same matrix, but it returned {values[0]:.6g} and then {again:.6g}; "
                "if it draws random numbers, draw them once"
            )
        return values, None

    def _place(self) -> np.ndarray:
        """The matrix near which f is evaluated before the run."""
        return _probe_place(self.n)

    def _check_degree(self, U: np.ndarray, value: float, degree: int) -> None:
        """Compare f with a polynomial of this degree, along curves on which every entry of U is linear in (cos θ, sin θ)."""
        thetas = np.array(PROBES[1:])
        for first in range(
            1 + self.n % 2
        ):  # for odd n, one curve leaves out the last column, and the other one the first
            along = self._turned(U, first)
            claimed = searches.polynomial(along, degree, at_zero=value).harmonics
            error = float(np.abs(claimed(thetas) - [along(theta) for theta in thetas]).max())
            if error > 1e-8 * self.scale:
                raise ValueError(
                    f"f is not a polynomial of degree {degree} in U: it differs from every such polynomial by "
                    f"{error:.3g}, {error / self.scale:.1e} of its size; give its true degree, or none"
                )

    def _compare(self, U: np.ndarray, value: float, slopes: np.ndarray) -> None:
        """Compare the gradient with a finite difference, along one direction in which all columns rotate."""
        curve, expected = self._curve(U, slopes)

        def along(step: float) -> float:
            return self._value(curve(step))

        norm = float(np.linalg.norm(slopes)) / math.sqrt(2.0)  # every pair occurs twice
        # One more value is nearly always enough. If not, a noisy function needs a large step, and one with large higher
        # derivatives a small step.
        noise = self.noise
        for step in (1e-6, *_SHORT, 1e-4):
            ahead, back = along(step), value if step == 1e-6 else along(-step)
            width = step if step == 1e-6 else 2 * step
            if step in _SHORT:
                # The curvature hardly shows in so short a step: the rest is the noise of f.
                noise = max(noise, 2 * abs(ahead - 2 * value + back))
            difference = (ahead - back) / width
            slack = _AGREE * max(norm, abs(difference)) + noise / step
            if abs(difference - expected) <= slack:
                return
        raise ValueError(
            f"jac disagrees with f: along one direction the slope is {expected:.6g} by jac, and {difference:.6g} by a difference "
            "of values; give the matrix of the partial derivatives ∂f/∂U_ij, or check_jac=False if f has kinks or large "
            "rounding errors"
        )

    def _curve(self, U: np.ndarray, slopes: np.ndarray) -> tuple[Callable[[float], np.ndarray], float]:
        """A curve through U along which all columns rotate, as a function of its length, and the slope of f along it."""
        angles, skew = _direction(self.n)
        return lambda step: turned(U, skew, step), float(np.sum(angles * slopes))

    def _turned(self, start: np.ndarray, first: int = 0) -> Callable[[float], float]:
        """f along the curve on which columns (first, first + 1), (first + 2, first + 3), ... rotate by the same angle."""
        return lambda theta: self._value(self._turn(start, theta, first))

    def _turn(self, start: np.ndarray, theta: float, first: int = 0) -> np.ndarray:
        U = start.copy()
        x, y = start[:, first : self.n - 1 : 2], start[:, first + 1 :: 2]
        c, s = math.cos(theta), math.sin(theta)
        U[:, first : self.n - 1 : 2] = c * x + s * y
        U[:, first + 1 :: 2] = c * y - s * x
        return U

    def data(self) -> list[np.ndarray | str]:
        """Some values of f: functions that agree on them are taken to be the same."""
        return [self.probes, f"{self.degree} {self.factor}"]

    def state(self, U: np.ndarray) -> FunctionState:
        """U itself; f is evaluated when it is needed."""
        return FunctionState(np.ascontiguousarray(U.T))

    def value(self, state: FunctionState) -> float:
        """Evaluate f."""
        if state.value is None:
            state.value = self._value(state.Ut[: self.active].T.copy())
        return state.value

    def plan(self) -> Plan:
        """Descent, then sweeps, in case kinks of f end descent early; without `jac`, a certificate."""
        return Plan(phases=("descent", "sweeps"), certify=self.jac is None)

    def look(self, state: FunctionState, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value and slopes; without `jac`, curvatures too."""
        if self.jac is None and not slopes and Q is None:
            # Finite differences take two evaluations per pair, too many after every sweep.
            return Look(self.value(state))
        U = state.Ut.T.copy() if Q is None else state.Ut.T @ Q
        if self.jac is not None:
            value, first, E = self._with_gradient(U)
            return Look(value, first, None, 4.0 * self.n**3, gradient=E)
        value = self(U.copy()) / self.factor
        if value == math.inf:
            return Look(value, *np.zeros((2, self.n, self.n)))
        upper, bends = self._differences(U, value)
        return Look(value, upper - upper.T, bends + bends.T, 0.0)

    def _with_gradient(self, U: np.ndarray) -> tuple[float, np.ndarray, np.ndarray | None]:
        """The value, the slopes EᵀU − UᵀE, and the gradient E; slopes of 0 and no gradient where f is infinite."""
        if self.jac is True:
            value, E = self._both(self._evaluate(U.copy()))
            value = self._number(value) / self.factor
        else:
            value = self(U.copy()) / self.factor
            E = None if value == math.inf else self.jac(U.copy())  # type: ignore[operator, misc]
        if value == math.inf:
            return value, np.zeros(self._slopes_shape()), None
        E = self._real_matrix(E)
        if self.factor != 1.0:
            E /= self.factor
        if E.shape != U.shape:
            raise ValueError(f"jac must return a matrix of shape {U.shape}, but it returned shape {E.shape}")
        slopes, finite = self._slopes(E, U)
        if not finite:
            raise NotFinite("jac must be finite, but it returned NaN or infinity")
        return value, slopes, E

    def _slopes(self, E: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, bool]:
        """The slopes of all pairs for the gradient E at U, and whether they are finite."""
        return _slopes_of()(E, U)

    def _slopes_shape(self) -> tuple[int, int]:
        return self.n, self.n

    def _real_matrix(self, E: Any) -> np.ndarray:
        """What `jac` returned, as an array of real numbers."""
        try:
            # A copy: a function may return the same array every time. Nearly every jac returns an array of floats.
            if type(E) is np.ndarray and E.dtype == np.float64:
                return E.copy()
            if not np.iscomplexobj(E) and E is not None:
                return np.array(E, dtype=np.float64, order="C")
            kind = "complex numbers" if E is not None else "None"
        except (TypeError, ValueError):
            kind = type(E).__name__
        raise TypeError(
            f"jac must return a matrix of {self.n} x {self.active} real numbers, but it returned {kind}"
        )

    def _differences(self, U: np.ndarray, value: float) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvatures of all pairs i < j, i < active, by central differences."""
        slopes, bends = np.zeros((2, self.n, self.n))
        i, j = self._pairs()
        ahead, behind = self._beside(U, _SMALL_STEP)
        slopes[i, j] = (ahead - behind) / (2 * _SMALL_STEP)
        bends[i, j] = (ahead - 2 * value + behind) / _SMALL_STEP**2
        if np.abs(slopes).max(initial=0.0) <= _SMALL * self.scale:
            near, far = self._beside(U, _STEP), self._beside(U, 2 * _STEP)
            slopes[i, j] = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * _STEP)
            bends[i, j] = (near[0] - 2 * value + near[1]) / _STEP**2
        return slopes, bends

    def _beside(self, U: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
        """The values of f with each of these pairs rotated by the step, and by minus the step."""
        i, j = self._pairs()
        c, s = math.cos(step), math.sin(step)

        def at(turned: tuple[int, int, np.ndarray, np.ndarray]) -> float:
            V = U[:, : self.active].copy()
            V[:, turned[0]] = turned[2]
            if turned[1] < self.active:
                V[:, turned[1]] = turned[3]
            return self._value(V)

        values = []
        for sign in (s, -s):
            first = c * U[:, i] + sign * U[:, j]
            second = c * U[:, j] - sign * U[:, i]
            values.append(np.array(parallel.each(at, zip(i.tolist(), j.tolist(), first.T, second.T))))
        return values[0], values[1]

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        i, j = np.triu_indices(self.n, 1)
        return i[i < self.active], j[i < self.active]

    def solve(self, state: FunctionState, blocks: Blocks, min_gain: float = 0.0) -> Solved:
        """Find the best angle of every pair of every block, one after the other."""
        rotations, gains, rotated, resolved, points, error = [], [], 0, True, [], 0.0
        for block in blocks:
            Q, gain, turned, all_resolved, most, off = self._solve_block(state, block)
            error = max(error, off)
            rotations.append(Q)
            points.append(most)
            gains.append(gain)
            rotated += turned
            resolved &= all_resolved
        return Solved(
            np.array(rotations) if isinstance(blocks, np.ndarray) else rotations,
            np.array(gains),
            rotated,
            0.0,
            points,
            note=_CAPPED if not resolved else _INTERPOLATED if self.degree is None else "",
            error=error,
        )

    def _solve_block(
        self, state: FunctionState, block: np.ndarray
    ) -> tuple[np.ndarray, float, int, bool, int, float]:
        size = len(block)
        Vt = state.Ut.copy() if size > 2 else state.Ut
        Q = np.eye(size)
        value, total, rotated, resolved, points = self.value(state), 0.0, 0, True, state.points
        error = 0.0
        for a in range(np.searchsorted(block, self.active)):
            for b in range(a + 1, size):
                found, points = self._search(Vt, (int(block[a]), int(block[b])), value, points)
                resolved &= found.resolved
                error = max(error, found.error)
                if not self._worth(found):
                    continue
                G = turn(found.theta)
                if size > 2:
                    Vt[block[[a, b]]] = G.T @ Vt[block[[a, b]]]
                Q[:, [a, b]] = Q[:, [a, b]] @ G
                value -= found.gain
                total += found.gain
                rotated += 1
        return Q, total, rotated, resolved, points, error

    def _search(
        self, Vt: np.ndarray, pair: tuple[int, int], value: float, points: int
    ) -> tuple[searches.Search, int]:
        """The best angle of a pair, and the number of points with which the next search begins.

        This number affects the rounding errors of the next search. It is passed from pair to pair within a block, and to the
        state by `apply`, so that results do not depend on how threads share the blocks.
        """
        i, j = pair

        def g(theta: float) -> float:
            U = Vt[: self.active].T.copy()
            c, s = math.cos(theta), math.sin(theta)
            U[:, i] = c * Vt[i] + s * Vt[j]
            if j < self.active:
                U[:, j] = c * Vt[j] - s * Vt[i]
            return self._value(U)

        if self.degree is not None:
            found = searches.polynomial(g, self.degree, at_zero=value, noise=self.noise, minimum=_minimum)
            return found, points
        found = searches.periodic(g, points=points, at_zero=value, noise=self.noise, minimum=_minimum)
        return found, min(max(8, 4 * found.harmonics.order), 4 * searches.MAX_HARMONICS)

    def _worth(self, found: searches.Search) -> bool:
        """Whether the gain is more than rounding error.

        A large angle must gain more than the noise of f. A small angle, in the basin of θ = 0, is judged by the slope at 0, which
        is as accurate as the values: from differences of values, an angle would be known to the square root of eps only.
        """
        if found.gain <= 0:
            return False
        if found.gain > self.noise:
            return True
        order = max(found.harmonics.order, 1)
        slope = abs(float(found.harmonics(0.0, 1)))
        # A search that reached the limit of harmonics has tested its slope itself.
        small = abs(found.theta) < 1e-3 / order if found.resolved else abs(found.theta) < 1e-2
        return small and (slope > self.noise * order or not found.resolved)

    def apply(
        self, state: FunctionState, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate U, and evaluate f there."""
        turned = state.Ut.copy()
        rotate_blocks(turned, blocks, rotations)
        # If f is not finite, this raises before the state is changed.
        state.value, state.Ut = self._value(turned[: self.active].T.copy()), turned
        if payload:
            state.points = max(payload)
        return 0.0
