"""The Generalized Power Method: its own invariants, and the objective it shares with ours."""

from __future__ import annotations

import numpy as np
import pytest

from givens.objectives import SparseColumns
from paper.baselines import gpower
from paper.baselines.gpower import _polar_rows


@pytest.fixture
def A(rng):
    A = rng.standard_t(4, size=(120, 10)) * np.exp(0.5 * rng.standard_normal((120, 1)))
    return A - A.mean(axis=1, keepdims=True)


def plain(A, m, gamma, penalty, U, iterations):
    """The block method, as the paper writes it, on matrices that determine their polar factors."""
    for _ in range(iterations):
        Y = A @ U
        S = Y * (gamma < Y**2) if penalty == "l0" else np.sign(Y) * np.maximum(np.abs(Y) - gamma, 0)
        P, singular, Qt = np.linalg.svd(A.T @ S, full_matrices=False)
        assert singular[-1] > 1e-3 * singular[0]
        U = P @ Qt
    return U


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("m", [3, 10])
def test_the_block_form_is_the_textbook_iteration(rng, penalty, m):
    # Not centred: then A would have no more than rank 9, and at m = 10 the polar factor would not be unique.
    A = rng.standard_t(4, size=(120, 10)) * np.exp(0.5 * rng.standard_normal((120, 1)))
    U = np.linalg.qr(rng.standard_normal((10, m)))[0]
    found = gpower(A, m, 1.5, penalty=penalty, start=U, tol=0.0, max_iter=5)
    expected = plain(A, m, 1.5, penalty, U, 5)
    np.testing.assert_allclose(found.U, expected, atol=1e-6)
    assert np.all(np.diff(found.values) >= -1e-9 * found.value)
    objective = SparseColumns(A, 1.5, penalty, active=m)
    full = np.linalg.qr(np.column_stack((found.U, rng.standard_normal((10, 10 - m)))))[0]
    full[:, :m] = found.U
    value = objective.factor * objective.look(objective.state(full), slopes=False).value
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


def fill_by_the_book(A, Z):
    """Journée et al.'s Algorithm 6: by turns X = polar(AZ), Z = AᵀX on the pattern, normalised. A: samples x features."""
    pattern = Z != 0
    for _ in range(2000):
        P, _, Qt = np.linalg.svd(A @ Z, full_matrices=False)
        Z = np.where(pattern, A.T @ (P @ Qt), 0.0)
        Z = Z / np.linalg.norm(Z, axis=0)
    return Z


@pytest.mark.parametrize("penalty", ["l1", "l0"])
def test_the_block_form_fills_patterns_as_published(A, penalty):
    filled = gpower(A, 3, 4.0, penalty=penalty, fill=True, tol=1e-14)
    plainly = gpower(A, 3, 4.0, penalty=penalty, tol=1e-14)
    np.testing.assert_array_equal(filled.Z != 0, plainly.Z != 0)
    np.testing.assert_allclose(filled.Z, fill_by_the_book(A.T, plainly.Z), atol=1e-4)
    assert filled.flops[-1] > plainly.flops[-1]


@pytest.mark.parametrize("penalty", ["l1", "l0"])
def test_the_greedy_form_fills_before_it_deflates_and_thresholds_the_residual(A, penalty):
    found = gpower(
        A, 3, 0.4, penalty=penalty, block=False, fill=True, relative=True, tol=1e-14, max_iter=20_000
    )
    residual = A.copy()
    for z in found.Z.T:
        norms = np.linalg.norm(residual, axis=1)
        largest = norms.max()
        gamma = 0.4 * largest if penalty == "l1" else 0.4 * largest**2
        u = residual[np.argmax(norms)] / largest
        for _ in range(3000):
            y = residual @ u
            s = y * (y**2 > gamma) if penalty == "l0" else np.sign(y) * np.maximum(np.abs(y) - gamma, 0)
            u = s @ residual / np.linalg.norm(s @ residual)
        rows = np.flatnonzero(s)
        np.testing.assert_array_equal(np.flatnonzero(z), rows)
        # On its pattern a filled loading is the leading left singular vector of these rows.
        leading = np.linalg.svd(residual[rows], full_matrices=False)[0][:, 0]
        assert abs(leading @ z[rows]) == pytest.approx(1.0, abs=1e-6)
        residual -= np.outer(z, z @ residual)
