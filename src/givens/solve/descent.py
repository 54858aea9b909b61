"""Descent: quasi-Newton steps of all columns at once.

    U ← U exp(Θ),  Θ antisymmetric: an angle for every pair of columns

The slopes g of all pairs are the gradient of f with respect to these angles. The angles of a step are −H g, where H is
estimated from the curvatures of the pairs, if the objective has them, and from the last steps (`quasi_newton`). If f is a
quadratic function, the steps tell more, and a model that learns faster soon replaces H (`kronecker_model`). Steps and slopes are
expressed in the moving columns, so that those of different steps can be compared directly. The exponential is replaced by
Cayley's transform, which agrees with it to second order and is orthogonal up to rounding errors. Functions of few columns have
coordinates of their own (`charts`).

A step is accepted if f decreases by a share of what the slopes predict. Close to the minimum, where the decrease is smaller
than the rounding errors of f, the slopes decide. The state is not changed: each look rotates the data by the product of all
steps so far, and the state is recomputed when the phase ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from givens.numerics.cayley import turned
from givens.numerics.scaling import EPS
from givens.objectives.base import Look
from givens.solve.charts import LARGEST_ANGLE, Chart, Place, SquareChart, StiefelChart
from givens.solve.kronecker_model import LEAST_ORDER, MOST_ORDER, KroneckerModel
from givens.solve.phase import Phase
from givens.solve.quasi_newton import Memory
from givens.support.arguments import counted

if TYPE_CHECKING:
    from givens.solve.loop import Run

FIRST = 0.2  # the largest angle of the first step, if curvatures are unknown
LEAST_CURVATURE = 0.01  # share of the largest curvature to which smaller ones are raised
SUFFICIENT = 1e-4  # share of the predicted decrease that a step must reach (Armijo)
STEEP = 0.9  # a step was too short if more than this share of the slope is left at its end (Wolfe)
TRIALS = 25
STEEP_AT_REST = 1e-4  # share of the gradient above which slopes are too large for a minimum
PROBE = 1e-3  # the angle of the step that tests whether the start is a maximum
RESTARTED = 10  # steps after a restart for which descent does not end where slopes are steep
HOPED = 1e-4  # a restart should gain this share of what the slopes promise
KINK = 1e-6  # steep slopes, relative to the scale, above which f has a kink
HAND_OVER = 1e-6  # predicted gain, relative to the scale, below which a phase "newton" takes over
SOME = 10  # steps that are remembered if curvatures are known
FEW, MANY = 20, 60  # if they are unknown, as many as a cache holds, between these bounds
CACHE, MOST_NUMBERS = 200_000, 2_000_000  # sizes of a memory that lies in a cache, and of the largest one


class Descent(Phase):
    """Limited-memory BFGS over the angles of all pairs, with a line search."""

    name = "descent"

    def __init__(self) -> None:
        self.begun = False
        self.look: Look | None = None
        self.restarted = math.inf  # the value at the last restart

    def _begin(self, run: Run, look: Look) -> None:
        n, active = run.shape
        self.n = n
        self.chart: Chart = (StiefelChart if run.plan.stiefel else SquareChart)(n, active)
        self.pairs = self.chart.pairs
        self.scale = run.objective.scale
        self.rounding = max(32 * EPS, run.plan.rounding)
        size, known = len(self.pairs), look.curvatures is not None
        most = SOME if known else min(max(CACHE // (2 * size), FEW), MANY)
        following = run.options.phases[run.progress.phase + 1 :]
        self.before_newton = following[:1] == ("newton",) and run.plan.second is not None
        self.past = Memory(size, max(3, min(most, MOST_NUMBERS // (2 * size))))
        square = look.gradient is not None and not run.plan.stiefel
        self.model = KroneckerModel(n) if square and LEAST_ORDER <= n <= MOST_ORDER else None
        self.begun = True

    def advance(self, run: Run) -> float | None:
        """Make one step that lowers f."""
        self.verdict = ""
        look = self.look
        if look is None:
            look = run.look()
            if look.slopes is None:
                return None
            if not self.begun:
                self._begin(run, look)
            self.look, self.g = look, look.slopes.take(self.pairs)
            self.here = self.chart.begin(run.Ut.T)
            self.Ut = run.Ut
        # Rounding error of f.
        self.noise = self.rounding * max(self.scale, abs(look.value))
        if self.model is not None:
            gain = self._by_model(run, look, self.model)
            if gain is not None or self.verdict:
                return gain
        direction, promised = self._direction(look)
        if 0.5 * promised <= run.tol * self.scale and not self._begins_anew(look):
            return self._at_rest(run, look)
        if promised <= 16 * self.noise and self._is_rounding(look):
            self.verdict = "converged: the slopes are rounding errors of the gradient"
            return None
        if self.before_newton and 0.5 * promised <= HAND_OVER * self.scale:
            return None
        taken, expected = self._search(run, look, direction, promised), promised
        if taken is None and len(self.past):
            self.past.clear()
            direction, promised = self._direction(look)
            taken = self._search(run, look, direction, promised)
        if taken is None:
            # The prediction of the first direction counts: the second one has no memory of curvatures.
            if expected <= 16 * self.noise and not self._has_kink(look):
                self.verdict = "converged: no step along the slopes lowers f by more than its rounding errors"
            return None
        return taken

    def _by_model(self, run: Run, look: Look, model: KroneckerModel) -> float | None:
        """Make the best step of the model; None if it knows too little, or if no step lowers f."""
        size, expected = math.sqrt(float(self.g @ self.g)), 0.0
        for _ in range(TRIALS):
            step = model.propose(self.Ut, look, size)
            if step is None:
                return None
            expected = max(expected, step.promised)
            run.progress.flops += step.flops
            if step.promised <= run.tol * self.scale:
                return self._at_rest(run, look)
            place = Place(turned(self.here.matrix, step.K))
            there, Ut = self._look_at(run, look, place)
            assert there.slopes is not None
            slopes = there.slopes.take(self.pairs)
            fall = look.value - there.value
            kept = fall / step.promised
            if step.promised <= 16 * self.noise:
                # The decrease is below the rounding error of f, so the slopes decide.
                kept = 1.0 if fall >= -self.noise and float(slopes @ slopes) <= STEEP * size**2 else 0.0
            model.judge(step, kept)
            if kept > SUFFICIENT:
                angles = step.K.T.take(self.pairs)
                return self._take(run, look, angles, slopes - self.g, place, Ut, there, slopes)
            if step.promised <= self.noise:
                break
        if expected <= 16 * self.noise and not self._has_kink(look):
            # Conjugate gradients may not have found the best step of the model, so there may be a better one.
            self.verdict = (
                "converged: the steps of a quadratic model gain no more than the rounding errors of f"
            )
        model.clear()
        return None

    def _look_at(self, run: Run, look: Look, place: Place) -> tuple[Look, np.ndarray]:
        """The look at a place, from which the model learns; and its Uᵀ, which only the model needs."""
        there = run.look_at(place.matrix)
        if self.model is None or self.model.dropped or there.gradient is None:
            return there, self.Ut
        Ut = place.matrix.T @ run.Ut
        run.progress.flops += self.model.learn(Ut - self.Ut, look, there)
        return there, Ut

    def _direction(self, look: Look) -> tuple[np.ndarray, float]:
        """The angles −H g of a step, none above `LARGEST_ANGLE`, and the decrease of f that the slopes predict."""
        weights: np.ndarray | float | None = None
        if look.curvatures is not None:
            size = np.abs(look.curvatures.take(self.pairs))
            most = float(size.max())
            weights = 1.0 / np.maximum(size, LEAST_CURVATURE * most if most > 0 else 1.0)
        elif not len(self.past):
            weights = FIRST / (self.chart.largest(self.g) or 1.0)
        direction = self.past.solve(self.g, weights)
        promised, self.longest = self.chart.aim(self.here, direction, self.g)
        if promised <= 0.0 and len(self.past):
            self.past.clear()
            return self._direction(look)
        return direction, promised

    def _search(self, run: Run, look: Look, direction: np.ndarray, promised: float) -> float | None:
        """Line search: make the step and return its gain; None if f does not decrease."""
        longest = self.longest
        step, best = 1.0, None
        for _ in range(TRIALS):
            place = self.chart.at(self.here, step)
            there, Ut = self._look_at(run, look, place)
            assert there.slopes is not None
            slopes = there.slopes.take(self.pairs)
            slope = float(slopes @ direction)
            fall = look.value - there.value
            if fall >= SUFFICIENT * step * promised or (
                step * promised <= 16 * self.noise and fall >= -self.noise and abs(slope) <= STEEP * promised
            ):
                better = best is None or there.value < best[4].value
                if better:
                    best = (step * direction, slopes - self.g, place, Ut, there, slopes)
                # Where f is still about as steep as at the start, the step was too short.
                if not better or slope > -STEEP * promised or step >= longest:
                    break
                further = promised / (promised + slope) if promised + slope > 0 else 4.0
                step = min(step * min(max(further, 1.5), 4.0), longest)
                continue
            if best is not None:
                break
            step *= _shorter(fall, slope, promised, step)
        if best is None:
            return None
        return self._take(run, look, *best)

    def _take(
        self,
        run: Run,
        look: Look,
        step: np.ndarray,
        change: np.ndarray,
        place: Place,
        Ut: np.ndarray,
        there: Look,
        slopes: np.ndarray,
    ) -> float:
        """Move to the place, by a step that changed the slopes."""
        if place.far:
            self.past.clear()
        else:
            self.past.add(step, change)
        self.here, self.Ut, self.look, self.g = place, Ut, there, slopes
        run.arrive(place.matrix, there)
        return look.value - there.value

    def _at_rest(self, run: Run, look: Look) -> float | None:
        """End the phase, since the slopes predict no gain, unless there is one that the prediction does not see.

        Where curvatures are known, that is a pair of negative curvature. Else the prediction knows only the curvatures along
        earlier steps, and where slopes are still large, f is much flatter in other directions, or has a kink.
        """
        if look.curvatures is not None:
            bends = look.curvatures.take(self.pairs)
            most = int(np.argmin(bends))
            if bends[most] < -1e-8 * float(np.abs(bends).max()) and -bends[most] > 16 * self.noise:
                gain = self._leave(run, look, most, float(-bends[most]))
                if gain is not None:
                    return gain
        elif not run.rough:
            if self._steep(look):
                gain = self._restart(run, look)
                if gain is not None or self._has_kink(look):
                    return gain
            if run.progress.steps == 0:
                # All slopes vanish at the start, which need not be a minimum: leave it, or leave it to the next phase.
                gain = self._leave_maximum(run, look)
                if gain is None and run.plan.stiefel:
                    self.verdict = "converged: the slopes vanish at the start, which may be a saddle point"
                return gain
        self.verdict = f"converged: the next step would gain at most {run.tol:g} times the scale"
        return None

    def _steep(self, look: Look) -> bool:
        """Whether the slopes are a share of the gradient that a minimum of a smooth function does not have."""
        if look.gradient is None:
            return False
        E = look.gradient
        return float(self.g @ self.g) > STEEP_AT_REST**2 * float(np.vdot(E, E))

    def _begins_anew(self, look: Look) -> bool:
        """Whether there was a restart a few steps ago: they follow the largest curvatures, and say nothing of the others."""
        return 0 < len(self.past) < RESTARTED and self.restarted < math.inf and self._steep(look)

    def _has_kink(self, look: Look) -> bool:
        """Whether steep slopes are also large: those of a function that vanishes with its gradient are not."""
        return self._steep(look) and float(self.g @ self.g) > (KINK * self.scale) ** 2

    def _restart(self, run: Run, look: Look) -> float | None:
        """Forget all steps, and make one along the slopes; None if the last restart gained next to nothing."""
        if self.restarted - look.value < HOPED * FIRST * math.sqrt(float(self.g @ self.g)):
            return None
        self.restarted = look.value
        self.past.clear()
        if self.model is not None:
            self.model.clear()
        direction, promised = self._direction(look)
        return self._search(run, look, direction, promised)

    def _leave_maximum(self, run: Run, look: Look) -> float | None:
        """Leave a start without slopes along a random direction, if f bends downwards along it."""
        direction = np.random.default_rng(0).standard_normal(len(self.g))
        direction *= PROBE / self.chart.largest(direction)
        promised, self.longest = self.chart.aim(self.here, direction, self.g)
        there = run.look_at(self.chart.at(self.here, 1.0).matrix)
        if look.value - there.value <= 16 * self.noise:
            return None
        return self._search(run, look, direction, promised)

    def _is_rounding(self, look: Look) -> bool:
        """Whether the slopes are no larger than the rounding errors of EᵀU − UᵀE."""
        if look.gradient is None:
            return False
        E = look.gradient
        return float(self.g @ self.g) <= 0.25 * EPS**2 * len(E) * float(np.vdot(E, E))

    def _leave(self, run: Run, look: Look, pair: int, bend: float) -> float | None:
        """Leave a saddle point along the pair with the most negative curvature, −`bend`."""
        direction = np.zeros(len(self.pairs))
        direction[pair] = -1.0 if self.g[pair] > 0 else 1.0
        i, j = divmod(int(self.pairs[pair]), self.n)
        skew, step = np.zeros((self.n, self.n)), LARGEST_ANGLE
        skew[i, j], skew[j, i] = -direction[pair], direction[pair]
        for _ in range(TRIALS):
            place = Place(turned(self.here.matrix, skew, step))
            there, Ut = self._look_at(run, look, place)
            if look.value - there.value > 0.1 * bend * step**2:
                assert there.slopes is not None
                self.past.clear()
                slopes = there.slopes.take(self.pairs)
                return self._take(run, look, step * direction, slopes - self.g, place, Ut, there, slopes)
            step *= 0.5
        return None

    def describe(self, steps: int, run: Run) -> str:
        """For example "quasi-Newton descent, 23 steps"."""
        where = " on the Stiefel manifold" if run.plan.stiefel else ""
        return f"quasi-Newton descent{where}, {counted(steps, 'step', 'steps')}"

    def forget(self) -> None:
        """Discard the look, so that the next one is at the recomputed state."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The remembered steps, and the model."""
        if not self.begun:
            return {}
        arrays = self.past.arrays()
        arrays["restarted"] = np.array(self.restarted)
        if self.model is not None:
            arrays |= self.model.arrays()
        return arrays

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Restore the remembered steps, and the model."""
        if arrays:
            self._begin(run, run.look())
            self.past.restore(arrays)
            self.restarted = float(arrays["restarted"])
            if self.model is not None:
                self.model.restore(arrays)


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
