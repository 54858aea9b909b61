"""Where a rotation starts: the compiled rotations of pairs, and the choice among starts."""

from __future__ import annotations

import numpy as np
import pytest

from givens.factors.explore import explore, swept
from givens.numerics import parallel
from tests.oracles.values import orthomax


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.5])
def test_a_sweep_leads_to_the_value_that_it_says(kappa):
    A = np.random.default_rng(3).standard_normal((40, 5))
    one, several = (swept(A, kappa, np.eye(5), sweeps, 1e-9) for sweeps in (1, 100))
    for start in (one, several):
        np.testing.assert_allclose(start.rotation.T @ start.rotation, np.eye(5), atol=1e-13)
        assert start.value == pytest.approx(orthomax(A @ start.rotation, kappa))
    assert orthomax(A, kappa) < one.value < several.value
    assert several.converged
    assert not one.converged


@pytest.mark.parametrize("shape", [(30, 6), (300, 22)])
def test_a_maximum_stays_where_it_is(shape):
    rng = np.random.default_rng(5)
    A = np.zeros(shape)
    A[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = rng.uniform(0.5, 1, shape[0])
    start = explore(A, 1.0, 1, 1e-12, np.random.default_rng(0))
    assert start.converged
    np.testing.assert_allclose(np.abs(start.rotation), np.eye(shape[1]), atol=1e-7)


@pytest.mark.parametrize("shape", [(40, 6), (150, 24)])
def test_the_same_bits_for_any_number_of_threads(shape):
    A = np.random.default_rng(6).standard_normal(shape)
    found = []
    for threads in (1, 2, 3):
        with parallel.pool(threads):
            found.append(explore(A, 1.0, 1, 1e-12, np.random.default_rng(1)))
    assert all(np.array_equal(other.rotation, found[0].rotation) for other in found)
    assert orthomax(A @ found[0].rotation, 1.0) > orthomax(A, 1.0)


@pytest.mark.parametrize("shape", [(1000, 2), (20_000, 100)])
def test_one_angle_or_many_rows_need_no_other_starts(shape):
    assert explore(np.ones(shape), 1.0, 1, 1e-12, np.random.default_rng(0)) is None
