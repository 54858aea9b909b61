"""The rough polar factor, beside the one by singular values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.numerics.polar import completed, rough_polar
from givens.rotations import random_orthogonal


def graded(seed, m, n, weakest):
    """m x n, with singular values from 1 down to the weakest."""
    rng = np.random.default_rng(seed)
    left, right = random_orthogonal(m, rng), random_orthogonal(n, rng)[:m]
    return (left * np.geomspace(1.0, weakest, m)) @ right, left @ right, rng


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
@given(seed=st.integers(0, 10_000), m=st.integers(1, 30), more=st.sampled_from([0, 1, 20]))
def test_it_is_the_polar_factor_of_singular_values_a_million_times_apart(size, seed, m, more):
    E, exact, rng = graded(seed, m, m + more, 1e-6)
    U = rough_polar(size * E, rng.standard_normal(E.shape, dtype=np.float32))
    assert np.allclose(U, exact, atol=0.01)
    assert np.linalg.norm(U @ U.T - np.eye(m), 2) < 0.01


@given(seed=st.integers(0, 10_000), m=st.integers(2, 30), more=st.sampled_from([0, 5]), data=st.data())
def test_rows_of_zeros_get_directions_that_no_other_row_has(seed, m, more, data):
    dead = data.draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=m - 1, unique=True))
    check_directions_of_zeros(seed, m, more, dead)


@pytest.mark.parametrize(("seed", "m", "dead"), [(40, 29, [0]), (16, 30, [7])])
def test_a_row_of_zeros_gets_the_only_direction_left(seed, m, dead):
    check_directions_of_zeros(seed, m, 0, dead)


def check_directions_of_zeros(seed, m, more, dead):
    live = np.setdiff1d(np.arange(m), dead)
    E, _, rng = graded(seed, m, m + more, 1e-2)
    E[dead] = 0.0
    left, _, right = np.linalg.svd(E[live], full_matrices=False)
    U = rough_polar(E, rng.standard_normal(E.shape, dtype=np.float32))
    assert np.allclose(U[live], left @ right, atol=0.01)
    assert np.allclose(np.linalg.norm(U[dead], axis=1), 1.0)
    assert np.allclose(U[dead] @ right.T, 0.0, atol=1e-3)


@given(seed=st.integers(0, 10_000), m=st.integers(1, 30), more=st.sampled_from([0, 1, 20]))
def test_completed_rows_are_orthonormal_and_where_they_were(seed, m, more):
    E, exact, rng = graded(seed, m, m + more, 1.0)
    Q = completed(exact + 1e-4 * rng.standard_normal(E.shape))
    assert np.allclose(Q @ Q.T, np.eye(m + more), atol=1e-13)
    assert np.allclose(Q[:m], exact, atol=1e-2)


def test_rows_without_rank_are_completed_all_the_same():
    Q = completed(np.ones((3, 4)))
    assert np.allclose(Q @ Q.T, np.eye(4), atol=1e-13)
