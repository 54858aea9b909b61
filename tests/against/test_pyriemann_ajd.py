"""What pyRiemann promises of its joint diagonalisers and of CSP holds for `joint_diagonalize`, by the adapter of the docs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from givens import joint_diagonalize
from givens.rotations import random_orthogonal

pytest.importorskip("pyriemann")

from pyriemann.geometry.ajd import ajd, rjd
from pyriemann.preprocessing import Whitening
from pyriemann.spatialfilters import CSP

PROBLEMS = 40


def adapted(X, init=None, eps=1e-6, n_iter_max=100, sample_weight=None):
    """`joint_diagonalize` with the arguments of `ajd_pham`."""
    return joint_diagonalize(X, start=init, tol=eps, max_iter=n_iter_max, sample_weight=sample_weight)


def positive(number, n, seed=0):
    """Matrices that are positive definite and share no basis."""
    A = np.random.default_rng(seed).standard_normal((number, n, 2 * n))
    return A @ A.swapaxes(1, 2)


def symmetric(number, n, seed=0):
    A = np.random.default_rng(seed).standard_normal((number, n, n))
    return A + A.swapaxes(1, 2)


def off_diagonal(D):
    return np.sum(D**2) - np.sum(np.einsum("kii->ki", D) ** 2)


def trials_of_classes(seed, basis=random_orthogonal):
    """Covariances of trials whose class means are exactly diagonal in one basis, and their labels; 3 to 5 classes."""
    rng = np.random.default_rng(seed)
    channels, classes = int(rng.integers(3, 6)), int(rng.integers(3, 6))
    B = basis(channels, rng)
    powers = rng.uniform(0.5, 4.0, (classes, channels))
    means = np.einsum("ia,ka,ja->kij", B, powers, B)
    shifts = np.einsum("ia,ka,ja->kij", B, rng.uniform(0.0, 0.3, (classes, channels)), B)
    return np.concatenate((means + shifts, means - shifts)), np.tile(np.arange(classes), 2)


def class_residual(filters, X, y):
    """The largest entry off the diagonals of the classes' means after filtering."""
    D = np.array([filters @ X[y == label].mean(axis=0) @ filters.T for label in np.unique(y)])
    return np.abs(D - np.einsum("kii->ki", D)[:, :, None] * np.eye(len(filters))).max()


@pytest.mark.parametrize("matrices", [positive, symmetric])
def test_shapes_orthogonality_and_diagonal_matrices(matrices):
    X = matrices(10, 3)
    V, D = ajd(X, method=adapted, eps=1e-6, n_iter_max=100)
    assert V.shape == (3, 3)
    assert D.shape == (10, 3, 3)
    np.testing.assert_allclose(D, V @ X @ V.T, atol=1e-12)
    np.testing.assert_allclose(V @ V.T, np.eye(3), atol=1e-12)
    W, E = joint_diagonalize(X, tol=1e-6)
    np.testing.assert_array_equal(V, W)
    np.testing.assert_array_equal(D, E)


def test_rjd_alone_has_the_transpose():
    X = symmetric(1, 4)
    theirs, _ = rjd(X)
    ours, _ = joint_diagonalize(X)
    assert off_diagonal(theirs @ X @ theirs.T) > 0.1
    assert off_diagonal(theirs.T @ X @ theirs) < 1e-16 * np.sum(X**2)
    assert off_diagonal(ours @ X @ ours.T) < 1e-16 * np.sum(X**2)


@pytest.mark.parametrize("seed", range(5))
def test_no_worse_than_rjd(seed):
    X = positive(8, 6, seed)
    _, theirs = rjd(X, n_iter_max=1000)
    _, ours = joint_diagonalize(X)
    assert off_diagonal(ours) <= off_diagonal(theirs) * (1 + 1e-9)


def test_csp_has_the_filters_of_ajd_pham():
    """Of classes that an orthogonal matrix diagonalises, on 40 generated problems."""
    for seed in range(PROBLEMS):
        X, y = trials_of_classes(seed)
        channels = X.shape[1]
        pham = CSP(channels).fit(X, y)
        ours = CSP(channels, ajd_method=adapted).fit(X, y)
        assert class_residual(ours.filters_, X, y) < 1e-9
        signs = np.sign(np.sum(ours.filters_ * pham.filters_, axis=1, keepdims=True))
        np.testing.assert_allclose(signs * ours.filters_, pham.filters_, atol=1e-5)
        np.testing.assert_allclose(signs * ours.patterns_, pham.patterns_, atol=1e-5)
        np.testing.assert_allclose(ours.transform(X), pham.transform(X), atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_csp_of_whitened_classes_has_the_filters_of_ajd_pham_in_any_basis(seed):
    X, y = trials_of_classes(seed, lambda n, rng: rng.standard_normal((n, n)) + 2 * np.eye(n))
    channels = X.shape[1]
    pham = CSP(channels).fit(X, y)
    whitened = make_pipeline(Whitening(), CSP(channels, ajd_method=adapted)).fit(X, y)
    filters = whitened[1].filters_ @ whitened[0].filters_.T
    assert class_residual(filters, X, y) < 1e-9
    signs = np.sign(np.sum(filters * pham.filters_, axis=1, keepdims=True))
    np.testing.assert_allclose(signs * filters, pham.filters_, atol=1e-4)


class TestInit:
    def test_the_common_basis_is_kept(self):
        B = random_orthogonal(4, np.random.default_rng(0))
        X = np.einsum("ai,ka,aj->kij", B, np.arange(1.0, 13.0).reshape(3, 4) ** 2, B)
        V, _ = ajd(X, method=adapted, init=B)
        np.testing.assert_allclose(V, B, atol=1e-12)

    def test_another_start_diagonalises_as_well(self):
        X = np.einsum("ai,ka,aj->kij", np.eye(4), np.arange(1.0, 13.0).reshape(3, 4) ** 2, np.eye(4))
        _, D = ajd(X, method=adapted, init=random_orthogonal(4, np.random.default_rng(1)))
        assert off_diagonal(D) < 1e-12 * np.sum(X**2)  # the square of the tolerance that `ajd` passes on

    @pytest.mark.parametrize("shape", [(3, 2, 2), (3, 2), (2, 2), (4, 4)])
    def test_what_is_no_start_is_refused(self, shape):
        with pytest.raises(ValueError, match="start"):
            ajd(positive(6, 4), method=adapted, init=np.ones(shape))


class TestWeights:
    def test_none_is_equal_weights(self):
        X = positive(5, 3)
        np.testing.assert_array_equal(
            joint_diagonalize(X)[0], joint_diagonalize(X, sample_weight=np.ones(5))[0]
        )

    def test_only_their_ratios_count(self):
        X = positive(4, 3)
        V, _ = ajd(X, method=adapted, sample_weight=np.array([1.0, 2.0, 3.0, 4.0]))
        W, _ = joint_diagonalize(X, tol=1e-6, sample_weight=[0.25, 0.5, 0.75, 1.0])
        np.testing.assert_allclose(V, W, atol=1e-7)

    def test_a_weight_of_nearly_zero_leaves_a_matrix_out(self):
        X, weights = positive(5, 4), np.array([1e-12, 0.3, 0.8, 1.0, 0.5])
        V, D = joint_diagonalize(X[1:], sample_weight=weights[1:])
        W, E = joint_diagonalize(X, sample_weight=weights)
        np.testing.assert_allclose(W, V, atol=1e-6)
        np.testing.assert_allclose(E[1:], D, atol=1e-4)

    @pytest.mark.parametrize("weights", [[0.0, 1.0, 1.0, 1.0], [-1.0, 1.0, 1.0, 1.0], [1.0, 1.0]])
    def test_weights_are_positive_and_one_for_each_matrix(self, weights):
        with pytest.raises(ValueError, match="sample_weight must be 4 positive numbers"):
            joint_diagonalize(positive(4, 2), sample_weight=weights)


@pytest.mark.parametrize("change", ["order", "scale", "basis"])
def test_the_answer_follows_the_matrices(change):
    rng = np.random.default_rng(3)
    B = random_orthogonal(4, rng)
    X = np.einsum("ai,ka,aj->kij", B, rng.uniform(1, 9, (5, 4)), B)
    Q = random_orthogonal(4, rng)
    other = {"order": X[::-1], "scale": 8.0 * X, "basis": Q @ X @ Q.T}[change]
    V, _ = joint_diagonalize(X)
    W, _ = joint_diagonalize(other)
    overlap = np.abs((W @ Q if change == "basis" else W) @ V.T)
    np.testing.assert_allclose(np.sort(overlap, axis=1), np.eye(4)[[3] * 4], atol=1e-7)
