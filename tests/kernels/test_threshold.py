"""The compiled pair problem of sparse PCA against the sorted breakpoints, a fine grid and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.kernels import threshold
from givens.searches.breakpoints import breakpoint_search, pair_value
from givens.sparse_pca.loadings import shrink

PENALTIES = pytest.mark.parametrize("penalty", ["l1", "l0"])
GRID = np.linspace(-np.pi, np.pi, 3601)


def columns(seed: int, rows: int, heavy: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, rows)) * rng.choice([0.3, 1.0, 3.0])
    return (x**3, y**3) if heavy else (x, y)


def compiled(x, y, gammas, penalty, everywhere=True):
    levels = np.sqrt(gammas) if penalty == "l0" else np.array(gammas)
    room = np.empty(threshold.ROOM)
    noise = 1e-15 * float(np.sum(x**2 + y**2))
    found = threshold.search(
        x, y, len(x), levels[0], levels[1], penalty == "l0", noise, 1e-12, everywhere, 1.0, room
    )
    return found[0], found[1]


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
@given(problem=problems)
def test_the_compiled_search_finds_the_global_maximum(penalty, problem):
    seed, rows, heavy, gamma, ratio = problem
    x, y = columns(seed, rows, heavy)
    gammas = (gamma, gamma * ratio)
    _, best = breakpoint_search(x, y, gammas, penalty)
    theta, gain = compiled(x, y, gammas, penalty)
    here, there = pair_value(x, y, np.array([0.0, theta]), gammas, penalty)
    assert gain == pytest.approx(there - here, abs=1e-12 * max(there, 1.0))
    assert gain >= best * (1 - 1e-6) - 1e-9 * max(there, 1e-3)


@PENALTIES
def test_at_the_optimum_nothing_turns(penalty):
    x, y = columns(3, 50, False)
    theta, _ = breakpoint_search(x, y, (0.5, 0.5), penalty)
    c, s = np.cos(theta), np.sin(theta)
    turned, gain = compiled(c * x + s * y, c * y - s * x, (0.5, 0.5), penalty, everywhere=False)
    assert abs(turned) < 1e-5
    assert gain < 1e-9


def test_among_equal_maxima_the_smallest_angle_wins():
    # Two equal rows on the axes: θ = 0 and every quarter turn are the same.
    x, y = np.array([2.0, 0.0]), np.array([0.0, 2.0])
    for penalty in ("l1", "l0"):
        assert compiled(x, y, (0.5, 0.5), penalty) == (0.0, 0.0)
        assert breakpoint_search(x, y, (0.5, 0.5), penalty)[1] == pytest.approx(0.0, abs=1e-14)


@PENALTIES
def test_slopes_are_the_derivatives_of_every_pair(rng, penalty):
    Y = rng.standard_normal((5, 300))
    levels = np.array([0.7, 0.7, 1.1])
    gammas = levels**2 if penalty == "l0" else levels
    M = threshold.slopes(Y, 0, 3, levels, penalty == "l0")
    np.testing.assert_allclose(M, shrink(Y[:3], gammas, penalty) @ Y.T, rtol=1e-12)
    h = 1e-6
    full = np.append(gammas, [np.inf, np.inf])
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 4)):
        ahead, behind = pair_value(Y[i], Y[j], np.array([h, -h]), (full[i], full[j]), penalty)
        back = M[j, i] if j < 3 else 0.0
        assert 2 * (M[i, j] - back) == pytest.approx((ahead - behind) / (2 * h), rel=1e-4)


@PENALTIES
def test_shrink_and_value_agree_with_plain_numpy(rng, penalty):
    Y = rng.standard_normal((4, 101))
    levels = np.array([0.3, 0.9, 1.5, 9.0])
    gammas = levels**2 if penalty == "l0" else levels
    S = np.empty_like(Y)
    total, nonzeros = threshold.shrink(Y, levels, penalty == "l0", S)
    expected = shrink(Y, gammas, penalty)
    np.testing.assert_array_equal(S, expected)
    assert nonzeros == np.count_nonzero(expected)
    other = np.array([float(pair_value(y, 0 * y, 0.0, (g, np.inf), penalty)) for y, g in zip(Y, gammas)])
    assert total == pytest.approx(other.sum(), rel=1e-12)
    assert threshold.value(Y, levels, penalty == "l0") == pytest.approx(other.sum(), rel=1e-12)


def brute_value(Y, levels, l0):
    A = np.abs(Y)
    if l0:
        return float(np.maximum(Y**2 - levels[:, None] ** 2, 0.0).sum())
    return float((np.maximum(A - levels[:, None], 0.0) ** 2).sum())


@PENALTIES
@pytest.mark.parametrize("relaxation", [1.0, 1.35])
@pytest.mark.parametrize("inactive", [0, 3])
def test_a_block_gains_at_least_what_it_says_and_its_rotation_is_orthogonal(
    rng, penalty, relaxation, inactive
):
    Y = rng.standard_t(3, size=(9, 400))
    l0 = penalty == "l0"
    levels = np.full(9, 2.0)
    levels[9 - inactive :] = np.inf
    C, rows, others = threshold.compact(Y, np.arange(9), 2.0 / np.sqrt(2))
    np.testing.assert_array_equal(np.sort(np.append(rows, others)), np.arange(400))
    steps = np.empty((36, 4))
    Qt = np.empty((9, 9))
    gain, turned, flops = threshold.turn_block(C, levels, l0, 1e-12, 0.1, 1e-2, relaxation, Qt, steps)
    assert turned > 0
    assert flops > 0
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(9), atol=1e-13)
    before, after = brute_value(Y, levels, l0), brute_value(Qt @ Y, levels, l0)
    # A feature that was left out can only add to what is said.
    assert after - before >= gain - 1e-9 * after
    for turn in (
        lambda Z: threshold.replay(Z, np.arange(9), steps[:turned]),
        lambda Z: threshold.install(Z, np.arange(9), Qt, C, rows, others),
    ):
        Z = Y.copy()
        turn(Z)
        np.testing.assert_allclose(Z, Qt @ Y, atol=1e-12 * np.abs(Y).max())
    np.testing.assert_allclose(
        C, (Qt @ Y)[:, np.abs(Y).max(axis=0) > 2.0 / np.sqrt(2)], atol=1e-12 * np.abs(Y).max()
    )


def test_turning_pairs_in_place_adds_up(rng):
    Y = rng.standard_t(3, size=(4, 200))
    levels = np.full(4, 1.0)
    pairs = np.array([[0, 1], [2, 3], [0, 2]])
    before = brute_value(Y, levels, False)
    turned = Y.copy()
    angles, gain, _ = threshold.turn_pairs(turned, pairs, levels, False, 1e-12, 1e-12)
    assert brute_value(turned, levels, False) == pytest.approx(before + gain, rel=1e-12)
    expected = Y.copy()
    for (i, j), theta in zip(pairs, angles):
        c, s = np.cos(theta), np.sin(theta)
        expected[i], expected[j] = c * expected[i] + s * expected[j], c * expected[j] - s * expected[i]
    np.testing.assert_allclose(turned, expected, atol=1e-12)


def test_a_feature_below_the_threshold_in_norm_never_counts(rng):
    Y = rng.standard_normal((6, 50)) * 0.3
    Y[:, :5] *= 10
    small = np.linalg.norm(Y, axis=0) <= 2.0
    assert small.any()
    for seed in range(20):
        Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
        assert np.all(np.abs(Q @ Y)[:, small] <= 2.0)
