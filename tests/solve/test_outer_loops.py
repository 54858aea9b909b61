"""`iterate` keeps the best of steps whose value may fall, and `best_of` the best of runs, the first among equals."""

from __future__ import annotations

import math

import pytest

from givens.numerics import parallel
from givens.solve.outer_loops import best_of, iterate, one_by_one


def along(values):
    return lambda x: (values[x], x + 1)


@pytest.mark.parametrize(
    ("values", "options", "best", "steps", "converged"),
    [
        ([1, 2, 3, 3.05, 9], {"tol": 0.1}, 3, 4, True),
        ([1, 2, 1, 9], {"tol": 0.0}, 1, 3, True),
        ([1, 2, 1, 9, 9, 9], {"tol": 0.0, "patience": 2}, 3, 6, True),
        ([-5, -4, -3.9], {"tol": 0.1, "relative": True}, 2, 3, True),
        ([1, 2, 3, 4], {"tol": 0.0, "max_iter": 3}, 2, 3, False),
        ([math.nan, 1, 2], {"tol": 0.0, "max_iter": 3}, 2, 3, False),
        ([1, math.nan, 2], {"tol": 0.0}, 0, 2, True),
        ([-math.inf, 1, 1], {"tol": 0.5}, 1, 3, True),
    ],
)
def test_iterate(values, options, best, steps, converged):
    found = iterate(along(values), 0, **{"max_iter": 6} | options)
    assert found.best == best
    assert found.following == found.last + 1 == len(found.values) == steps
    assert found.converged == converged


@pytest.mark.parametrize("each", [one_by_one, parallel.each, parallel.side_by_side])
def test_race(each):
    """Each round continues the best; of equals the first."""
    further = [(3, lambda run: [*run, 1]), (2, lambda run: [*run, run[0] == 4])]
    with parallel.pool(2):
        best, runs = best_of(
            [4, 7, 2, 7, 5], lambda start: [start], lambda run: run[0], further=further, each=each
        )
    assert best == [7, 1, False]
    assert runs == [[4], [7], [2], [7], [5]]
    assert best_of("abc", str.upper, lambda run: 0) == ("A", ["A", "B", "C"])
