"""Tell the author of an objective what is wrong with it.

An objective's parts have to agree: the value, the state that rotates, the pair problem and its gain, the gradient. Each check
below compares one of them with an independent computation of the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from givens.objectives.base import Blocks, Objective, Solved
from givens.rotations import random_orthogonal, rotate, rotate_blocks, turn


@dataclass(frozen=True)
class Finding:
    """One check: what was compared, whether it agrees, and by how much."""

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
    """Check an objective against brute force, at a random U.

    Parameters
    ----------
    objective : Objective
    pairs : int
        How many random pairs to try.
    grid : int
        How many angles to compare each pair's solution with.
    tolerance : float
        What counts as agreement, relative to the objective's scale.
    random_state : int

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
    ok     gain: ...
    ok     optimum: ...
    ok     state: ...
    ok     purity: ...
    ok     gradient: ...
    ok     orthogonality: ...
    """
    if not isinstance(objective, Objective):
        hint = ": wrap it in objectives.Function(f, n)" if callable(objective) else ""
        raise TypeError(f"objective must be an Objective, got {type(objective).__name__}{hint}")
    rng = np.random.default_rng(random_state)
    U = random_orthogonal(objective.n, rng, determinant=1)
    objective.prepare(U)
    check = _Check(objective, U, rng, pairs, grid, tolerance)
    steps: list[tuple[str, Callable[[], tuple[bool, str]]]] = [
        ("scale", check.scale),
        ("value", check.value),
        ("gain", check.gain),
        ("optimum", check.optimum),
        ("state", check.state),
        ("purity", check.purity),
        ("gradient", check.gradient),
        ("orthogonality", check.orthogonality),
    ]
    findings = []
    for name, step in steps:
        try:
            passed, detail = step()
        except Exception as error:  # what a user's code raises is a finding like any other
            passed, detail = False, f"raised {type(error).__name__}: {error}"
        findings.append(Finding(name, passed, detail))
    return ObjectiveReport(tuple(findings))


class _Check:
    def __init__(
        self,
        objective: Objective,
        U: np.ndarray,
        rng: np.random.Generator,
        pairs: int,
        grid: int,
        tolerance: float,
    ) -> None:
        self.objective = objective
        self.U = U
        self.grid = grid
        self.tolerance = tolerance
        self.pairs = []
        if objective.n > 1:
            for _ in range(pairs):
                i = int(rng.integers(min(objective.active, objective.n - 1)))
                self.pairs.append(np.array([[i, int(rng.integers(i + 1, objective.n))]]))

    def _value(self, U: np.ndarray) -> float:
        return float(self.objective.value(self.objective.state(U)))

    def _solve(self, state: Any, blocks: Blocks) -> Solved:
        return self.objective.solve(state, blocks)

    def _level(self, pair: np.ndarray, theta: float) -> float:
        return self._value(rotate(self.U, int(pair[0, 0]), int(pair[0, 1]), theta))

    def scale(self) -> tuple[bool, str]:
        scale = self.objective.scale
        return bool(np.isfinite(scale) and scale > 0), f"scale = {scale:.3g} must be positive and finite"

    def value(self) -> tuple[bool, str]:
        value = self._value(self.U)
        again = self._value(self.U)
        return bool(
            np.isfinite(value) and value == again
        ), f"value(state(U)) = {value:.6g}, and the same when asked again"

    def gain(self) -> tuple[bool, str]:
        worst = 0.0
        for pair in self.pairs:
            solved = self._solve(self.objective.state(self.U), pair)
            Q = np.asarray(solved.rotations)[0]
            V = self.U.copy()
            V[:, pair[0]] = V[:, pair[0]] @ Q
            worst = max(worst, abs(self._value(self.U) - self._value(V) - solved.gains[0]))
        return self._judge(worst, "the gain that solve() reports differs from what the value falls by")

    def optimum(self) -> tuple[bool, str]:
        worst = 0.0
        for pair in self.pairs:
            gain = self._solve(self.objective.state(self.U), pair).gains[0]
            start = self._value(self.U)
            best = max(start - self._level(pair, theta) for theta in np.linspace(-np.pi, np.pi, self.grid))
            worst = max(worst, best - gain)
        return self._judge(worst, f"some angle of a grid of {self.grid} is better than solve()'s")

    def state(self) -> tuple[bool, str]:
        state, Ut = self.objective.state(self.U), np.ascontiguousarray(self.U.T)
        for pair in self.pairs:
            rotations = turn(np.array([0.3]))
            self.objective.apply(state, pair, rotations)
            rotate_blocks(Ut, pair, rotations)
        return self._judge(
            abs(float(self.objective.value(state)) - self._value(Ut.T.copy())),
            "after apply() the state's value differs from that of state(U) made anew",
        )

    def purity(self) -> tuple[bool, str]:
        state = self.objective.state(self.U)
        before = self.objective.value(state)
        for pair in self.pairs:
            self._solve(state, pair)
        return before == self.objective.value(state), "solve() must only read the state"

    def gradient(self) -> tuple[bool, str]:
        slopes = self.objective.gradient(self.objective.state(self.U))
        step, worst = 1e-4, 0.0
        for pair in self.pairs:
            difference = (self._level(pair, step) - self._level(pair, -step)) / (2 * step)
            worst = max(worst, abs(difference - slopes[tuple(pair[0])]))
        return self._judge(worst, "gradient() differs from central differences", slack=100)

    def orthogonality(self) -> tuple[bool, str]:
        worst = 0.0
        for pair in self.pairs:
            Q = np.asarray(self._solve(self.objective.state(self.U), pair).rotations)[0]
            worst = max(worst, float(np.abs(Q.T @ Q - np.eye(len(Q))).max()))
        return worst <= 1e-12, f"the rotations are orthogonal to {worst:.1e}"

    def _judge(self, error: float, what: str, slack: float = 1.0) -> tuple[bool, str]:
        relative = error / self.objective.scale
        return relative <= slack * self.tolerance, f"{what} by {max(relative, 0.0):.1e} of the scale"
