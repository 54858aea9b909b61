"""Several starts: the best of their runs, by a race where runs can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Start = TypeVar("Start")
Run = TypeVar("Run")


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
