"""What watches a run, step by step: trace, checkpoint writer and callback. None of them changes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import Objective
from givens.result import Snapshot, Stop
from givens.solve import checkpoint as checkpoints
from givens.solve.checkpoint import Checkpoint, Saved
from givens.solve.run import Phase, Run, times
from givens.solve.state import Callback, Ending, RunOptions

Observer = Callable[[Run, str], Ending | None]
"""Called after each step with the name of what made it; it may end the run."""


def trace(run: Run, name: str) -> None:
    """Append a row to the trace, and add the step to the summary of its phase."""
    progress = run.progress
    rows = progress.trace
    look = run.observed(slopes=run.options.gradient_tol is not None)
    value, norm = times(run.objective.factor, look.value), run.gradient_norm(look)
    progress.seconds = perf_counter() - run.began
    rows.append(progress.steps, progress.seconds, progress.flops, value, norm, name)
    summary = progress.summaries[progress.phase]
    if summary.name == name:
        summary.steps += 1
        summary.gain += times(run.unit, progress.gain)
        summary.flops += rows.flops[-1] - rows.flops[-2]
        summary.seconds += rows.seconds[-1] - rows.seconds[-2]


@dataclass
class CheckpointWriter:
    """Saves the run every few steps, after which the loop has computed the state anew."""

    checkpoint: Checkpoint
    phases: Sequence[Phase]
    problem: str

    def __call__(self, run: Run, name: str) -> None:
        """Save the run, if it is time."""
        if run.progress.steps % self.checkpoint.every == 0:
            memories = [phase.memory() for phase in self.phases]
            saved = Saved(run.progress, run.point.matrix, memories, self.problem)
            checkpoints.save(self.checkpoint.path, saved)

    def load(self, start: np.ndarray, reproducible: bool) -> Saved | None:
        """The run that was saved, if it is of this problem and, where it can be told, from this start."""
        saved = checkpoints.load(self.checkpoint.path)
        if saved is None:
            return None
        same_start = not reproducible or np.array_equal(saved.progress.start, start)
        if saved.progress.start.shape != start.shape or not same_start or saved.problem != self.problem:
            raise self._other_problem()
        return saved

    def check(self, run: Run) -> None:
        """Refuse a checkpoint of other data, for which f or its gradient is another one than when it was saved."""
        rows, size = run.progress.trace, run.unit * run.objective.scale
        look = run.observed(slopes=False)
        now = times(run.objective.factor, look.value), run.gradient_norm(look)
        for before, after in zip((rows.value[-1], rows.gradient_norm[-1]), now):
            # On a machine that rounds otherwise, too, values of one problem at one point differ by less.
            if abs(after - before) > 64 * EPS * size:
                raise self._other_problem()

    def _other_problem(self) -> ValueError:
        return ValueError(
            f"the checkpoint {os.fspath(self.checkpoint.path)!r} belongs to another problem (another objective, data, "
            "start, random_state, method or interval); give another path, or delete it to start afresh"
        )


@dataclass
class Caller:
    """Calls the user's function, which may stop the run by returning True or by raising StopIteration, as in SciPy."""

    callback: Callback

    def __call__(self, run: Run, name: str) -> Ending | None:
        """Call it with a snapshot."""
        try:
            answer = self.callback(self._snapshot(run))
        except StopIteration:
            answer = True
        # Comparisons of NumPy's numbers give np.True_.
        stops = isinstance(answer, bool | np.bool_) and bool(answer)
        return Ending(Stop.CALLBACK) if stops else None

    def _snapshot(self, run: Run) -> Snapshot:
        progress, rows = run.progress, run.progress.trace
        U = run.point.matrix.copy()
        U.flags.writeable = False
        return Snapshot(
            step=progress.steps,
            phase=rows.phase[-1],
            rotations=progress.rotations,
            seconds=progress.seconds,
            flops=progress.flops,
            value=rows.value[-1],
            gradient_norm=rows.gradient_norm[-1],
            gain=times(run.unit, progress.gain),
            U=U,
        )


def fingerprint(objective: Objective, options: RunOptions, every: int | None) -> str:
    """What a problem is but for its data, and how it is solved, by which a checkpoint of another one is recognised."""
    problem = f"{type(objective).__name__} {objective.shape} {objective.active} {objective.factor}"
    return f"{problem} {options.phases} {options.schedule!r} {every}"
