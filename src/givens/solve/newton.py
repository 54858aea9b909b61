"""Newton's method: steps of all columns at once, from all second derivatives.

    U ← U exp(K),  K antisymmetric, the minimum of  ⟨g, K⟩ + ½ ⟨K, H K⟩  over angles of at most a radius

Where f is nearly flat in some directions, quasi-Newton methods take hundreds of steps along them. With the second derivatives a
few steps end the run. They cost as much as several looks, so this phase follows descent.

The minimum and the radius are those of `trust_region`; a step that does not lower f is not made. Near the minimum values are
rounding errors, and the predicted gains decide: a run has converged when they are next to nothing, or no longer become smaller.
Slopes alone would not tell: where curvatures differ by a factor of 1e14, small slopes may still promise a large gain. Values and
derivatives that are not finite end the run (`NotFinite`): no comparison with NaN holds, so the radius would never be reduced.
"""

from __future__ import annotations

import math

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Look, NotFinite
from givens.result import Stop
from givens.solve.point import MAX_ANGLE, Move
from givens.solve.run import Phase, Run
from givens.solve.state import Ending
from givens.solve.trust_region import (
    FIRST_RADIUS,
    MAX_PRODUCTS,
    Exact,
    Minimum,
    QuadraticModel,
    Truncated,
    inverse_curvatures,
)

MIN_RADIUS = 1e-9
"""In radians: shorter steps change f by its rounding errors."""


class Newton(Phase):
    """Newton's method with a trust region, for objectives with second derivatives."""

    name = "newton"

    def __init__(self) -> None:
        self.radius = FIRST_RADIUS
        self.unseen_gain = math.inf  # predicted for the last step, if values could not judge it

    def advance(self, run: Run) -> float | Ending:
        """Make one step that lowers f."""
        look = _finite(run.look())
        if run.objective.second is None:
            return Ending(Stop.LACKING, text="the objective has no second derivatives (Objective.second)")
        if look.slopes is None:
            return Ending(Stop.LACKING, text="the objective has no slopes (Look.slopes)")
        model = self._model(run, look, look.slopes)
        tol, noise = run.tol * run.objective.scale, 32 * EPS * abs(look.value)
        while self.radius >= MIN_RADIUS:
            step = model.minimum(look.slopes, self.radius)
            if not math.isfinite(step.promised):
                raise NotFinite("the second derivatives must be finite, but a product of them is not")
            # A model that is trusted nearby only may promise more further away.
            most = (
                _most(model, look.slopes)
                if step.bounded and step.promised <= max(tol, noise)
                else step.promised
            )
            if most <= tol:
                return Ending(Stop.SMALL_STEP, run.tol)
            if 0.5 * self.unseen_gain < most <= noise:
                return Ending(Stop.ROUNDING)
            gain = self._try(run, look, step, noise)
            if gain is not None:
                return gain
        # Steps are tiny, since values are rounding errors, or since the second derivatives are not those of f.
        rounding = _most(model, look.slopes) <= max(noise, 32 * EPS * run.objective.scale)
        return Ending(Stop.ROUNDING if rounding else Stop.EXHAUSTED)

    def _try(self, run: Run, look: Look, step: Minimum, noise: float) -> float | None:
        """Set the radius by what a step gains, and make the step if it lowers f."""
        point = run.point.moved(Move(step.promised, 1.0, step.step))
        there = _finite(run.look_at(point))
        fall = look.value - there.value
        # Values cannot judge a gain below their rounding errors; the gain that is predicted next will.
        unseen = step.promised <= noise and not step.bounded and fall >= -noise
        if not unseen:
            self.radius = step.next_radius(self.radius, fall)
        if not (fall > 0 or unseen):
            return None
        self.unseen_gain = step.promised if unseen else math.inf
        run.go_to(point, there)
        return fall

    def _model(self, run: Run, look: Look, slopes: np.ndarray) -> QuadraticModel:
        """The second derivatives at the present U."""
        assert run.objective.second is not None
        rotation = np.eye(run.shape.n) if run.point.rotation is None else run.point.rotation
        product = run.objective.second(run.state, rotation)
        if look.curvatures is not None:
            return Truncated(product, _weights(look.curvatures, run.shape.active))
        return (
            Exact(product, run.shape.n)
            if run.pairs <= MAX_PRODUCTS
            else Truncated(product, np.ones_like(slopes))
        )

    def memory(self) -> dict[str, np.ndarray]:
        """The radius, and the gain that values could not judge."""
        return {"newton": np.array([self.radius, self.unseen_gain])}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore them."""
        self.radius, self.unseen_gain = arrays["newton"].tolist()


def _most(model: QuadraticModel, slopes: np.ndarray) -> float:
    """The most that the model predicts a step to gain."""
    return model.minimum(slopes, MAX_ANGLE).promised


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
    """The inverses of the curvatures of pairs, of which those of inactive columns are not read."""
    sizes = np.abs(curvatures)
    np.fill_diagonal(sizes, 0.0)
    sizes[active:, active:] = 0.0
    largest = float(sizes.max())
    if not math.isfinite(largest):
        raise NotFinite("the curvatures of look() must be finite, but some are NaN or infinite")
    return inverse_curvatures(sizes, largest)
