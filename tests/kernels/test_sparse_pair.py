"""The compiled pair problem of sparse PCA against the sorted breakpoints in NumPy and a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import minimize
from givens.kernels import sparse_pair
from givens.kernels.sorted_breakpoints import sorted_search
from givens.objectives import SparseColumns
from tests.oracles.breakpoints import breakpoint_search, pair_value

PENALTIES = pytest.mark.parametrize("penalty", ["l1", "l0"])
EPS = float(np.finfo(np.float64).eps)
GRID = np.linspace(-np.pi, np.pi, 3601)


def columns(seed: int, rows: int, heavy: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, rows)) * rng.choice([0.3, 1.0, 3.0])
    return (x**3, y**3) if heavy else (x, y)


def compiled(x, y, gammas, penalty, exact=True, everywhere=True):
    levels = np.sqrt(gammas) if penalty == "l0" else np.array(gammas)
    noise = EPS * float(np.sum(x**2 + y**2))
    pair = x, y, len(x), levels[0], levels[1], penalty == "l0"
    if exact:
        return sparse_pair.exact_search(pair, noise, 1e-15)[:2]
    return sparse_pair.search(pair, noise, 1e-15, everywhere, 1.0)[:2]


def sorted_only(x, y, gammas, penalty):
    levels = np.sqrt(gammas) if penalty == "l0" else np.array(gammas)
    start = float(pair_value(x, y, 0.0, gammas, penalty))
    return sorted_search(x, y, len(x), levels[0], levels[1], penalty == "l0", 0.0, start)[0]


def random_pair(rng):
    """Two columns and their thresholds: few rows or many, heavy tails, dependent, nearly sparse, crossing, of any size."""
    x, y = rng.standard_normal((2, int(rng.choice([1, 2, 3, 7, 30, 200])))) ** rng.choice([1, 1, 3])
    kind = rng.integers(4)
    if kind == 0:
        y = rng.standard_normal() * x + 0.1 * y
    elif kind == 1:
        first = rng.random(len(x)) < 0.5
        x, y = np.where(first, x, 0.05 * x), np.where(first, 0.05 * y, y)
    unit = 2.0 ** rng.choice([0, 0, 0, -200, 200])
    gamma = rng.choice([0.0, 0.05, 0.3, 0.5, 1.0, 2.0]) * rng.uniform(0.5, 1.5)
    second = gamma * rng.choice([1.0, 1.4]) if rng.random() < 0.75 else np.inf
    return unit * x, unit * y, (unit * gamma, unit * second)


def missing(x, y, theta, gammas, penalty):
    """How much less than the global maximum an angle is worth, as a share of the columns' energy."""
    _, best = breakpoint_search(x, y, gammas, penalty)
    here, there = pair_value(x, y, np.array([0.0, theta]), gammas, penalty)
    return (best - (there - here)) / np.sum(x**2 + y**2)


@PENALTIES
@pytest.mark.parametrize("seed", range(2))
def test_no_pair_of_many_falls_short_of_the_sorted_breakpoints(penalty, seed):
    """250 pairs each, by the search that bounds intervals first and by the sorted breakpoints alone."""
    rng = np.random.default_rng(seed)
    for _ in range(250):
        x, y, gammas = random_pair(rng)
        if penalty == "l0":
            gammas = gammas[0] ** 2, gammas[1] ** 2
        rounding = (10 + 5 * len(x) ** 0.5) * EPS
        theta, gain = compiled(x, y, gammas, penalty)
        assert missing(x, y, theta, gammas, penalty) <= rounding
        assert missing(x, y, sorted_only(x, y, gammas, penalty), gammas, penalty) <= 2 * rounding
        here, there = pair_value(x, y, np.array([0.0, theta]), gammas, penalty)
        assert gain == pytest.approx(there - here, abs=1e-12 * np.sum(x**2 + y**2))
        assert gain >= 0.0


def test_a_narrow_maximum_between_grid_points_is_found():
    """A grid of 8 finds 1.07 here, where 1.11 is."""
    x, y = columns(13, 100, False)
    theta, gain = compiled(x, y, (0.05, 0.05), "l1")
    assert missing(x, y, theta, (0.05, 0.05), "l1") <= 100 * EPS
    assert compiled(x, y, (0.05, 0.05), "l1", exact=False)[1] < gain * (1 - 1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l0"])
def test_two_columns_end_at_their_global_maximum(penalty):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A, gamma = rng.standard_normal((30, 2)), float(rng.choice([0.05, 0.3, 1.0]))
        value = minimize(SparseColumns(A, gamma, penalty), np.eye(2), tol=0).value
        x, y = A.T
        _, best = breakpoint_search(x, y, (gamma, gamma), penalty)
        here = float(pair_value(x, y, 0.0, (gamma, gamma), penalty))
        assert value == pytest.approx(here + best, rel=1e-13)


problems = st.tuples(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 3, 7, 30, 200]),
    st.booleans(),
    st.sampled_from([0.05, 0.5, 1.0, 2.0]),
    st.sampled_from([1.0, 1.0, 1.4, np.inf]),
)


@PENALTIES
@given(problem=problems)
def test_the_sorted_breakpoints_are_never_beaten_by_a_fine_grid(penalty, problem):
    seed, rows, heavy, gamma, ratio = problem
    x, y = columns(seed, rows, heavy)
    gammas = (gamma, gamma * ratio)
    theta, gain = breakpoint_search(x, y, gammas, penalty)
    here, there = pair_value(x, y, np.array([0.0, theta]), gammas, penalty)
    top = pair_value(x, y, GRID, gammas, penalty).max()
    assert gain == pytest.approx(there - here, abs=1e-12 * max(top, 1.0))
    assert here + gain >= top - 1e-10 * max(top, 1.0)


@PENALTIES
def test_at_the_optimum_nothing_turns(penalty):
    x, y = columns(3, 50, False)
    theta, _ = breakpoint_search(x, y, (0.5, 0.5), penalty)
    c, s = np.cos(theta), np.sin(theta)
    turned, gain = compiled(c * x + s * y, c * y - s * x, (0.5, 0.5), penalty, exact=False, everywhere=False)
    assert abs(turned) < 1e-5
    assert gain < 1e-9


def test_among_equal_maxima_the_smallest_angle_wins():
    # Two equal rows on the axes: θ = 0 and every quarter turn are the same.
    x, y = np.array([2.0, 0.0]), np.array([0.0, 2.0])
    for penalty in ("l1", "l0"):
        assert compiled(x, y, (0.5, 0.5), penalty) == (0.0, 0.0)
        assert breakpoint_search(x, y, (0.5, 0.5), penalty)[1] == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("rows", [5, 25, 300, 10_000])
def test_without_a_threshold_rounding_turns_nothing(rows):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((2, rows)) * np.exp(2 * rng.standard_normal((2, 1)))
        pair = x, y, rows, 0.0, 0.0, False
        assert sparse_pair.search(pair, 0.0, 1e-3, True, 1.0)[:2] == (0.0, 0.0)
        assert sparse_pair.exact_search(pair, 0.0, 1e-3)[:2] == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(2))
def test_pairs_at_or_near_a_maximum_that_may_not_be_the_highest(seed):
    """Where most pairs of a certificate are: at θ = 0 there is a maximum, or nearly so, and other angles must be excluded."""
    rng = np.random.default_rng(seed)
    for _ in range(150):
        x, y, gammas = random_pair(rng)
        angles = np.linspace(-np.pi, np.pi, 721)
        values = pair_value(x, y, angles, gammas, "l1")
        peaks = angles[1:-1][(values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])]
        for near in [breakpoint_search(x, y, gammas, "l1")[0], *peaks[:2]]:
            near += rng.choice([0.0, 1e-9, 1e-6, 1e-3, 0.02])
            c, s = np.cos(near), np.sin(near)
            p, q = c * x + s * y, c * y - s * x
            theta, gain = compiled(p, q, gammas, "l1")
            assert missing(p, q, theta, gammas, "l1") <= (10 + 5 * len(x) ** 0.5) * EPS
            here, there = pair_value(p, q, np.array([0.0, theta]), gammas, "l1")
            assert gain == pytest.approx(there - here, abs=1e-12 * max(there, 1e-300))


@pytest.mark.parametrize("second", [1.0, 1.3, np.inf])
@pytest.mark.parametrize("half", [1e-3, 0.1, 0.7])
def test_curvatures_stay_within_their_bounds(second, half):
    """Second differences of g between its breakpoints, against the bound by which intervals are excluded."""
    rng = np.random.default_rng(7)
    for rows in (1, 3, 20, 200):
        x, y = rng.standard_t(3, size=(2, rows))
        value, slope, most = sparse_pair._bound((x, y, rows, 1.0, second, False), 1.0, 0.0, half)
        step = 1e-4
        angles = np.linspace(-half + step, half - step, 4001)
        g = [pair_value(x, y, angles + shift, (1.0, second), "l1") for shift in (-step, 0.0, step)]
        size = np.sum(x**2 + y**2)
        assert np.max(g[0] - 2 * g[1] + g[2]) / step**2 <= most + 1e-6 * size
        here = pair_value(x, y, np.array([-1e-6, 0.0, 1e-6]), (1.0, second), "l1")
        assert value == pytest.approx(here[1])
        assert slope == pytest.approx((here[2] - here[0]) / 2e-6, abs=1e-4 * size)
