"""Descent: quasi-Newton steps of all columns at once.

    U ← U exp(Θ),  Θ antisymmetric: an angle for every pair of columns

The slopes g of all pairs are the gradient of f with respect to these angles. The angles of a step are −H g, where H is
estimated from the curvatures of the pairs, if the objective has them, and from the last steps (`quasi_newton`). If f is a
quadratic function, the steps tell more, and a model that learns faster soon replaces H (`kronecker_model`). Steps and slopes are
expressed in the moving columns, so that those of different steps can be compared directly. The exponential is replaced by
Cayley's transform, which agrees with it to second order and is orthogonal up to rounding errors. Functions of few columns have
coordinates of their own (`point`).

A step is accepted if f decreases by a share of what the slopes predict. Close to the minimum, where the decrease is smaller
than the rounding errors of f, the slopes decide. The state is not changed: each look rotates the data by the product of all
steps so far, and the state is recomputed when the phase ends.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Look
from givens.result import Stop
from givens.solve.kronecker_model import MAX_ORDER, MIN_ORDER, KroneckerModel
from givens.solve.point import Move, Point, Stiefel
from givens.solve.quasi_newton import Memory
from givens.solve.run import Phase, Run
from givens.solve.state import Ending
from givens.solve.trust_region import inverse_curvatures

ARMIJO, WOLFE = 1e-4, 0.9
"""A step must reach this share of the predicted decrease; it was too short if more than that share of the slope is left."""

MAX_TRIALS = 25
"""Lengths of a step that are tried: more than enough for halving it to rounding errors of its angles."""

HAND_OVER_GAIN = 1e-6
"""Predicted gain, relative to the scale, below which a phase "newton" takes over."""

CACHE_NUMBERS = 200_000
"""Numbers that a cache holds: longer memories of steps take more time than the evaluations that they save."""


class Trial(NamedTuple):
    """Where a step leads: its angles, the point, the look and the slopes there, and by how much f fell."""

    angles: np.ndarray
    point: Point
    look: Look
    slopes: np.ndarray
    fall: float


class Descent(Phase):
    """Limited-memory BFGS over the angles of all pairs, with a line search."""

    name = "descent"

    def __init__(self) -> None:
        self.begun = False
        self.restarted = math.inf  # the value at the last restart

    def _begin(self, run: Run, curved: bool, quadratic: bool) -> None:
        """Prepare for an objective whose looks have curvatures, or the gradient that a model learns from."""
        self.n = run.shape.n
        self.pairs = run.point.pairs
        self.scale = run.objective.scale
        phases = run.options.phases
        following = phases[phases.index(self.name) + 1 :]
        self.before_newton = following[:1] == ("newton",) and run.objective.second is not None
        self.curved = curved
        # With curvatures ten steps are enough. Without them, as many as a cache holds, between 20 and 60; fewer of the largest.
        size = len(self.pairs)
        most = 10 if curved else min(max(CACHE_NUMBERS // (2 * size), 20), 60)
        self.past = Memory(size, max(3, min(most, 5 * CACHE_NUMBERS // size)))
        quadratic = quadratic and not isinstance(run.point, Stiefel) and not self.before_newton
        self.model = KroneckerModel(self.n) if quadratic and MIN_ORDER <= self.n <= MAX_ORDER else None
        self.begun = True

    def advance(self, run: Run) -> float | Ending:
        """Make one step that lowers f."""
        look = run.look()
        if look.slopes is None:
            return Ending(Stop.LACKING, text="the objective has no slopes (Look.slopes)")
        if not self.begun:
            self._begin(run, look.curvatures is not None, look.gradient is not None)
        self.g = look.slopes.take(self.pairs)
        # Rounding error of f.
        self.noise = 32 * EPS * max(self.scale, abs(look.value))
        outcome = self._by_model(run, look)
        if outcome is not None:
            return outcome
        direction, step = self._direction(run, look)
        outcome = self._too_small(run, look, step.promised)
        if outcome is not None:
            return outcome
        gain = self._search(run, look, direction, step)
        if gain is None and len(self.past):
            self.past.clear()
            gain = self._search(run, look, *self._direction(run, look))
        # The prediction of the first direction counts: the second one has no memory of curvatures.
        return self._no_step(look, step.promised) if gain is None else gain

    def _too_small(self, run: Run, look: Look, promised: float) -> float | Ending | None:
        """What to do if a step is predicted to gain next to nothing, or so little that Newton's method is to follow; or None."""
        slow = self.before_newton and 0.5 * promised <= HAND_OVER_GAIN * self.scale
        if slow and look.curvatures is None and run.progress.steps:
            return Ending(Stop.SLOW)
        if 0.5 * promised <= run.tol * self.scale and not self._begins_anew(look):
            return self._at_rest(run, look)
        if promised <= 16 * self.noise and self._squared_share(look) <= 0.25 * EPS**2 * self.n:
            return Ending(Stop.ROUNDING)  # so are the slopes, those of EᵀU − UᵀE
        return Ending(Stop.SLOW) if slow else None

    def _no_step(self, look: Look, promised: float) -> Ending:
        """Why the phase is over, if no step lowers f: the most that one was predicted to gain may be rounding."""
        if self._has_kink(look):
            return Ending(Stop.KINK)
        return Ending(Stop.ROUNDING if promised <= 16 * self.noise else Stop.EXHAUSTED)

    def _by_model(self, run: Run, look: Look) -> float | Ending | None:
        """Make the best step of the model; None if it knows too little, or if no step lowers f."""
        if self.model is None:
            return None
        expected = 0.0
        for _ in range(MAX_TRIALS):
            step = self.model.propose(run.point.transposed, look)
            if step is None:
                return None
            expected = max(expected, step.promised)
            if step.promised <= run.tol * self.scale:
                return self._at_rest(run, look)
            trial = self._try(run, look, step.step.T.take(self.pairs), Move(step.promised, 1.0, step.step))
            fall = trial.fall
            if step.promised <= 16 * self.noise:
                # The decrease is below the rounding error of f, so the slopes decide.
                flatter = float(trial.slopes @ trial.slopes) <= WOLFE * float(self.g @ self.g)
                fall = step.promised if fall >= -self.noise and flatter else 0.0
            self.model.radius = step.next_radius(self.model.radius, fall)
            if fall > ARMIJO * step.promised:
                return self._take(run, trial)
            if step.promised <= self.noise:
                break
        # Conjugate gradients may not have found the best step of the model, so there may be a better one.
        self.model.clear()
        ending = self._no_step(look, expected)
        return ending if ending.stop is Stop.ROUNDING else None

    def _try(self, run: Run, look: Look, angles: np.ndarray, move: Move, length: float = 1.0) -> Trial:
        """Look at where a step leads; the model learns from it."""
        point = run.point.moved(move, length)
        there = run.look_at(point)
        if self.model is not None and not self.model.dropped and there.gradient is not None:
            self.model.learn(point.transposed - run.point.transposed, look, there)
        assert there.slopes is not None
        slopes = there.slopes.take(self.pairs)
        return Trial(angles, point, there, slopes, look.value - there.value)

    def _direction(self, run: Run, look: Look) -> tuple[np.ndarray, Move]:
        """The angles −H g of a step, and the step."""
        weights: np.ndarray | float | None = None
        if look.curvatures is not None:
            sizes = np.abs(look.curvatures.take(self.pairs))
            weights = inverse_curvatures(sizes, float(sizes.max()))
        elif not len(self.past):
            weights = 0.2 / (run.point.largest(self.g) or 1.0)
        direction = self.past.solve(self.g, weights)
        step = run.point.aim(direction, self.g)
        if step.promised <= 0.0 and len(self.past):
            self.past.clear()
            return self._direction(run, look)
        return direction, step

    def _search(self, run: Run, look: Look, direction: np.ndarray, step: Move) -> float | None:
        """Line search: make a multiple of the step and return its gain; None if f does not decrease."""
        length, best = 1.0, None
        for _ in range(MAX_TRIALS):
            trial = self._try(run, look, length * direction, step, length)
            slope = float(trial.slopes @ direction)
            if self._decreases(trial, slope, step.promised, length):
                if best is not None and not trial.look.value < best.look.value:
                    break
                best = trial
                # Where f is still about as steep as at the start, the step was too short.
                if slope > -WOLFE * step.promised or length >= step.longest:
                    break
                length = min(length * _longer(slope, step.promised), step.longest)
            elif best is not None:
                break
            else:
                length *= _shorter(trial.fall, slope, step.promised, length)
        return None if best is None else self._take(run, best)

    def _decreases(self, trial: Trial, slope: float, promised: float, length: float) -> bool:
        """Whether f decreases by a share of what was predicted or, where that is below its rounding errors, the slope does."""
        if trial.fall >= ARMIJO * length * promised:
            return True
        unseen = length * promised <= 16 * self.noise and trial.fall >= -self.noise
        return unseen and abs(slope) <= WOLFE * promised

    def _take(self, run: Run, trial: Trial) -> float:
        """Move to where a trial was, and learn from the step."""
        self.past.add(trial.angles, trial.slopes - self.g)
        run.go_to(trial.point, trial.look)
        return trial.fall

    def _at_rest(self, run: Run, look: Look) -> float | Ending:
        """End the phase, since the slopes predict no gain, unless there is one that the prediction does not see.

        Where curvatures are known, that is a pair of negative curvature. Else the prediction knows only the curvatures along
        earlier steps, and where slopes are still large, f is much flatter in other directions, or has a kink.
        """
        outcome: float | Ending | None = None
        if look.curvatures is not None:
            bends = look.curvatures.take(self.pairs)
            pair = int(np.argmin(bends))
            if bends[pair] < -1e-8 * float(np.abs(bends).max()):
                # `aim` steps along minus the direction.
                direction = np.zeros(len(bends))
                direction[pair] = math.copysign(1.0, self.g[pair])
                outcome = self._leave(run, look, direction)
        elif not run.stop_share:
            outcome = self._look_further(run, look)
        return Ending(Stop.SMALL_STEP, run.tol) if outcome is None else outcome

    def _look_further(self, run: Run, look: Look) -> float | Ending | None:
        """Where curvatures are unknown: the gain of a new beginning, why the phase is over, or None if f is at rest."""
        if self._steep(look):
            gain = self._restart(run, look)
            if gain is not None:
                return gain
            if self._has_kink(look):
                return Ending(Stop.KINK)
        if run.progress.steps:
            return None
        # All slopes vanish at the start, which need not be a minimum: leave it, or leave it to the next phase.
        gain = self._leave(run, look, np.random.default_rng(0).standard_normal(len(self.g)))
        if gain is not None:
            return gain
        return Ending(Stop.SADDLE if isinstance(run.point, Stiefel) else Stop.STATIONARY)

    def _squared_share(self, look: Look) -> float:
        """The square of the share that the slopes are of the gradient; NaN if that is unknown."""
        if look.gradient is None:
            return math.nan
        return float(self.g @ self.g) / (float(np.vdot(look.gradient, look.gradient)) or 1.0)

    def _steep(self, look: Look) -> bool:
        """Whether the slopes are a share of the gradient that a minimum of a smooth function does not have: 1e-4."""
        return self._squared_share(look) > 1e-8

    def _begins_anew(self, look: Look) -> bool:
        """Whether there was a restart a few steps ago: they follow the largest curvatures, and say nothing of the others.

        By 10 steps in place of 20, 9 of 160 runs end too early.
        """
        restarted = 0 < len(self.past) < 20 and self.restarted < math.inf
        return restarted and self._steep(look) and float(self.g @ self.g) > self.noise**2

    def _has_kink(self, look: Look) -> bool:
        """Whether steep slopes are also large: those of a function that vanishes with its gradient are not."""
        return self._steep(look) and float(self.g @ self.g) > (1e-6 * self.scale) ** 2

    def _restart(self, run: Run, look: Look) -> float | None:
        """Forget all steps, and make one along the slopes; None if the last restart gained next to nothing for such slopes."""
        if self.restarted - look.value < 2e-5 * math.sqrt(float(self.g @ self.g)):
            return None
        self.restarted = look.value
        self.past.clear()
        if self.model is not None:
            self.model.clear()
        return self._search(run, look, *self._direction(run, look))

    def _leave(self, run: Run, look: Look, direction: np.ndarray) -> float | None:
        """Leave a point without slopes along a direction, if f bends downwards along it; None if it does not."""
        direction *= 0.01 / run.point.largest(direction)
        step = run.point.aim(direction, self.g)
        there = run.look_at(run.point.moved(step))
        if look.value - there.value <= 16 * self.noise:
            return None
        self.past.clear()
        return self._search(run, look, direction, step)

    def memory(self) -> dict[str, np.ndarray]:
        """The remembered steps, and the model."""
        if not self.begun:
            return {}
        arrays = self.past.arrays()
        arrays["restarted"], arrays["curved"] = np.array(self.restarted), np.array(self.curved)
        if self.model is not None:
            arrays |= self.model.arrays()
        return arrays

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore the remembered steps, and the model."""
        if arrays:
            self._begin(run, bool(arrays["curved"]), "kronecker_model" in arrays)
            self.past.restore(arrays)
            self.restarted = float(arrays["restarted"])
            if self.model is not None:
                self.model.restore(arrays)


def _longer(slope: float, promised: float) -> float:
    """The factor for a step that was too short: where the slope would vanish, between 1.5 and 4."""
    further = promised / (promised + slope) if promised + slope > 0 else 4.0
    return min(max(further, 1.5), 4.0)


def _shorter(fall: float, slope: float, promised: float, step: float) -> float:
    """The factor for a step that was too long: the minimum of the cubic through both ends, between 0.1 and 0.5."""
    if not np.isfinite(fall) or not np.isfinite(slope):
        return 0.1
    # The cubic with values 0 and −fall and slopes −promised and `slope` at 0 and `step`, in units of the step.
    p, q, h = -promised * step, slope * step, -fall
    cubic, square = p + q - 2 * h, 3 * h - 2 * p - q
    root = square * square - 3 * cubic * p
    if root < 0:
        return 0.5
    denominator = square + np.sqrt(root)
    best = -p / denominator if denominator > 0 else 0.5
    return float(min(max(best, 0.1), 0.5))
