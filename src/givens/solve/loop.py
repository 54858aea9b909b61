"""The one loop: phases on one state, each of which may only lower f, but for rounding.

    while there is no reason to stop:
        let the present phase make a step, or give way to the next one
        every k steps, repair U and compute the state anew, if rotations in place have added rounding errors
        let the observers see it: trace, checkpoint writer, callback

A run ends where the rule says so (`stopping.rule`), where a phase has converged or the last one can lower f no further, where
an observer asks for it, or where f is not finite; with a certificate, it continues if a search of all pairs finds a gain. A run
that is to pause (`Run.stop_share`) has a larger `Run.tol` until then, and pauses where it would have converged by that. The
matrix is held by `run.point`, and by nothing else; how far the run has come, by `run.progress`.
"""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import NotFinite, Objective
from givens.result import PhaseSummary, Result, Stop
from givens.rotations import orthogonality, repair
from givens.solve import PHASES, sentences
from givens.solve.certificate import certify
from givens.solve.checkpoint import Checkpoint
from givens.solve.observers import Caller, CheckpointWriter, Observer, fingerprint, trace
from givens.solve.point import Point
from givens.solve.run import Run
from givens.solve.state import Ending, Progress, RunOptions
from givens.solve.stopping import rule, set_tol

DRIFT = 5e-14
"""‖UᵀU − I‖ above which the U of a result is repaired once more."""


class Loop:
    """One run in one component of O(n), which may be paused and continued.

    Attributes
    ----------
    run : Run
        Where it is, and how far it has come.
    phases : list of Phase
    observers : list of Observer
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
        if checkpoint is not None:
            writer = CheckpointWriter(checkpoint, self.phases, fingerprint(objective, options, self.every))
            self.observers.append(writer)
            saved = writer.load(U, reproducible)
            if saved is not None:
                progress, U, memories = saved.progress, saved.U, saved.memories
        if options.callback is not None:
            self.observers.append(Caller(options.callback))
        self.always_rebases = checkpoint is not None
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
        if progress.trace.step:
            with flop_counts.uncounted():
                run.hold()
            for observer in self.observers:
                if isinstance(observer, CheckpointWriter):
                    observer.check(run)
            return
        if coarse_summary is not None:
            progress.flops, progress.seconds = coarse_summary.flops, coarse_summary.seconds
        run.began = perf_counter() - progress.seconds
        progress.summaries = [PhaseSummary(phase.name) for phase in self.phases]
        name = "" if coarse_summary is None else coarse_summary.name
        with flop_counts.job(progress):
            run.hold()
            try:
                # Descent needs the slopes; for other phases only the trace looks.
                if self.phases[progress.phase].name == "descent":
                    run.look()
                trace(run, name)
            except NotFinite:
                if not nan_as_inf:
                    raise
                run.see_infinite()
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
            run.hold()
            run.stop_share = stop_share
            set_tol(run, self.coarse_gain)
            certifies = run.options.certify and not stop_share
            ending = rule(run)
            while True:
                while ending is None:
                    ending = self._step()
                if not (certifies and ending.stop.converged and self._certificate_gains()):
                    break
                ending = None
        self.ending = ending

    def _step(self) -> Ending | None:
        """One step of the present phase, or the change to the next one; why to stop, or None."""
        run, progress = self.run, self.run.progress
        phase = self.phases[progress.phase]
        before = run.point
        try:
            gain = phase.advance(run)
            if isinstance(gain, Ending):
                return self._give_way(gain)
            progress.steps += 1
            progress.gain = gain
            self._rebase()
            return self._observed(phase.name)
        except NotFinite as error:
            progress.steps = progress.trace.step[-1]
            self._go_back(before)
            return Ending(Stop.NOT_FINITE, number=progress.steps + 1, phase=phase.name, text=str(error))

    def _give_way(self, ending: Ending) -> Ending | None:
        """Go on with the next phase, if there is one and the run has not converged."""
        if ending.stop.converged or self.run.progress.phase + 1 == len(self.phases):
            return ending
        self.run.settle()
        self._enter(self.run.progress.phase + 1)
        return None

    def _enter(self, number: int) -> None:
        self.run.progress.phase = number
        self.phases[number].forget()

    def _rebase(self) -> None:
        """Every k steps, compute the state anew; a checkpoint, which saves U alone, needs it even where no error adds up."""
        due = self.every and self.run.progress.steps % self.every == 0
        if due and (self.run.point.in_place or self.always_rebases):
            self.run.rebase()
            self.phases[self.run.progress.phase].forget()

    def _observed(self, name: str) -> Ending | None:
        """Let the observers see a step; why to stop after it, or None."""
        ending = None
        for observer in self.observers:
            ending = observer(self.run, name) or ending
        if self.run.stop_share:
            set_tol(self.run, self.coarse_gain)
        return ending or rule(self.run)

    def _go_back(self, point: Point) -> None:
        if self.run.point is not point:
            self.run.replace(point)

    def _certificate_gains(self) -> bool:
        """Search all pairs; whether some gain and were rotated, so that the run continues."""
        run, progress = self.run, self.run.progress
        before = run.point
        try:
            run.certificate, gain = certify(run, run.options.certify)
            progress.certifications += 1
            if gain <= 0.0:
                return False
            progress.gains, progress.gain = [], gain
            progress.steps += 1
            self._enter(0)
            trace(run, "certificate")
        except NotFinite as error:
            run.certificate, self.uncertified = None, str(error)
            progress.steps = progress.trace.step[-1]
            self._go_back(before)
            return False
        return True

    def result(self) -> Result:
        """The present U, its value, and why the run stopped."""
        run, progress, ending = self.run, self.run.progress, self.ending
        assert ending is not None
        U = run.point.matrix
        drift = orthogonality(U)
        if drift > DRIFT:
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
            with flop_counts.uncounted():
                self.run.hold()
            return self.run.gradient_norm(self.run.observed(even_if_expensive=True))
        except NotFinite:
            return math.nan
