"""Newton's method: steps of all columns at once, from all second derivatives.

    U ← U exp(K),  K antisymmetric, the minimum of  ⟨g, K⟩ + ½ ⟨K, H K⟩  over angles of at most a radius

Where f is nearly flat in some directions, quasi-Newton methods take hundreds of steps along them. With the second derivatives a
few steps end the run. They cost as much as several looks, so this phase follows descent, and keeps them while steps are small.

The minimum is found by conjugate gradients with the product H K (Steihaug 1983). They end at the radius or at a direction of
negative curvature, so H need not be positive definite. The radius is reduced or doubled by the ratio of the actual to the
predicted decrease of f; a step that does not lower f is not made.
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

FIRST, LARGEST, LEAST = 0.3, 0.8, 1e-9  # the first radius and its bounds, in radians
LEAST_CURVATURE = 0.01  # share of the largest curvature of a pair to which smaller ones are raised
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius
SMALL = 0.05  # after a step of angles below this, in radians, the second derivatives are kept
EXACT, INEXACT = 1e-3, 1e-2  # bounds of the share of the squared slopes at which conjugate gradients stop
MOST_PRODUCTS = 500
EPS = float(np.finfo(np.float64).eps)
TINY = 1e-290


class Newton(Phase):
    """Newton's method with a trust region, for objectives with second derivatives."""

    name = "newton"

    def __init__(self) -> None:
        self.radius = FIRST
        self.look: Look | None = None
        self.second: Second | None = None

    def advance(self, run: Run) -> float | None:
        """Make one step that lowers f."""
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
                # The second derivatives are those of an earlier U: recompute them.
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
        """For example "4 steps of Newton's method"."""
        return f"{counted(steps, 'step', 'steps')} of Newton's method"

    def forget(self) -> None:
        """Discard the look, so that the next one is at the recomputed state."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The radius."""
        return {"radius": np.array(self.radius)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore the radius."""
        self.radius = float(np.clip(arrays["radius"], LEAST, LARGEST))


class _Model(NamedTuple):
    """The step to the minimum of the quadratic model, the predicted decrease, and whether the step ends at the radius."""

    step: np.ndarray
    promised: float
    bounded: bool


def _minimum(look: Look, second: Second, radius: float, little: float) -> _Model:
    """Conjugate gradients, preconditioned by the curvatures of pairs, until a share `little` of the squared slopes is left."""
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
    """The inner product over pairs, each of which occurs twice in an antisymmetric matrix."""
    return 0.5 * float(np.vdot(a, b))


def _room(K: np.ndarray, direction: np.ndarray, radius: float) -> float:
    """The largest multiple of a direction that can be added to K until an angle reaches the radius."""
    ahead = (radius - K * np.sign(direction)) / np.maximum(np.abs(direction), TINY)
    return max(float(ahead.min()), 0.0)
