"""The one loop: phases on one state, each of which may only lower f.

    for phase in phases:
        while the phase can make a step:
            record it; stop, save, tell the callback

What is not a way to lower f is here, once: trace, stopping, callback, checkpoint, drift. The ways are in `givens.phases`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from givens import checkpoint as checkpoints
from givens.checkpoint import Checkpoint, Progress
from givens.objectives.base import Look, NotFinite, Objective
from givens.phases import PHASES, Phase
from givens.phases.certificate import certify
from givens.result import Certificate, PhaseSummary, Result, Snapshot
from givens.rotations import determinant, orthogonality, repair, rotate_blocks
from givens.schedules import Schedule, Shape
from givens.support.arguments import counted
from givens.support.progress import Bar

Callback = Callable[[Snapshot], Any]

DRIFT = 5e-14
"""‖UᵀU − I‖ above which the U of a result is repaired once more."""

NOTHING = 1e-26
"""Of the scale: a gain of all pairs together that is rounding."""


@dataclass(frozen=True)
class RunOptions:
    """What `minimize` was asked for, checked."""

    phases: tuple[str, ...]
    schedule: Schedule
    tol: float
    gradient_tol: float | None
    max_sweeps: int
    max_steps: int
    certify: float
    callback: Callback | None
    repair_every: int | None


class Run:
    """One run in one component of O(n)."""

    progress: Progress

    def __init__(
        self, objective: Objective, options: RunOptions, place: Checkpoint | None, shown: Bar
    ) -> None:
        self.objective = objective
        self.options = options
        self.place = place
        self.shown = shown
        self.repair_every = options.repair_every if place is None else place.every
        self.plan = objective.plan()
        self.shape = Shape(objective.n, objective.active)
        self.pairs = self.shape.pairs
        self.unit = abs(objective.factor)
        self.phases: list[Phase] = [PHASES[name]() for name in options.phases]
        self.began = perf_counter()
        self._look: Look | None = None  # where the run is, if it has not moved since
        self._counted = (
            False  # a run that goes on from a checkpoint has counted the first look before it was saved
        )
        self._aside: np.ndarray | None = None  # a rotation of all columns that U and the state still lack
        self.rough = 0.0

    def minimise(
        self,
        U: np.ndarray,
        rng: np.random.Generator,
        reproducible: bool,
        before: PhaseSummary | None = None,
    ) -> Result:
        """Run from U, or from the checkpoint, to the end; the arguments are those of `begin`."""
        self.begin(U, rng, reproducible, before)
        self.proceed()
        return self.result()

    def begin(
        self,
        U: np.ndarray,
        rng: np.random.Generator,
        reproducible: bool,
        before: PhaseSummary | None = None,
        gained: float = 0.0,
    ) -> None:
        """Start at U, or where the checkpoint is; `reproducible` if another call would have the same U.

        `before` is what it took to find U on cheaper forms of the objective, and `gained` what that gained, in scales of theirs.
        """
        self.before = before
        progress = self._resume(U, reproducible) or Progress(start=U, U=U, rng=rng)
        self.progress = progress
        if before is not None and not progress.trace:
            progress.flops, progress.seconds = before.flops, before.seconds
        self.began = perf_counter() - progress.seconds
        self.Ut = np.ascontiguousarray(progress.U.T)
        self.state = self.objective.state(progress.U)
        if not progress.trace:
            progress.flops += self.plan.state_flops
            progress.summaries = [PhaseSummary(phase.name) for phase in self.phases]
            if self.phases[0].name == "descent":
                self.look()  # it begins with this, so the trace may have the gradient too
            self._record("" if before is None else before.name)
        else:
            self._counted = True
            self._remember(progress)
        self.certificate: Certificate | None = None
        self.message = ""
        self._gained = gained

    def proceed(self, rough: float = 0.0) -> None:
        """Go on until there is a reason to stop.

        With `rough`, that is where the next step promises no more than this share of all that was gained since the start; another
        call goes on from there.
        """
        progress, certify = self.progress, self.options.certify and not rough
        if self.message and not progress.converged:
            return
        self.began = perf_counter() - progress.seconds
        self._hold_state()
        self.rough = rough
        self._set_tol()
        message = self._stop()
        try:
            while not message:
                message = self._step()
                if message and progress.converged and certify:
                    message = self._certify(message)
        except NotFinite as error:
            progress.converged = False
            message = f"stopped in step {progress.steps + 1}, of the phase {self.options.phases[progress.phase]!r}: {error}"
        self.message = message

    def release(self) -> None:
        """Drop the state, which may be as large as the data, until it is needed again."""
        self.state = None

    def _hold_state(self) -> None:
        if self.state is None:
            self.state = self.objective.state(np.ascontiguousarray(self.Ut.T))
            self.progress.flops += self.plan.state_flops

    def _set_tol(self) -> None:
        """What a step has to gain, in scales."""
        self.tol = max(self.options.tol, self.plan.rounding**2)
        if self.rough:
            values, unit = self.progress.trace.value, self.objective.factor * self.objective.scale
            # Where powers of the data overflow, values are not finite: then nothing is known of the gain, and `tol` holds.
            gained = self._gained + (values[0] - values[-1]) / (unit or 1.0)
            self.tol = max(self.tol, self.rough * gained)

    def _remember(self, progress: Progress) -> None:
        """Let the phase that a checkpoint was saved in go on, if the file fits this run."""
        try:
            if [summary.name for summary in progress.summaries] != [phase.name for phase in self.phases]:
                raise ValueError("its phases are others")
            if not 0 <= progress.phase < len(self.phases):
                raise ValueError(f"its phase is {progress.phase}")
            self.phases[progress.phase].remember(progress.memory, self)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            assert self.place is not None
            raise checkpoints.damaged(self.place.path, error) from error

    def _step(self) -> str:
        """One step of the current phase; returns why to stop, or nothing."""
        progress = self.progress
        phase = self.phases[progress.phase]
        self.shown.step(phase.name, progress.steps + 1, self.options.max_sweeps, self.pairs)
        flops, began = progress.flops, perf_counter()
        gain = phase.advance(self)
        if gain is None:
            progress.converged = bool(phase.verdict)
            if not phase.verdict and progress.phase + 1 < len(self.phases):
                self.settle()
                progress.phase += 1
                return ""
            return phase.verdict or f"not converged: no step of the phase {phase.name!r} lowers f any more"
        progress.steps += 1
        progress.gain = gain
        summary = progress.summaries[progress.phase]
        summary.steps += 1
        summary.gain += _times(self.unit, gain)
        if self._repair_due():
            self._repair()
        self._record(phase.name)
        if self.rough:
            self._set_tol()
        summary.flops += progress.flops - flops
        summary.seconds += perf_counter() - began
        message = self._stop()
        self._save()
        if not message and self._told_to_stop():
            progress.converged = False
            message = "stopped by the callback"
        return message

    def _certify(self, message: str) -> str:
        """The message, if no pair gains anything; else nothing, and the run goes on from there."""
        progress = self.progress
        self.shown.step("certificate", progress.steps + 1, self.options.max_sweeps, self.pairs)
        self.certificate, gain = certify(self, self.options.certify)
        progress.certifications += 1
        if gain <= 0.0:
            return message
        progress.phase, progress.gains, progress.gain = 0, [], gain
        progress.steps += 1
        self.phases[0].forget()
        self._record("certificate")
        return ""

    def _told_to_stop(self) -> bool:
        if self.options.callback is None:
            return False
        answer = self.options.callback(self._snapshot())
        # Comparisons of numpy's numbers give numpy's True.
        return isinstance(answer, bool | np.bool_) and bool(answer)

    # What phases use.

    def look(self) -> Look:
        """Value, slopes and curvatures here; found once. They count as flops where steps are made of them, not for the trace."""
        if self._look is None or self._look.slopes is None:
            self._look = self._counted_look(self.objective.look(self.state))
        return self._look

    def _counted_look(self, look: Look) -> Look:
        if self.phases[self.progress.phase].name == "descent" and not self._counted:
            self.progress.flops += look.flops
        self._counted = False
        return look

    def moved(self) -> None:
        """The state was turned: what was seen before is no longer true."""
        self._look, self._counted = None, False

    def look_at(self, Q: np.ndarray) -> Look:
        """The look at U @ Q, while the state stays as it is."""
        look = self.objective.look(self.state, Q)
        # Beside it, Cayley's transform, a product and a repair.
        self.progress.flops += look.flops + 26.0 / 3.0 * float(len(Q)) ** 3
        return look

    def arrive(self, Q: np.ndarray, look: Look) -> None:
        """The run is at U @ Q, and sees this there; the state follows when `settle` is called."""
        self._aside, self._look = Q, look

    def settle(self) -> None:
        """Turn U by what was put aside, and make the state anew."""
        if self._aside is not None:
            self._repair()

    def turn(self, Q: np.ndarray) -> float:
        """Turn all columns; returns the flops."""
        self.moved()
        everything = [np.arange(self.shape.n)]
        return self.objective.apply(self.state, everything, [Q]) + rotate_blocks(self.Ut, everything, [Q])

    def slopes(self) -> np.ndarray | None:
        """The first derivatives of all pairs."""
        return self.look().slopes

    def value(self) -> float:
        """The value of f here."""
        return self._glance().value

    def _glance(self) -> Look:
        """A look for the value, with slopes where they are cheap."""
        if self._look is None:
            self._look = self._counted_look(self.objective.look(self.state, slopes=False))
        return self._look

    # Records.

    def _U(self) -> np.ndarray:
        if self._aside is not None:
            return repair(self.Ut.T @ self._aside)
        return np.ascontiguousarray(self.Ut.T)

    def _gradient_norm(self, at_any_price: bool) -> float:
        slopes = (self.look() if at_any_price else self._glance()).slopes
        if slopes is None:
            return float("nan")
        # Antisymmetric: every pair is there twice.
        return _times(self.unit, math.sqrt(np.vdot(slopes, slopes)))

    def _repair_due(self) -> bool:
        if not self.repair_every or self.progress.steps % self.repair_every:
            return False
        # What is put aside gathers no rounding errors in the state; but a checkpoint holds U only.
        return self._aside is None or self.place is not None

    def _repair(self) -> None:
        U = self._U()
        self.Ut = np.ascontiguousarray((U if self._aside is not None else repair(U)).T)
        self._aside = None
        self.state = None  # two states at once may be more than fits into memory
        self.state = self.objective.state(self._U())
        self.progress.flops += 4.0 * len(self.Ut) * self.Ut.size + self.plan.state_flops
        self.moved()
        self.phases[self.progress.phase].forget()

    def _record(self, phase: str) -> None:
        objective, progress = self.objective, self.progress
        value = _times(objective.factor, self.value())
        norm = self._gradient_norm(at_any_price=self.options.gradient_tol is not None)
        progress.seconds = perf_counter() - self.began
        progress.trace.append(progress.steps, progress.seconds, progress.flops, value, norm, phase)
        self.shown.show(value, progress.gain / objective.scale)

    def _stop(self) -> str:
        """Why to stop here; empty if there is no reason."""
        options, progress, scale = self.options, self.progress, self.objective.scale
        progress.converged = True
        if self.pairs == 0:
            return "there is nothing to rotate"
        norm = progress.trace.gradient_norm[-1]
        enough = None if options.gradient_tol is None else options.gradient_tol * scale * self.unit
        if enough is not None and norm <= enough and math.isfinite(norm):
            return f"converged: the gradient norm is at most {options.gradient_tol:g} times the scale"
        if len(progress.gains) >= options.schedule.patience and max(progress.gains) <= self.tol * scale:
            sweeps = "a sweep" if len(progress.gains) == 1 else f"{len(progress.gains)} sweeps"
            return f"converged: {sweeps} gained at most {self.tol:g} times the scale"
        left = None if self._look is None else self._look.left
        if left is not None and left <= max(self.tol**2, NOTHING) * scale:
            return f"converged: all pairs together could gain {left / scale:.1g} times the scale"
        progress.converged = False
        descended = sum(summary.steps for summary in progress.summaries if summary.name == "descent")
        if progress.steps - descended >= options.max_sweeps and self.phases[progress.phase].name != "descent":
            return f"not converged: max_sweeps = {options.max_sweeps} reached"
        if descended >= options.max_steps:
            return f"not converged: max_steps = {options.max_steps} reached"
        return ""

    def _snapshot(self) -> Snapshot:
        U = self._U()
        U.flags.writeable = False
        progress = self.progress
        trace = progress.trace
        return Snapshot(
            step=progress.steps,
            phase=trace.phase[-1],
            rotations=progress.rotations,
            seconds=progress.seconds,
            flops=progress.flops,
            value=trace.value[-1],
            gradient_norm=trace.gradient_norm[-1],
            gain=_times(self.unit, progress.gain),
            U=U,
        )

    def result(self) -> Result:
        """Where the run is, and why it stopped there."""
        progress = self.progress
        value, norm = progress.trace.value[-1], progress.trace.gradient_norm[-1]
        U = self._U()
        if orthogonality(U) > DRIFT:
            U = repair(U)
        notes = progress.note
        if np.isnan(norm):
            self._hold_state()
            self.moved()
            norm = self._last_norm()
        return Result(
            U=U,
            value=value,
            converged=progress.converged,
            message=self.message + (f"; {notes}" if notes else ""),
            sweeps=progress.sweeps,
            rotations=progress.rotations,
            flops=progress.flops,
            gradient_norm=norm,
            orthogonality=orthogonality(U),
            determinant=determinant(U),
            seconds=perf_counter() - self.began,
            trace=progress.trace,
            method=self._method(),
            phases=(*(() if self.before is None else (self.before,)), *progress.summaries),
            certificate=self.certificate,
        )

    def _last_norm(self) -> float:
        try:
            return self._gradient_norm(at_any_price=True)
        except NotFinite:  # the run has stopped next to such a place
            return float("nan")

    def _method(self) -> str:
        """One clause for each phase that made a step."""
        clauses = [
            phase.describe(summary.steps, self)
            for phase, summary in zip(self.phases, self.progress.summaries)
            if summary.steps
        ]
        if self.before is not None:
            clauses.insert(
                0,
                f"{counted(self.before.steps, 'step', 'steps')} on samples of the data or in single precision",
            )
        text = ", then ".join(clauses) or "no step"
        searched = self.progress.certifications
        if self.certificate is not None and self.progress.converged:
            share = "" if self.certificate.share == 1.0 else f" of {self.certificate.share:.0%} of the pairs"
            exact = "" if self.progress.note else "exact "
            text += f"; certified by {'one sweep' if searched == 1 else f'{searched} sweeps'} of {exact}searches{share}"
        return text

    # Checkpoints.

    def _save(self) -> None:
        progress = self.progress
        if self.place is None or progress.steps % self.place.every:
            return
        progress.U = self._U()
        progress.memory = self.phases[progress.phase].memory()
        checkpoints.save(self.place.path, progress, self._problem())

    def _problem(self) -> str:
        text = f"{fingerprint(self.objective)} {self.options.phases} {self.options.schedule!r} {self.repair_every}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _resume(self, start: np.ndarray, reproducible: bool) -> Progress | None:
        if self.place is None:
            return None
        found = checkpoints.load(self.place.path)
        if found is None:
            return None
        progress, problem = found
        path = os.fspath(self.place.path)
        same_start = not reproducible or np.array_equal(progress.start, start)
        if progress.start.shape == start.shape and same_start and problem == self._problem():
            return progress
        raise ValueError(
            f"the checkpoint {path!r} belongs to another problem (another objective, data, start, random_state, phases, "
            "schedule or interval); give another path, or delete it to start afresh"
        )


def _times(unit: float, number: float) -> float:
    """A number in units that may be infinite, where powers of the data are: zero stays zero."""
    return unit * number if number else 0.0


def fingerprint(objective: Objective) -> str:
    """Identify a problem, so that a checkpoint of another one is refused."""
    digest = hashlib.sha256(f"{type(objective).__name__} {objective.n} {objective.active}".encode())
    for part in objective.data():
        if isinstance(part, str):
            digest.update(part.encode())
            continue
        array = np.ascontiguousarray(part)
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.hexdigest()
