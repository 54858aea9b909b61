"""Where a rotation starts: the compiled sweeps, and the choice among candidates."""

from __future__ import annotations

import numpy as np
import pytest

from givens.kernels.quartic import sweep_all, turn_pairs
from givens.numerics import parallel
from givens.rotation import orthomax
from givens.rotation.explore import affordable, explore


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.5])
def test_compiled_sweeps_turn_every_pair_in_order(kappa):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 5))
    share = kappa / len(A)
    Y, Ut = np.ascontiguousarray(A.T), np.eye(5)
    made, gained, criterion = sweep_all(Y, Ut, share, 3, 0.0)
    expected, turned = np.ascontiguousarray(A.T), np.eye(5)
    pairs = np.column_stack(np.triu_indices(5, 1))
    for _ in range(3):
        gains, _ = turn_pairs(expected, turned, pairs, 5, share, 1.0)
    assert made == 3
    assert gained == pytest.approx(gains.sum())
    np.testing.assert_allclose(Y, expected, atol=1e-12)
    np.testing.assert_allclose(Ut, turned, atol=1e-12)
    np.testing.assert_allclose(Ut @ A.T, Y, atol=1e-12)
    assert criterion == pytest.approx(orthomax(Y.T, kappa))


def test_compiled_sweeps_stop_when_one_gains_little():
    A = np.random.default_rng(4).standard_normal((30, 4))
    Y, Ut = np.ascontiguousarray(A.T), np.eye(4)
    made, gained, _ = sweep_all(Y, Ut, 1 / 30, 1000, 1e-10)
    assert made < 1000
    assert gained <= 1e-10


@pytest.mark.parametrize("shape", [(30, 6), (300, 22)])
def test_a_maximum_stays_where_it_is(shape):
    rng = np.random.default_rng(5)
    A = np.zeros(shape)
    A[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = rng.uniform(0.5, 1, shape[0])
    found = explore(A, 1.0, affordable(*shape), 1e-12, np.random.default_rng(0))
    assert found.converged
    np.testing.assert_allclose(np.abs(found.rotation), np.eye(shape[1]), atol=1e-7)


@pytest.mark.parametrize("shape", [(40, 6), (150, 24)])
def test_the_same_bits_for_any_number_of_threads(shape):
    A = np.random.default_rng(6).standard_normal(shape)
    found = []
    for threads in (1, 2, 3):
        with parallel.pool(threads):
            found.append(explore(A, 1.0, affordable(*shape), 1e-12, np.random.default_rng(1)))
    assert all(np.array_equal(other.rotation, found[0].rotation) for other in found)
    assert orthomax(A @ found[0].rotation, 1.0) > orthomax(A, 1.0)


def test_two_columns_need_no_candidates():
    assert affordable(1000, 2) == 1
    assert affordable(30, 3) > 1
    assert affordable(10**6, 100) == 1
