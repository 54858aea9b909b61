"""The loops around other algorithms: `iterate` repeats a step, and `best_of` runs from several starts.

EM, variational passes, truncated power steps and refits are no descent on one state, so they are not runs of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

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
    """

    best: X
    last: X
    following: X
    values: list[float]
    converged: bool


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
    for _ in range(max_iter):
        value, following = step(x)
        values.append(value)
        # No first value exceeds −∞ + ∞, but it is not counted as idle.
        idle = 0 if value > most + (tol * abs(most) if relative else tol) else idle + 1
        if value > most:
            best, most = x, value
        last, x = x, following
        if idle >= patience:
            break
    return Iterated(best, last, x, values, idle >= patience)


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
