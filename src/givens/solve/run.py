"""What phases work on: a point, the state of the objective there, and the look at it."""

from __future__ import annotations

import math
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Blocks, Look, NotFinite, Objective, PairSolutions, Rotations
from givens.result import Certificate
from givens.schedules import Shape
from givens.solve.point import Point, Square, Stiefel
from givens.solve.state import Progress, RunOptions


class Run:
    """A run at its present point.

    Attributes
    ----------
    objective, options, progress
        What is minimised, how, and how far that has come.
    shape, pairs : Shape, int
        The order of U and its active columns, and the number of pairs of columns that f depends on.
    point : Point
        The present point. Phases replace it (`arrive`) or rotate its columns in place (`rotate`).
    state : object
        The objective's state at `point.base`; None while it is released.
    tol : float
        The gain, relative to the scale, that a step must exceed.
    began : float
        The clock when the run began, less any pauses.
    stop_share : float
        Above 0, the run is to pause where a step is predicted to gain at most this share of the gain so far.
    certificate : Certificate, optional
    searched : bool
        Whether any pairs were searched for the certificate, or all gains were known.
    """

    def __init__(
        self,
        objective: Objective,
        options: RunOptions,
        progress: Progress,
        U: np.ndarray,
    ) -> None:
        self.objective, self.options, self.progress = objective, options, progress
        n, m = objective.shape
        self.shape = Shape(n, objective.active)
        self.pairs = self.shape.pairs
        self.unit = abs(objective.factor)
        kind = Stiefel if m < n else Square
        self.point: Point = kind(np.ascontiguousarray(U.T), objective.active)
        self.state: Any = None  # made by `hold`
        self.tol, self.stop_share, self.began = options.tol, 0.0, perf_counter()
        self.certificate: Certificate | None = None
        self.searched = True
        self._look: Look | None = None

    # Reading: f at the present point, or at another one.

    def look(self) -> Look:
        """Value, slopes and curvatures at the point, computed once."""
        if self._look is None or self._look.slopes is None:
            self._look = checked_look(self.objective.look(self.state), self.point)
        return self._look

    def glance(self) -> Look:
        """A look for the value, which has slopes where they are cheap."""
        if self._look is None:
            self._look = checked_look(self.objective.look(self.state, slopes=False), self.point)
        return self._look

    def look_at(self, point: Point) -> Look:
        """The look at a point to which a step from the present one leads; the state is not changed."""
        if point.rotation is None:
            look = self.objective.look(self.objective.state(point.base))
        else:
            look = self.objective.look(self.state, point.rotation)
        return checked_look(look, point)

    def value(self) -> float:
        """The value of f."""
        return self.glance().value

    def gains(self) -> np.ndarray | None:
        """The gains of all pairs, if the objective knows them without searches."""
        gains = self.glance().gains
        return None if gains is None else gains()

    def slopes(self) -> np.ndarray | None:
        """The slopes of all pairs of columns."""
        slopes = self.look().slopes
        return None if slopes is None else self.point.slopes_of_pairs(slopes)

    def observed(self, even_if_expensive: bool) -> Look:
        """The look for what only observes the run, which counts no flops: with slopes, or where they are cheap."""
        look = self._look
        if look is None or (look.slopes is None and even_if_expensive):
            # Not counted, unless the next step needs this look.
            needed = self.options.phases[self.progress.phase] == "widened sweeps"
            with nullcontext() if needed else flop_counts.uncounted():
                return self.look() if even_if_expensive else self.glance()
        return look

    def gradient_norm(self, look: Look) -> float:
        """The norm of the gradient, in the units of the user; NaN where slopes are unknown or too expensive."""
        return math.nan if look.slopes is None else times(self.unit, self.point.norm(look.slopes))

    # Writing: the point, and with it the state.

    def arrive(self, point: Point, look: Look) -> None:
        """Go to the point of this look; the state stays behind, or is made anew where it is that of one point alone."""
        self.point, self._look = point, look
        if point.rotation is None:
            self.state = self.objective.state(point.base)

    def settle(self) -> None:
        """Let the state be that of the point, whose columns may then be rotated in place.

        Every phase calls this before `rotate`: the point is a copy, and the loop keeps the one before to go back to.
        """
        if self.point.rotation is None:
            self.point = self.point.own()
        else:
            self.rebase()

    def complete(self) -> None:
        """Settle, and let the point have as many columns as rows: rotations of two columns need them."""
        self.settle()
        completed = self.point.completed()
        if completed is not self.point:
            flop_counts.count(4.0 * completed.Ut.size * self.shape.active)
            self._move(completed)

    def rotate(self, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None) -> None:
        """Rotate blocks of columns of the point and of the state, after `settle`."""
        self.objective.apply(self.state, blocks, rotations, solutions)
        self.point.rotate(blocks, rotations)
        self._look = None

    def replace(self, point: Point, state: Any = None) -> None:
        """Go to a point with its state; without, `hold` is to make one."""
        self.point, self.state, self._look = point, state, None

    def rebase(self) -> None:
        """Remove the rounding errors of U, and compute the state anew."""
        self._move(self.point.rebased())

    def hold(self) -> None:
        """Compute the state, if there is none."""
        if self.state is None:
            self.state = self.objective.state(self.point.base)

    def see_infinite(self) -> None:
        """Take the value for infinite, where it is NaN."""
        self._look = Look(math.inf, np.zeros((1, 1)))

    def _move(self, point: Point) -> None:
        self.replace(point)  # two states at once may not fit into memory
        self.hold()


def checked_look(look: Look, point: Point) -> Look:
    """The look at a point, with slopes from its gradient if it has a gradient alone; NaN is refused."""
    if math.isnan(look.value):
        raise NotFinite("f must be finite for every orthogonal matrix, but look() returned nan for one")
    if look.slopes is None and look.gradient is not None:
        return look._replace(slopes=point.slopes_of(look.gradient), gradient=None)
    return look


def times(unit: float, number: float) -> float:
    """unit * number; 0 for the number 0, even if the unit is infinite because powers of the data overflow."""
    return unit * number if number else 0.0
