"""Newton's method: steps of all columns at once, from all second derivatives.

    U ← U exp(K),  K antisymmetric, the minimum of  ⟨g, K⟩ + ½ ⟨K, H K⟩  over angles of at most a radius

Where some pairs of columns look nearly alike from every angle, f is nearly flat in some directions, and quasi-Newton steps take
hundreds of steps along them. The second derivatives tell those directions from the others: a few steps end a run. They cost
as much as several looks, so this phase comes after descent has made most of the way, and keeps them while steps are small.

The minimum is found by conjugate gradients with the product H K (Steihaug 1983): they end at the boundary, or where a direction
bends downwards, and so need no H that is positive definite. The radius is halved or doubled by how well f kept what the
quadratic function promised; a step that raises f is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from givens.numerics.cayley import turned
from givens.objectives.base import Look, Second
from givens.phases.phase import Phase
from givens.support.arguments import counted

if TYPE_CHECKING:
    from givens.loop import Run

FIRST, LARGEST, LEAST = 0.3, 0.8, 1e-9  # radians: the radius at the beginning, and its bounds
LEAST_CURVATURE = 0.01  # of the largest: smaller ones of pairs are taken for this
POOR, GOOD = 0.25, 0.75  # shares of the promised fall
SMALL = 0.05  # radians: a step of smaller angles hardly changes the second derivatives
EXACT, INEXACT = 1e-3, 1e-2  # of the squared slopes: what conjugate gradients leave of them
MOST_PRODUCTS = 500
EPS = float(np.finfo(np.float64).eps)
TINY = 1e-290


class Newton(Phase):
    """Newton's method with a trust region, for objectives that know all second derivatives."""

    name = "newton"

    def __init__(self) -> None:
        self.radius = FIRST
        self.look: Look | None = None
        self.second: Second | None = None

    def advance(self, run: Run) -> float | None:
        """One step that lowers f."""
        self.verdict = ""
        if run.plan.second is None:
            return None
        if self.look is None:
            self.look = run.look()
            self.Q = np.eye(run.shape.n)
            self.angle, self.second = self.radius, None
        look = self.look
        if look.slopes is None or look.curvatures is None:
            return None
        scale = run.objective.scale
        noise = max(32 * EPS, run.plan.rounding) * max(scale, abs(look.value))
        fresh = False
        while self.radius >= LEAST:
            if self.second is None:
                self.second, fresh = run.plan.second(run.state, self.Q), True
                run.progress.flops += self.second.flops
            model = _minimum(look, self.second, self.radius, min(max(self.angle**2, EXACT), INEXACT))
            if model.promised <= run.tol * scale:
                self.verdict = f"converged: Newton's next step would gain at most {run.tol:g} times the scale"
                return None
            Q = turned(self.Q, model.step)
            there = run.look_at(Q)
            fall = look.value - there.value
            kept = fall / model.promised
            if fall <= 0 and not fresh:
                # Those of an earlier place are to blame.
                self.second = None
                continue
            self.angle = float(np.abs(model.step).max())
            if kept < POOR:
                self.radius = 0.3 * self.angle
            elif kept > GOOD and model.bounded:
                self.radius = min(2.0 * self.radius, LARGEST)
            if fall > 0:
                self.Q, self.look = Q, there
                if self.angle > SMALL or kept < GOOD:
                    self.second = None
                run.arrive(Q, there)
                return fall
            if model.promised <= 16 * noise:
                break
        self.verdict = "converged: no step lowers f by more than its rounding errors"
        return None

    def describe(self, steps: int, run: Run) -> str:
        """As "4 steps of Newton's method"."""
        return f"{counted(steps, 'step', 'steps')} of Newton's method"

    def forget(self) -> None:
        """The state was made anew, so the next look is one at it."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The radius."""
        return {"radius": np.array(self.radius)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Go on with this radius."""
        self.radius = float(np.clip(arrays["radius"], LEAST, LARGEST))


class _Model(NamedTuple):
    """The minimum of the quadratic function: where it is, how much it promises, and whether the radius or a bend ended it."""

    step: np.ndarray
    promised: float
    bounded: bool


def _minimum(look: Look, second: Second, radius: float, little: float) -> _Model:
    """Conjugate gradients, preconditioned by the curvatures of the pairs, down to so small a share of the squared slopes."""
    assert look.slopes is not None
    assert look.curvatures is not None
    sizes = np.abs(look.curvatures)
    np.fill_diagonal(sizes, 0.0)
    weights = 1.0 / np.maximum(sizes, LEAST_CURVATURE * (float(sizes.max()) or 1.0))
    # K_ji is the angle of the pair (i, j), of which slopes[i, j] is the slope.
    left = look.slopes.T.copy()
    K, bent = np.zeros_like(left), np.zeros_like(left)
    direction = -weights * left
    size = first = -_inner(left, direction)
    bounded = False
    for _ in range(MOST_PRODUCTS):
        if size <= little * first or size == 0.0:
            break
        image = second.product(direction)
        curvature = _inner(direction, image)
        length = size / curvature if curvature > 0 else np.inf
        room = _room(K, direction, radius)
        bounded = length >= room
        length = min(length, room)
        K += length * direction
        bent += length * image
        if bounded:
            break
        left += length * image
        preconditioned = weights * left
        before, size = size, _inner(left, preconditioned)
        direction *= size / before
        direction -= preconditioned
    promised = -_inner(look.slopes.T, K) - 0.5 * _inner(K, bent)
    return _Model(K, promised, bounded)


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product over pairs, each of which is in a matrix twice."""
    return 0.5 * float(np.vdot(a, b))


def _room(K: np.ndarray, direction: np.ndarray, radius: float) -> float:
    """How far one can go from K along a direction until an angle has the size of the radius."""
    ahead = (radius - K * np.sign(direction)) / np.maximum(np.abs(direction), TINY)
    return max(float(ahead.min()), 0.0)
