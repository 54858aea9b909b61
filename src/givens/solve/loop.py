"""The one loop: phases on one state, each of which may only lower f, but for rounding.

    while there is no reason to stop:
        let the present phase make a step, or give way to the next one
        every k steps, repair U and compute the state anew, if rotations in place have added rounding errors
        let the observers see it: trace, checkpoint writer, callback

A run ends where the `rule` says so, where a phase has converged or the last one can lower f no further, where
an observer asks for it, or where f is not finite; with a certificate, it continues if a search of all pairs finds a gain. A run
that is to pause (`Run.stop_share`) has a larger `Run.tol` until then, and pauses where it would have converged by that. The
matrix is held by `run.point`, and by nothing else; how far the run has come, by `run.progress`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Look, NotFinite, Objective
from givens.result import PhaseSummary, Result, Stop
from givens.rotations import orthogonality, repair
from givens.solve import PHASES, sentences
from givens.solve.certificate import certify
from givens.solve.checkpoint import Checkpoint
from givens.solve.observers import Caller, CheckpointWriter, Observer, fingerprint, trace
from givens.solve.point import Point
from givens.solve.run import Run
from givens.solve.state import Ending, Progress, RunOptions


class Loop:
    """One run in one component of O(n), which may be paused and continued.

    Attributes
    ----------
    run : Run
        Where it is, and how far it has come.
    phases : list of Phase
    observers : list of Observer
    writer : CheckpointWriter, optional
        The observer that writes checkpoints.
    every : int or None
        Number of steps after which the state is computed anew.
    ending : Ending or None
        Why the run ended or paused.
    coarse_summary : PhaseSummary, optional
        The steps on cheaper forms of the objective that led to the start.
    coarse_gain : float
        Their gain, relative to the scales of these forms.
    uncertified : str
        Why there is no certificate, if one was asked for.
    """

    def __init__(
        self,
        objective: Objective,
        options: RunOptions,
        start: tuple[np.ndarray, np.random.Generator],
        checkpoint: Checkpoint | None = None,
        reproducible: bool = True,
    ) -> None:
        self.phases = [PHASES[name]() for name in options.phases]
        self.every = options.repair_every if checkpoint is None else checkpoint.every
        self.observers: list[Observer] = [trace]
        U, rng = start
        progress, memories = Progress(U, rng), None
        self.writer: CheckpointWriter | None = None
        if checkpoint is not None:
            self.writer = CheckpointWriter(
                checkpoint, self.phases, fingerprint(objective, options, self.every)
            )
            self.observers.append(self.writer)
            saved = self.writer.load(U, reproducible)
            if saved is not None:
                progress, U, memories = saved.progress, saved.U, saved.memories
        if options.callback is not None:
            self.observers.append(Caller(options.callback))
        self.run = Run(objective, options, progress, U)
        for phase, memory in zip(self.phases, memories or []):
            if memory:
                phase.remember(memory, self.run)
        self.ending: Ending | None = None
        self.coarse_summary: PhaseSummary | None = None
        self.coarse_gain = 0.0
        self.uncertified = ""

    def begin(
        self,
        coarse_summary: PhaseSummary | None = None,
        coarse_gain: float = 0.0,
        nan_as_inf: bool = False,
    ) -> None:
        """Evaluate f at the start, where it may be NaN with `nan_as_inf`, or where a checkpoint resumes."""
        run, progress = self.run, self.run.progress
        self.coarse_summary, self.coarse_gain = coarse_summary, coarse_gain
        if self.writer is not None and progress.trace.step:
            self.writer.check(run)
            return
        if coarse_summary is not None:
            progress.flops, progress.seconds = coarse_summary.flops, coarse_summary.seconds
        run.began = perf_counter() - progress.seconds
        progress.summaries = [PhaseSummary(phase.name) for phase in self.phases]
        name = "" if coarse_summary is None else coarse_summary.name
        with flop_counts.job(progress):
            try:
                if self.phases[progress.phase].looks:
                    run.look()
                trace(run, name)
            except NotFinite:
                if not nan_as_inf:
                    raise
                run.go_to(run.point, Look(math.inf, np.zeros((1, 1))))
                trace(run, name)

    def proceed(self, stop_share: float = 0.0) -> None:
        """Continue until there is a reason to stop.

        With `stop_share`, also pause where the next step is predicted to gain at most this share of the total gain so far.
        """
        if self.ending is not None and not self.ending.stop.converged:
            return
        run = self.run
        run.began = perf_counter() - run.progress.seconds
        with flop_counts.job(run.progress):
            run.stop_share = stop_share
            set_tol(run, self.coarse_gain)
            certifies = run.options.certify and not stop_share
            ending, before = rule(run), None
            while ending is None or (certifies and ending.stop.converged and ending is not before):
                before = ending
                ending = self._step() if ending is None else self._certified(ending)
        self.ending = ending

    def _step(self) -> Ending | None:
        """One step of the present phase, or the change to the next one; why to stop, or None."""
        progress = self.run.progress
        phase = self.phases[progress.phase]
        point, steps = self.run.point, progress.steps
        try:
            gain = phase.advance(self.run)
            if not isinstance(gain, Ending):
                return self._made(phase.name, gain)
            # Go on with the next phase, if there is one and the run has not converged.
            if gain.stop.converged or progress.phase + 1 == len(self.phases):
                return replace(gain, phase=phase.name)
            self._enter(progress.phase + 1)
            return None
        except NotFinite as error:
            self._go_back(point, steps)
            return Ending(Stop.NOT_FINITE, number=progress.steps + 1, phase=phase.name, text=str(error))

    def _certified(self, ending: Ending) -> Ending | None:
        """Search all pairs: the same ending if none gains; else those that do are rotated, which is a step like any other."""
        run, progress = self.run, self.run.progress
        point, steps = run.point, progress.steps
        try:
            run.certificate, gain = certify(run, run.options.certify)
            progress.certifications += 1
            if gain <= 0.0:
                return ending
            progress.gains = []
            self._enter(0)
            return self._made("certificate", gain)
        except NotFinite as error:
            run.certificate, self.uncertified = None, str(error)
            self._go_back(point, steps)
            return ending

    def _enter(self, number: int) -> None:
        """Begin a phase, which starts afresh."""
        self.run.progress.phase = number
        self.phases[number] = PHASES[self.phases[number].name]()

    def _made(self, name: str, gain: float) -> Ending | None:
        """Let the observers see a step that was made; why to stop after it, or None."""
        run, progress = self.run, self.run.progress
        progress.steps += 1
        progress.gain = gain
        # A checkpoint, which saves U alone, needs a new state even where no error adds up.
        due = self.every and progress.steps % self.every == 0
        if due and (run.point.in_place or self.writer is not None):
            run.rebase()
            if self.phases[progress.phase].looks:
                run.look()
        endings = [observer(run, name) for observer in self.observers]
        if run.stop_share:
            set_tol(run, self.coarse_gain)
        return next(filter(None, endings), None) or rule(run)

    def _go_back(self, point: Point, steps: int) -> None:
        """Go back to where a step began, unless the step was made: then f is known where it led."""
        if self.run.progress.trace.step[-1] == steps:
            self.run.progress.steps = steps
            if self.run.point is not point:
                self.run.go_to(point)

    def result(self) -> Result:
        """The present U, its value, and why the run stopped."""
        run, progress, ending = self.run, self.run.progress, self.ending
        assert ending is not None
        U = run.point.matrix
        drift = orthogonality(U)
        if drift > 5e-14:  # more than the rounding errors of U alone
            U = repair(U)
            drift = orthogonality(U)
        certificate = run.certificate if ending.stop.converged else None
        return Result(
            U=U,
            value=progress.trace.value[-1],
            converged=ending.stop.converged,
            message=sentences.message(ending, run, self.uncertified),
            sweeps=progress.sweeps,
            rotations=progress.rotations,
            flops=progress.flops,
            gradient_norm=self._last_norm(),
            orthogonality=drift,
            seconds=perf_counter() - run.began,
            trace=progress.trace,
            method=sentences.method(run, self.coarse_summary, certificate),
            phases=(*(() if self.coarse_summary is None else (self.coarse_summary,)), *progress.summaries),
            certificate=run.certificate,
            scale=run.unit * run.objective.scale,
            stop=ending.stop,
        )

    def _last_norm(self) -> float:
        """The norm of the gradient; NaN where f is not finite, which is why the run stopped."""
        norm = self.run.progress.trace.gradient_norm[-1]
        if not math.isnan(norm):
            return norm
        try:
            return self.run.gradient_norm(self.run.observed(slopes=True))
        except NotFinite:
            return math.nan


def rule(run: Run) -> Ending | None:
    """Why to stop now, or None; `Stop.converged` tells which reasons mean that the run has converged."""
    progress, options, scale = run.progress, run.options, run.objective.scale
    if run.pairs == 0:
        return Ending(Stop.NOTHING_TO_ROTATE)
    if progress.steps == 0 and run.value() == math.inf:
        return Ending(Stop.INFINITE_START)
    norm = progress.trace.gradient_norm[-1]
    limit = options.gradient_tol
    if limit is not None and norm <= limit * scale * run.unit and math.isfinite(norm):
        return Ending(Stop.SMALL_GRADIENT, limit)
    if len(progress.gains) >= options.schedule.patience and max(progress.gains) <= run.tol * scale:
        return Ending(Stop.SMALL_SWEEPS, run.tol, len(progress.gains))
    left = _gain_left(run, norm)
    # A smaller gain of all pairs together than 1e-26 is rounding.
    if left <= max(run.tol**2, 1e-26) * scale:
        return Ending(Stop.SMALL_REMAINDER, number=left / scale)
    return Ending(Stop.MAX_ITER, options.max_iter) if progress.steps >= options.max_iter else None


def _gain_left(run: Run, norm: float) -> float:
    """What all pairs together could gain; NaN if the objective does not know it without searches, or if it is much.

    With a gradient that is not next to nothing, nor are the gains, and they need not be summed.
    """
    if not norm <= 1e-9 * run.objective.scale * run.unit:
        return math.nan
    with flop_counts.uncounted():
        gains = run.gains()
    return math.nan if gains is None else 0.5 * float(gains.sum())


def set_tol(run: Run, coarse_gain: float) -> None:
    """Set the gain, relative to the scale, that a step must exceed; where a run is to pause, a share of the gain so far."""
    run.tol = run.options.tol**2
    if run.stop_share:
        values, unit = run.progress.trace.value, run.objective.factor * run.objective.scale
        # Where powers of the data overflow, the gain is NaN, and `max` keeps `tol`.
        gain = coarse_gain + (values[0] - values[-1]) / (unit or 1.0)
        run.tol = max(run.tol, run.stop_share * gain)
