"""`check_objective`: find the errors of a new objective.

The parts of an objective must agree: the value, its slopes and curvatures, the state that rotates, the pair problem and its gain.
Each check compares one of them with an independent computation, returns a sentence about it, or raises `Wrong` with one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.numerics.cayley import turned
from givens.objectives.angle_derivatives import few_slopes_of_pairs
from givens.objectives.base import Blocks, Look, Objective, PairSolutions
from givens.objectives.function import Function
from givens.rotations import orthogonality, random_orthogonal, rotate, rotate_blocks, turn
from givens.schedules import Shape, all_pairs, as_schedule, disjoint_runs
from givens.solve.point import Stiefel
from givens.solve.race import phases_of
from givens.solve.run import checked_look
from givens.solve.widened_sweeps import widened_sweep
from givens.support.arguments import whole

MAX_SCALE = 1e6
"""Times the values of f: relative to a larger scale, an error as large as f itself would be within tolerances."""


class Wrong(Exception):
    """What a check found to be wrong."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: its name, whether it passed, and what was compared, with the error."""

    name: str
    passed: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'WRONG '} {self.name}: {self.detail}"


@dataclass(frozen=True)
class ObjectiveReport:
    """All findings of `check_objective`; true if every check passed."""

    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))

    __repr__ = __str__


def check_objective(
    objective: Objective, *, pairs: int = 10, grid: int = 720, tolerance: float = 1e-6, random_state: int = 0
) -> ObjectiveReport:
    """Compare the parts of an objective with brute force, at a random U.

    Parameters
    ----------
    objective : Objective
    pairs : int, default=10
        Number of random pairs to check.
    grid : int, default=720
        Number of angles at which f is compared with each pair's solution.
    tolerance : float, default=1e-6
        Largest error that is accepted, relative to the objective's scale; for a state in single precision, that of its rounding.
    random_state : int, default=0
        Seed of U and of the pairs.

    Returns
    -------
    ObjectiveReport
        Prints as one line per check, and is true if all passed. If `shape`, `active`, `scale`, `factor` or `separable` is missing
        or no number that it may be, the report says so, and has no other check.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import check_objective
    >>> from givens.objectives import Columns
    >>> A = np.random.default_rng(0).standard_normal((20, 4))
    >>> print(check_objective(Columns(A, "varimax")))
    ok     attributes: ...
    ok     method: ...
    ok     scale: ...
    ok     value: ...
    ok     slopes: ...
    ok     curvatures: ...
    ok     second derivatives: ...
    ok     turned look: ...
    ok     gain: ...
    ok     optimum: ...
    ok     separable: ...
    ok     gains of all pairs: ...
    ok     blocks: ...
    ok     state: ...
    ok     few columns: ...
    """
    if not isinstance(objective, Objective):
        hint = ": wrap it in objectives.Function(f, n)" if callable(objective) else ""
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}{hint}")
    if isinstance(objective, Function) and not objective.square:
        raise TypeError(
            "check_objective rotates two columns of a square U, which functions of n x m matrices do not have; their jac is "
            "compared with differences of values when a Function is made"
        )
    findings = [_finding("attributes", lambda: _attributes(objective))]
    if not findings[0].passed:
        return ObjectiveReport(tuple(findings))
    check = _Check(objective, np.random.default_rng(random_state), pairs, grid, tolerance)
    # Its public methods are the checks, in their order.
    for name in vars(_Check):
        if not name.startswith("_"):
            findings.append(_finding(name.replace("_", " "), getattr(check, name)))
    return ObjectiveReport(tuple(findings))


def _finding(name: str, check: Callable[[], str]) -> Finding:
    """The outcome of a check; an error in the user's code is a finding, too."""
    try:
        with parallel.interrupts():
            return Finding(name, True, check())
    except Wrong as wrong:
        return Finding(name, False, str(wrong))
    except Exception as error:
        return Finding(name, False, f"raised {type(error).__name__}: {error}")


def _attributes(objective: Objective) -> str:
    """The attributes without which no other check is possible."""
    for name in ("shape", "active", "scale", "factor", "separable"):
        if not hasattr(objective, name):
            raise Wrong(f"{name} is missing; set it in __init__")
    if not isinstance(objective.shape, tuple) or len(objective.shape) != 2:
        raise Wrong(f"shape must be that of U, a pair of numbers, got {objective.shape!r}")
    n = whole(objective.shape[0], "n", 1)
    active = whole(objective.active, "active", 1, n, "the order n")
    scale, factor = objective.scale, objective.factor
    if not (isinstance(scale, Real) and np.isfinite(scale) and scale > 0):
        raise Wrong(f"scale must be a positive and finite number, got {scale!r}")
    # It may be 0 or infinite where powers of the data underflow or overflow.
    if not isinstance(factor, Real) or np.isnan(factor):
        raise Wrong(f"factor must be a number, got {factor!r}")
    if not isinstance(objective.separable, bool | np.bool_):
        raise Wrong(f"separable must be True or False, got {objective.separable!r}")
    return f"n = {n}, active = {active}, scale = {scale:.3g}, factor = {factor:.3g}"


class _Check:
    """The checks of one objective, near two random matrices, U and U @ Q."""

    def __init__(
        self, objective: Objective, rng: np.random.Generator, pairs: int, grid: int, tolerance: float
    ) -> None:
        self.objective, self.rng, self.grid = objective, rng, grid
        self.n = objective.shape[0]
        self.U, self.Q = (random_orthogonal(self.n, rng, determinant=1) for _ in range(2))
        self.all_pairs = all_pairs(Shape(self.n, objective.active))
        some = rng.integers(max(len(self.all_pairs), 1), size=pairs)
        self.pairs = [self.all_pairs[k : k + 1] for k in some.tolist()] if self.n > 1 else []
        self.rounding = _rounding(objective)
        self.tolerance = max(tolerance, self.rounding)

    # What checks compare.

    def _look(self, U: np.ndarray, Q: np.ndarray | None = None) -> Look:
        return _with_slopes(self.objective.look(self.objective.state(U), Q), U if Q is None else U @ Q)

    def _value_of(self, state: Any) -> float:
        return float(self.objective.look(state, slopes=False).value)

    def _value(self, U: np.ndarray) -> float:
        return self._value_of(self.objective.state(U))

    def _level(self, pair: np.ndarray, theta: float) -> float:
        i, j = pair[0].tolist()
        return self._value(rotate(self.U, i, j, theta))

    def _solve(self, blocks: Blocks, U: np.ndarray | None = None) -> PairSolutions:
        return self.objective.solve(self.objective.state(self.U if U is None else U), blocks)

    def _rotated(self, U: np.ndarray, blocks: Blocks) -> tuple[np.ndarray, float, float]:
        """Solve blocks and rotate them all: the gains, the value of the state that was rotated, and that of one made anew."""
        state, Ut = self.objective.state(U), np.array(U.T, order="C")
        solved = self.objective.solve(state, blocks)
        rotations = np.asarray(solved.rotations)
        error = float(np.max([orthogonality(Q) / len(Q) for Q in rotations]))
        if not error <= 1e-12:
            raise Wrong(f"rotations must be orthogonal, but are so only up to {error:.1e}")
        self.objective.apply(state, blocks, rotations, solved)
        rotate_blocks(Ut, blocks, rotations)
        return np.asarray(solved.gains), self._value_of(state), self._value(Ut.T.copy())

    def _skew(self) -> np.ndarray:
        """A random angle for every pair; their squares add up to 1."""
        K = np.zeros((self.n, self.n))
        i, j = self.all_pairs.T
        K[j, i] = self.rng.uniform(-1, 1, len(i))
        K -= K.T
        return K / (np.sqrt(0.5 * np.vdot(K, K)) or 1.0)

    def _error(self, along: Callable[[float], float], derivative: float, order: int) -> float:
        """By how much a derivative of f along a curve differs from a central difference, beyond what rounding explains."""
        errors = []
        weights = {1: [1, -8, 0, 8, -1], 2: [-1, 16, -30, 16, -1]}[order]
        step = max(5e-6 * 10**order, 0.1 * self.rounding ** (1 / (4 + order)))
        # A smaller step in case there is a kink nearby; of a second difference it would leave rounding errors.
        for width in (step, 0.1 * step) if order == 1 else (step,):
            values = np.array([along(k * width) for k in (-2, -1, 0, 1, 2)])
            difference = float(np.dot(weights, values)) / (12 * width**order)
            errors.append(abs(difference - derivative) - self.rounding / width**order * self.objective.scale)
        return float(np.min(errors))

    def _compare(self, errors: Any, what: str, slack: float = 1.0, hint: str = "") -> str:
        """Say by how much things differ; that is wrong if the largest error exceeds the tolerance, or is NaN."""
        relative = float(np.max(np.append(errors, 0.0))) / self.objective.scale
        detail = f"{what} by {relative:.1e} of the scale"
        if not relative <= slack * self.tolerance:
            raise Wrong(detail + hint)
        return detail

    # The checks.

    def method(self) -> str:
        return f"its phases are {', '.join(phases_of(self.objective.method)[0])}"

    def scale(self) -> str:
        scale = self.objective.scale
        places = [random_orthogonal(self.n, self.rng, determinant=1) for _ in range(3)]
        places += [self.U, self.U @ self.Q]
        values = np.array([self._value(U) for U in places])
        size = float(max(np.abs(values).max(), np.ptp(values)))
        if not np.isfinite(size):
            raise Wrong(f"f must be finite for every orthogonal matrix, but it is {values.max()} for one")
        detail = f"scale = {scale:.3g}, and f is at most {size:.3g} at a few U"
        if scale <= MAX_SCALE * size:
            return detail
        # A smooth f hardly changes by so small an angle, but rounding errors do.
        tiny = max(1e-10, self.rounding)
        beside = np.array([self._value(turned(U, tiny * self._skew())) for U in places])
        if np.abs(beside - values).max() < 1e-3 * size:
            raise Wrong(f"{detail}: it must not be more than {MAX_SCALE:g} times as large")
        return f"scale = {scale:.3g}, and f is 0 up to rounding errors at a few U"

    def value(self) -> str:
        state, value = self.objective.state(self.U), self._value(self.U)
        for pair in self.pairs:
            self.objective.solve(state, pair)
        self.objective.look(state, self.Q)
        again = self._value_of(state)
        if not (np.isfinite(value) and value == again):
            raise Wrong(
                f"the value of look(state(U)) is {value:.6g}, and {again:.6g} after solve() and look(), which must only read "
                "the state"
            )
        return self._compare(abs(self._look(self.U).value - value), "values with and without slopes differ")

    def slopes(self) -> str:
        slopes = self._look(self.U).slopes
        if slopes is None:
            return "look() gives none, so there is no descent"
        active = self.objective.active
        self._check_shape(slopes)
        asymmetry = float(np.abs(slopes + slopes.T).max())
        if not asymmetry <= 1e-10 * self.objective.scale or slopes[active:, active:].any():
            raise Wrong("must be antisymmetric, and 0 for two columns that do not count")
        errors = [self._error(partial(self._level, pair), slopes[tuple(pair[0])], 1) for pair in self.pairs]
        return self._compare(errors, "slopes differ from central differences of values", slack=100)

    def curvatures(self) -> str:
        bends = self._look(self.U).curvatures
        if bends is None:
            return "look() gives none; where there is descent, it learns them from its steps"
        self._check_shape(bends)
        if not np.isfinite(bends[tuple(self.all_pairs.T)]).all():
            raise Wrong("must be finite")
        errors = [self._error(partial(self._level, pair), bends[tuple(pair[0])], 2) for pair in self.pairs]
        return self._compare(errors, "curvatures differ from second differences of values", slack=1000)

    def second_derivatives(self) -> str:
        second = self.objective.second
        if second is None:
            return 'there are none, so the phase "newton" is left out'
        K = self._skew()  # all pairs are rotated at once
        product = second(self.objective.state(self.U), self.Q)(K)
        bend = 0.5 * float(np.vdot(K, product))
        error = self._error(lambda along: self._value(turned(self.U @ self.Q, along * K)), bend, 2)
        return self._compare(error, "second derivatives differ from second differences of values", slack=1000)

    def turned_look(self) -> str:
        there, fresh = self._look(self.U, self.Q), self._look(self.U @ self.Q)
        errors = [abs(there.value - fresh.value)]
        if there.slopes is not None and fresh.slopes is not None:
            errors.append(float(np.abs(there.slopes - fresh.slopes).max()))
        return self._compare(errors, "look(state(U), Q) differs from look(state(U @ Q))")

    def gain(self) -> str:
        before, errors = self._value(self.U), []
        for pair in self.pairs:
            gains, *after = self._rotated(self.U, pair)
            errors += [abs(gains[0] - (before - value)) for value in after]
        return self._compare(errors, "the gain that solve() reports differs from the decrease of the value")

    def optimum(self) -> str:
        start, errors = self._value(self.U), []
        for pair in self.pairs:
            lowest = np.min([self._level(pair, theta) for theta in np.linspace(-np.pi, np.pi, self.grid)])
            errors.append(start - lowest - self._solve(pair).gains[0])
        return self._compare(errors, f"some angle of a grid of {self.grid} is better than solve()'s")

    def separable(self) -> str:
        if not self.objective.separable:
            return "it is False, so pairs are rotated one after the other"
        rounds = [np.asarray(pairs) for pairs in disjoint_runs(self.rng.permutation(self.all_pairs))]
        # A round of many pairs says most; the gains of a few may add up by chance.
        most = max(rounds, key=len, default=self.all_pairs)
        if len(most) < 2:
            return "there are no two disjoint pairs"
        alone, apply, total = [], [], []
        for U in (self.U, self.U @ self.Q):
            gains, rotated, anew = self._rotated(U, most)
            alone += [abs(self._solve(pair[None], U).gains[0] - gain) for pair, gain in zip(most, gains)]
            apply.append(abs(rotated - anew))
            total.append(abs(self._value(U) - anew - gains.sum()))
        self._compare(alone, "the gain of a pair depends on the other pairs in the call of solve()")
        self._compare(apply, "after apply() of disjoint pairs the value differs from that of state(U)")
        what = "the gains of disjoint pairs and the decrease of the value, all being rotated at once, differ"
        return self._compare(total, what, hint=": separable must be False, or the gains are wrong")

    def gains_of_all_pairs(self) -> str:
        looks = (self.U, self._look(self.U)), (self.U @ self.Q, self._look(self.U, self.Q))
        errors = []
        for U, look in looks:
            if look.gains is None:
                continue
            gains = look.gains()
            self._check_shape(gains)
            if not np.array_equal(gains, gains.T) or gains.diagonal().any():
                raise Wrong("must be a symmetric matrix with the diagonal 0")
            for pair in self.pairs:
                gain, bound = self._solve(pair, U).gains[0], gains[tuple(pair[0])]
                errors += [gain - bound, bound - 1.01 * gain]  # a bound may be a little above
        if all(look.gains is None for _, look in looks):
            return "look() has none, so a certificate searches pairs"
        return self._compare(errors, "the gains of look() are below those of solve(), or more than 1 % above")

    def blocks(self) -> str:
        schedule = phases_of(self.objective.method)[1]
        size = 2 if schedule is None else min(as_schedule(schedule).block, self.n)
        if size < 3:
            return "the method has none larger than pairs"
        block = [np.arange(size)]
        gains, rotated, anew = self._rotated(self.U, block)
        what = f"after apply() of a block of {size} columns the value differs from state(U)'s"
        self._compare(abs(rotated - anew), what)
        excess = gains[0] - (self._value(self.U) - np.array([rotated, anew]))
        return self._compare(
            excess, f"the gain of a block of {size} columns exceeds the decrease of the value"
        )

    def state(self) -> str:
        state, Ut = self.objective.state(self.U), np.array(self.U.T, order="C")
        for pair in self.pairs:
            rotations = turn(np.array([0.3]))
            self.objective.apply(state, pair, rotations)
            rotate_blocks(Ut, pair, rotations)
        error = abs(self._value_of(state) - self._value(Ut.T.copy()))
        return self._compare(
            error, "after apply() the state's value differs from that of state(U), recomputed"
        )

    def few_columns(self) -> str:
        if self.objective.shape[1] == self.n:
            return "U is square"
        m, whole = self.objective.active, self._look(self.U)
        point = Stiefel(np.ascontiguousarray(self.U[:, :m].T), m)
        state = self.objective.state(point.base)
        look = checked_look(self.objective.look(state), point)
        if whole.slopes is None or look.slopes is None:
            raise Wrong("look() must give slopes or the gradient")
        errors = [abs(look.value - whole.value)]
        slopes = few_slopes_of_pairs(np.triu(whole.slopes), self.U, m)
        errors.append(float(np.abs(look.slopes - slopes).max()))
        swept = widened_sweep(self.objective, point, state, look.slopes)
        after = self._value(swept.point.base)
        errors += [abs(self._value_of(swept.state) - after), swept.gain - (look.value - after)]
        return self._compare(errors, "n x m matrices differ from square ones")

    def _check_shape(self, matrix: np.ndarray) -> None:
        if matrix.shape != (self.n, self.n):
            raise Wrong(f"must have the shape {(self.n, self.n)}, got {matrix.shape}")


def _with_slopes(look: Look, U: np.ndarray) -> Look:
    """The look at a square U, with slopes from its gradient if it has a gradient alone."""
    if look.slopes is not None or look.gradient is None:
        return look
    E = np.zeros(U.shape)
    E[:, : look.gradient.shape[1]] = look.gradient
    return look._replace(slopes=E.T @ U - U.T @ E)


def _rounding(objective: Objective) -> float:
    """The relative rounding error of a state in single precision; 0 for others."""
    n = objective.shape[0]
    try:
        state = objective.state(np.eye(n))
    except Exception:  # the checks report it
        return 0.0
    return n * 4 * float(np.finfo(np.float32).eps) if getattr(state, "dtype", None) == np.float32 else 0.0
