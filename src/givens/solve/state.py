"""The state of a run, as data: what it was asked for, how far it has come, and why it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from givens.result import PhaseSummary, Snapshot, Stop, Trace
from givens.schedules import Schedule, Tournament

Callback = Callable[[Snapshot], Any]


class RunOptions(NamedTuple):
    """How a run goes, and when it stops.

    Attributes
    ----------
    phases : tuple of str
        The ways to lower f, in their order.
    schedule : Schedule
        The order of pairs in a sweep.
    tol : float
        The run has converged when a step is predicted to gain, or a sweep has gained, at most tol² times the scale.
    gradient_tol : float, optional
        The run has also converged when the norm of the gradient is at most this times the scale.
    max_iter : int
        Largest number of steps, of all phases together.
    certify : float
        The share of the pairs to search when the run has converged.
    callback : callable, optional
    repair_every : int, optional
        Number of steps after which the rounding errors of U are removed and the state is recomputed.
    """

    phases: tuple[str, ...]
    schedule: Schedule = Tournament()
    tol: float = 1e-9
    gradient_tol: float | None = None
    max_iter: int = 10_000
    certify: float = 0.0
    callback: Callback | None = None
    repair_every: int | None = 10


@dataclass(frozen=True)
class Ending:
    """Why a phase or a run ended, with the numbers and names that the sentence about it needs.

    Attributes
    ----------
    stop : Stop
    limit : float
        The tolerance or the number of steps that was reached.
    number : float
        What was compared with it: the number of sweeps that gained so little, or the gain that is left.
    phase : str
        The phase that ended.
    text : str
        What the objective lacks, or what it says is not finite.
    """

    stop: Stop
    limit: float = float("nan")
    number: float = float("nan")
    phase: str = ""
    text: str = ""


@dataclass
class Progress:
    """How far a run has come: all that a checkpoint saves beside the point and what the phases remember.

    Attributes
    ----------
    start : array
        The matrix where the run began.
    rng : Generator
        Of the schedule and of shares of pairs to certify.
    phase : int
        The number of the present phase.
    steps, sweeps, rotations, certifications : int
    flops, seconds : float
    gain : float
        Of the last step.
    gains : list of float
        Of the last sweeps.
    error : float
        How far the gains of all searches of pairs may be off, as in `PairSolutions`.
    untrue : bool
        Whether the searches found a gain that was not realised.
    summaries : list of PhaseSummary
        One for each phase.
    trace : Trace
    """

    start: np.ndarray
    rng: np.random.Generator
    phase: int = 0
    steps: int = 0
    sweeps: int = 0
    rotations: int = 0
    certifications: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    gain: float = float("nan")
    gains: list[float] = field(default_factory=list)
    error: float = 0.0
    untrue: bool = False
    summaries: list[PhaseSummary] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
