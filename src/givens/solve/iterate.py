"""The outer loop of everything that is no descent on one state: EM, variational passes, truncated power steps, refits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

X = TypeVar("X")


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
