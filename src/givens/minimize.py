"""`minimize`: what to minimise, where to start, when to stop. The loop itself is in `loop`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from givens.checkpoint import Checkpoint, place_of
from givens.loop import Callback, Run, RunOptions
from givens.numerics import parallel
from givens.objectives.base import Objective, Plan
from givens.objectives.function import Function
from givens.phases import as_phases
from givens.result import PhaseSummary, Result
from givens.rotations import check_orthogonal, random_orthogonal, with_determinant
from givens.rotations import determinant as determinant_of
from givens.schedules import Schedule, as_schedule
from givens.support.arguments import generator, tolerance, whole
from givens.support.progress import Bar, bar


def minimize(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None = None,
    *,
    n: int | None = None,
    jac: Callable[[np.ndarray], np.ndarray] | bool | None = None,
    check_jac: bool = True,
    phases: Sequence[str] | None = None,
    schedule: str | Schedule | None = None,
    tol: float = 1e-18,
    gradient_tol: float | None = None,
    max_sweeps: int = 200,
    max_steps: int = 10_000,
    certify: bool | float | None = None,
    coarse: bool | None = None,
    determinant: int | str | None = None,
    n_starts: int = 1,
    threads: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    repair_every: int | None = 10,
    progress: bool = False,
) -> Result:
    """Minimise a function of an orthogonal matrix, by rotations of two columns or descent of all columns.

    Parameters
    ----------
    objective : Objective or callable
        What to minimise. A callable f(U) -> float is wrapped in `objectives.Function`; `n` is then needed, unless there is a
        `start`.
    start : array, shape (n, n), optional
        An orthogonal matrix to start from. By default the objective chooses: the identity for data, a random rotation
        for a plain function.
    n : int, optional
        The order of U, for a plain function.
    jac : callable or True, optional
        Of a plain function, the matrix ∂f/∂U of partial derivatives, as in `scipy.optimize.minimize`: a function of U, or True
        if f returns the value and this matrix. Without it, slopes come from differences of values. `givens.autodiff` has it
        from PyTorch, JAX or autograd.
    check_jac : bool
        Compare `jac` with a difference of values once, at the start.
    phases : sequence of str, optional
        How f is lowered, in this order: "descent" (quasi-Newton steps of all columns, from their slopes), "newton" (Newton's
        method, for objectives that know all second derivatives; it takes over from descent where that gets slow), "leaps"
        (rotations of all columns that the objective proposes), "sweeps" (exact rotations of pairs, or rotations of blocks). By
        default the objective chooses. `Result.method` says what was done.
    schedule : str or Schedule, optional
        The order of pairs, and sweeps only, unless `phases` are given too: "tournament", "random" (Algorithm 1),
        "without-replacement" (the appendix), "cyclic", "shuffled", "gradient", or an object of `givens.schedules`, which also
        sets the size of blocks. By default the objective chooses: a tournament, in blocks where that is faster.
    tol : float
        Converged when a whole sweep gained no more than tol times the objective's scale. Gains come from the pair problems,
        not from differences of values, so a tolerance below rounding has a meaning: the gradient goes with its root.
    gradient_tol : float, optional
        Converged also when the gradient norm is at most this times the scale.
    max_sweeps : int
        Stop after so many sweeps or leaps.
    max_steps : int
        Stop after so many steps of descent.
    certify : bool or float, optional
        When the run has converged, search every pair of columns over all angles, which takes about as long as a sweep.
        `Result.certificate` is the most that any of these rotations gains; if that is worth taking, it is taken, and the run goes
        on. A number between 0 and 1 searches this share of the pairs, chosen at random. By default only plain functions without
        `jac` are certified.
    coarse : bool, optional
        Let a run that begins with descent make its first steps on cheaper forms of the objective where it has them: with very
        many rows, on even samples of them in single precision. By default only where no `start` is given. The flops and the
        trace are those of the full objective.
    determinant : {1, -1, "both"}, optional
        The component of O(n) to search; rotations never leave the one they start in. A start in the other one has its
        last column reversed. "both" searches each and keeps the better; None stays where the start is.
    n_starts : int
        Where f has many local minima (factor rotation, say): run from so many starts, the first as above and then random
        rotations in the same component of O(n), and return the run that ended lowest; `Result.starts` has the values of all.
        `random_state` makes the choice of starts repeatable. Runs go side by side in the threads, but for plain functions and
        where there is a callback or a progress bar.
    threads : int, optional
        By default all cores. The number changes the time, never the result.
    random_state : int, Generator or RandomState, optional
        For the start and the schedule.
    callback : callable, optional
        Called after each step with a `Snapshot`; stops the run by returning True.
    checkpoint : path or Checkpoint, optional
        Save the run there after every step (or every so many: `Checkpoint(path, every=10)`), and go on from there if the
        file exists. With determinant="both" there are two files, named .plus and .minus.
    repair_every : int, optional
        Every so many steps take the rounding errors out of U and make the state anew; None: never. A checkpoint's `every`
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
    >>> def off_diagonal(U): return U.T @ A @ U - np.diag(np.diag(U.T @ A @ U))
    >>> def f(U): return np.sum(off_diagonal(U) ** 2)
    >>> def gradient(U): return 4 * A @ U @ off_diagonal(U)
    >>> result = minimize(f, n=5, jac=gradient, random_state=0)
    >>> result.converged, bool(result.value < 1e-12)
    (True, True)
    >>> np.allclose(np.sort(np.diag(result.U.T @ A @ result.U)), np.linalg.eigvalsh(A))
    True
    """
    # All of it: one small product by a BLAS of several threads would leave these turning on the spot for a tenth of a second,
    # on the cores that our own threads need.
    with parallel.pool(threads), bar(progress) as shown:
        problem, first = _problem(objective, start, n, jac, check_jac)
        plan = problem.plan()
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of a Snapshot, got {type(callback).__name__}")
        options = RunOptions(
            phases=_phases(plan, phases, schedule),
            schedule=as_schedule(plan.schedule if schedule is None else schedule),
            tol=tolerance(tol, "tol"),
            gradient_tol=None if gradient_tol is None else tolerance(gradient_tol, "gradient_tol"),
            max_sweeps=whole(max_sweeps, "max_sweeps", least=0),
            max_steps=whole(max_steps, "max_steps", least=0),
            certify=_share(plan.certify if certify is None else certify),
            callback=callback,
            repair_every=None if repair_every is None else whole(repair_every, "repair_every", least=1),
        )
        if determinant not in (None, 1, -1, "both"):
            raise ValueError(f"determinant must be 1, -1, 'both' or None, got {determinant!r}")
        rng = generator(random_state)
        reproducible = start is not None or random_state is not None
        n_starts = whole(n_starts, "n_starts", least=1)
        if n_starts > 1 and checkpoint is not None:
            raise ValueError(f"a checkpoint holds one run, not {n_starts}; leave out checkpoint, or n_starts")
        places = _places(checkpoint, determinant)
        outcomes: dict[int | None, list[Result]] = {sign: [] for sign in places}
        before = None
        if coarse is None:
            coarse = first is None
        if first is None:
            first = problem.start(rng)
        if coarse and options.phases[0] == "descent":
            first, before = _approach(problem, first, options, rng, shown)

        def run(work: tuple[np.ndarray, np.random.Generator, int | None]) -> Result:
            U, own, sign = work
            one = Run(problem, options, places[sign], shown)
            U = U if sign is None else with_determinant(U, sign)
            return one.minimise(U, own, reproducible, before if work is runs[0] else None)

        runs = [
            (U, own, sign)
            for U, own in _starts(first, n_starts, rng)
            for sign, own in zip(places, [own] if len(places) == 1 else [own, deepcopy(own)])
        ]
        began = perf_counter()
        # A callback, a bar and Python's interpreter, which a plain function needs, are there once.
        alone = len(runs) == 1 or callback is not None or progress or isinstance(problem, Function)
        found = [run(work) for work in runs] if alone else parallel.side_by_side(run, runs)
        seconds = perf_counter() - began
        for (_, _, sign), outcome in zip(runs, found):
            outcomes[sign].append(outcome)
    sense = -1 if problem.factor < 0 else 1
    best = [_best(found, sense) for found in outcomes.values()]
    if len(runs) > 1:
        for result in best:
            result.seconds = seconds + (0.0 if before is None else before.seconds)
    if len(best) == 1:
        return best[0]
    better, other = sorted(best, key=lambda result: sense * result.value)
    better.flops += other.flops
    better.message += f"; the other component of O(n) reached {other.value:.12g}"
    return better


def _phases(plan: Plan, phases: Sequence[str] | None, schedule: str | Schedule | None) -> tuple[str, ...]:
    if phases is not None:
        return as_phases(phases)
    if schedule is None:
        return as_phases(plan.phases)
    return ("leaps", "sweeps") if as_schedule(schedule).leaps else ("sweeps",)


def _share(certify: bool | float) -> float:
    """Which share of the pairs to certify; 0 is none."""
    if isinstance(certify, bool | np.bool_):
        return float(certify)
    if not (isinstance(certify, int | float | np.number) and 0 <= certify <= 1):
        raise ValueError(f"certify must be True, False or a share between 0 and 1, got {certify!r}")
    return float(certify)


def _approach(
    problem: Objective, start: np.ndarray, options: RunOptions, rng: np.random.Generator, shown: Bar
) -> tuple[np.ndarray, PhaseSummary | None]:
    """Where steps on cheaper forms of the objective lead from a start, the cheapest form first; and what that took."""
    coarse = problem.plan().coarse
    cheaper = None if coarse is None else coarse()
    if cheaper is None:
        return start, None
    plan = cheaper.plan()
    began = perf_counter()
    start, before = _approach(cheaper, start, options, rng, shown)
    rough = replace(
        options,
        phases=plan.phases[:1],
        schedule=as_schedule(plan.schedule),
        tol=max(options.tol, plan.rough),
        gradient_tol=None,
        certify=0.0,
        callback=None,
    )
    found = Run(cheaper, rough, None, shown).minimise(start, rng, reproducible=True)
    steps, flops = (0, 0.0) if before is None else (before.steps, before.flops)
    seconds = perf_counter() - began
    return found.U, PhaseSummary("samples", steps + found.steps, float("nan"), flops + found.flops, seconds)


def _starts(
    first: np.ndarray, number: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.random.Generator]]:
    """The first start and random ones in the same component of O(n), each with a generator of its own for its run."""
    if number == 1:
        return [(first, rng)]
    starts = [(first, deepcopy(rng))]
    sign = determinant_of(first)
    others = [random_orthogonal(len(first), rng, determinant=sign) for _ in range(number - 1)]
    seeds = rng.integers(2**63, size=number - 1)
    return starts + [(U, np.random.default_rng(seed)) for U, seed in zip(others, seeds)]


def _best(outcomes: list[Result], sense: int) -> Result:
    """The lowest, and of equals the first; its message says how many ended there."""
    best = min(outcomes, key=lambda result: sense * result.value)
    if len(outcomes) > 1:
        near = sum(abs(result.value - best.value) <= 1e-9 * abs(best.value) for result in outcomes)
        best.flops = sum(result.flops for result in outcomes)
        best.starts = np.array([result.value for result in outcomes])
        best.message += f"; the best of {len(outcomes)} starts, {near} of which ended there"
    return best


def _problem(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None,
    n: int | None,
    jac: Callable[[np.ndarray], np.ndarray] | bool | None,
    check_jac: bool,
) -> tuple[Objective, np.ndarray | None]:
    first = None if start is None else check_orthogonal(start, name="start")
    if not isinstance(objective, Objective):
        if not callable(objective):
            raise TypeError(
                f"objective must be an Objective or a function of U, got {type(objective).__name__}"
            )
        if n is None:
            if first is None:
                raise ValueError("n, the order of U, is needed for a plain function (or a start)")
            n = len(first)
        objective = Function(objective, n, jac=jac, check_jac=check_jac)
    elif jac is not None:
        raise ValueError(f"jac belongs to a plain function; {type(objective).__name__} knows its own slopes")
    elif n is not None and n != objective.n:
        raise ValueError(f"n = {n}, but the objective is a function of matrices of order {objective.n}")
    if first is not None and len(first) != objective.n:
        raise ValueError(
            f"start is of order {len(first)}, but the objective is a function of matrices of order {objective.n}"
        )
    return objective, first


def _places(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, determinant: int | str | None
) -> dict[int | None, Checkpoint | None]:
    place = None if checkpoint is None else place_of(checkpoint)
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
