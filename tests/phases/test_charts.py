"""Charts: steps of n x m matrices are those of square ones, without the columns that nobody needs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from givens.kernels.cayley import carry
from givens.numerics.cayley import turned
from givens.phases.charts import LARGEST_MOVE, Place, StiefelChart
from givens.rotations import orthogonality, random_orthogonal


@st.composite
def steps(draw):
    n = draw(st.integers(2, 30))
    m = draw(st.integers(1, n - 1))
    return n, m, draw(st.integers(0, 2**32 - 1)), 10.0 ** draw(st.floats(-8, 1))


def as_coordinates(inside, beyond):
    """Antisymmetric angles inside V and an n x m matrix, as the vector that the chart has for them."""
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
    chart = StiefelChart(n, m)
    direction = -as_coordinates(inside, W @ B)
    slopes = rng.standard_normal(len(direction))
    promised, longest = chart.aim(Place(V), direction, slopes)
    assert np.isclose(promised, -direction @ slopes)
    largest = chart.largest(direction)
    assert largest <= LARGEST_MOVE * (1 + 1e-9)
    assert np.isclose(longest * largest, LARGEST_MOVE)
    shrink = np.linalg.norm(direction) / np.linalg.norm(as_coordinates(inside, W @ B))
    # Column i rotates with column j by the angle K_ji.
    K = np.zeros((n, n))
    K[:m, :m], K[m:, :m] = shrink * inside.T, shrink * B
    K[:m, m:] = -K[m:, :m].T
    there, whole = chart.at(Place(V), 0.7), turned(U, K, 0.7)
    np.testing.assert_allclose(there.matrix, whole[:, :m], atol=1e-12)
    assert orthogonality(there.matrix) < 1e-13
    # What was W C before is W' C there, and angles inside do not change.
    C = rng.standard_normal((n - m, m))
    rows = np.array([as_coordinates(inside, W @ C), direction])
    chart.carry(there, rows)
    np.testing.assert_allclose(rows[0], as_coordinates(inside, whole[:, m:] @ C), atol=1e-11)


@given(steps())
def test_the_largest_move_is_that_of_a_column(problem):
    n, m, seed, size = problem
    rng = np.random.default_rng(seed)
    inside = np.triu(size * rng.standard_normal((m, m)), 1)
    inside -= inside.T
    beyond = size * rng.standard_normal((n, m))
    moves = np.sqrt(np.sum(inside**2, axis=1) + np.sum(beyond**2, axis=0))
    assert np.isclose(StiefelChart(n, m).largest(as_coordinates(inside, beyond)), moves.max())


def test_rows_of_several_tiles_are_carried(rng):
    n, m, skip = 20_000, 2, 3
    X, C = rng.standard_normal((n, 2 * m)) / n**0.5, rng.standard_normal((2 * m, 2 * m))
    rows = rng.standard_normal((3, skip + n * m))
    parts = rows[:, skip:].reshape(3, n, m)
    expected = [part + X @ (C @ (X.T @ part)) for part in parts]
    before = rows[:, :skip].copy()
    carry(rows, skip, X, C)
    np.testing.assert_allclose(rows[:, skip:].reshape(3, n, m), expected, atol=1e-12)
    assert np.array_equal(rows[:, :skip], before)
