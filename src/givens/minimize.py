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
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from givens import checkpoint as checkpoints
from givens import parallel
from givens.checkpoint import Checkpoint, Progress
from givens.objectives.base import Blocks, Objective, Solved
from givens.progress import Bar, bar
from givens.result import Result, Snapshot
from givens.rotations import check_orthogonal, orthogonality, repair, rotate_blocks, with_determinant
from givens.rotations import determinant as determinant_of
from givens.schedules import Schedule, Shape, as_schedule

Callback = Callable[[Snapshot], Any]


def minimize(
    objective: Objective | Callable[[np.ndarray], float],
    start: np.ndarray | None = None,
    *,
    n: int | None = None,
    schedule: str | Schedule | None = None,
    tol: float = 1e-18,
    gradient_tol: float | None = None,
    max_sweeps: int = 200,
    determinant: int | str | None = None,
    threads: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    repair_every: int | None = 10,
    progress: bool = False,
) -> Result:
    """Minimise a function of an orthogonal matrix, by rotations of two columns at a time.

    Parameters
    ----------
    objective : Objective or callable
        What to minimise. A callable f(U) -> float is wrapped in `objectives.Function`, whose pair problems are solved by
        interpolation; `n` is then needed, unless there is a `start`.
    start : array, shape (n, n), optional
        An orthogonal matrix to start from. By default the objective chooses: the identity for data, a random rotation
        for a plain function.
    n : int, optional
        The order of U, for a plain function.
    schedule : str or Schedule, optional
        The order of pairs: "tournament", "random" (Algorithm 1), "without-replacement" (the appendix), "cyclic",
        "shuffled", "gradient", or an object of `givens.schedules`, which also sets the size of blocks. By default the
        objective chooses: a tournament, in blocks where that is faster.
    tol : float
        Converged when a whole sweep gained no more than tol times the objective's scale. Gains come from the pair problems,
        not from differences of values, so a tolerance below rounding has a meaning: the gradient goes with its root.
    gradient_tol : float, optional
        Converged also when the gradient norm is at most this times the scale.
    max_sweeps : int
        Stop after so many sweeps.
    determinant : {1, -1, "both"}, optional
        The component of O(n) to search; rotations never leave the one they start in. A start in the other one has its
        last column reversed. "both" searches each and keeps the better; None stays where the start is.
    threads : int, optional
        By default all cores. The number changes the time, never the result.
    random_state : int, Generator or RandomState, optional
        For the start and the schedule.
    callback : callable, optional
        Called after each sweep with a `Snapshot`; stops the run by returning True.
    checkpoint : path or Checkpoint, optional
        Save the run there after every sweep (or every so many: `Checkpoint(path, every=10)`), and go on from there if the
        file exists. With determinant="both" there are two files, named .plus and .minus.
    repair_every : int, optional
        Every so many sweeps take the rounding errors out of U and make the state anew; None: never. A checkpoint's `every`
        takes its place.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Result

    Examples
    --------
    The eigenvectors of a symmetric matrix, as the U that makes the off-diagonal entries vanish:

    >>> import numpy as np
    >>> from givens import minimize
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((5, 5)); A = A + A.T
    >>> result = minimize(lambda U: np.sum(np.triu(U.T @ A @ U, 1) ** 2), n=5, random_state=0)
    >>> result.converged, bool(result.value < 1e-12)
    (True, True)
    >>> np.allclose(np.sort(np.diag(result.U.T @ A @ result.U)), np.linalg.eigvalsh(A))
    True
    """
    problem, first = _problem(objective, start, n)
    options = _Options(
        schedule=as_schedule(problem.schedule() if schedule is None else schedule),
        tol=_check_tolerance(tol, "tol"),
        gradient_tol=None if gradient_tol is None else _check_tolerance(gradient_tol, "gradient_tol"),
        max_sweeps=_check_count(max_sweeps, "max_sweeps", least=0),
        callback=callback,
        repair_every=None if repair_every is None else _check_count(repair_every, "repair_every", least=1),
    )
    if determinant not in (None, 1, -1, "both"):
        raise ValueError(f"determinant must be 1, -1, 'both' or None, got {determinant!r}")
    rng = _generator(random_state)
    reproducible = start is not None or random_state is not None
    places = _places(checkpoint, determinant)
    outcomes = []
    with parallel.pool(threads), bar(progress) as shown:
        if first is None:
            first = problem.start(rng)
        state = rng.bit_generator.state
        for sign, place in places.items():
            rng.bit_generator.state = state
            U = first if sign is None else with_determinant(first, sign)
            run = _Run(problem, options, place, shown)
            outcomes.append(run.minimise(U, rng, reproducible))
    if len(outcomes) == 1:
        return outcomes[0]
    better, other = sorted(outcomes, key=lambda result: problem.sense * result.value)
    better.message += f"; the other component of O(n) reached {other.value:.12g}"
    return better


@dataclass(frozen=True)
class _Options:
    schedule: Schedule
    tol: float
    gradient_tol: float | None
    max_sweeps: int
    callback: Callback | None
    repair_every: int | None


class _Run:
    """One run in one component of O(n)."""

    def __init__(self, objective: Objective, options: _Options, place: Checkpoint | None, shown: Bar) -> None:
        self.objective = objective
        self.options = options
        self.place = place
        self.shown = shown
        self.repair_every = options.repair_every if place is None else place.every
        self.shape = Shape(objective.n, objective.active)
        self.began = perf_counter()

    def minimise(self, U: np.ndarray, rng: np.random.Generator, reproducible: bool) -> Result:
        progress = self._resume(U, reproducible) or Progress(start=U, U=U, rng=rng)
        self.began = perf_counter() - progress.seconds
        # Tolerances are relative to a scale that is settled at the start, and so the same for a run that goes on.
        self.objective.prepare(progress.start)
        self.tol = max(self.options.tol, self.objective.floor)
        self.objective.enough = self.tol * self.objective.scale
        self.Ut = np.ascontiguousarray(progress.U.T)
        self.state = self.objective.state(progress.U)
        if not progress.trace:
            self._record(progress)
        message = self._stop(progress)
        while not message:
            self._sweep(progress)
            if self.repair_every and progress.sweeps % self.repair_every == 0:
                self._repair(progress)
            self._record(progress)
            message = self._stop(progress)
            self._save(progress)
            if (
                not message
                and self.options.callback is not None
                and self.options.callback(self._snapshot(progress)) is True
            ):
                message = "stopped by the callback"
        return self._result(progress, message)

    def _sweep(self, progress: Progress) -> None:
        objective = self.objective
        rounds = self.options.schedule.sweep(self.shape, progress.rng, self._slopes)
        total = 0.0
        self.shown.sweep(progress.sweeps + 1, self.options.max_sweeps, self.shape.pairs)
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
                self.shown.advance(blocks, self.shape)
                blocks = rounds.send(gain)
        except StopIteration:
            pass
        progress.sweeps += 1
        progress.gains = [*progress.gains, total][-self.options.schedule.patience :]

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
        self.Ut = np.ascontiguousarray(repair(self.Ut.T).T)
        self.state = self.objective.state(np.ascontiguousarray(self.Ut.T))

    def _record(self, progress: Progress) -> None:
        objective = self.objective
        value = objective.sense * objective.unit * objective.value(self.state)
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
        progress.converged = False
        if progress.sweeps >= options.max_sweeps:
            return f"not converged: max_sweeps = {options.max_sweeps} reached"
        return ""

    def _snapshot(self, progress: Progress) -> Snapshot:
        U = np.ascontiguousarray(self.Ut.T)
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
        U = np.ascontiguousarray(self.Ut.T)
        notes = self.objective.notes(self.state)
        norm = progress.trace.gradient_norm[-1]
        if np.isnan(norm):
            norm = self._gradient_norm(at_any_price=True)
        return Result(
            U=U,
            value=progress.trace.value[-1],
            converged=progress.converged and not message.startswith("stopped"),
            message=message + (f"; {notes}" if notes else ""),
            sweeps=progress.sweeps,
            rotations=progress.rotations,
            flops=progress.flops,
            gradient_norm=norm,
            orthogonality=orthogonality(U),
            determinant=determinant_of(U),
            seconds=perf_counter() - self.began,
            trace=progress.trace,
        )

    def _save(self, progress: Progress) -> None:
        if self.place is None or progress.sweeps % self.place.every:
            return
        progress.U = np.ascontiguousarray(self.Ut.T)
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


def _problem(
    objective: Objective | Callable[[np.ndarray], float], start: np.ndarray | None, n: int | None
) -> tuple[Objective, np.ndarray | None]:
    first = None if start is None else check_orthogonal(start, name="start")
    if not isinstance(objective, Objective):
        from givens.objectives.function import Function

        if not callable(objective):
            raise TypeError(
                f"objective must be an Objective or a function of U, got {type(objective).__name__}"
            )
        if n is None:
            if first is None:
                raise ValueError("n, the order of U, is needed for a plain function (or a start)")
            n = len(first)
        objective = Function(objective, n)
    elif n is not None and n != objective.n:
        raise ValueError(f"n = {n}, but the objective is a function of matrices of order {objective.n}")
    if first is not None and len(first) != objective.n:
        raise ValueError(
            f"start is of order {len(first)}, but the objective is a function of matrices of order {objective.n}"
        )
    return objective, first


def _generator(random_state: int | np.random.Generator | np.random.RandomState | None) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def _places(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, determinant: int | str | None
) -> dict[int | None, Checkpoint | None]:
    place = Checkpoint(checkpoint) if isinstance(checkpoint, str | os.PathLike) else checkpoint
    if determinant != "both":
        return {determinant: place}  # type: ignore[dict-item]
    if place is None:
        return {1: None, -1: None}
    path = Path(place.path)
    names = {1: "plus", -1: "minus"}
    return {
        sign: Checkpoint(path.with_suffix(f".{name}{path.suffix}"), place.every)
        for sign, name in names.items()
    }


def _check_tolerance(value: float, name: str) -> float:
    if not value >= 0:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
    return float(value)


def _check_count(value: int, name: str, least: int) -> int:
    if isinstance(value, bool) or int(value) != value or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
