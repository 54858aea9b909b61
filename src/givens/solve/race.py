"""Runs from several starts: they race, and only the lowest one goes on to the end.

The first steps of a run decide which minimum it reaches, and most of the later ones only refine it. So every start runs until the
next step is predicted to gain less than `PAUSE_SHARE` of the gain so far, and only the lowest run continues. Earlier values tell
little: on functions of twelve kinds, dropping the higher half of ten runs after 4, 8, 16, ... steps missed the lowest minimum as
often as three complete runs did, which took as many steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from givens.numerics import parallel
from givens.objectives.base import Objective
from givens.result import PhaseSummary, Result, Stop
from givens.rotations import determinant as determinant_of
from givens.rotations import random_orthogonal, with_determinant
from givens.schedules import SCHEDULES, Schedule, as_schedule
from givens.solve import PHASES, sentences
from givens.solve.checkpoint import Checkpoint
from givens.solve.loop import Loop
from givens.solve.outer_loops import best_of, one_by_one
from givens.solve.state import RunOptions
from givens.support.arguments import generator

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PAUSE_SHARE = 1e-4
"""Share of the gain so far. On 216 functions of twelve kinds with ten starts each, 138 of which had several minima, a race missed
the lowest one in 4, by at most 2 % of the gain, and took 0.62 of the time of complete runs (0.13 to 0.85)."""


COARSE_TOL = 0.017
"""Tolerance of runs on cheaper forms, whose minimum is elsewhere."""

Method = str | Schedule | Sequence[str | Schedule] | None
"""Phases, or a schedule; see `minimize`."""


def lowest_run(
    objective: Objective,
    start: np.ndarray | None,
    options: RunOptions,
    *,
    coarse: bool | None = None,
    determinant: int | str | None = None,
    n_starts: int = 1,
    random_state: Any = 0,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Minimise an objective in the present pool of threads: what `minimize` does with checked arguments.

    Parameters
    ----------
    objective : Objective
    start : array or None
        By default the objective chooses.
    options : RunOptions
    coarse : bool, optional
        Begin on the cheaper forms of the objective, if the first phase is descent: the first start, or none of them. By default
        every start does but one that is given.
    determinant, n_starts, random_state
        As in `minimize`.
    checkpoint : Checkpoint, optional
    """
    began, rng = perf_counter(), generator(random_state)
    takes_forms = coarse is not False and options.phases[0] == "descent"
    forms: list[Objective] = []
    if start is None:
        forms, first = _cheaper_forms(objective, rng)
    else:
        first = start
        if takes_forms and (coarse or n_starts > 1):
            forms = _cheaper_forms(objective, deepcopy(rng))[0]
    starts = _drawn(first, rng, n_starts, takes_forms and (coarse or start is None), takes_forms)
    reproducible = start is not None or random_state is not None
    race = Race(
        objective, options, _checkpoints(checkpoint, determinant, n_starts), starts, reproducible, forms
    )
    best, *other = race.by_component()
    if race.several:
        best.seconds = perf_counter() - began
    if other:
        best.flops += other[0].flops
        best.message += sentences.components(other[0].value)
    return best


class Start(NamedTuple):
    """Where a run starts: U, a random generator, and whether it begins on the cheaper forms of the objective."""

    U: np.ndarray
    rng: np.random.Generator
    on_forms: bool


class Race:
    """Runs of one problem, from the same starts in each component of O(n) that is searched.

    Attributes
    ----------
    objective, options
        The problem, and how to solve it.
    checkpoints : dict
        The components to search, 1, -1 or None for the one of the start, each with its checkpoint.
    starts : list of Start
    reproducible : bool
        Whether another call would have the same starts.
    sense : int
        -1 where the objective is maximised, else 1.
    several : bool
        Whether there is more than one run.
    in_turn : bool
        Whether runs come one after the other: they must not share a callback.
    stopped : bool
        Whether the callback has stopped one of several runs; those that follow are left out.
    forms : list of Objective
        Cheaper forms of the objective to begin on, each cheaper than the one before it.
    """

    def __init__(
        self,
        objective: Objective,
        options: RunOptions,
        checkpoints: dict[int | None, Checkpoint | None],
        starts: list[Start],
        reproducible: bool,
        forms: list[Objective],
    ) -> None:
        self.objective, self.options, self.forms = objective, options, forms
        self.checkpoints, self.starts, self.reproducible = checkpoints, starts, reproducible
        self.sense = -1 if objective.factor < 0 else 1
        self.several = len(starts) * len(checkpoints) > 1
        self.in_turn = options.callback is not None or not self.several
        self.stopped = False

    def by_component(self) -> list[Result]:
        """The lowest run of each component, the lowest one first."""
        # Every component has the same random numbers; the generators of the caller go on with the first one.
        copies = [self.starts, *(deepcopy(self.starts) for _ in range(len(self.checkpoints) - 1))]
        # The threads share the components, or the starts of one after the other.
        each = self._each if len(self.starts) == 1 or self.in_turn else one_by_one
        found = each(lambda component: self._lowest(*component), list(zip(self.checkpoints, copies)))
        best, *others = sorted(found, key=lambda result: self.sense * result.value)
        if best.stop is Stop.INFINITE_START:
            raise ValueError("f is infinite at the start; give one where it is finite")
        return [best, *others]

    def _each(self, work: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        if not self.in_turn:
            return parallel.side_by_side(work, items)
        # `stopped` may change from one run to the next.
        return [work(item) for item in items if not self.stopped]

    def _lowest(self, sign: int | None, starts: list[Start]) -> Result:
        """The lowest run of a component, and what became of the others."""
        share = PAUSE_SHARE if len(starts) > 1 else 0.0
        best, loops = best_of(
            starts, lambda start: self._run(start, sign, share), self._merit, each=self._each
        )
        if share:
            best.proceed()
        return _described(best, loops)

    def _run(self, start: Start, sign: int | None, pause_share: float) -> Loop:
        """A run to its end, or to where the next step promises little."""
        U = start.U if sign is None else with_determinant(start.U, sign)
        forms = self.forms if start.on_forms else []
        U, summary, gain = self._on_forms(forms, U, start.rng)
        where = (U, start.rng)
        loop = Loop(self.objective, self.options, where, self.checkpoints[sign], self.reproducible)
        loop.begin(summary, gain, nan_as_inf=self.several)
        loop.proceed(pause_share)
        if self.several:
            self.stopped = self.in_turn and loop.ending is not None and loop.ending.stop is Stop.CALLBACK
            loop.run.free_state()
        return loop

    def _on_forms(
        self, forms: list[Objective], U: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, PhaseSummary | None, float]:
        """Run on cheaper forms, the cheapest first: U, a summary, and the gain relative to their scales."""
        if not forms:
            return U, None, 0.0
        summary, gain, began = PhaseSummary("samples", gain=math.nan), 0.0, perf_counter()
        for form in reversed(forms):
            phases, schedule = phases_of(form.method)
            options = RunOptions(
                phases[:1],
                as_schedule(schedule or "tournament"),
                max(self.options.tol, COARSE_TOL),
                max_iter=self.options.max_iter,
                repair_every=self.options.repair_every,
            )
            loop = Loop(form, options, (U, rng))
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

    def _merit(self, loop: Loop) -> float:
        """How low a run has come."""
        return -self.sense * loop.run.progress.trace.value[-1]


def _described(best: Loop, loops: list[Loop]) -> Result:
    """The result of the best of several runs; its message mentions the others."""
    result = best.result()
    if len(loops) > 1:
        result.flops = sum(loop.run.progress.flops for loop in loops)
        result.starts = np.array([loop.run.progress.trace.value[-1] for loop in loops])
        others = [
            (loop.run.progress.steps, loop.ending is not None and loop.ending.stop.converged)
            for loop in loops
            if loop is not best
        ]
        result.message += sentences.race(len(loops), others, PAUSE_SHARE)
    return result


def phases_of(method: Method) -> tuple[tuple[str, ...], str | Schedule | None]:
    """The phases that a method names, and the schedule in the place of "sweeps", if there is one."""
    names = method if isinstance(method, list | tuple) else (method,)
    schedules = [name for name in names if name not in tuple(PHASES)]
    for name in schedules:
        if not isinstance(name, Schedule) and name not in tuple(SCHEDULES):
            known = ", ".join(map(repr, (*PHASES, *SCHEDULES)))
            raise ValueError(
                f"there is no method {name!r}; it is one of {known}, a Schedule object, or several of them"
            )
    if not names or any(schedule is not schedules[0] for schedule in schedules):
        raise ValueError(f"method must name at least one phase and at most one schedule, got {method!r}")
    return tuple("sweeps" if name in schedules else name for name in names), next(iter(schedules), None)


def _cheaper_forms(objective: Objective, rng: np.random.Generator) -> tuple[list[Objective], np.ndarray]:
    """The cheaper forms of an objective, at whose minima it starts, and where the cheapest one starts."""
    forms, start = [], objective.start(rng)
    while isinstance(start, Objective):
        forms.append(start)
        start = start.start(rng)
    return forms, start


def _drawn(
    first: np.ndarray, rng: np.random.Generator, number: int, first_on_forms: bool, on_forms: bool
) -> list[Start]:
    """The first start, and random ones in the same component of O(n), each with its own generator."""
    if number == 1:
        return [Start(first, rng, first_on_forms)]
    n, m = first.shape
    sign = determinant_of(first) if m == n else None
    starts = [Start(first, deepcopy(rng), first_on_forms)]
    matrices = [random_orthogonal(n, rng, determinant=sign, columns=m) for _ in range(number - 1)]
    seeds = rng.integers(2**63, size=number - 1)
    return starts + [Start(U, np.random.default_rng(seed), on_forms) for U, seed in zip(matrices, seeds)]


def _checkpoints(
    checkpoint: Checkpoint | None, determinant: int | str | None, n_starts: int
) -> dict[int | None, Checkpoint | None]:
    """The components of O(n) to search, each with its checkpoint."""
    if n_starts > 1 and checkpoint is not None:
        raise ValueError(f"a checkpoint holds one run, not {n_starts}; leave out checkpoint, or n_starts")
    if determinant != "both":
        return {determinant: checkpoint}  # type: ignore[dict-item]
    if checkpoint is None:
        return {1: None, -1: None}
    path = Path(checkpoint.path)
    names = {1: "plus", -1: "minus"}
    return {
        sign: Checkpoint(path.with_suffix(f".{name}{path.suffix}"), checkpoint.every)
        for sign, name in names.items()
    }
