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

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Look
from givens.result import Stop
from givens.solve.kronecker_model import LEAST_ORDER, MOST_ORDER, KroneckerModel
from givens.solve.phase import Phase
from givens.solve.point import LARGEST_ANGLE, Move, Point, Square
from givens.solve.quasi_newton import Memory
from givens.solve.run import Run
from givens.solve.state import Ending

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

ROUNDING = Ending(Stop.ROUNDING, phase="descent")
EXHAUSTED = Ending(Stop.EXHAUSTED, phase="descent")


class Descent(Phase):
    """Limited-memory BFGS over the angles of all pairs, with a line search."""

    name = "descent"

    def __init__(self) -> None:
        self.begun = False
        self.look: Look | None = None
        self.restarted = math.inf  # the value at the last restart

    def _begin(self, run: Run, curved: bool, quadratic: bool) -> None:
        """Prepare for an objective whose looks have curvatures, or the gradient that a model learns from."""
        self.n = run.shape.n
        self.pairs = run.point.pairs
        self.scale = run.objective.scale
        size = len(self.pairs)
        most = SOME if curved else min(max(CACHE // (2 * size), FEW), MANY)
        phases = run.options.phases
        following = phases[phases.index(self.name) + 1 :]
        self.before_newton = following[:1] == ("newton",) and run.objective.second is not None
        self.curved = curved
        self.past = Memory(size, max(3, min(most, MOST_NUMBERS // (2 * size))))
        quadratic = quadratic and isinstance(run.point, Square) and not self.before_newton
        self.model = KroneckerModel(self.n) if quadratic and LEAST_ORDER <= self.n <= MOST_ORDER else None
        self.begun = True

    def advance(self, run: Run) -> float | Ending:
        """Make one step that lowers f."""
        look = self.look
        if look is None:
            look = run.look()
            if look.slopes is None:
                return EXHAUSTED
            if not self.begun:
                self._begin(run, look.curvatures is not None, look.gradient is not None)
            self.look, self.g = look, look.slopes.take(self.pairs)
        # Rounding error of f.
        self.noise = 32 * EPS * max(self.scale, abs(look.value))
        if self.model is not None:
            outcome = self._by_model(run, look, self.model)
            if outcome is not None:
                return outcome
        direction, step = self._direction(run, look)
        promised = step.promised
        slow = self.before_newton and 0.5 * promised <= HAND_OVER * self.scale
        if slow and look.curvatures is None and run.progress.steps:
            return EXHAUSTED
        if 0.5 * promised <= run.tol * self.scale and not self._begins_anew(look):
            return self._at_rest(run, look)
        if promised <= 16 * self.noise and self._is_rounding(look):
            return ROUNDING
        if slow:
            return EXHAUSTED
        taken = self._search(run, look, direction, step)
        if taken is None and len(self.past):
            self.past.clear()
            taken = self._search(run, look, *self._direction(run, look))
        # The prediction of the first direction counts: the second one has no memory of curvatures.
        if taken is None:
            return ROUNDING if promised <= 16 * self.noise and not self._has_kink(look) else EXHAUSTED
        return taken

    def _by_model(self, run: Run, look: Look, model: KroneckerModel) -> float | Ending | None:
        """Make the best step of the model; None if it knows too little, or if no step lowers f."""
        size, expected = math.sqrt(float(self.g @ self.g)), 0.0
        for _ in range(TRIALS):
            assert isinstance(run.point, Square)
            step = model.propose(run.point.transposed, look, size)
            if step is None:
                return None
            expected = max(expected, step.promised)
            if step.promised <= run.tol * self.scale:
                return self._at_rest(run, look)
            point = run.point.moved(Move(step.promised, 1.0, step.K))
            there = self._look_at(run, look, point)
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
                return self._take(run, look, angles, slopes, point, there)
            if step.promised <= self.noise:
                break
        if expected <= 16 * self.noise and not self._has_kink(look):
            # Conjugate gradients may not have found the best step of the model, so there may be a better one.
            model.clear()
            return ROUNDING
        model.clear()
        return None

    def _look_at(self, run: Run, look: Look, point: Point) -> Look:
        """The look at a point, from which the model learns."""
        there = run.look_at(point)
        if self.model is not None and not self.model.dropped and there.gradient is not None:
            assert isinstance(run.point, Square)
            assert isinstance(point, Square)
            move = point.transposed - run.point.transposed
            self.model.learn(move, look, there)
        return there

    def _direction(self, run: Run, look: Look) -> tuple[np.ndarray, Move]:
        """The angles −H g of a step, and the step."""
        weights: np.ndarray | float | None = None
        if look.curvatures is not None:
            size = np.abs(look.curvatures.take(self.pairs))
            most = float(size.max())
            weights = 1.0 / np.maximum(size, LEAST_CURVATURE * most if most > 0 else 1.0)
        elif not len(self.past):
            weights = FIRST / (run.point.largest(self.g) or 1.0)
        direction = self.past.solve(self.g, weights)
        step = run.point.aim(direction, self.g)
        if step.promised <= 0.0 and len(self.past):
            self.past.clear()
            return self._direction(run, look)
        return direction, step

    def _search(self, run: Run, look: Look, direction: np.ndarray, step: Move) -> float | None:
        """Line search: make a multiple of the step and return its gain; None if f does not decrease."""
        promised, longest = step.promised, step.longest
        length, best = 1.0, None
        for _ in range(TRIALS):
            point = run.point.moved(step, length)
            there = self._look_at(run, look, point)
            assert there.slopes is not None
            slopes = there.slopes.take(self.pairs)
            slope = float(slopes @ direction)
            fall = look.value - there.value
            if fall >= SUFFICIENT * length * promised or (
                length * promised <= 16 * self.noise
                and fall >= -self.noise
                and abs(slope) <= STEEP * promised
            ):
                better = best is None or there.value < best[-1].value
                if better:
                    best = (length * direction, slopes, point, step.far(length), there)
                # Where f is still about as steep as at the start, the step was too short.
                if not better or slope > -STEEP * promised or length >= longest:
                    break
                further = promised / (promised + slope) if promised + slope > 0 else 4.0
                length = min(length * min(max(further, 1.5), 4.0), longest)
                continue
            if best is not None:
                break
            length *= _shorter(fall, slope, promised, length)
        if best is None:
            return None
        angles, slopes, point, far, there = best
        return self._take(run, look, angles, slopes, point, there, far)

    def _take(
        self,
        run: Run,
        look: Look,
        angles: np.ndarray,
        slopes: np.ndarray,
        point: Point,
        there: Look,
        far: bool = False,
    ) -> float:
        """Move to a point by these angles; after a far one earlier steps tell nothing."""
        if far:
            self.past.clear()
        else:
            self.past.add(angles, slopes - self.g)
        self.look, self.g = there, slopes
        run.arrive(point, there)
        return look.value - there.value

    def _at_rest(self, run: Run, look: Look) -> float | Ending:
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
        elif not run.stop_share:
            if self._steep(look):
                gain = self._restart(run, look)
                if gain is not None:
                    return gain
                if self._has_kink(look):
                    return EXHAUSTED
            if run.progress.steps == 0:
                # All slopes vanish at the start, which need not be a minimum: leave it, or leave it to the next phase.
                gain = self._leave_maximum(run, look)
                if gain is not None:
                    return gain
                saddle = not isinstance(run.point, Square)
                return Ending(Stop.SADDLE, phase=self.name) if saddle else EXHAUSTED
        return Ending(Stop.SMALL_STEP, limit=run.tol, phase=self.name)

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
        return self._search(run, look, *self._direction(run, look))

    def _leave_maximum(self, run: Run, look: Look) -> float | None:
        """Leave a start without slopes along a random direction, if f bends downwards along it."""
        direction = np.random.default_rng(0).standard_normal(len(self.g))
        direction *= PROBE / run.point.largest(direction)
        step = run.point.aim(direction, self.g)
        there = run.look_at(run.point.moved(step))
        if look.value - there.value <= 16 * self.noise:
            return None
        return self._search(run, look, direction, step)

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
        skew, angle = np.zeros((self.n, self.n)), LARGEST_ANGLE
        skew[i, j], skew[j, i] = -direction[pair], direction[pair]
        for _ in range(TRIALS):
            point = run.point.moved(Move(bend, 1.0, skew), angle)
            there = self._look_at(run, look, point)
            if look.value - there.value > 0.1 * bend * angle**2:
                assert there.slopes is not None
                self.past.clear()
                slopes = there.slopes.take(self.pairs)
                return self._take(run, look, angle * direction, slopes, point, there)
            angle *= 0.5
        return None

    def forget(self) -> None:
        """Discard the look, so that the next one is at the recomputed state."""
        self.look = None

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
