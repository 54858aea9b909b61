"""`minimize`: what to minimise, where to start, when to stop. The loop itself is in `loop`.

Several starts race. The first steps of a run decide which minimum it reaches, and most of the later ones only refine it. So every
start runs until the next step is predicted to gain less than `ROUGH` times the gain so far, and only the lowest run continues to
the end. Earlier values tell little: on functions of twelve kinds, dropping the higher half of ten runs after 4, 8, 16, ... steps
missed the lowest minimum as often as three complete runs did, which took as many steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from givens.numerics import parallel
from givens.objectives.base import Objective, Plan
from givens.objectives.function import Function
from givens.objectives.values import HessianProduct, Jacobian
from givens.result import PhaseSummary, Result, Stop
from givens.rotations import check_orthogonal, random_orthogonal, with_determinant
from givens.rotations import determinant as determinant_of
from givens.schedules import Schedule, as_schedule
from givens.solve import PHASES, sentences
from givens.solve.checkpoint import Checkpoint, as_checkpoint
from givens.solve.loop import Loop
from givens.solve.starts import best_of, one_by_one
from givens.solve.state import Callback, RunOptions
from givens.support.arguments import as_array, counted, generator, tolerance, whole
from givens.support.progress import Bar, bar

ROUGH = 1e-4


def minimize(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None = None,
    *,
    n: int | None = None,
    m: int | None = None,
    jac: Jacobian = None,
    hess: HessianProduct = None,
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
    race: bool = True,
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
        What to minimise. A callable f(U) -> float is wrapped in `objectives.Function` and needs `n` or `start`. It may return
        infinity where it is not defined, but not at the start.
    start : array, shape (n, n) or (n, m), optional
        An orthogonal matrix to start from. By default the objective chooses: the identity for `Columns`, the principal axes for
        `SparseColumns`, a random rotation for a plain function.
    n : int, optional
        The order of U, for a plain function.
    m : int, optional
        Number of columns, for a plain function of n x m matrices with orthonormal columns (a Stiefel manifold). With `jac`,
        descent computes nothing of order n². Rotations of two columns, in sweeps and certificates, are those of n x n matrices
        of which f depends on the first m columns. By default m = n, or as many as `start` has.
    jac : callable or True, optional
        For a plain function, the matrix ∂f/∂U of partial derivatives: a function of U, or True if f returns the value and this
        matrix, as in `scipy.optimize.minimize`. Without it, slopes are finite differences. `givens.autodiff` computes it by
        PyTorch, JAX or autograd.
    hess : callable, optional
        For a plain function of square matrices, with `jac`: hess(U, V) is the derivative of ∂f/∂U along the n x n matrix V, that
        is d/dt ∂f/∂U (U + tV) at t = 0, as `hessp` in `scipy.optimize.minimize`. Runs then end with Newton's method, which finds
        the minimum also where curvatures differ by a factor of 1e14. Functions of `givens.autodiff` have it as `f.hess`.
    check_jac : bool, default=True
        Compare `jac` and `hess` with finite differences once, before the run.
    phases : sequence of str, optional
        The ways to lower f, in this order: "descent" (quasi-Newton steps of all columns, from the slopes of all pairs), "newton"
        (Newton's method, for objectives with second derivatives; it takes over where descent becomes slow), "leaps" (rotations
        of all columns that the objective proposes), "sweeps" (rotations of pairs to their best angle, or of blocks of columns).
        A phase follows where the one before it can lower f no further without having converged, or where sweeps would have to go
        on for long. By default the objective chooses. `Result.method` says what was done.
    schedule : str or Schedule, optional
        The order of pairs in a sweep: "tournament", "random" (Algorithm 1), "without-replacement" (the appendix), "cyclic",
        "shuffled", "gradient", or an object of `givens.schedules`, which also sets the size of blocks. By default the objective
        chooses: a tournament, in blocks where that is faster. If a schedule is given without `phases`, the run is made of sweeps
        alone.
    tol : float, default=1e-18
        The run has converged when a whole sweep has gained, or the next step of descent is predicted to gain, at most tol times
        the objective's scale (`Result.scale`). Gains are computed from slopes and pair problems, not as differences of values, so
        they can be smaller than the rounding errors of f. Near a minimum, the gain is proportional to the squared norm of the
        gradient.
    gradient_tol : float, optional
        The run has also converged when the norm of the gradient is at most gradient_tol times the scale.
    max_sweeps : int, default=200
        Maximum number of sweeps, leaps and steps of Newton's method, together.
    max_steps : int, default=10_000
        Maximum number of steps of descent.
    certify : bool or float, optional
        When the run has converged, search every pair of columns over all angles, which takes at most about two sweeps.
        `Result.certificate` has the largest gain found. Gains above rounding are taken, and the run continues. A number between
        0 and 1 searches this share of the pairs, chosen at random. By default only plain functions of square matrices without
        `jac` are certified.
    coarse : bool, optional
        Let a run that begins with descent make its first steps on cheaper forms of the objective, if it has them: with very many
        rows, on a sample of evenly spaced rows. By default only where no `start` is given. The trace has
        values of the full objective only; seconds and flops include those of the cheaper forms.
    determinant : 1, -1 or "both", optional
        The component of O(n) to search, which rotations never leave. A start in the other component has its last column
        reversed. "both" searches both components and returns the better result; None keeps the component of the start. For n x m
        matrices, m < n, there is one component only.
    n_starts : int, default=1
        Number of starts, for functions with many local minima. The first one is as above, the others are random orthogonal
        matrices of the same determinant. The lowest run is returned, and `Result.starts` has the values of all. `random_state`
        makes the starts reproducible. Runs share the threads, except for data in chunks, and with a callback or a progress bar.
    race : bool, default=True
        With several starts, run each only until the next step is predicted to gain less than 1e-4 of the run's gain so far, and
        continue the lowest one to the end; the other values in `Result.starts` are those where runs stopped. False runs all of
        them to the end. In trials on 216 functions of twelve kinds with ten starts each, 138 of which had several minima, a race
        missed the lowest one in 4, by at most 2 % of the gain, and took 0.62 of the time (0.13 to 0.85; least where the
        objective has cheaper forms to begin with or Newton's method to end with).
    threads : int, optional
        Number of threads, by default one per core, at most 8. It changes the time, never the result. A plain function is called
        from several threads at once only if this is given; it saves time with several starts, in certificates and in differences
        of values, if a call takes milliseconds, most of them outside Python's own loops.
    random_state : int, Generator or RandomState, optional
        Seed or generator of the start and the schedule.
    callback : callable, optional
        Called after each step with a `Snapshot`; stops the run by returning True, or by raising StopIteration. Starts that follow
        are then left out.
    checkpoint : path or Checkpoint, optional
        Save the run to this file after every step (or every ten: `Checkpoint(path, every=10)`), and resume from it if it exists.
        With determinant="both" there are two files, with .plus and .minus before the suffix. A run that ends between two saves
        is resumed from the last one. Each save of a run by descent costs one more evaluation of f.
    repair_every : int, default=10
        Number of steps after which the rounding errors of U are removed and the state is recomputed; None: never. With a
        checkpoint, its `every` is used instead.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Result
        The matrix U, its value, why the run stopped, and how it got there.

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
    # Everything runs inside the pool: after a single product outside, idle threads of BLAS would spin for a tenth of a second, on
    # the cores that the pool needs.
    plain = isinstance(objective, Function) or not isinstance(objective, Objective)
    with parallel.pool(1 if plain and threads is None else threads), bar(progress) as shown:
        before = getattr(objective, "evaluations", 0)
        problem, first = _problem(objective, start, (n, m), (jac, hess), check_jac)
        plan = problem.plan()
        if plan.stiefel and determinant is not None:
            raise ValueError("n x m matrices, m < n, have no determinant: leave it out")
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
        checkpoints = _checkpoints(checkpoint, determinant)
        # By default every start begins on cheaper forms of the objective, except a given one.
        approach = coarse or (coarse is None and first is None)
        any_approach = (approach or n_starts > 1) and coarse is not False and options.phases[0] == "descent"
        forms = _cheaper_forms(plan) if any_approach else []
        of_first = forms if approach else []
        # Runs must not share a callback or a bar.
        alone = callback is not None or progress
        runs = Runs(problem, plan, options, checkpoints, reproducible, shown, alone)
        first = problem.start(rng) if first is None else first
        starts = _drawn(first, n_starts, rng, list(checkpoints), (of_first, forms))
        best, *other = runs.best(starts, bool(race) and n_starts > 1)
        if isinstance(problem, Function):
            best.evaluations = problem.evaluations - before
    if other:
        best.flops += other[0].flops
        best.message += sentences.components(other[0].value)
    return best


def _phases(plan: Plan, phases: Sequence[str] | None, schedule: str | Schedule | None) -> tuple[str, ...]:
    if phases is None:
        phases = plan.phases if schedule is None else ("sweeps",)
    names = (phases,) if isinstance(phases, str) else tuple(phases)
    for name in names:
        if name not in PHASES:
            known = ", ".join(repr(known) for known in PHASES)
            raise ValueError(f"there is no phase {name!r}; it is one of {known}")
    if not names:
        raise ValueError("phases must name at least one phase")
    return names


def _share(certify: bool | float) -> float:
    """The share of the pairs to certify; 0 for none."""
    if isinstance(certify, bool | np.bool_):
        return float(certify)
    if not (isinstance(certify, int | float | np.number) and 0 <= certify <= 1):
        raise ValueError(f"certify must be True, False or a share between 0 and 1, got {certify!r}")
    return float(certify)


class Start(NamedTuple):
    """The start of a run: U, random generator, component of O(n), and the cheaper forms of the objective to begin on."""

    U: np.ndarray
    rng: np.random.Generator
    sign: int | None
    forms: list[Objective]


@dataclass
class Runs:
    """Runs of one problem from several starts.

    Parameters
    ----------
    problem : Objective
    plan : Plan
    options : RunOptions
    checkpoints : dict
        The components of O(n) to search, and the checkpoint of each.
    reproducible : bool
        Whether another call would have the same starts.
    bar : Bar
        The progress bar.
    alone : bool
        Run one after the other, instead of side by side in the threads.
    """

    problem: Objective
    plan: Plan
    options: RunOptions
    checkpoints: dict[int | None, Checkpoint | None]
    reproducible: bool
    bar: Bar
    alone: bool

    def best(self, starts: list[Start], race: bool) -> list[Result]:
        """The best run of each component, the lowest first."""
        began = perf_counter()
        sense = -1 if self.problem.factor < 0 else 1
        several, stopped = len(starts) > 1, False
        one_each = len(starts) == len(self.checkpoints)
        each = one_by_one if self.alone or not several else parallel.side_by_side

        def run(start: Start) -> Loop | None:
            nonlocal stopped
            if stopped:
                return None
            loop = self._begun(start, nan_as_inf=several)
            loop.proceed(ROUGH if race else 0.0)
            stopped = self.alone and loop.ending is not None and loop.ending.stop is Stop.CALLBACK
            if several:
                loop.run.state = None  # it may be as large as the data
            return loop

        def component(sign: int | None) -> Result | None:
            own = [start for start in starts if start.sign == sign]
            further = [(1, _finished)] if race else []
            best, loops = best_of(own, run, lambda loop: _merit(loop, sense), further=further, each=each)
            return None if best is None else _described(best, [loop for loop in loops if loop], race)

        found = (each if one_each else one_by_one)(component, list(self.checkpoints))
        best = sorted(filter(None, found), key=lambda result: sense * result.value)
        if several:
            for result in best:
                result.seconds = perf_counter() - began
        if best[0].stop is Stop.INFINITE_START:
            raise ValueError("f is infinite at the start; give one where it is finite")
        return best

    def _begun(self, start: Start, nan_as_inf: bool) -> Loop:
        U = start.U if start.sign is None else with_determinant(start.U, start.sign)
        U, summary, gain = self._approach(start, U)
        checkpoint = self.checkpoints[start.sign]
        loop = Loop(
            self.problem, self.plan, self.options, (U, start.rng), self.bar, checkpoint, self.reproducible
        )
        loop.begin(summary, gain, nan_as_inf)
        return loop

    def _approach(self, start: Start, U: np.ndarray) -> tuple[np.ndarray, PhaseSummary | None, float]:
        """Run on the cheaper forms, the cheapest first: U, a summary, and the gain relative to their scales."""
        if not start.forms:
            return U, None, 0.0
        summary, gain, began = PhaseSummary("samples", gain=float("nan")), 0.0, perf_counter()
        for form in reversed(start.forms):
            plan = form.plan()
            options = self.options._replace(
                phases=plan.phases[:1],
                schedule=as_schedule(plan.schedule),
                tol=max(self.options.tol, plan.rough),
                gradient_tol=None,
                certify=0.0,
                callback=None,
            )
            loop = Loop(form, plan, options, (U, start.rng), self.bar)
            loop.begin()
            loop.proceed()
            result = loop.result()
            U = result.U
            summary.steps += result.steps
            summary.flops += result.flops
            values = result.trace.value
            gain += (values[0] - values[-1]) / (form.factor * form.scale or 1.0)
        summary.seconds = perf_counter() - began
        return U, summary, gain


def _cheaper_forms(plan: Plan) -> list[Objective]:
    """The cheaper forms of an objective, each cheaper than the one before it."""
    cheaper = None if plan.coarse is None else plan.coarse()
    return [] if cheaper is None else [cheaper, *_cheaper_forms(cheaper.plan())]


def _drawn(
    first: np.ndarray,
    number: int,
    rng: np.random.Generator,
    signs: Sequence[int | None],
    forms: tuple[list[Objective], list[Objective]],
) -> list[Start]:
    """The first start and random ones in the same component of O(n), for each of the signs, each with its own generator.

    `forms` are the cheaper forms for the first start, and those for the others.
    """
    starts, generators = [first], [rng]
    if number > 1:
        n, m = first.shape
        sign = determinant_of(first) if m == n else None
        generators = [deepcopy(rng)]
        starts += [random_orthogonal(n, rng, determinant=sign, columns=m) for _ in range(number - 1)]
        generators += [np.random.default_rng(seed) for seed in rng.integers(2**63, size=number - 1)]
    return [
        Start(U, own if sign == signs[0] else deepcopy(own), sign, forms[min(k, 1)])
        for k, (U, own) in enumerate(zip(starts, generators))
        for sign in signs
    ]


def _merit(loop: Loop | None, sense: int) -> float:
    """How low a run has come; one that was left out is the worst."""
    return -math.inf if loop is None else -sense * loop.run.progress.trace.value[-1]


def _finished(loop: Loop | None) -> Loop | None:
    """A run that paused, continued to its end."""
    if loop is not None:
        loop.proceed()
    return loop


def _described(best: Loop, loops: list[Loop], race: bool) -> Result:
    """The result of the best of several runs; its message mentions the others."""
    result = best.result()
    if len(loops) == 1:
        return result
    result.flops = sum(loop.run.progress.flops for loop in loops)
    result.starts = np.array([loop.run.progress.trace.value[-1] for loop in loops])
    if race:
        others = [
            (loop.run.progress.steps, loop.ending is not None and loop.ending.stop.converged)
            for loop in loops
            if loop is not best
        ]
        result.message += sentences.race(len(loops), others, ROUGH)
    else:
        near = sum(abs(value - result.value) <= 1e-9 * abs(result.value) for value in result.starts)
        result.message += sentences.starts(len(loops), near)
    return result


def _problem(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None,
    shape: tuple[int | None, int | None],
    derivatives: tuple[Jacobian, HessianProduct],
    check_jac: bool,
) -> tuple[Objective, np.ndarray | None]:
    """The objective, made of a function of matrices of this shape if it is one; and the start, checked."""
    if not isinstance(objective, Objective):
        if not callable(objective):
            raise TypeError(
                f"objective must be an Objective or a function of U, got {type(objective).__name__}"
            )
        rows, columns = _shape(start, *shape)
        first = None if start is None else check_orthogonal(start, name="start", columns=columns)
        return Function(objective, (rows, columns), None, *derivatives, check=check_jac, near=first), first
    n, m = shape
    if derivatives != (None, None):
        name = "hess" if derivatives[0] is None else "jac"
        raise ValueError(
            f"{name} belongs to a plain function; {type(objective).__name__} knows its own derivatives"
        )
    if n is not None and n != objective.n:
        raise ValueError(f"n = {n}, but the objective is a function of matrices of order {objective.n}")
    stiefel = objective.plan().stiefel
    columns = objective.active if stiefel else objective.n
    if m is not None and m != columns:
        hint = "" if stiefel else "; only plain functions of n x m matrices take m"
        raise ValueError(f"m = {m}, but the objective is a function of matrices of {columns} columns{hint}")
    if start is None:
        return objective, None
    first = check_orthogonal(start, name="start", columns=columns if stiefel else None)
    if len(first) != objective.n:
        raise ValueError(
            f"start is of order {len(first)}, but the objective is a function of matrices of order {objective.n}"
        )
    return objective, first


def _shape(start: np.ndarray | None, n: int | None, m: int | None) -> tuple[int, int]:
    """Rows and columns of the matrices that a plain function is a function of."""
    rows, columns = None, None
    if start is not None:
        dimensions = np.shape(as_array(start, "start"))
        if len(dimensions) == 1:
            raise ValueError(
                f"start must be a matrix, got shape {dimensions}; for a unit vector give start.reshape(-1, 1), of one column"
            )
        if len(dimensions) == 2:
            rows, columns = dimensions
    if n is None:
        if rows is None:
            raise ValueError("n, the order of U, is needed for a plain function (or a start)")
        n = rows
    n = whole(n, "n", 1)
    if rows is not None and n != rows:
        raise ValueError(f"start is of order {rows}, but n = {n}")
    if m is None:
        # A start that is wider than long is refused as not square.
        return n, n if columns is None else min(max(columns, 1), n)
    m = whole(m, "m", 1, n, "n")
    if columns is not None and m != columns:
        raise ValueError(f"start has {counted(columns, 'column', 'columns')}, but m = {m}")
    return n, m


def _checkpoints(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, determinant: int | str | None
) -> dict[int | None, Checkpoint | None]:
    """The components of O(n) to search, each with its checkpoint."""
    one = None if checkpoint is None else as_checkpoint(checkpoint)
    if determinant != "both":
        return {determinant: one}  # type: ignore[dict-item]
    if one is None:
        return {1: None, -1: None}
    path = Path(one.path)
    names = {1: "plus", -1: "minus"}
    return {
        sign: Checkpoint(path.with_suffix(f".{name}{path.suffix}"), one.every) for sign, name in names.items()
    }
