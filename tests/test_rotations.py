from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from givens import rotations
from givens.kernels.rotate import rotate_rows

ANGLES = st.floats(-np.pi, np.pi)


@given(st.integers(2, 6), st.data(), ANGLES)
def test_rotation_is_the_exponential_of_the_papers_basis(n, data, theta):
    i, j = data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]))
    H = np.zeros((n, n))
    H[i, j], H[j, i] = 1, -1
    assert np.allclose(rotations.rotation(n, i, j, theta), scipy.linalg.expm(-theta * H), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_rotation_equals_the_plain_one(rng, dtype):
    Y = rng.standard_normal((9, 6)).astype(dtype)
    angles = np.array([0.4, -2.0])
    pairs = np.array([[0, 5], [5, 2]])
    stored = np.ascontiguousarray(Y.T)
    rotate_rows(stored, pairs, rotations.turn(angles))
    plain = rotations.rotate(rotations.rotate(Y, 0, 5, 0.4), 5, 2, -2.0)
    assert np.allclose(stored.T, plain, rtol=0, atol=8 * np.finfo(dtype).eps)


@given(st.integers(1, 9), st.integers(0, 10_000))
def test_factors_multiply_out_to_the_matrix(n, seed):
    U = rotations.random_orthogonal(n, np.random.default_rng(seed))
    factors = rotations.factor(U)
    assert len(factors.angles) <= n * (n - 1) // 2
    assert np.all(np.abs(factors.angles) <= np.pi / 2)
    assert set(factors.signs) <= {-1.0, 1.0}
    assert np.prod(factors.signs) == rotations.determinant(U)
    assert np.abs(factors.compose() - U).max() < 1e-13


def test_factors_of_signs_and_permutations():
    factors = rotations.factor(np.diag([-1.0, 1.0, -1.0]))
    assert len(factors.angles) == 0
    assert factors.signs.tolist() == [-1, 1, -1]
    P = np.eye(4)[[2, 0, 3, 1]]
    assert np.abs(rotations.factor(P).compose() - P).max() < 1e-15


def test_random_orthogonal_is_uniform_in_the_component_asked_for():
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        drawn = [rotations.random_orthogonal(3, rng, determinant=sign) for _ in range(4000)]
        assert {rotations.determinant(U) for U in drawn} == {sign}
        # For the uniform distribution every entry has mean 0 and variance 1/n.
        assert np.abs(np.mean(drawn, axis=0)).max() < 5 / np.sqrt(3 * 4000)
        assert np.abs(np.var(drawn, axis=0) - 1 / 3).max() < 0.03


@pytest.mark.parametrize(
    ("U", "message"),
    [
        (np.eye(3)[:2], "square"),
        (np.ones((2, 2)), r"orthogonal, but .* = 3.16"),
        (np.array([[np.nan, 0], [0, 1]]), "finite, got nan at row 0, column 0"),
        (np.eye(2) * 1j, "real"),
        (np.array([["a", "b"], ["c", "d"]]), "real matrix, got values of type"),
        (np.zeros((0, 0)), "square"),
    ],
)
def test_what_is_not_orthogonal_is_told_so(U, message):
    with pytest.raises(ValueError, match=message):
        rotations.factor(U)


@pytest.mark.parametrize("pair", [(0, 0), (0, 3), (-1, 1)])
def test_a_pair_must_be_two_columns(pair):
    with pytest.raises(ValueError, match="two different columns"):
        rotations.rotation(3, *pair, 0.1)
