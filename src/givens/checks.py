"""`check_objective`: find the errors of a new objective.

The parts of an objective must agree: the value, its slopes and curvatures, the state that rotates, the pair problem and its gain.
Each check compares one of them with an independent computation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.numerics import parallel
from givens.numerics.cayley import turned
from givens.objectives.base import Blocks, Look, Objective, Solved
from givens.rotations import random_orthogonal, rotate, rotate_blocks, turn
from givens.schedules import Shape, all_pairs, as_schedule


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
    pairs : int
        Number of random pairs to check.
    grid : int
        Number of angles at which f is compared with each pair's solution.
    tolerance : float
        Largest error that is accepted, relative to the objective's scale.
    random_state : int
        Seed of U and of the pairs.

    Returns
    -------
    ObjectiveReport
        Prints as one line per check, and is true if all passed.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import check_objective
    >>> from givens.objectives import Columns
    >>> A = np.random.default_rng(0).standard_normal((20, 4))
    >>> print(check_objective(Columns(A, "varimax")))
    ok     scale: ...
    ok     value: ...
    ok     slopes: ...
    ok     curvatures: ...
    ok     second derivatives: ...
    ok     turned look: ...
    ok     gain: ...
    ok     optimum: ...
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
    rng = np.random.default_rng(random_state)
    check = _Check(objective, rng, pairs, grid, tolerance)
    findings = []
    for step in (
        check.scale,
        check.value,
        check.slopes,
        check.curvatures,
        check.second_derivatives,
        check.turned_look,
        check.gain,
        check.optimum,
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


class _Check:
    def __init__(
        self, objective: Objective, rng: np.random.Generator, pairs: int, grid: int, tolerance: float
    ) -> None:
        self.objective = objective
        self.U = random_orthogonal(objective.n, rng, determinant=1)
        self.Q = random_orthogonal(objective.n, rng, determinant=1)
        self.rng = rng
        self.grid = grid
        self.tolerance = tolerance
        self.pairs = []
        if objective.n > 1:
            for _ in range(pairs):
                i = int(rng.integers(min(objective.active, objective.n - 1)))
                self.pairs.append(np.array([[i, int(rng.integers(i + 1, objective.n))]]))

    def _look(self, U: np.ndarray) -> Look:
        return self.objective.look(self.objective.state(U))

    def _value(self, U: np.ndarray) -> float:
        return float(self.objective.look(self.objective.state(U), slopes=False).value)

    def _solve(self, blocks: Blocks) -> Solved:
        return self.objective.solve(self.objective.state(self.U), blocks)

    def _level(self, pair: np.ndarray, theta: float) -> float:
        return self._value(rotate(self.U, int(pair[0, 0]), int(pair[0, 1]), theta))

    def scale(self) -> tuple[bool, str]:
        scale = self.objective.scale
        return bool(np.isfinite(scale) and scale > 0), f"scale = {scale:.3g} must be positive and finite"

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
        n, active = self.objective.n, self.objective.active
        if slopes.shape != (n, n):
            return False, f"must have the shape {(n, n)}, got {slopes.shape}"
        asymmetry = float(np.abs(slopes + slopes.T).max())
        if not asymmetry <= 1e-10 * self.objective.scale or slopes[active:, active:].any():
            return False, "must be antisymmetric, and 0 for two columns that do not count"
        step, worst = 1e-4, 0.0
        for pair in self.pairs:
            difference = (self._level(pair, step) - self._level(pair, -step)) / (2 * step)
            worst = max(worst, abs(difference - slopes[tuple(pair[0])]))
        return self._judge(worst, "slopes differ from central differences of values", slack=100)

    def curvatures(self) -> tuple[bool, str]:
        look = self._look(self.U)
        if look.curvatures is None:
            return True, "look() gives none, so descent learns them from its steps"
        if look.curvatures.shape != (self.objective.n, self.objective.n):
            return False, f"must have the shape {(self.objective.n,) * 2}, got {look.curvatures.shape}"
        step, worst = 1e-3, 0.0
        for pair in self.pairs:
            second = self._level(pair, step) - 2 * self._value(self.U) + self._level(pair, -step)
            worst = max(worst, abs(second / step**2 - look.curvatures[tuple(pair[0])]))
        return self._judge(worst, "curvatures differ from second differences of values", slack=1000)

    def second_derivatives(self) -> tuple[bool, str]:
        second = self.objective.plan().second
        if second is None:
            return True, 'plan() names none, so the phase "newton" is left out'
        n, step = self.objective.n, 1e-4
        # A random angle for every pair; all of them are rotated at once.
        K = np.zeros((n, n))
        for i, j in all_pairs(Shape(n, self.objective.active)):
            K[j, i] = self.rng.uniform(-1, 1)
        K -= K.T
        product = second(self.objective.state(self.U), self.Q).product(K)
        there = [self._value(turned(self.U @ self.Q, along * K)) for along in (-step, 0.0, step)]
        found = (there[0] - 2 * there[1] + there[2]) / step**2
        return self._judge(
            abs(found - 0.5 * float(np.vdot(K, product))) / max(float(np.vdot(K, K)), 1.0),
            "second derivatives differ from second differences of values",
            slack=1000,
        )

    def turned_look(self) -> tuple[bool, str]:
        there = self.objective.look(self.objective.state(self.U), self.Q)
        fresh = self._look(self.U @ self.Q)
        worst = abs(there.value - fresh.value)
        if there.slopes is not None and fresh.slopes is not None:
            worst = max(worst, float(np.abs(there.slopes - fresh.slopes).max(initial=0.0)))
        return self._judge(worst, "look(state(U), Q) differs from look(state(U @ Q))")

    def gain(self) -> tuple[bool, str]:
        worst = max((self._gain_error(pair) for pair in self.pairs), default=0.0)
        return self._judge(worst, "the gain that solve() reports differs from the decrease of the value")

    def _gain_error(self, blocks: Blocks) -> float:
        """The error of one block's gain, where its rotation is applied to U, and to the state."""
        state = self.objective.state(self.U)
        solved = self.objective.solve(state, blocks)
        V, block = self.U.copy(), blocks[0]
        V[:, block] = V[:, block] @ np.asarray(solved.rotations[0])
        self.objective.apply(state, blocks, solved.rotations, solved.payload)
        before, gain = self._value(self.U), float(solved.gains[0])
        after = self._value(V), float(self.objective.look(state, slopes=False).value)
        return max(abs(before - value - gain) for value in after)

    def optimum(self) -> tuple[bool, str]:
        worst = 0.0
        for pair in self.pairs:
            gain = self._solve(pair).gains[0]
            start = self._value(self.U)
            best = max(start - self._level(pair, theta) for theta in np.linspace(-np.pi, np.pi, self.grid))
            worst = max(worst, best - gain)
        return self._judge(worst, f"some angle of a grid of {self.grid} is better than solve()'s")

    def gains_of_all_pairs(self) -> tuple[bool, str]:
        looks = self._look(self.U), self.objective.look(self.objective.state(self.U), self.Q)
        worst = 0.0
        for look, U in zip(looks, (self.U, self.U @ self.Q)):
            if look.gains is None:
                continue
            gains, n = look.gains(), self.objective.n
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
                    worst = max(worst, gain - bound, bound - 1.01 * gain)
        if all(look.gains is None for look in looks):
            return True, "look() has none, so a certificate searches pairs"
        return self._judge(worst, "the gains of look() are below those of solve(), or more than 1 % above")

    def blocks(self) -> tuple[bool, str]:
        size = min(as_schedule(self.objective.plan().schedule).block, self.objective.n)
        if size < 3:
            return True, "the plan has none larger than pairs"
        block = np.arange(size)
        Q = np.asarray(self._solve([block]).rotations[0])
        error = float(np.abs(Q.T @ Q - np.eye(size)).max())
        if error > 1e-12 * size:
            return False, f"the rotation of {size} columns is orthogonal up to {error:.1e} only"
        worst = self._gain_error([block])
        return self._judge(
            worst, f"the gain of a block of {size} columns differs from the decrease of the value"
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
        worst = 0.0
        for pair in self.pairs:
            Q = np.asarray(self._solve(pair).rotations)[0]
            worst = max(worst, float(np.abs(Q.T @ Q - np.eye(len(Q))).max()))
        return worst <= 1e-12, f"the rotations are orthogonal up to {worst:.1e}"

    def proposal(self) -> tuple[bool, str]:
        leap = self.objective.propose(self.objective.state(self.U), None, True)
        if leap is None:
            return True, "there is none"
        Q = leap.rotation
        error = float(np.abs(Q.T @ Q - np.eye(self.objective.n)).max())
        return error <= 1e-9 and np.linalg.det(Q) > 0, f"its rotation is orthogonal up to {error:.1e}"

    def _judge(self, error: float, what: str, slack: float = 1.0) -> tuple[bool, str]:
        relative = error / self.objective.scale
        # NaN must not pass.
        return bool(relative <= slack * self.tolerance), f"{what} by {max(relative, 0.0):.1e} of the scale"
