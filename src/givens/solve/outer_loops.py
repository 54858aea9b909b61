"""The loops around other algorithms: `iterate` repeats a step, and `best_of` runs from several starts.

EM, variational passes, truncated power steps and refits are no descent on one state, so they are not runs of the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from givens.result import PhaseSummary, Result, Stop, Trace

X = TypeVar("X")
Start = TypeVar("Start")
Run = TypeVar("Run")


class Iterated(NamedTuple, Generic[X]):
    """The outcome of `iterate`.

    Attributes
    ----------
    best : object
        The x of the largest value.
    last : object
        The x of the last value.
    following : object
        Where the last step led; its value is not known.
    values : list of float
        The value of each x, the start first.
    converged : bool
        Whether the last steps gained no more than the tolerance.
    seconds : list of float
        The time at which each value was known.
    """

    best: X
    last: X
    following: X
    values: list[float]
    converged: bool
    seconds: list[float]

    def result(self, first: Result, phase: str, unit: str, method: str) -> Result:
        """The `Result` of all steps, as that of a run of which `best` or `last` is the end.

        Parameters
        ----------
        first : Result
            The run that led to the start, or `no_run()`. Its matrix stays, as do the numbers that these steps do not have.
        phase : str
            What a step is called in the trace.
        unit : str
            The unit of a gain, for the message.
        method : str
            What was done, the steps included.
        """
        steps, missing = len(self.values) - 1, [math.nan] * len(self.values)
        gain = self.values[-1] - self.values[0]
        message = f"not converged: max_iter = {steps} reached; raise max_iter or tol"
        if self.converged:
            message = (
                f"converged: step {steps} of {phase} gained {self.values[-1] - self.values[-2]:.2g} {unit}"
            )
        return replace(
            first,
            value=self.values[-1],
            converged=self.converged,
            stop=Stop.SMALL_STEP if self.converged else Stop.MAX_ITER,
            message=message,
            method=method,
            seconds=first.seconds + self.seconds[-1],
            trace=Trace(
                list(range(steps + 1)), self.seconds, missing, self.values, missing, ["", *[phase] * steps]
            ),
            phases=(*first.phases, PhaseSummary(phase, steps, gain, math.nan, self.seconds[-1])),
        )


def no_run() -> Result:
    """What stands before steps that no run precedes."""
    return Result(
        U=np.empty((0, 0)),
        value=math.nan,
        converged=False,
        message="",
        sweeps=0,
        rotations=0,
        flops=0.0,
        gradient_norm=math.nan,
        orthogonality=0.0,
        seconds=0.0,
        trace=Trace(),
    )


def iterate(
    step: Callable[[X], tuple[float, X]],
    x: X,
    tol: float,
    max_iter: int,
    *,
    relative: bool = False,
    patience: int = 1,
) -> Iterated[X]:
    """Take steps, each of which tells the value of where it began, until they raise the value no more.

    Parameters
    ----------
    step : callable
        step(x) returns the value of x and the next x. The value may fall.
    x : object
        The start.
    tol : float
        Stop when an x is not better than the best one before it by more than this. So does one whose value is NaN.
    max_iter : int
        Maximum number of steps, at least 1.
    relative : bool
        Whether `tol` is a share of the largest value so far.
    patience : int
        Number of steps in a row which must gain so little.

    Examples
    --------
    >>> found = iterate(lambda x: (-x * x, x / 2), 1.0, tol=0.01, max_iter=100)
    >>> found.best, len(found.values), found.converged
    (0.03125, 6, True)
    """
    best, most, idle, last = x, -float("inf"), -1, x
    values: list[float] = []
    seconds: list[float] = []
    began = perf_counter()
    for _ in range(max_iter):
        value, following = step(x)
        values.append(value)
        seconds.append(perf_counter() - began)
        # No first value exceeds −∞ + ∞, but it is not counted as idle.
        idle = 0 if value > most + (tol * abs(most) if relative else tol) else idle + 1
        if value > most:
            best, most = x, value
        last, x = x, following
        if idle >= patience:
            break
    return Iterated(best, last, x, values, idle >= patience, seconds)


def one_by_one(run: Callable[[Start], Run], starts: Iterable[Start]) -> list[Run]:
    """Run from each start in turn, on this thread; `parallel.each` shares them among the threads of the pool."""
    return [run(start) for start in starts]


def best_of(
    starts: Iterable[Start],
    run: Callable[[Start], Run],
    merit: Callable[[Run], Any],
    *,
    further: Sequence[tuple[int, Callable[[Run], Run]]] = (),
    each: Callable[..., list[Run]] = one_by_one,
) -> tuple[Run, list[Run]]:
    """Run from all starts; return the best run, and all of them as `run` left them.

    Parameters
    ----------
    starts : iterable
    run : callable
        From a start to the run that it leads to.
    merit : callable
        Of a run; the largest is best, and of equals the first.
    further : sequence of (int, callable)
        The rounds of a race: how many of the best runs go on, and a function that continues one.
    each : callable
        `one_by_one`, `parallel.each` or `parallel.side_by_side`.

    Examples
    --------
    >>> best_of([3, -4, 1], abs, lambda run: run, further=[(2, lambda run: 10 * run)])
    (40, [3, 4, 1])
    """
    runs = contenders = each(run, starts)
    for number, go_on in further:
        contenders = each(go_on, sorted(contenders, key=merit, reverse=True)[:number])
    return max(contenders, key=merit), runs
