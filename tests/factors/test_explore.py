"""Where a rotation starts: the compiled rotations of pairs, and the choice among candidates."""

from __future__ import annotations

import numpy as np
import pytest

from givens.factors.criteria import orthomax
from givens.factors.explore import affordable, explore
from givens.kernels.quartic import turn_pairs
from givens.numerics import parallel


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.5])
def test_pairs_that_are_turned_in_order_gain_what_they_say(kappa):
    A = np.random.default_rng(3).standard_normal((40, 5))
    Y, Ut = np.ascontiguousarray(A.T), np.eye(5)
    gains = np.empty(10)
    turn_pairs(Y, Ut, np.column_stack(np.triu_indices(5, 1)), 5, kappa / len(A), 1.0, gains, 1, 0.0)
    assert (gains > 0).all()
    assert np.abs(Ut @ Ut.T - np.eye(5)).max() < 1e-14
    np.testing.assert_allclose(Ut @ A.T, Y, atol=1e-12)
    assert gains.sum() == pytest.approx(orthomax(Y.T, kappa) - orthomax(A, kappa))


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
