"""`joint_diagonalize`: its criterion and bad input; `tests/against` has what pyRiemann asks of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from givens import joint_diagonalize
from givens.ica.diagonalize import as_stack, reduced_stack
from givens.rotations import random_orthogonal


def off(X, V, weights=None):
    """Σ_k w_k Σ_{i≠j} (VX_kVᵀ)_ij², entry by entry."""
    total = 0.0
    for k, matrix in enumerate(X):
        D = V @ matrix @ V.T
        part = sum(D[i, j] ** 2 for i in range(len(D)) for j in range(len(D)) if i != j)
        total += part if weights is None else weights[k] * part
    return total


def common_basis(number, n, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    basis = random_orthogonal(n, rng)
    X = np.einsum("ia,ka,ja->kij", basis, rng.standard_normal((number, n)), basis)
    E = rng.standard_normal(X.shape)
    return X + noise * (E + E.swapaxes(1, 2)) / 2, basis


def is_permutation(overlap, atol):
    matched = np.zeros_like(overlap)
    matched[np.arange(len(overlap)), np.abs(overlap).argmax(axis=1)] = 1
    return np.allclose(np.abs(overlap), matched, atol=atol) and (matched.sum(axis=0) == 1).all()


@pytest.mark.parametrize(("number", "n"), [(2, 6), (5, 4), (40, 6), (1, 5)])
def test_a_common_basis_is_found(number, n):
    X, basis = common_basis(number, n, seed=number)
    V, D = joint_diagonalize(X)
    assert is_permutation(V @ basis, 1e-8)
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(D, V @ X @ V.T, atol=1e-13)
    assert off(X, V) < 1e-20 * np.sum(X**2)


@settings(max_examples=20, deadline=None)
@given(number=st.integers(1, 30), n=st.integers(1, 5), seed=st.integers(0, 10**6), weighted=st.booleans())
def test_no_rotation_of_two_rows_does_better(number, n, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((number, n, n))
    X = X + X.swapaxes(1, 2)
    weights = rng.uniform(0.1, 1, number) if weighted else None
    V, result = joint_diagonalize(X, sample_weight=weights, return_result=True)
    found = off(X, V, weights)
    assert result.value == pytest.approx(found, rel=1e-10, abs=1e-12 * np.sum(X**2))
    np.testing.assert_array_equal(result.U.T, V)
    assert found <= off(X, np.eye(n), weights) + 1e-9
    for i in range(n):
        for j in range(i + 1, n):
            for theta in np.linspace(-np.pi / 2, np.pi / 2, 40):
                turned = V.copy()
                c, s = np.cos(theta), np.sin(theta)
                turned[i], turned[j] = c * V[i] + s * V[j], c * V[j] - s * V[i]
                assert found <= off(X, turned, weights) + 1e-9 * np.sum(X**2)


def test_fewer_matrices_with_the_same_criterion():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4, 4))
    X = X + X.swapaxes(1, 2)
    weights = rng.uniform(0.2, 2, 200)
    few, weighted = reduced_stack(X), reduced_stack(X, weights)
    assert few.shape == weighted.shape == (10, 4, 4)
    for _ in range(5):
        V = random_orthogonal(4, rng)
        assert off(few, V) == pytest.approx(off(X, V), rel=1e-12)
        assert off(weighted, V) == pytest.approx(off(X, V, weights), rel=1e-12)
    assert reduced_stack(X[:10]) is not None
    assert np.shares_memory(reduced_stack(X[:10]), X)


def test_a_stack_is_not_copied_before_it_is_reduced():
    X, _ = common_basis(30, 3, seed=0)
    assert as_stack(X) is X


def test_lists_iterators_single_precision_and_scales():
    X, basis = common_basis(12, 4, seed=1, noise=1e-3)
    V, D = joint_diagonalize(X)
    for other in (list(X), iter(X), (matrix for matrix in X)):
        W, E = joint_diagonalize(other)
        assert np.array_equal(V, W)
        assert np.array_equal(D, E)
    W, _ = joint_diagonalize(X.astype(np.float32))
    np.testing.assert_allclose(W, V, atol=1e-5)
    for scale in (1e-150, 1e150):
        W, _ = joint_diagonalize(X * scale)
        np.testing.assert_allclose(W, V, atol=1e-8)
    W, _ = joint_diagonalize(X, start=basis.T)
    assert is_permutation(W @ V.T, 1e-6)


def test_the_same_bits_for_any_number_of_threads():
    X, _ = common_basis(300, 20, seed=2, noise=1e-2)
    one, two = (joint_diagonalize(X, threads=threads) for threads in (1, 2))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


def test_weights_choose_between_matrices_that_disagree():
    X = np.array([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]])
    V, _ = joint_diagonalize(X, sample_weight=[1.0, 1e-6])
    assert is_permutation(V, 1e-5)
    V, _ = joint_diagonalize(X, sample_weight=[1e-6, 1.0])
    np.testing.assert_allclose(np.abs(V), np.sqrt(0.5), atol=1e-5)


class TestBadInput:
    @pytest.mark.parametrize(
        ("matrices", "error", "sentence"),
        [
            (np.ones((2, 2, 2)) * 1j, TypeError, "matrices must be real, got complex numbers"),
            (
                np.array([np.eye(2), [[1.0, 2.0], [0.0, 1.0]]]),
                ValueError,
                "matrix 1 differs from its transpose by 2",
            ),
            (np.ones((2, 3)), ValueError, r"must be square and have the shape \(K, n, n\), got \(2, 3\)"),
            (np.ones((2, 3, 2)), ValueError, r"got \(2, 3, 2\)"),
            (np.ones((0, 2, 2)), ValueError, r"got \(0, 2, 2\)"),
            ([], ValueError, "there are no matrices to diagonalise"),
            ([np.eye(2), np.eye(3)], ValueError, r"same shape, got \(2, 2\) and \(3, 3\)"),
            (np.full((1, 2, 2), np.nan), ValueError, "matrices must be finite"),
            ("abc", (TypeError, ValueError), "matrices|shape"),
        ],
    )
    def test_matrices(self, matrices, error, sentence):
        with pytest.raises(error, match=sentence):
            joint_diagonalize(matrices)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"start": np.ones((2, 2))}, "orthogonal"),
            ({"start": np.eye(3)}, "start"),
            ({"tol": -1}, "tol must be a number of at least 0"),
            ({"max_iter": 1.5}, "max_iter must be a whole number"),
            ({"sample_weight": [1.0]}, "sample_weight must be 2 positive numbers"),
            ({"sample_weight": [1.0, 0.0]}, "sample_weight must be 2 positive numbers"),
            ({"threads": 0}, "threads must be"),
        ],
    )
    def test_options(self, options, sentence):
        with pytest.raises(ValueError, match=sentence):
            joint_diagonalize(np.array([np.eye(2), np.diag([1.0, 2.0])]), **options)

    def test_not_converged(self):
        X, _ = common_basis(5, 6, seed=0, noise=0.5)
        with pytest.warns(
            ConvergenceWarning, match=r"did not converge \(.*max_iter = 1.*\); raise max_iter or tol"
        ):
            joint_diagonalize(X, max_iter=1)
