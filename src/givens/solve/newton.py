"""Newton's method: steps of all columns at once, from all second derivatives.

    U ← U exp(K),  K antisymmetric, the minimum of  ⟨g, K⟩ + ½ ⟨K, H K⟩  over angles of at most a radius

Where f is nearly flat in some directions, quasi-Newton methods take hundreds of steps along them. With the second derivatives a
few steps end the run. They cost as much as several looks, so this phase follows descent.

The minimum is found by `quadratic_models`. The radius is reduced or doubled by the ratio of the actual to the predicted decrease
of f; a step that does not lower f is not made. Near the minimum values are rounding errors, and the predicted gains decide: a run
has converged when they are next to nothing, or no longer become smaller. Slopes alone would not tell: where curvatures differ by
a factor of 1e14, small slopes may still promise a large gain. Values and derivatives that are not finite end the run
(`NotFinite`): no comparison with NaN holds, so the radius would never be reduced.
"""

from __future__ import annotations

import math

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Look, NotFinite
from givens.result import Stop
from givens.solve.conjugate_gradients import MOST_PRODUCTS, Minimum
from givens.solve.phase import Phase
from givens.solve.point import Move
from givens.solve.quadratic_models import Exact, QuadraticModel, Truncated
from givens.solve.run import Run
from givens.solve.state import Ending

FIRST, LARGEST, LEAST = 0.3, 0.8, 1e-9  # the first radius and its bounds, in radians
LEAST_CURVATURE = 0.01  # share of the largest curvature of a pair to which smaller ones are raised
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius
SMALL = 0.05  # after a step below this, in radians, conjugate gradients keep the second derivatives
EXACT, INEXACT = 1e-3, 1e-2  # bounds of the share of the squared slopes at which conjugate gradients stop


class Newton(Phase):
    """Newton's method with a trust region, for objectives with second derivatives."""

    name = "newton"

    def __init__(self) -> None:
        self.radius = FIRST
        self.look: Look | None = None
        self.model: QuadraticModel | None = None

    def advance(self, run: Run) -> float | Ending:
        """Make one step that lowers f."""
        if run.objective.second is None:
            return self._ending(
                Stop.LACKING, text="the objective has no second derivatives (Objective.second)"
            )
        if self.look is None:
            self.look = _finite(run.look())
            self.length, self.model, self.unseen_gain = self.radius, None, math.inf
        if self.look.slopes is None:
            return self._ending(Stop.LACKING, text="the objective has no slopes (Look.slopes)")
        fresh = False
        while self.radius >= LEAST:
            if self.model is None:
                self.model, fresh = self._model(run, self.look), True
            step = self.model.minimum(self.look.slopes, self.radius, self._share())
            if not math.isfinite(step.promised):
                raise NotFinite("the second derivatives must be finite, but a product of them is not")
            outcome: float | Ending | None = self._at_rest(run, self.look, step)
            if outcome is None:
                outcome = self._try(run, self.look, step, fresh)
            if outcome is not None:
                return outcome
        return self._no_step(run, self.look)

    def _try(self, run: Run, look: Look, step: Minimum, fresh: bool) -> float | None:
        """Make the step and return its gain; or take up new second derivatives, or a smaller radius, and return None."""
        assert self.model is not None
        point = run.point.moved(Move(step.promised, 1.0, step.step))
        there = _finite(run.look_at(point))
        fall = look.value - there.value
        unseen = self._is_unseen(look, step, fall)
        lower = fall > 0 or unseen
        if not lower and not fresh:
            # The second derivatives are those of an earlier U: recompute them.
            self.model = None
            return None
        kept, self.length = fall / step.promised, self.model.length(step.step)
        if not unseen:
            self._judge(kept, step.bounded)
        if not lower:
            return None
        self.unseen_gain, self.look = step.promised if unseen else math.inf, there
        if self.length > SMALL or kept < GOOD or not self.model.lasting:
            self.model = None
        run.go_to(point, there)
        return fall

    def _is_unseen(self, look: Look, step: Minimum, fall: float) -> bool:
        """Whether values cannot judge a step, since it gains less than their rounding errors; the gain predicted next will."""
        noise = _noise(look)
        return step.promised <= noise and not step.bounded and fall >= -noise

    def _judge(self, kept: float, bounded: bool) -> None:
        """Set the radius by the ratio of the actual to the predicted decrease."""
        if kept < POOR:
            self.radius = 0.3 * self.length
        elif kept > GOOD and bounded:
            self.radius = min(2.0 * self.radius, LARGEST)

    def _no_step(self, run: Run, look: Look) -> Ending:
        """Why no step is made: it is tiny, so values are rounding errors, or the second derivatives are not those of f."""
        noise = max(_noise(look), 32 * EPS * run.objective.scale)
        rounding = self.model is None or self._longest_gain(look) <= noise
        return self._ending(Stop.ROUNDING if rounding else Stop.EXHAUSTED)

    def _model(self, run: Run, look: Look) -> QuadraticModel:
        """The second derivatives at the present U."""
        assert run.objective.second is not None
        assert look.slopes is not None
        rotation = np.eye(run.shape.n) if run.point.rotation is None else run.point.rotation
        product = run.objective.second(run.state, rotation)
        if look.curvatures is not None:
            return Truncated(product, _weights(look.curvatures, run.shape.active))
        if run.pairs <= MOST_PRODUCTS:
            return Exact(product, run.shape.n)
        return Truncated(product, np.ones_like(look.slopes))

    def _share(self) -> float:
        """The share of the squared slopes at which conjugate gradients stop."""
        return min(max(self.length**2, EXACT), INEXACT)

    def _longest_gain(self, look: Look) -> float:
        """The gain that the model predicts for a step of the largest radius."""
        assert self.model is not None
        assert look.slopes is not None
        return self.model.minimum(look.slopes, LARGEST, self._share()).promised

    def _at_rest(self, run: Run, look: Look, step: Minimum) -> Ending | None:
        """Why the run has converged: the model predicts next to nothing, or rounding errors that no longer become smaller."""
        tol, noise = run.tol * run.objective.scale, _noise(look)
        if step.promised > max(tol, noise):
            return None
        gain = self._longest_gain(look) if step.bounded else step.promised
        if gain <= tol:
            return self._ending(Stop.SMALL_STEP, run.tol)
        if gain <= noise and gain > 0.5 * self.unseen_gain:
            return self._ending(Stop.ROUNDING)
        return None

    def forget(self) -> None:
        """Discard the look, so that the next one is at the recomputed state."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The radius."""
        return {"radius": np.array(self.radius)}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore the radius."""
        self.radius = float(arrays["radius"])


def _noise(look: Look) -> float:
    """The rounding error of a value."""
    return 32 * EPS * abs(look.value)


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
