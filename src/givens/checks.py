"""`check_objective`: find the errors of a new objective.

The parts of an objective must agree: the value, its slopes and curvatures, the state that rotates, the pair problem and its gain.
Each check compares one of them with an independent computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np

from givens.numerics import parallel
from givens.numerics.cayley import turned
from givens.objectives.base import Blocks, Look, Objective, PairSolutions
from givens.objectives.function import Function
from givens.rotations import random_orthogonal, rotate, rotate_blocks, turn
from givens.schedules import Shape, all_pairs, as_schedule, disjoint_runs
from givens.solve.race import phases_of
from givens.support.arguments import whole

LARGEST_SCALE = 1e6  # times the values of f; an error as large as f itself would be within tolerances relative to a larger scale
TINY = 1e-10  # an angle by which a smooth f hardly changes, in radians


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
    ok     purity: ...
    ok     orthogonality: ...
    ok     proposal: ...
    """
    if not isinstance(objective, Objective):
        hint = ": wrap it in objectives.Function(f, n)" if callable(objective) else ""
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}{hint}")
    if isinstance(objective, Function) and not objective.square:
        raise TypeError(
            "check_objective rotates two columns of a square U, which functions of n x m matrices do not have; their jac is "
            "compared with differences of values when a Function is made"
        )
    findings = [_attributes(objective)]
    if not findings[0].passed:
        return ObjectiveReport(tuple(findings))
    check = _Check(objective, np.random.default_rng(random_state), pairs, grid, tolerance)
    for step in (
        check.method,
        check.scale,
        check.value,
        check.slopes,
        check.curvatures,
        check.second_derivatives,
        check.turned_look,
        check.gain,
        check.optimum,
        check.separable,
        check.gains_of_all_pairs,
        check.blocks,
        check.state,
        check.purity,
        check.orthogonality,
        check.proposal,
    ):
        name = step.__name__.replace("_", " ")
        try:
            with parallel.interrupts():
                passed, detail = step()
        except Exception as error:  # an error in the user's code is a finding, too
            passed, detail = False, f"raised {type(error).__name__}: {error}"
        findings.append(Finding(name, passed, detail))
    return ObjectiveReport(tuple(findings))


def _attributes(objective: Objective) -> Finding:
    """Check the attributes without which no other check is possible."""
    try:
        for name in ("shape", "active", "scale", "factor", "separable"):
            if not hasattr(objective, name):
                raise ValueError(f"{name} is missing; set it in __init__")
        if not isinstance(objective.shape, tuple) or len(objective.shape) != 2:
            raise ValueError(f"shape must be that of U, a pair of numbers, got {objective.shape!r}")
        n = whole(objective.shape[0], "n", 1)
        active = whole(objective.active, "active", 1, n, "the order n")
        scale, factor = objective.scale, objective.factor
        if not (isinstance(scale, Real) and np.isfinite(scale) and scale > 0):
            raise ValueError(f"scale must be a positive and finite number, got {scale!r}")
        # It may be 0 or infinite where powers of the data underflow or overflow.
        if not isinstance(factor, Real) or np.isnan(factor):
            raise ValueError(f"factor must be a number, got {factor!r}")
        if not isinstance(objective.separable, bool | np.bool_):
            raise ValueError(f"separable must be True or False, got {objective.separable!r}")
    except Exception as error:  # a property may raise anything
        return Finding("attributes", False, str(error))
    return Finding(
        "attributes", True, f"n = {n}, active = {active}, scale = {scale:.3g}, factor = {factor:.3g}"
    )


class _Check:
    def __init__(
        self, objective: Objective, rng: np.random.Generator, pairs: int, grid: int, tolerance: float
    ) -> None:
        self.objective = objective
        self.U = random_orthogonal(objective.shape[0], rng, determinant=1)
        self.Q = random_orthogonal(objective.shape[0], rng, determinant=1)
        self.rng = rng
        self.grid = grid
        self.rounding = _rounding(objective)
        self.tolerance = max(tolerance, self.rounding)
        self.pairs = []
        if objective.shape[0] > 1:
            for _ in range(pairs):
                i = int(rng.integers(min(objective.active, objective.shape[0] - 1)))
                self.pairs.append(np.array([[i, int(rng.integers(i + 1, objective.shape[0]))]]))

    def _look(self, U: np.ndarray) -> Look:
        return self.objective.look(self.objective.state(U))

    def _value(self, U: np.ndarray) -> float:
        return float(self.objective.look(self.objective.state(U), slopes=False).value)

    def _solve(self, blocks: Blocks) -> PairSolutions:
        return self.objective.solve(self.objective.state(self.U), blocks)

    def _level(self, pair: np.ndarray, theta: float) -> float:
        return self._value(rotate(self.U, int(pair[0, 0]), int(pair[0, 1]), theta))

    def _skew(self) -> np.ndarray:
        """A random angle for every pair; their squares add up to 1."""
        n = self.objective.shape[0]
        K = np.zeros((n, n))
        for i, j in all_pairs(Shape(n, self.objective.active)):
            K[j, i] = self.rng.uniform(-1, 1)
        K -= K.T
        return K / (np.sqrt(0.5 * np.vdot(K, K)) or 1.0)

    def method(self) -> tuple[bool, str]:
        phases, _ = phases_of(self.objective.method)
        return True, f"its phases are {', '.join(phases)}"

    def _slope_error(self, along: Callable[[float], float], slope: float) -> float:
        """By how much a slope differs from a central difference, beyond what rounding explains."""
        errors = []
        step = max(5e-5, 0.07 * self.rounding**0.2)
        for width in (step, 0.1 * step):  # the smaller one in case there is a kink nearby
            low, below, above, high = (along(k * width) for k in (-2, -1, 1, 2))
            difference = (8 * (above - below) - (high - low)) / (12 * width)
            errors.append(abs(difference - slope) - self.rounding / width * self.objective.scale)
        return float(np.min(errors))

    def _bend_error(self, along: Callable[[float], float], bend: float) -> float:
        """By how much a second derivative differs from a central difference, beyond what rounding explains."""
        step = max(5e-4, 0.1 * self.rounding ** (1 / 6))
        low, below, here, above, high = (along(k * step) for k in (-2, -1, 0, 1, 2))
        difference = (16 * (below + above) - 30 * here - low - high) / (12 * step**2)
        return abs(difference - bend) - self.rounding / step**2 * self.objective.scale

    def scale(self) -> tuple[bool, str]:
        scale, tiny = self.objective.scale, max(TINY, self.rounding)
        places = [random_orthogonal(self.objective.shape[0], self.rng, determinant=1) for _ in range(3)]
        places += [self.U, self.U @ self.Q]
        values = np.array([self._value(U) for U in places])
        size = float(max(np.abs(values).max(), np.ptp(values)))
        if not np.isfinite(size):
            return False, f"f must be finite for every orthogonal matrix, but it is {values.max()} for one"
        detail = f"scale = {scale:.3g}, and f is at most {size:.3g} at a few U"
        if scale <= LARGEST_SCALE * size:
            return True, detail
        beside = np.array([self._value(turned(U, tiny * self._skew())) for U in places])
        if np.abs(beside - values).max() >= 1e-3 * size:
            return True, f"scale = {scale:.3g}, and f is 0 up to rounding errors at a few U"
        return False, f"{detail}: it must not be more than {LARGEST_SCALE:g} times as large"

    def value(self) -> tuple[bool, str]:
        value = self._value(self.U)
        again = self._value(self.U)
        if not (np.isfinite(value) and value == again):
            return False, f"the value of look(state(U)) is {value:.6g}, and {again:.6g} when asked again"
        return self._judge(abs(self._look(self.U).value - value), "values with and without slopes differ")

    def slopes(self) -> tuple[bool, str]:
        slopes = self._look(self.U).slopes
        if slopes is None:
            return True, "look() gives none, so there is no descent"
        n, active = self.objective.shape[0], self.objective.active
        if slopes.shape != (n, n):
            return False, f"must have the shape {(n, n)}, got {slopes.shape}"
        asymmetry = float(np.abs(slopes + slopes.T).max())
        if not asymmetry <= 1e-10 * self.objective.scale or slopes[active:, active:].any():
            return False, "must be antisymmetric, and 0 for two columns that do not count"
        errors = [
            self._slope_error(partial(self._level, pair), slopes[tuple(pair[0])]) for pair in self.pairs
        ]
        return self._judge(_worst(errors), "slopes differ from central differences of values", slack=100)

    def curvatures(self) -> tuple[bool, str]:
        look = self._look(self.U)
        if look.curvatures is None:
            return True, "look() gives none; where there is descent, it learns them from its steps"
        if look.curvatures.shape != (self.objective.shape[0], self.objective.shape[0]):
            return False, f"must have the shape {(self.objective.shape[0],) * 2}, got {look.curvatures.shape}"
        pairs = all_pairs(Shape(self.objective.shape[0], self.objective.active))
        if not np.isfinite(look.curvatures[tuple(pairs.T)]).all():
            return False, "must be finite"
        errors = [
            self._bend_error(partial(self._level, pair), look.curvatures[tuple(pair[0])])
            for pair in self.pairs
        ]
        return self._judge(_worst(errors), "curvatures differ from second differences of values", slack=1000)

    def second_derivatives(self) -> tuple[bool, str]:
        second = self.objective.second
        if second is None:
            return True, 'there are none, so the phase "newton" is left out'
        K = self._skew()  # all pairs are rotated at once
        product = second(self.objective.state(self.U), self.Q)(K)
        error = self._bend_error(
            lambda along: self._value(turned(self.U @ self.Q, along * K)), 0.5 * float(np.vdot(K, product))
        )
        return self._judge(error, "second derivatives differ from second differences of values", slack=1000)

    def turned_look(self) -> tuple[bool, str]:
        there = self.objective.look(self.objective.state(self.U), self.Q)
        fresh = self._look(self.U @ self.Q)
        errors = [abs(there.value - fresh.value)]
        if there.slopes is not None and fresh.slopes is not None:
            errors.append(float(np.abs(there.slopes - fresh.slopes).max(initial=0.0)))
        return self._judge(_worst(errors), "look(state(U), Q) differs from look(state(U @ Q))")

    def gain(self) -> tuple[bool, str]:
        worst = _worst(abs(error) for pair in self.pairs for error in self._gain_errors(pair))
        return self._judge(worst, "the gain that solve() reports differs from the decrease of the value")

    def _gain_errors(self, blocks: Blocks) -> tuple[float, float]:
        """One block's gain less the decrease of f, where its rotation is applied to U, and to the state."""
        state = self.objective.state(self.U)
        solved = self.objective.solve(state, blocks)
        V, block = self.U.copy(), blocks[0]
        V[:, block] = V[:, block] @ np.asarray(solved.rotations[0])
        self.objective.apply(state, blocks, solved.rotations, solved)
        before, gain = self._value(self.U), float(solved.gains[0])
        after = self._value(V), float(self.objective.look(state, slopes=False).value)
        return gain - (before - after[0]), gain - (before - after[1])

    def optimum(self) -> tuple[bool, str]:
        errors, start = [], self._value(self.U)
        for pair in self.pairs:
            levels = [self._level(pair, theta) for theta in np.linspace(-np.pi, np.pi, self.grid)]
            errors.append(start - float(np.min(levels)) - float(self._solve(pair).gains[0]))
        return self._judge(_worst(errors), f"some angle of a grid of {self.grid} is better than solve()'s")

    def separable(self) -> tuple[bool, str]:
        if not self.objective.separable:
            return True, "it is False, so pairs are rotated one after the other"
        pairs = self.rng.permutation(all_pairs(Shape(self.objective.shape[0], self.objective.active)))
        rounds = [np.asarray(blocks) for blocks in disjoint_runs(pairs) if len(blocks) > 1]
        if not rounds:
            return True, "there are no two disjoint pairs"
        # A round of many pairs says most; the gains of a few may add up by chance.
        rounds.sort(key=len, reverse=True)
        found = [self._round_errors(U, blocks) for U, blocks in zip((self.U, self.U @ self.Q), 2 * rounds)]
        gains, apply, total = (_worst(errors) for errors in zip(*found))
        for error, what in (
            (gains, "the gain of a pair depends on the other pairs in the call of solve()"),
            (apply, "after apply() of disjoint pairs the value differs from that of state(U)"),
        ):
            if not self._judge(error, what)[0]:
                return self._judge(error, what)
        what = "the gains of disjoint pairs and the decrease of the value, all being rotated at once, differ"
        passed, detail = self._judge(total, what)
        return passed, detail if passed else f"{detail}: separable must be False, or the gains are wrong"

    def _round_errors(self, U: np.ndarray, blocks: np.ndarray) -> tuple[float, float, float]:
        """Rotate disjoint pairs at once, as a sweep does: the errors of the gains, of the state, and of the sum of gains."""
        state, Vt = self.objective.state(U), np.ascontiguousarray(U.T)
        solved = self.objective.solve(state, blocks)
        alone = [float(self.objective.solve(state, pair[None]).gains[0]) for pair in blocks]
        rotations = np.asarray(solved.rotations)
        self.objective.apply(state, blocks, rotations, solved)
        rotate_blocks(Vt, blocks, rotations)
        after = self._value(Vt.T.copy())
        return (
            _worst(np.abs(solved.gains - alone)),
            abs(float(self.objective.look(state, slopes=False).value) - after),
            abs(self._value(U) - after - float(np.sum(solved.gains))),
        )

    def gains_of_all_pairs(self) -> tuple[bool, str]:
        looks = self._look(self.U), self.objective.look(self.objective.state(self.U), self.Q)
        errors = []
        for look, U in zip(looks, (self.U, self.U @ self.Q)):
            if look.gains is None:
                continue
            gains, n = look.gains(), self.objective.shape[0]
            if (
                gains.shape != (n, n)
                or not np.array_equal(gains, gains.T, equal_nan=True)
                or gains.diagonal().any()
            ):
                return False, f"must be a symmetric matrix of order {n} with the diagonal 0"
            state = self.objective.state(U)
            for pair in self.pairs:
                gain, bound = float(self.objective.solve(state, pair).gains[0]), float(gains[tuple(pair[0])])
                if not np.isnan(bound):  # a bound may be a little above
                    errors += [gain - bound, bound - 1.01 * gain]
        if all(look.gains is None for look in looks):
            return True, "look() has none, so a certificate searches pairs"
        return self._judge(
            _worst(errors), "the gains of look() are below those of solve(), or more than 1 % above"
        )

    def blocks(self) -> tuple[bool, str]:
        schedule = phases_of(self.objective.method)[1]
        size = 2 if schedule is None else min(as_schedule(schedule).block, self.objective.shape[0])
        if size < 3:
            return True, "the method has none larger than pairs"
        block = np.arange(size)
        Q = np.asarray(self._solve([block]).rotations[0])
        error = float(np.abs(Q.T @ Q - np.eye(size)).max())
        if not error <= 1e-12 * size:
            return False, f"the rotation of {size} columns is orthogonal up to {error:.1e} only"
        anew, rotated = self._gain_errors([block])
        passed, detail = self._judge(
            abs(anew - rotated),
            f"after apply() of a block of {size} columns the value differs from state(U)'s",
        )
        if not passed:
            return passed, detail
        return self._judge(
            _worst((anew, rotated)),
            f"the gain of a block of {size} columns exceeds the decrease of the value",
        )

    def state(self) -> tuple[bool, str]:
        state, Ut = self.objective.state(self.U), np.ascontiguousarray(self.U.T)
        for pair in self.pairs:
            rotations = turn(np.array([0.3]))
            self.objective.apply(state, pair, rotations)
            rotate_blocks(Ut, pair, rotations)
        return self._judge(
            abs(float(self.objective.look(state, slopes=False).value) - self._value(Ut.T.copy())),
            "after apply() the state's value differs from that of state(U), recomputed",
        )

    def purity(self) -> tuple[bool, str]:
        state = self.objective.state(self.U)
        before = self.objective.look(state).value
        for pair in self.pairs:
            self.objective.solve(state, pair)
        self.objective.look(state, self.Q)
        return before == self.objective.look(state).value, "solve() and look() must only read the state"

    def orthogonality(self) -> tuple[bool, str]:
        errors = []
        for pair in self.pairs:
            Q = np.asarray(self._solve(pair).rotations)[0]
            errors.append(float(np.abs(Q.T @ Q - np.eye(len(Q))).max()))
        worst = _worst(errors)
        return worst <= 1e-12, f"the rotations are orthogonal up to {worst:.1e}"

    def proposal(self) -> tuple[bool, str]:
        leap = self.objective.propose(self.objective.state(self.U), None, True)
        if leap is None:
            return True, "there is none"
        Q = leap[0]
        error = float(np.abs(Q.T @ Q - np.eye(self.objective.shape[0])).max())
        return error <= 1e-9 and np.linalg.det(Q) > 0, f"its rotation is orthogonal up to {error:.1e}"

    def _judge(self, error: float, what: str, slack: float = 1.0) -> tuple[bool, str]:
        relative = error / self.objective.scale
        # NaN must not pass.
        return bool(relative <= slack * self.tolerance), f"{what} by {max(relative, 0.0):.1e} of the scale"


def _worst(errors: Iterable[float]) -> float:
    """The largest error, at least 0; NaN if one is NaN, which `max` may pass over."""
    return float(np.max([0.0, *errors]))


def _rounding(objective: Objective) -> float:
    """The relative rounding error of a state in single precision; 0 for others."""
    n = objective.shape[0]
    try:
        state = objective.state(np.eye(n))
    except Exception:  # the checks report it
        return 0.0
    return n * 4 * float(np.finfo(np.float32).eps) if getattr(state, "dtype", None) == np.float32 else 0.0
