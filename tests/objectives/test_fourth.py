"""Fourth moments: all angles at once, rounds by groups, and what is remembered between sweeps."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import minimize
from givens.objectives import Columns, Kurtosis
from givens.objectives.fourth import FourthMoments, _shares, in_rounds
from givens.rotations import random_orthogonal


def sources(seed, rows, n, kind="laplace"):
    rng = np.random.default_rng(seed)
    S = rng.laplace(size=(rows, n)) if kind == "laplace" else rng.uniform(-1, 1, size=(rows, n))
    S -= S.mean(axis=0)
    return np.linalg.svd(S, full_matrices=False)[0] * np.sqrt(rows) @ random_orthogonal(n, rng)


def criterion(Y, kappa):
    """From its definition, of the rows of Y."""
    return float(np.sum(Y**4) - kappa * np.sum(np.sum(Y**2, axis=1) ** 2))


@given(size=st.integers(2, 70), share=st.floats(0, 1))
def test_the_shares_are_every_pair_once_and_disjoint_in_a_round(size, share):
    active = max(1, round(share * size))
    rounds = _shares(size, active)
    pairs = [tuple(pair) for shares in rounds for part in shares for pair in part.tolist()]
    assert sorted(pairs) == [(i, j) for i, j in combinations(range(size), 2) if i < active]
    for shares in rounds:
        columns = [set(part.ravel().tolist()) for part in shares]
        assert len(set().union(*columns)) == sum(map(len, columns))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("kappa", "sign", "active"), [(0.0, 1, 40), (0.01, 1, 40), (0.0, -1, 40), (0.01, 1, 7)]
)
def test_rounds_gain_what_they_say_and_turn_what_they_return(dtype, kappa, sign, active):
    before = np.ascontiguousarray(sources(0, 300, 40).T, dtype=dtype)
    Y = before.copy()
    Q, gain, rotated, flops = in_rounds(Y, active, kappa, sign)
    precision = 1e-12 if dtype == np.float64 else 1e-5
    assert np.abs(Y - Q.T @ before).max() < 100 * precision
    assert np.abs(Q.T @ Q - np.eye(40)).max() < 1e-13
    after = criterion(Y[:active].astype(float), kappa) - criterion(before[:active].astype(float), kappa)
    assert sign * after == pytest.approx(gain, rel=100 * precision)
    assert min(gain, rotated, flops) > 0


@pytest.mark.parametrize(("kappa", "sign"), [(0.0, 1), (0.0, -1), (0.02, 1)])
def test_moments_are_the_criterion_and_its_slopes(kappa, sign):
    Y = np.ascontiguousarray(sources(1, 50, 5).T)
    moments = FourthMoments.of(Y, kappa, sign)
    assert moments.value() == pytest.approx(-sign * criterion(Y, kappa), rel=1e-12)
    W = moments.slopes() - moments.slopes().T
    step = 1e-5
    for i, j in combinations(range(5), 2):
        values = []
        for theta in (step, -step):
            T = Y.copy()
            T[i] = np.cos(theta) * Y[i] + np.sin(theta) * Y[j]
            T[j] = np.cos(theta) * Y[j] - np.sin(theta) * Y[i]
            values.append(-sign * criterion(T, kappa))
        assert W[i, j] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6, abs=1e-4)


def test_pairs_turned_by_hand_are_not_forgotten():
    objective = Columns(sources(3, 100, 4), "varimax")
    state = objective.state(np.eye(4))
    first = objective.value(state)
    pair = np.array([[0, 2]])
    objective.apply(state, pair, np.array([[[0.6, -0.8], [0.8, 0.6]]]))
    Y = state.copy()
    assert objective.value(state) == pytest.approx(-criterion(Y, 1 / 100), rel=1e-12)
    assert objective.value(state) != first


def test_two_states_of_one_objective_are_told_apart():
    objective = Columns(sources(4, 100, 4), "quartimax")
    U = random_orthogonal(4, np.random.default_rng(0))
    one, other = objective.state(np.eye(4)), objective.state(U)
    for state in (one, other, one, other):
        assert objective.value(state) == pytest.approx(-criterion(state, 0.0), rel=1e-12)


@pytest.mark.parametrize("kind", ["laplace", "uniform"])
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e12])
def test_a_start_from_a_sample_leads_to_the_optimum_of_all(kind, scale):
    A = sources(5, 12_000, 6, kind)
    contrast = Kurtosis(1 if kind == "laplace" else -1)
    result = minimize(Columns(A * scale, contrast))
    by_pairs = minimize(Columns(A, contrast), np.eye(6), schedule="cyclic")
    assert result.converged
    assert result.sweeps <= 4
    assert result.value / scale**4 == pytest.approx(by_pairs.value, rel=1e-10)


def test_noise_that_never_settles_still_ends_in_a_start():
    A = np.random.default_rng(6).standard_normal((9_000, 12))
    U = Columns(A, "kurtosis").start(np.random.default_rng(0))
    assert np.abs(U.T @ U - np.eye(12)).max() < 1e-12
    assert np.sum((A @ U) ** 4) > np.sum(A**4)


def test_all_angles_at_once_end_where_pairs_do():
    """The secant may change the way, and must not change where it ends."""
    A = sources(7, 3000, 16)
    start = minimize(Columns(A[::3], "kurtosis")).U
    result = minimize(Columns(A, "kurtosis"), start)
    pairs = minimize(Columns(A, "kurtosis"), start, schedule="cyclic")
    assert result.value == pytest.approx(pairs.value, rel=1e-12)
    assert result.gradient_norm < 1e-7 * result.value
    assert result.flops < pairs.flops
