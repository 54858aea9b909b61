"""The one loop: blocks of columns, each turned to the best of its rotations.

    for blocks in schedule:                 # the blocks of a round share no column
        solve every block                   # reads the state only, so threads may share it
        apply all the rotations             # writes

Everything that is not a pair problem is here, once: order, threads, trace, stopping, callback, checkpoint, drift. With
`schedule="random"` and blocks of two columns this is the paper's Algorithm 1.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from givens import checkpoint as checkpoints
from givens.checkpoint import Checkpoint, Progress
from givens.numerics import parallel
from givens.objectives.base import Blocks, Objective, Solved
from givens.result import Result, Snapshot
from givens.rotations import determinant, orthogonality, repair, rotate_blocks
from givens.schedules import Schedule, Shape
from givens.support.progress import Bar

Callback = Callable[[Snapshot], Any]


@dataclass(frozen=True)
class RunOptions:
    """What `minimize` was asked for, checked."""

    schedule: Schedule
    tol: float
    gradient_tol: float | None
    max_sweeps: int
    callback: Callback | None
    repair_every: int | None


class Run:
    """One run in one component of O(n)."""

    def __init__(
        self, objective: Objective, options: RunOptions, place: Checkpoint | None, shown: Bar
    ) -> None:
        self.objective = objective
        self.options = options
        self.place = place
        self.shown = shown
        self.repair_every = options.repair_every if place is None else place.every
        self.shape = Shape(objective.n, objective.active)
        self.columns = objective.active if objective.thin else objective.n
        self.began = perf_counter()
        self.memory: Any = None
        self.f: float | None = None  # of the state, if it has not been turned since

    def minimise(self, U: np.ndarray, rng: np.random.Generator, reproducible: bool) -> Result:
        """Run from U, or from the checkpoint; `reproducible` if another call would have the same U."""
        progress = self._resume(U, reproducible) or Progress(start=U, U=U, rng=rng)
        self.began = perf_counter() - progress.seconds
        # Tolerances are relative to a scale that is settled at the start, and so the same for a run that goes on.
        self.objective.prepare(progress.start)
        self.tol = max(self.options.tol, self.objective.floor)
        self.objective.enough = self.tol * self.objective.scale
        self.Ut = np.ascontiguousarray(progress.U.T)
        self.state = self.objective.state(progress.U)
        if not progress.trace:
            progress.flops += self.objective.making
            self._record(progress)
        message = self._stop(progress)
        while not message:
            if not self._leap(progress):
                self._sweep(progress)
            if self.repair_every and progress.sweeps % self.repair_every == 0:
                self._repair(progress)
            self._record(progress)
            message = self._stop(progress)
            self._save(progress)
            if not message and self._told_to_stop(progress):
                message = "stopped by the callback"
        return self._result(progress, message)

    def _told_to_stop(self, progress: Progress) -> bool:
        if self.options.callback is None:
            return False
        answer = self.options.callback(self._snapshot(progress))
        # Comparisons of numpy's numbers give numpy's True.
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def _leap(self, progress: Progress) -> bool:
        """Turn all columns at once, as long as the schedule wants that and f gains by it. Counts as a sweep."""
        objective = self.objective
        while self.options.schedule.leaps and progress.leaps >= 0:
            self.shown.sweep(progress.sweeps + 1, self.options.max_sweeps, self.shape.pairs)
            before = objective.value(self.state) if self.f is None else self.f
            fresh = progress.leaps > 0 and self.memory is None
            leap = objective.leap(self.state, self.memory, progress.leaps == 0)
            if leap is None:
                break
            progress.flops += leap.flops + self._turn(leap.rotation)
            gain = before - objective.value(self.state)
            if gain > 0.0:
                progress.leaps = progress.leaps + 1 if leap.again else -1
                self.memory = leap.memory if leap.again else None
                progress.rotations += self.shape.pairs
                progress.sweeps += 1
                progress.gains = [*progress.gains, gain][-self.options.schedule.patience :]
                return True
            progress.flops += self._turn(leap.rotation.T)
            self.f = self.memory = None
            progress.leaps = 1
            if fresh:
                break
        progress.leaps, self.memory = -1, None
        return False

    def _turn(self, Q: np.ndarray) -> float:
        everything = [np.arange(self.shape.n)]
        return self.objective.apply(self.state, everything, [Q]) + rotate_blocks(self.Ut, everything, [Q])

    def _sweep(self, progress: Progress) -> None:
        objective = self.objective
        shape = self._complete(progress) if objective.thin else self.shape
        rounds = self.options.schedule.sweep(shape, progress.rng, self._slopes)
        total = 0.0
        self.shown.sweep(progress.sweeps + 1, self.options.max_sweeps, shape.pairs)
        try:
            blocks = next(rounds)
            while True:
                gain = 0.0
                # Where the gains of disjoint blocks do not add up, each has to see what the one before has done.
                for share in (
                    (blocks,) if objective.separable else [blocks[k : k + 1] for k in range(len(blocks))]
                ):
                    gain += self._round(share, progress)
                total += gain
                self.shown.advance(blocks)
                blocks = rounds.send(gain)
        except StopIteration:
            pass
        progress.sweeps += 1
        progress.gains = [*progress.gains, total][-self.options.schedule.patience :]

    def _complete(self, progress: Progress) -> Shape:
        Wt, flops = self.objective.complete(self.state)
        progress.flops += flops
        self.Ut = np.concatenate((self.Ut[: self.columns], Wt))
        return Shape(len(self.Ut), self.objective.active)

    def _U(self) -> np.ndarray:
        return np.ascontiguousarray(self.Ut[: self.columns].T)

    def _round(self, blocks: Blocks, progress: Progress) -> float:
        solved = self._solve(blocks)
        progress.flops += solved.flops
        turned = solved.gains > 0
        if not turned.any():
            return 0.0
        rotations = solved.rotations
        if not turned.all():
            if isinstance(blocks, np.ndarray):
                blocks, rotations = blocks[turned], np.asarray(rotations)[turned]
            else:
                which = np.flatnonzero(turned).tolist()
                blocks, rotations = [blocks[k] for k in which], [rotations[k] for k in which]
        progress.flops += self.objective.apply(self.state, blocks, rotations)
        progress.flops += rotate_blocks(self.Ut, blocks, rotations)
        progress.rotations += solved.rotated
        return float(solved.gains[turned].sum())

    def _solve(self, blocks: Blocks) -> Solved:
        width = min(parallel.width(), len(blocks))
        if width == 1:
            return self.objective.solve(self.state, blocks)
        shares = [blocks[part] for part in parallel.parts(len(blocks), width)]
        solved = parallel.each(lambda share: self.objective.solve(self.state, share), shares)
        rotations = [Q for part in solved for Q in part.rotations]
        return Solved(
            np.array(rotations) if isinstance(blocks, np.ndarray) else rotations,
            np.concatenate([part.gains for part in solved]),
            sum(part.rotated for part in solved),
            # Whole numbers: their sum does not depend on how the blocks were shared out.
            sum(part.flops for part in solved),
        )

    def _slopes(self) -> np.ndarray | None:
        return None if self.objective.dear else self.objective.gradient(self.state)

    def _gradient_norm(self, at_any_price: bool) -> float:
        if self.objective.dear and not at_any_price:
            return float("nan")
        slopes = self.objective.gradient(self.state)
        return self.objective.unit * float(
            np.sqrt(2 * np.sum(np.triu(slopes, 1)[: self.objective.active] ** 2))
        )

    def _repair(self, progress: Progress) -> None:
        self.Ut = np.ascontiguousarray(repair(self._U()).T)
        self.state = self.objective.state(self._U())
        progress.flops += 4.0 * len(self.Ut) * self.Ut.size + self.objective.making
        # A run that goes on from a checkpoint has none either.
        self.memory = None

    def _record(self, progress: Progress) -> None:
        objective = self.objective
        self.f = objective.value(self.state)
        value = objective.sense * objective.unit * self.f
        norm = self._gradient_norm(at_any_price=self.options.gradient_tol is not None)
        progress.seconds = perf_counter() - self.began
        progress.trace.append(progress.sweeps, progress.seconds, progress.flops, value, norm)
        self.shown.show(value, progress.gains[-1] / objective.scale if progress.gains else float("nan"))

    def _stop(self, progress: Progress) -> str:
        """Why to stop here; empty if there is no reason."""
        options, scale = self.options, self.objective.scale
        progress.converged = True
        if self.shape.pairs == 0:
            return "there is nothing to rotate"
        norm = progress.trace.gradient_norm[-1]
        if options.gradient_tol is not None and norm <= options.gradient_tol * scale * self.objective.unit:
            return f"converged: the gradient norm is at most {options.gradient_tol:g} times the scale"
        if len(progress.gains) >= options.schedule.patience and max(progress.gains) <= self.tol * scale:
            sweeps = "a sweep" if len(progress.gains) == 1 else f"{len(progress.gains)} sweeps"
            return f"converged: {sweeps} gained at most {self.tol:g} times the scale"
        if settled := self.objective.settled(self.state):
            return settled
        progress.converged = False
        if progress.sweeps >= options.max_sweeps:
            return f"not converged: max_sweeps = {options.max_sweeps} reached"
        return ""

    def _snapshot(self, progress: Progress) -> Snapshot:
        U = self._U()
        U.flags.writeable = False
        trace = progress.trace
        objective = self.objective
        return Snapshot(
            sweep=progress.sweeps,
            rotations=progress.rotations,
            seconds=progress.seconds,
            flops=progress.flops,
            value=trace.value[-1],
            gradient_norm=trace.gradient_norm[-1],
            gain=objective.unit * progress.gains[-1],
            U=U,
        )

    def _result(self, progress: Progress, message: str) -> Result:
        objective, trace = self.objective, progress.trace
        value, norm = trace.value[-1], trace.gradient_norm[-1]
        U = objective.outcome(self.state)
        if U is None:
            U = self._U()
        else:
            value = objective.sense * objective.unit * objective.value(self.state)
            norm = np.nan
        notes = objective.notes(self.state)
        if np.isnan(norm):
            norm = self._gradient_norm(at_any_price=True)
        return Result(
            U=U,
            value=value,
            converged=progress.converged and not message.startswith("stopped"),
            message=message + (f"; {notes}" if notes else ""),
            sweeps=progress.sweeps,
            rotations=progress.rotations,
            flops=progress.flops,
            gradient_norm=norm,
            orthogonality=orthogonality(U),
            determinant=None if objective.thin else determinant(U),
            seconds=perf_counter() - self.began,
            trace=progress.trace,
        )

    def _save(self, progress: Progress) -> None:
        if self.place is None or progress.sweeps % self.place.every:
            return
        progress.U = self._U()
        checkpoints.save(self.place.path, progress, self._problem())

    def _problem(self) -> str:
        text = f"{self.objective.fingerprint()} {self.options.schedule!r} {self.repair_every}"
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
        if progress.start.shape == start.shape and same_start:
            self.objective.prepare(progress.start)
            if problem == self._problem():
                return progress
        raise ValueError(
            f"the checkpoint {path!r} belongs to another problem (another objective, data, start, random_state, schedule or "
            "interval); give another path, or delete it to start afresh"
        )
