"""The one loop: phases on one state, each of which may only lower f.

    for phase in phases:
        while the phase can make a step:
            record it; stop, save, call the callback

This file has everything but the ways to lower f, which are in `givens.solve`: trace, stopping, callback, checkpoint, repair.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from givens.objectives.base import Look, NotFinite, Objective, Plan
from givens.result import Certificate, PhaseSummary, Result, Snapshot
from givens.rotations import complete, orthogonality, repair, rotate_blocks
from givens.schedules import Schedule, Shape
from givens.solve import PHASES, Phase
from givens.solve import checkpoint as checkpoints
from givens.solve.certificate import certify
from givens.solve.checkpoint import Checkpoint, Progress
from givens.support.arguments import counted
from givens.support.progress import Bar

Callback = Callable[[Snapshot], Any]

DRIFT = 5e-14
"""‖UᵀU − I‖ above which the U of a result is repaired once more."""

INFINITE = "not converged: f is infinite at the start"
"""The message of a run from a start where a function has no value."""

STOPPED = "stopped by the callback"
"""The message of a run that a callback stopped."""

NOTHING = 1e-26
"""Relative to the scale: a smaller gain of all pairs together is rounding."""


class RunOptions(NamedTuple):
    """Arguments of `minimize`, checked."""

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
        self,
        objective: Objective,
        plan: Plan,
        options: RunOptions,
        checkpoint: Checkpoint | None,
        shown: Bar,
    ) -> None:
        self.objective = objective
        self.plan = plan
        self.options = options
        self.checkpoint = checkpoint
        self.shown = shown
        self.repair_every = options.repair_every if checkpoint is None else checkpoint.every
        self.shape = Shape(objective.n, objective.active)
        self.pairs = self.shape.pairs
        self.unit = abs(objective.factor)
        self.phases: list[Phase] = [PHASES[name]() for name in options.phases]
        self.began = perf_counter()
        self._look: Look | None = None  # the look at the present U, if there was one
        self._counted = False  # whether flops include the next look, as those of a checkpoint do
        self._pending: np.ndarray | None = None  # a rotation, not yet applied to U and the state
        self.rough = 0.0

    def minimise(self, U: np.ndarray, rng: np.random.Generator, reproducible: bool) -> Result:
        """Run from U, or from the checkpoint, to the end; the arguments are those of `begin`."""
        self.begin(U, rng, reproducible)
        self.proceed()
        return self.result()

    def begin(
        self,
        U: np.ndarray,
        rng: np.random.Generator,
        reproducible: bool,
        before: PhaseSummary | None = None,
        gained: float = 0.0,
        forgiving: bool = False,
    ) -> None:
        """Start at U, or at the checkpoint; `reproducible` if another call would have the same U.

        With `forgiving`, a start where f is NaN counts as one where it is infinite.

        `before` summarises the steps on cheaper forms of the objective that led to U, and `gained` is their gain, relative to
        the scales of these forms.
        """
        self.before = before
        progress = self._resume(U, reproducible) or Progress(start=U, U=U, rng=rng)
        self.progress = progress
        if before is not None and not progress.trace:
            progress.flops, progress.seconds = before.flops, before.seconds
        self.began = perf_counter() - progress.seconds
        self.Ut = np.ascontiguousarray(progress.U.T)
        self._recorded = self.Ut.copy()  # where the last value of the trace is, unless a rotation is pending
        self.state = self.objective.state(progress.U)
        if not progress.trace:
            progress.flops += self.plan.state_flops
            progress.summaries = [PhaseSummary(phase.name) for phase in self.phases]
            try:
                if self.phases[0].name == "descent":
                    self.look()  # descent needs it anyway, and the trace gets the gradient norm
                else:
                    self.value()
            except NotFinite:
                if not forgiving:
                    raise
                self._look = Look(math.inf, np.zeros((1, 1)))
            self._record("" if before is None else before.name)
        else:
            self._counted = True
            self.phases[progress.phase].remember(progress.memory, self)
        self.certificate: Certificate | None = None
        self.searched = True  # whether any pairs were searched for the certificate, or all gains were known
        self.message = ""
        self._gained = gained

    def proceed(self, rough: float = 0.0) -> None:
        """Continue until there is a reason to stop.

        With `rough`, also stop where the next step is predicted to gain at most this share of the total gain so far; another call
        continues from there.
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
            while True:
                while not message:
                    message = self._step()
                if not (progress.converged and certify):
                    break
                message = self._certify(message)
                if message:
                    break
        except NotFinite as error:
            progress.converged = False
            progress.steps = progress.trace.step[-1]
            if self._pending is None:
                self.Ut, self.state = self._recorded, None  # a sweep had turned them
            message = f"stopped in step {progress.steps + 1}, of the phase {self.options.phases[progress.phase]!r}: {error}"
        self.message = message

    def release(self) -> None:
        """Free the state, which may be as large as the data; it is recomputed when it is needed."""
        self.state = None

    def _hold_state(self) -> None:
        if self.state is None:
            self.state = self.objective.state(np.ascontiguousarray(self.Ut.T))
            self.progress.flops += self.plan.state_flops

    def _set_tol(self) -> None:
        """Set the gain, relative to the scale, that a step must exceed."""
        self.tol = max(self.options.tol, self.plan.rounding**2)
        if self.rough:
            values, unit = self.progress.trace.value, self.objective.factor * self.objective.scale
            # Where powers of the data overflow, the gain is NaN, and `max` keeps `tol`.
            gained = self._gained + (values[0] - values[-1]) / (unit or 1.0)
            self.tol = max(self.tol, self.rough * gained)

    def _step(self) -> str:
        """Make one step of the current phase; return why to stop, or an empty string."""
        progress = self.progress
        phase = self.phases[progress.phase]
        number = progress.sweeps if phase.name == "sweeps" else progress.steps
        self.shown.step(phase.name, number + 1, self.options.max_sweeps, self.pairs)
        flops, began = progress.flops, perf_counter()
        gain = phase.advance(self)
        if gain is None:
            progress.converged = bool(phase.verdict)
            if not phase.verdict and progress.phase + 1 < len(self.phases):
                self.settle()
                progress.phase += 1
                return ""
            reason = phase.unable or f"no step of the phase {phase.name!r} lowers f any more"
            return phase.verdict or f"not converged: {reason}"
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
        if self._callback_stops() and not message:
            progress.converged = False
            message = STOPPED
        return message

    def _certify(self, message: str) -> str:
        """The message, if no pair gains anything; else an empty string, and the run continues."""
        progress = self.progress
        self.shown.step("certificate", progress.steps + 1, self.options.max_sweeps, self.pairs)
        try:
            self.certificate, gain = certify(self, self.options.certify)
        except NotFinite as error:
            self.certificate, self.Ut, self.state = None, self._recorded, None
            self._hold_state()
            self.moved()
            return f"{message}; not certified: {error}"
        progress.certifications += 1
        if gain <= 0.0:
            return message
        progress.phase, progress.gains, progress.gain = 0, [], gain
        progress.steps += 1
        self.phases[0].forget()
        self._record("certificate")
        return ""

    def _callback_stops(self) -> bool:
        if self.options.callback is None:
            return False
        try:
            answer = self.options.callback(self._snapshot())
        except StopIteration:  # as in SciPy
            return True
        # Comparisons of NumPy's numbers give np.True_.
        return isinstance(answer, bool | np.bool_) and bool(answer)

    # Methods for phases.

    def look(self) -> Look:
        """Value, slopes and curvatures at the present U, computed once. Flops are counted in descent, not for the trace alone."""
        if self._look is None or self._look.slopes is None:
            self._look = self._counted_look(_not_nan(self.objective.look(self.state)))
        return self._look

    def _counted_look(self, look: Look) -> Look:
        if self.phases[self.progress.phase].name == "descent" and not self._counted:
            self.progress.flops += look.flops
        self._counted = False
        return look

    def moved(self) -> None:
        """Discard the last look, since the state was rotated."""
        self._look, self._counted = None, False

    def look_at(self, Q: np.ndarray) -> Look:
        """The look at U @ Q, or for n x m matrices at Q; the state is not changed."""
        look = _not_nan(self.objective.look(self.state, Q))
        # Including Cayley's transform, a product and a repair.
        work = 26.0 if self.plan.stiefel else 26.0 / 3.0
        self.progress.flops += look.flops + work * float(Q.size) * Q.shape[1]
        return look

    def arrive(self, Q: np.ndarray, look: Look) -> None:
        """Move to U @ Q, or for n x m matrices to Q, where the look is known; `settle` then rotates U and the state."""
        self._pending, self._look = Q, look

    def settle(self) -> None:
        """Apply the pending rotation to U, and recompute the state."""
        if self._pending is not None:
            self._repair()

    def complete(self) -> None:
        """Settle, and complete an n x m matrix by any other columns: rotations of two columns need them."""
        self.settle()
        if len(self.Ut) < self.shape.n:
            self.Ut = np.ascontiguousarray(complete(self.Ut.T).T)
            self.state = self.objective.state(np.ascontiguousarray(self.Ut.T))
            self.progress.flops += 4.0 * self.Ut.size * self.shape.active

    def turn(self, Q: np.ndarray) -> float:
        """Rotate all columns; return the flops."""
        self.moved()
        everything = [np.arange(self.shape.n)]
        return self.objective.apply(self.state, everything, [Q]) + rotate_blocks(self.Ut, everything, [Q])

    def slopes(self) -> np.ndarray | None:
        """The first derivatives of all pairs."""
        slopes, m = self.look().slopes, self.shape.active
        if slopes is None or not self.plan.stiefel:
            return slopes
        upper = np.zeros((len(self.Ut), len(self.Ut)))
        upper[:m, :m] = np.triu(slopes[:m])
        upper[:m, m:] = slopes[m:].T @ self.Ut[m:].T
        return upper - upper.T

    def value(self) -> float:
        """The value of f at the present U."""
        return self._glance().value

    def gains(self) -> np.ndarray | None:
        """The gains of all pairs at the present U, if the objective knows them without searches."""
        gains = self._glance().gains
        return None if gains is None else gains()

    def _glance(self) -> Look:
        """A look for the value, which has slopes where they are cheap."""
        if self._look is None:
            self._look = self._counted_look(_not_nan(self.objective.look(self.state, slopes=False)))
        return self._look

    # Records.

    def _U(self) -> np.ndarray:
        if self._pending is not None:
            return repair(self._pending if self.plan.stiefel else self.Ut.T @ self._pending)
        # An n x m matrix may have been completed.
        return np.ascontiguousarray((self.Ut[: self.shape.active] if self.plan.stiefel else self.Ut).T)

    def _gradient_norm(self, even_if_expensive: bool) -> float:
        slopes = (self.look() if even_if_expensive else self._glance()).slopes
        if slopes is None:
            return float("nan")
        square = float(np.vdot(slopes, slopes))
        if self.plan.stiefel:
            # Every pair occurs twice in an antisymmetric matrix, but those with columns outside of n x m matrices once.
            beyond = slopes[self.shape.active :]
            square += float(np.vdot(beyond, beyond))
        return _times(self.unit, math.sqrt(square))

    def _repair_due(self) -> bool:
        if not self.repair_every or self.progress.steps % self.repair_every:
            return False
        # While a rotation is pending, the state does not accumulate rounding errors; but a checkpoint has U only.
        return self._pending is None or self.checkpoint is not None

    def _repair(self) -> None:
        U = self._U()
        self.Ut = np.ascontiguousarray((U if self._pending is not None else repair(U)).T)
        if self._pending is not None:
            self._recorded = self.Ut.copy()
        self._pending = None
        self.state = None  # two states at once may not fit into memory
        self.state = self.objective.state(self._U())
        self.progress.flops += 4.0 * len(self.Ut) * self.Ut.size + self.plan.state_flops
        self.moved()
        self.phases[self.progress.phase].forget()

    def _record(self, phase: str) -> None:
        objective, progress = self.objective, self.progress
        value = _times(objective.factor, self.value())
        norm = self._gradient_norm(even_if_expensive=self.options.gradient_tol is not None)
        progress.seconds = perf_counter() - self.began
        if self._pending is None:
            self._recorded = self.Ut.copy()
        progress.trace.append(progress.steps, progress.seconds, progress.flops, value, norm, phase)
        self.shown.show(value, progress.gain / objective.scale)

    def _stop(self) -> str:
        """Why to stop now; an empty string if there is no reason."""
        options, progress, scale = self.options, self.progress, self.objective.scale
        progress.converged = True
        if self.pairs == 0:
            return "there is nothing to rotate"
        if progress.steps == 0 and self.value() == math.inf:
            progress.converged = False
            return INFINITE
        norm = progress.trace.gradient_norm[-1]
        limit = None if options.gradient_tol is None else options.gradient_tol * scale * self.unit
        if limit is not None and norm <= limit and math.isfinite(norm):
            return f"converged: the gradient norm is at most {options.gradient_tol:g} times the scale"
        if len(progress.gains) >= options.schedule.patience and max(progress.gains) <= self.tol * scale:
            sweeps = "a sweep" if len(progress.gains) == 1 else f"{len(progress.gains)} sweeps"
            return f"converged: {sweeps} gained at most {self.tol:g} times the scale"
        left = None if self._look is None else self._look.left
        if left is not None and left <= max(self.tol**2, NOTHING) * scale:
            return f"converged: all pairs together could gain {left / scale:.1g} times the scale"
        progress.converged = False
        descended = 0
        for summary in progress.summaries:
            if summary.name == "descent":
                descended += summary.steps
        if self.phases[progress.phase].name != "descent":
            if progress.steps - descended >= options.max_sweeps:
                return f"not converged: max_sweeps = {options.max_sweeps} reached"
        elif descended >= options.max_steps:
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
        """The present U, its value, and why the run stopped."""
        progress = self.progress
        value, norm = progress.trace.value[-1], progress.trace.gradient_norm[-1]
        U = self._U()
        drift = orthogonality(U)
        if drift > DRIFT:
            U = repair(U)
            drift = orthogonality(U)
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
            orthogonality=drift,
            seconds=perf_counter() - self.began,
            trace=progress.trace,
            method=self._method(),
            phases=(*(() if self.before is None else (self.before,)), *progress.summaries),
            certificate=self.certificate,
            scale=self.unit * self.objective.scale,
        )

    def _last_norm(self) -> float:
        try:
            return self._gradient_norm(even_if_expensive=True)
        except NotFinite:  # why the run stopped
            return float("nan")

    def _method(self) -> str:
        """`Result.method`: one clause for each phase that made a step."""
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
        taken = self.progress.trace.phase.count("certificate")
        if taken:
            clauses.append(f"rotations that the search of all pairs found, {counted(taken, 'time', 'times')}")
        text = ", then ".join(clauses) or "no step"
        sweeps = self.progress.certifications
        if self.certificate is not None and self.progress.converged:
            share = "" if self.certificate.share == 1.0 else f" of {self.certificate.share:.0%} of the pairs"
            exact = "" if self.progress.note else "exact "
            if self.searched:
                text += f"; certified by {'one sweep' if sweeps == 1 else f'{sweeps} sweeps'} of {exact}searches{share}"
            else:
                text += f"; certified by the gains {share.removeprefix(' ') or 'of all pairs'}"
        return text

    # Checkpoints.

    def _save(self) -> None:
        progress = self.progress
        if self.checkpoint is None or progress.steps % self.checkpoint.every:
            return
        progress.U = self._U()
        progress.memory = self.phases[progress.phase].memory()
        checkpoints.save(self.checkpoint.path, progress, self._problem())

    def _problem(self) -> str:
        phases = [phase.name for phase in self.phases]
        text = f"{fingerprint(self.objective)} {phases} {self.options.schedule!r} {self.repair_every}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _resume(self, start: np.ndarray, reproducible: bool) -> Progress | None:
        if self.checkpoint is None:
            return None
        found = checkpoints.load(self.checkpoint.path)
        if found is None:
            return None
        progress, problem = found
        path = os.fspath(self.checkpoint.path)
        same_start = not reproducible or np.array_equal(progress.start, start)
        if progress.start.shape == start.shape and same_start and problem == self._problem():
            return progress
        raise ValueError(
            f"the checkpoint {path!r} belongs to another problem (another objective, data, start, random_state, phases, "
            "schedule or interval); give another path, or delete it to start afresh"
        )


def _not_nan(look: Look) -> Look:
    if math.isnan(look.value):
        raise NotFinite("f must be finite for every orthogonal matrix, but look() returned nan for one")
    return look


def _times(unit: float, number: float) -> float:
    """unit * number; 0 for the number 0, even if the unit is infinite because powers of the data overflow."""
    return unit * number if number else 0.0


def fingerprint(objective: Objective) -> str:
    """A digest of a problem, by which a checkpoint of another one is recognised."""
    digest = hashlib.sha256(f"{type(objective).__name__} {objective.n} {objective.active}".encode())
    for part in objective.data():
        if isinstance(part, str):
            digest.update(part.encode())
            continue
        array = np.ascontiguousarray(part)
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.hexdigest()
