"""Newton's method: steps of all columns at once, from all second derivatives.

    U ← U exp(K),  K antisymmetric, the minimum of  ⟨g, K⟩ + ½ ⟨K, H K⟩  over angles of at most a radius

Where f is nearly flat in some directions, quasi-Newton methods take hundreds of steps along them. With the second derivatives a
few steps end the run. They cost as much as several looks, so this phase follows descent, and keeps them while steps are small.

The minimum is found by conjugate gradients (`conjugate_gradients`). The radius is reduced or doubled by the ratio of the actual
to the predicted decrease of f; a step that does not lower f is not made. Values and derivatives that are not finite end the run
(`NotFinite`): no comparison with NaN holds, so the radius would never be reduced.
"""

from __future__ import annotations

import math

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Look, NotFinite, Second
from givens.result import Stop
from givens.solve.conjugate_gradients import bounded_minimum
from givens.solve.phase import Phase
from givens.solve.point import Move
from givens.solve.run import Run
from givens.solve.state import Ending

FIRST, LARGEST, LEAST = 0.3, 0.8, 1e-9  # the first radius and its bounds, in radians
LEAST_CURVATURE = 0.01  # share of the largest curvature of a pair to which smaller ones are raised
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius
SMALL = 0.05  # after a step of angles below this, in radians, the second derivatives are kept
EXACT, INEXACT = 1e-3, 1e-2  # bounds of the share of the squared slopes at which conjugate gradients stop


class Newton(Phase):
    """Newton's method with a trust region, for objectives with second derivatives."""

    name = "newton"

    def __init__(self) -> None:
        self.radius = FIRST
        self.look: Look | None = None
        self.second: Second | None = None

    def advance(self, run: Run) -> float | Ending:
        """Make one step that lowers f."""
        if run.plan.second is None:
            return self._lacking("second derivatives (Plan.second)")
        if self.look is None:
            self.look = _finite(run.look())
            self.angle, self.second = self.radius, None
        look = self.look
        if look.slopes is None or look.curvatures is None:
            lacking = "slopes" if look.slopes is None else "curvatures"
            return self._lacking(f"{lacking} (Look.{lacking})")
        scale = run.objective.scale
        noise = max(32 * EPS, run.plan.rounding) * max(scale, abs(look.value))
        fresh = False
        while self.radius >= LEAST:
            if self.second is None:
                rotation = np.eye(run.shape.n) if run.point.rotation is None else run.point.rotation
                self.second, fresh = run.plan.second(run.state, rotation), True
                run.progress.flops += self.second.flops
            model = bounded_minimum(
                look.slopes,
                _weights(look.curvatures, run.shape.active),
                self.second.product,
                self.radius,
                min(max(self.angle**2, EXACT), INEXACT),
            )
            if not math.isfinite(model.promised):
                raise NotFinite("the second derivatives must be finite, but a product of Plan.second is not")
            if model.promised <= run.tol * scale:
                return Ending(Stop.SMALL_STEP, limit=run.tol, phase=self.name)
            point = run.point.moved(Move(model.promised, 1.0, model.step))
            there = _finite(run.look_at(point))
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
                self.look = there
                if self.angle > SMALL or kept < GOOD:
                    self.second = None
                run.arrive(point, there)
                return fall
            if model.promised <= 16 * noise:
                break
        return Ending(Stop.ROUNDING, phase=self.name)

    def _lacking(self, what: str) -> Ending:
        return Ending(Stop.LACKING, phase=self.name, text=f"the objective has no {what}")

    def forget(self) -> None:
        """Discard the look, so that the next one is at the recomputed state."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The radius."""
        return {"radius": np.array(self.radius)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore the radius."""
        self.radius = float(arrays["radius"])


def _finite(look: Look) -> Look:
    """The look, if its value and its slopes are finite."""
    if not math.isfinite(look.value):
        raise NotFinite(
            f"f must be finite for every orthogonal matrix, but look() returned {look.value} for one"
        )
    if look.slopes is not None and not np.isfinite(look.slopes).all():
        raise NotFinite("the slopes of look() must be finite, but some are NaN or infinite")
    return look


def _weights(curvatures: np.ndarray, active: int) -> np.ndarray:
    """The inverses of the curvatures of pairs, small ones raised."""
    sizes = np.abs(curvatures)
    np.fill_diagonal(sizes, 0.0)
    sizes[active:, active:] = 0.0
    largest = float(sizes.max())
    if not math.isfinite(largest):
        raise NotFinite("the curvatures of look() must be finite, but some are NaN or infinite")
    return 1.0 / np.maximum(sizes, LEAST_CURVATURE * (largest or 1.0))
