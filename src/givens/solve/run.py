"""What phases work on, and what a phase is: a way to lower f from the present point, step by step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Blocks, Look, NotFinite, Objective, PairSolutions, Rotations
from givens.result import Certificate
from givens.schedules import Shape
from givens.solve.point import Point, Stiefel
from givens.solve.state import Ending, Progress, RunOptions


class Run:
    """A run at its present point.

    Attributes
    ----------
    objective, options, progress
        What is minimised, how, and how far that has come.
    shape, pairs : Shape, int
        The order of U and its active columns, and the number of pairs of columns that f depends on.
    point : Point
        The present point. Phases go to another one (`go_to`), or rotate its columns in place
        (`prepare_rotations`, then `rotate`).
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
        self.point = (Stiefel if m < n else Point)(np.ascontiguousarray(U.T), objective.active)
        self._state: Any = None
        self.tol, self.stop_share, self.began = options.tol, 0.0, perf_counter()
        self.certificate: Certificate | None = None
        self.searched = True
        self._look: Look | None = None

    # Reading: f at the present point, or at another one.

    @property
    def state(self) -> Any:
        """The objective's state at `point.base`, made when it is first needed."""
        self._make_state()
        return self._state

    def _make_state(self) -> None:
        if self._state is None:
            self._state = self.objective.state(self.point.base)

    def look(self, slopes: bool = True) -> Look:
        """The look at the point, computed once; with slopes, or with them where they are cheap."""
        if self._look is None or (slopes and self._look.slopes is None):
            self._look = self.look_at(self.point, slopes)
        return self._look

    def look_at(self, point: Point, slopes: bool = True) -> Look:
        """The look at this point, or at one to which a step from it leads; the state is not changed."""
        apart = point.rotation is None and point is not self.point
        state = self.objective.state(point.base) if apart else self.state
        return checked_look(self.objective.look(state, point.rotation, slopes), point)

    def value(self) -> float:
        """The value of f."""
        return self.look(slopes=False).value

    def gains(self) -> np.ndarray | None:
        """The gains of all pairs, if the objective knows them without searches."""
        gains = self.look(slopes=False).gains
        return None if gains is None else gains()

    def slopes(self) -> np.ndarray | None:
        """The slopes of all pairs of columns."""
        slopes = self.look().slopes
        return None if slopes is None else self.point.slopes_of_pairs(slopes)

    def observed(self, slopes: bool) -> Look:
        """The look for what only observes the run, which counts no flops but those of the state: the next step needs it too."""
        look = self._look
        if look is None or (slopes and look.slopes is None):
            self._make_state()
            with flop_counts.uncounted():
                look = self.look(slopes)
        return look

    def gradient_norm(self, look: Look) -> float:
        """The norm of the gradient, in the units of the user; NaN where slopes are unknown or too expensive."""
        return math.nan if look.slopes is None else times(self.unit, self.point.norm(look.slopes))

    # Writing: another point, or rotations of the columns of this one.

    def go_to(self, point: Point, look: Look | None = None, state: Any = None) -> None:
        """Go to a point, with its look and its state if they are known.

        Otherwise they are made when they are needed: two states at once may not fit into memory. That of a point which is this
        one rotated stays.
        """
        if state is not None or point.Ut is not self.point.Ut:
            self._state = state
        self.point, self._look = point, look

    def prepare_rotations(self) -> None:
        """Let the point have as many columns as rows, and be a copy, which `rotate` may change; and the state be that of it."""
        if self.point.rotation is not None:
            self.rebase()
        completed = self.point.completed()
        completed.in_place = True
        if completed.Ut.shape == self.point.Ut.shape:
            self.go_to(completed, self._look, self._state)
        else:
            flop_counts.count(4.0 * completed.Ut.size * self.shape.active)
            self.go_to(completed)

    def rotate(self, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None) -> None:
        """Rotate blocks of columns of the point and of the state in place, after `prepare_rotations`."""
        self.objective.apply(self.state, blocks, rotations, solutions)
        self.point.rotate(blocks, rotations)
        self._look = None

    def rebase(self) -> None:
        """Remove the rounding errors of U, and let the state be made anew."""
        self.go_to(self.point.rebased())

    def free_state(self) -> None:
        """Free the state, which may be as large as the data, until it is needed again."""
        self._state = None


class Phase(ABC):
    """A way to lower f.

    A phase that is entered is a new object: it knows nothing of the steps before. What it remembers from step to step is in its
    `memory`, so that a resumed run takes the same steps.

    Attributes
    ----------
    name : str
    looks : bool
        Whether each step begins with a look, whose flops it counts.
    """

    name: str
    looks = True

    @abstractmethod
    def advance(self, run: Run) -> float | Ending:
        """Make one step, and return by how much it lowered f; or say why the phase is over.

        The run ends with the phase if that counts as converged, or if no other phase follows.
        """

    def memory(self) -> dict[str, np.ndarray]:
        """The arrays of this phase that a checkpoint saves."""
        return {}

    def remember(self, arrays: dict[str, np.ndarray], run: Run) -> None:  # noqa: B027 (most phases remember nothing)
        """Restore the `memory` of a checkpoint."""


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
