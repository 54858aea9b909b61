"""Descent: quasi-Newton steps of all columns at once.

    U ← U exp(Θ),  Θ antisymmetric: an angle for every pair of columns

The slopes of all pairs, g, are the gradient of f with respect to these angles. The angles of a step are −H g, where H is made of
the curvatures of the pairs, if the objective knows them, and of what the last steps told (`quasi_newton`). Where f is a sum over
columns, steps tell more, and soon they alone decide (`column_model`). Steps and slopes
belong to the moving columns, so those of one step can be compared with those of the next as they are. Instead of the exponential
stands Cayley's transform, which agrees with it to second order and is orthogonal to rounding.

A step is taken if f falls by a share of what the slopes promise. Close to the optimum, where f falls by less than its rounding
errors, the slopes decide. The state is not touched: each look passes the data through the rotation found so far, and only
when the phase ends is the state made anew.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from givens.numerics.cayley import turned
from givens.objectives.base import Look
from givens.phases.column_model import MOST_COLUMNS, ColumnModel
from givens.phases.phase import Phase
from givens.phases.quasi_newton import Memory
from givens.support.arguments import counted

if TYPE_CHECKING:
    from givens.loop import Run

LARGEST = 0.8  # radians: no angle of a step is larger
FIRST = 0.2  # the largest angle of a first step, where nothing is known of the curvature
LEAST_CURVATURE = 0.01  # of the largest: smaller ones are taken for this
SUFFICIENT = 1e-4  # of the promised fall that a step has to keep (Armijo)
STEEP = 0.9  # where the slope along a step has kept this share, the step was too short (Wolfe)
TRIALS = 25
HAND_OVER = 1e-6  # of the scale: where a step promises no more, Newton's method goes on, if it may
MOST_NUMBERS = 4_000_000  # in the memory
EPS = float(np.finfo(np.float64).eps)


class Descent(Phase):
    """Follow the slopes of all pairs downhill, by limited-memory BFGS with a line search.

    Parameters
    ----------
    memory : int, optional
        How many steps are remembered. By default 10, and 60 where curvatures are unknown.
    """

    name = "descent"

    def __init__(self, memory: int | None = None) -> None:
        self.asked = memory
        self.begun = False
        self.look: Look | None = None

    def _begin(self, run: Run, look: Look) -> None:
        n, active = run.shape
        self.n = n
        self.pairs = _places_of_pairs(n, active)
        self.eye = np.eye(n)
        self.scale = run.objective.scale
        self.rounding = max(32 * EPS, run.plan.rounding)
        self.skew = np.zeros((n, n))
        size, known = len(self.pairs), look.curvatures is not None
        most = self.asked or (10 if known else 60)
        following = run.options.phases[run.progress.phase + 1 :]
        self.before_newton = following[:1] == ("newton",) and run.plan.second is not None
        self.past = Memory(size, max(3, min(most, MOST_NUMBERS // (4 * size))))
        self.model = ColumnModel(n) if look.gradient is not None and n <= MOST_COLUMNS else None
        self.begun = True

    def advance(self, run: Run) -> float | None:
        """One step that lowers f."""
        self.verdict = ""
        look = self.look
        if look is None:
            look = run.look()
            if look.slopes is None:
                return None
            if not self.begun:
                self._begin(run, look)
            self.look, self.g = look, look.slopes.take(self.pairs)
            self.Q = self.eye
            self.Ut = run.Ut
        # What rounding may do to f.
        self.noise = self.rounding * max(self.scale, abs(look.value))
        if self.model is not None:
            gain = self._by_columns(run, look, self.model)
            if gain is not None or self.verdict:
                return gain
        direction, promised = self._direction(look)
        if 0.5 * promised <= run.tol * self.scale:
            return self._at_rest(run, look)
        if self.before_newton and 0.5 * promised <= HAND_OVER * self.scale:
            return None
        taken, expected = self._search(run, look, direction, promised), promised
        if taken is None and len(self.past):
            self.past.clear()
            direction, promised = self._direction(look)
            taken = self._search(run, look, direction, promised)
        if taken is None:
            # Of the first direction: the second knows nothing of curvature, and its promise means little.
            if expected <= 16 * self.noise:
                self.verdict = "converged: no step along the slopes lowers f by more than its rounding errors"
            return None
        return taken

    def _by_columns(self, run: Run, look: Look, model: ColumnModel) -> float | None:
        """The best step by what is known of the columns; None if that is too little, or nothing lowers f."""
        assert look.gradient is not None
        size = math.sqrt(float(self.g @ self.g))
        for _ in range(TRIALS):
            step = model.propose(self.Ut, look.gradient, size)
            if step is None:
                return None
            run.progress.flops += step.flops
            if step.promised <= run.tol * self.scale:
                return self._at_rest(run, look)
            Q = turned(self.Q, step.K)
            there, Ut = self._look_at(run, look, Q)
            assert there.slopes is not None
            slopes = there.slopes.take(self.pairs)
            fall = look.value - there.value
            kept = fall / step.promised
            if step.promised <= 16 * self.noise:
                # Rounding hides how far f falls, so the slopes decide.
                kept = 1.0 if fall >= -self.noise and float(slopes @ slopes) <= STEEP * size**2 else 0.0
            model.judge(step, kept)
            if kept > SUFFICIENT:
                return self._take(run, look, step.K.T.take(self.pairs), Q, Ut, there, slopes, 1.0)
            if step.promised <= self.noise:
                break
        model.clear()
        return None

    def _look_at(self, run: Run, look: Look, Q: np.ndarray) -> tuple[Look, np.ndarray]:
        """The look at U @ Q, and that matrix, transposed, if it is needed; the columns learn from it."""
        there = run.look_at(Q)
        if self.model is None or there.gradient is None:
            return there, self.Ut
        Ut = Q.T @ run.Ut
        run.progress.flops += self.model.learn(Ut - self.Ut, there.gradient - look.gradient)
        return there, Ut

    def _direction(self, look: Look) -> tuple[np.ndarray, float]:
        """The angles −H g of a step, none of them too large, and by how much f would fall by its slopes."""
        from givens.kernels.quasi_newton import bounded

        weights: np.ndarray | float
        if look.curvatures is not None:
            size = np.abs(look.curvatures.take(self.pairs))
            most = float(size.max())
            weights = 1.0 / np.maximum(size, LEAST_CURVATURE * most if most > 0 else 1.0)
        elif len(self.past):
            weights = self.past.scaling
        else:
            weights = FIRST / (float(np.abs(self.g).max()) or 1.0)
        direction = self.past.solve(self.g, weights)
        promised, self.longest = bounded(direction, self.g, self.pairs, LARGEST, self.skew)
        if promised <= 0.0:
            self.past.clear()
            direction = weights * self.g
            promised, self.longest = bounded(direction, self.g, self.pairs, LARGEST, self.skew)
        return direction, promised

    def _search(self, run: Run, look: Look, direction: np.ndarray, promised: float) -> float | None:
        """Go along the direction as far as f falls well; the gain, or None if it does not fall."""
        longest = self.longest
        step, best = 1.0, None
        for _ in range(TRIALS):
            Q = turned(self.Q, self.skew, step)
            there, Ut = self._look_at(run, look, Q)
            assert there.slopes is not None
            slopes = there.slopes.take(self.pairs)
            slope = float(slopes @ direction)
            fall = look.value - there.value
            if fall >= SUFFICIENT * step * promised or (
                step * promised <= 16 * self.noise and fall >= -self.noise and abs(slope) <= STEEP * promised
            ):
                better = best is None or there.value < best[2].value
                if better:
                    best = (Q, Ut, there, slopes, step)
                # Still as steep as it was: the step was too short.
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
        return self._take(run, look, direction, *best)

    def _take(
        self,
        run: Run,
        look: Look,
        direction: np.ndarray,
        Q: np.ndarray,
        Ut: np.ndarray,
        there: Look,
        slopes: np.ndarray,
        step: float,
    ) -> float:
        self.past.add(step * direction, slopes - self.g)
        self.Q, self.Ut, self.look, self.g = Q, Ut, there, slopes
        run.arrive(Q, there)
        return look.value - there.value

    def _at_rest(self, run: Run, look: Look) -> float | None:
        """The slopes promise nothing more: a minimum, unless a pair bends downwards."""
        if look.curvatures is not None:
            bends = look.curvatures.take(self.pairs)
            most = int(np.argmin(bends))
            if bends[most] < -1e-8 * float(np.abs(bends).max()) and -bends[most] > 16 * self.noise:
                gain = self._leave(run, look, most, float(-bends[most]))
                if gain is not None:
                    return gain
        elif run.progress.summaries[run.progress.phase].steps == 0 and not run.rough:
            # Nothing but a start without slopes has been seen: exact searches look further.
            return None
        self.verdict = f"converged: the next step would gain at most {run.tol:g} times the scale"
        return None

    def _leave(self, run: Run, look: Look, pair: int, bend: float) -> float | None:
        """Leave a saddle by the pair that bends downwards most."""
        direction = np.zeros(len(self.pairs))
        direction[pair] = -1.0 if self.g[pair] > 0 else 1.0
        i, j = divmod(int(self.pairs[pair]), self.n)
        skew, step = np.zeros((self.n, self.n)), LARGEST
        skew[i, j], skew[j, i] = -direction[pair], direction[pair]
        for _ in range(TRIALS):
            Q = turned(self.Q, skew, step)
            there, Ut = self._look_at(run, look, Q)
            if look.value - there.value > 0.1 * bend * step**2:
                assert there.slopes is not None
                self.past.clear()
                return self._take(run, look, direction, Q, Ut, there, there.slopes.take(self.pairs), step)
            step *= 0.5
        return None

    def describe(self, steps: int, run: Run) -> str:
        """As "quasi-Newton descent, 23 steps"."""
        return f"quasi-Newton descent, {counted(steps, 'step', 'steps')}"

    def forget(self) -> None:
        """The state was made anew, so the next look is one at it."""
        self.look = None

    def memory(self) -> dict[str, np.ndarray]:
        """The steps that are remembered, and what is known of columns."""
        if not self.begun:
            return {}
        return self.past.arrays() | ({} if self.model is None else self.model.arrays())

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:
        """Go on with these steps."""
        if arrays:
            self._begin(run, run.look())
            self.past.restore(arrays)
            if self.model is not None:
                self.model.restore(arrays)


@lru_cache(maxsize=8)
def _places_of_pairs(n: int, active: int) -> np.ndarray:
    """Where the pairs (i, j), i < j and i < active, are in a matrix of order n, row by row."""
    i, j = np.triu_indices(n, 1)
    return np.ascontiguousarray((i * n + j)[i < active])


def _shorter(fall: float, slope: float, promised: float, step: float) -> float:
    """By what to multiply a step that was too long: the minimum of the cubic through both ends, between 0.1 and 0.5."""
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
