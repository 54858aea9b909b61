"""The Generalized Power Method: its own invariants, and the objective it shares with ours."""

from __future__ import annotations

import numpy as np
import pytest

from givens.baselines import gpower
from givens.baselines.gpower import _polar_rows
from givens.objectives import SparseColumns


@pytest.fixture
def A(rng):
    A = rng.standard_t(4, size=(120, 10)) * np.exp(0.5 * rng.standard_normal((120, 1)))
    return A - A.mean(axis=1, keepdims=True)


def plain(A, m, gamma, penalty, U, iterations):
    """The block method, as the paper writes it."""
    for _ in range(iterations):
        Y = A @ U
        S = Y * (gamma < Y**2) if penalty == "l0" else np.sign(Y) * np.maximum(np.abs(Y) - gamma, 0)
        P, _, Qt = np.linalg.svd(A.T @ S, full_matrices=False)
        U = P @ Qt
    return U


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("m", [3, 10])
def test_the_block_form_is_the_textbook_iteration(A, rng, penalty, m):
    U = np.linalg.qr(rng.standard_normal((10, m)))[0]
    found = gpower(A, m, 1.5, penalty=penalty, start=U, tol=0.0, max_iter=5)
    expected = plain(A, m, 1.5, penalty, U, 5)
    np.testing.assert_allclose(found.U, expected, atol=1e-6)
    assert np.all(np.diff(found.values) >= -1e-9 * found.value)
    objective = SparseColumns(A, 1.5, penalty, active=m)
    full = np.linalg.qr(np.column_stack((found.U, rng.standard_normal((10, 10 - m)))))[0]
    full[:, :m] = found.U
    value = -objective.unit * objective.value(objective.state(full))
    assert found.value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("block", [True, False])
def test_loadings_are_unit_and_sparse(A, penalty, block):
    found = gpower(A, 4, 3.0, penalty=penalty, block=block)
    norms = np.linalg.norm(found.Z, axis=0)
    np.testing.assert_allclose(norms[norms > 0], 1.0)
    assert 0 < np.count_nonzero(found.Z) < found.Z.size
    assert found.iterations > 0
    assert np.all(np.diff(found.flops) > 0)


def test_without_a_threshold_the_greedy_form_is_pca(A):
    found = gpower(A, 2, 0.0, block=False, tol=1e-14, max_iter=20_000)
    expected = np.linalg.svd(A, full_matrices=False)[0][:, :2]
    np.testing.assert_allclose(np.abs(np.sum(found.Z * expected, axis=0)), 1.0, atol=1e-5)


def test_nothing_above_the_threshold_gives_zeros(A):
    for block in (True, False):
        found = gpower(A, 2, 1e6, block=block)
        assert not found.Z.any()
        assert found.value == 0.0


def test_the_polar_step_of_singular_and_regular_matrices(rng):
    for M in (rng.standard_normal((6, 6)), np.diag([1.0, 2.0, 0.0]), np.zeros((3, 3))):
        Q, _ = _polar_rows(M)
        np.testing.assert_allclose(Q @ Q.T, np.eye(len(M)), atol=1e-10)
        # The polar factor maximises tr(QᵀM), up to the sum of the singular values.
        assert np.sum(Q * M) == pytest.approx(np.linalg.svd(M)[1].sum(), rel=1e-9, abs=1e-12)


def test_bad_arguments_are_named(A):
    with pytest.raises(ValueError, match="penalty"):
        gpower(A, 2, 1.0, penalty="l2")
    with pytest.raises(ValueError, match="m must be between 1 and the number of samples, 10"):
        gpower(A, 11, 1.0)
