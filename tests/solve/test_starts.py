"""Where a run starts: in which component of O(n), and from how many places."""

from __future__ import annotations

from threading import Event, get_ident

import numpy as np
import pytest

from givens import minimize, rotations
from givens.objectives import Columns, Function, Objective
from tests.cases import CASES, N
from tests.runs import run


@pytest.mark.parametrize("sign", [1, -1])
def test_procrustes_in_either_component(sign):
    M = np.random.default_rng(7).standard_normal((10, 10))
    u, s, vt = np.linalg.svd(M)
    s[-1] *= sign * round(np.linalg.det(u @ vt))
    best = u @ np.diag(np.sign(s)) @ vt
    f = Function(lambda U: float(np.sum((U - M) ** 2)), 10, degree=2)
    result = minimize(f, determinant=sign, random_state=0, max_iter=400)
    assert result.determinant == sign
    assert np.abs(result.U - best).max() < 1e-8 * 10
    assert result.value == pytest.approx(np.sum((best - M) ** 2), rel=1e-8)


def test_both_components_keeps_the_better_one():
    M = np.random.default_rng(8).standard_normal((4, 4))

    def f(U):
        return -float(np.sum(U * M))

    result = minimize(f, n=4, determinant="both", random_state=0)
    assert result.value == pytest.approx(-np.linalg.svd(M)[1].sum(), rel=1e-10)
    other = minimize(f, n=4, determinant=-result.determinant, random_state=0)
    assert other.value > result.value
    assert f"reached {other.value:.12g}" in result.message


def test_a_start_in_the_other_component_has_its_last_column_reversed():
    start = np.diag([1.0, 1.0, -1.0])
    assert minimize(lambda U: 0.0, start).determinant == -1
    assert np.array_equal(minimize(lambda U: 0.0, start, determinant=1).U, np.eye(3))


def test_a_start_in_single_precision_is_made_orthogonal(rng):
    start = rotations.random_orthogonal(N, rng).astype(np.float32)
    result = minimize(CASES["varimax"](0), start, max_iter=1)
    assert result.orthogonality < 1e-13


def wavy(U):
    """A function with many local minima."""
    return float(np.sum(np.cos(np.arange(16).reshape(4, 4) * U)))


def wavy_gradient(U):
    factors = np.arange(16).reshape(4, 4)
    return -factors * np.sin(factors * U)


PROBLEMS = {
    "quartimax": lambda: Columns(np.random.default_rng(12).standard_normal((25, 7)), "quartimax"),
    "logcosh": lambda: Columns(np.random.default_rng(13).laplace(size=(300, 9)), "logcosh"),
    "samples": lambda: Columns(np.random.default_rng(14).standard_normal((9000, 5)), "logcosh"),
    "function": lambda: Function(wavy, 4),
    "gradient": lambda: Function(wavy, 4, jac=wavy_gradient),
}


def alone(make, number, seed):
    """Complete runs, one by one, from the starts of `minimize(make(), n_starts=number, random_state=seed)`."""
    rng = np.random.default_rng(seed)
    first = make().start(rng)
    if isinstance(first, Objective):
        first = first.start(rng)
    starts = [rotations.random_orthogonal(len(first), rng, determinant=1) for _ in range(number - 1)]
    return [run(make(), start, coarse=True) for start in [first, *starts]]


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_race_runs_the_best_start_to_the_end(case):
    problem = PROBLEMS[case]
    sense = np.sign(problem().factor)
    runs = alone(problem, 6, seed=1)
    values = np.array([found.value for found in runs])
    best = runs[int(np.argmin(sense * values))]
    raced = minimize(problem(), n_starts=6, random_state=1)
    assert raced.converged
    assert raced.gradient_norm <= max(10 * best.gradient_norm, 1e-6 * problem().scale)
    assert len(raced.starts) == 6
    assert sense * raced.value == np.min(sense * raced.starts)
    # Nobody stops lower than where a whole run ends, but for the rounding of runs that stop in between.
    slack = 1e-9 * problem().scale
    assert np.all(sense * raced.starts >= sense * values - slack)
    assert sense * raced.value >= sense * best.value - slack
    assert "the best of 6 starts, the 5 others stopped where" in raced.message
    assert raced.flops <= sum(found.flops for found in runs)
    # The winner ends where it would have ended by itself.
    winner = int(np.argmin(sense * raced.starts))
    assert raced.value == pytest.approx(values[winner], rel=1e-9)
    # Its trace is one run, in which f only falls.
    assert np.all(np.diff(sense * np.array(raced.trace.value)) <= 1e-12 * problem().scale)
    assert np.all(np.diff(raced.trace.step) == 1)
    assert np.all(np.diff(raced.trace.seconds) >= 0)


def test_where_the_first_start_wins_a_race_it_ends_as_it_would_alone():
    problem = PROBLEMS["logcosh"]
    best = min(alone(problem, 6, seed=1), key=lambda found: found.value)
    raced = minimize(problem(), best.U, n_starts=4, random_state=2)
    assert raced.value == pytest.approx(best.value, rel=1e-12)
    assert raced.value == raced.starts[0]
    assert np.array_equal(raced.U, minimize(problem(), best.U).U)


def test_a_race_leaves_the_others_early():
    calls = []

    def counted(U):
        calls.append(1)
        return wavy(U)

    def problem():
        return Function(counted, 4, jac=wavy_gradient)

    runs = alone(problem, 8, seed=1)
    whole = len(calls)
    raced = minimize(problem(), n_starts=8, random_state=1)
    assert len(calls) - whole < 0.9 * whole
    assert np.sum(raced.starts > [found.value for found in runs]) >= 4


def test_a_run_that_the_callback_stops_is_not_taken_up_again():
    problem = PROBLEMS["gradient"]
    stopped = minimize(problem(), n_starts=3, random_state=1, callback=lambda shot: shot.step >= 2)
    assert stopped.message.startswith("stopped by the callback")
    assert not stopped.converged
    assert stopped.steps == 2
    limited = minimize(problem(), n_starts=3, random_state=1, max_iter=2, method="descent")
    assert limited.message.startswith("not converged: max_iter = 2 reached")


@pytest.mark.parametrize("case", PROBLEMS)
def test_several_starts_have_the_same_bits_for_any_number_of_threads(case):
    runs = [minimize(PROBLEMS[case](), n_starts=5, random_state=0, threads=threads) for threads in (1, 2)]
    assert np.array_equal(runs[0].U, runs[1].U)
    assert np.array_equal(runs[0].starts, runs[1].starts)
    assert runs[0].message == runs[1].message
    assert runs[0].flops == runs[1].flops


def test_every_start_of_a_race_begins_with_samples():
    X = np.random.default_rng(2).laplace(size=(20_000, 4)) @ np.random.default_rng(3).standard_normal((4, 4))
    start = rotations.random_orthogonal(4, np.random.default_rng(0))
    # The first start is given, so it begins with all rows.
    raced = [
        run(Columns(X, "logcosh"), start, n_starts=3, coarse=coarse, random_state=0)
        for coarse in (None, False)
    ]
    single = minimize(Columns(X, "logcosh"), start)
    assert raced[0].flops < raced[1].flops
    assert raced[1].value <= single.value * (1 + 1e-12)


def test_several_starts_stay_in_the_component_they_are_given():
    A = np.random.default_rng(5).standard_normal((20, 5))
    start = np.diag([1.0, 1, 1, 1, -1])
    assert minimize(Columns(A, "quartimax"), start, n_starts=5, random_state=0).determinant == -1
    M = np.random.default_rng(6).standard_normal((4, 4))
    both = minimize(lambda U: -float(np.sum(U * M)), n=4, determinant="both", n_starts=2, random_state=0)
    assert both.value == pytest.approx(-np.linalg.svd(M)[1].sum(), rel=1e-10)
    assert "other component" in both.message


@pytest.mark.parametrize("schedule", [None, "random"])
def test_runs_side_by_side_have_the_bits_of_runs_in_turn(schedule):
    X = np.random.default_rng(9).laplace(size=(300, 6)) @ np.random.default_rng(10).standard_normal((6, 6))
    options = {"method": schedule, "max_iter": 3, "n_starts": 5, "random_state": 3}
    side_by_side = minimize(Columns(X, "logcosh"), threads=2, **options)
    # A callback makes them go one after the other.
    in_turn = minimize(Columns(X, "logcosh"), threads=1, callback=lambda shot: None, **options)
    assert np.array_equal(side_by_side.U, in_turn.U)
    assert np.array_equal(side_by_side.starts, in_turn.starts)
    assert side_by_side.flops == in_turn.flops
    assert np.ptp(side_by_side.starts) > 0


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_a_function_is_called_from_several_threads_only_if_threads_is_given(threads):
    callers, met = set(), Event()

    def f(U):
        callers.add(get_ident())
        if len(callers) == 2:
            met.set()
        if waiting:
            met.wait(60)
        return wavy(U)

    waiting = False
    problem = Function(f, 4, jac=wavy_gradient)
    waiting = threads == 2  # the first run then goes on when the second one has begun
    minimize(problem, n_starts=4, threads=threads, random_state=0)
    assert len(callers) == (threads or 1)
    waiting, callers = False, set()
    minimize(Function(f, 4), threads=threads, random_state=0)
    assert len(callers) <= (threads or 1)


def test_what_one_of_several_runs_raises_is_raised():
    class Failing(Columns):
        def look(self, state, Q=None, slopes=True):
            raise ZeroDivisionError("in a run")

    A = np.random.default_rng(4).standard_normal((40, 5))
    with pytest.raises(ZeroDivisionError, match="in a run"):
        minimize(Failing(A, "logcosh"), n_starts=4, threads=2, random_state=0)


def test_the_way_through_samples_is_counted():
    X = np.random.default_rng(2).laplace(size=(20_000, 4)) @ np.random.default_rng(3).standard_normal((4, 4))
    found = minimize(Columns(X, "logcosh"))
    first = found.phases[0]
    assert first.name == found.trace.phase[0] == "samples"
    assert first.steps > 0
    assert first.flops > 0
    assert np.isnan(first.gain)
    assert found.trace.flops[0] > first.flops
    assert "a sample of the data" in found.method
    # From the same place, without the way that led there: as many flops less.
    again = minimize(Columns(X, "logcosh"), np.eye(4))
    assert again.phases[0].name == "descent"
    assert again.trace.phase[0] == ""
    assert found.trace.flops[0] - first.flops == again.trace.flops[0]
