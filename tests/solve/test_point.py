"""Points: steps of n x m matrices are those of square ones, without the columns that nobody needs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from givens.numerics.cayley import turned
from givens.rotations import orthogonality, random_orthogonal
from givens.solve.point import MAX_ANGLE, Stiefel


@st.composite
def steps(draw):
    n = draw(st.integers(2, 30))
    m = draw(st.integers(1, n - 1))
    return n, m, draw(st.integers(0, 2**32 - 1)), 10.0 ** draw(st.floats(-8, 1))


def as_coordinates(inside, beyond):
    """Antisymmetric angles inside V and an n x m matrix, as the vector that a point has for them."""
    return np.concatenate([inside[np.triu_indices(len(inside), 1)], beyond.ravel()])


@given(steps())
def test_a_step_is_that_of_the_completed_matrix(problem):
    n, m, seed, size = problem
    rng = np.random.default_rng(seed)
    U = random_orthogonal(n, rng)
    V, W = U[:, :m], U[:, m:]
    inside = np.triu(size * rng.standard_normal((m, m)), 1)
    inside -= inside.T
    B = size * rng.standard_normal((n - m, m))
    point = Stiefel(V.T, m)
    direction = -as_coordinates(inside, W @ B)
    slopes = rng.standard_normal(len(direction))
    step = point.aim(direction, slopes)
    assert np.isclose(step.promised, -direction @ slopes)
    largest = point.largest(direction)
    assert largest <= MAX_ANGLE * (1 + 1e-9)
    assert np.isclose(step.longest * largest, MAX_ANGLE)
    shrink = np.linalg.norm(direction) / np.linalg.norm(as_coordinates(inside, W @ B))
    # Column i rotates with column j by the angle K_ji.
    K = np.zeros((n, n))
    K[:m, :m], K[m:, :m] = shrink * inside.T, shrink * B
    K[:m, m:] = -K[m:, :m].T
    there, whole = point.moved(step, 0.7), turned(U, K, 0.7)
    np.testing.assert_allclose(there.matrix, whole[:, :m], atol=1e-12)
    assert orthogonality(there.matrix) < 1e-13


@given(steps())
def test_the_largest_move_is_that_of_a_column(problem):
    n, m, seed, size = problem
    rng = np.random.default_rng(seed)
    inside = np.triu(size * rng.standard_normal((m, m)), 1)
    inside -= inside.T
    beyond = size * rng.standard_normal((n, m))
    moves = np.sqrt(np.sum(inside**2, axis=1) + np.sum(beyond**2, axis=0))
    point = Stiefel(np.eye(m, n), m)
    assert np.isclose(point.largest(as_coordinates(inside, beyond)), moves.max())
