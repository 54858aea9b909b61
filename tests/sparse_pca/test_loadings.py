"""Values on a pattern of non-zeros, unit rows and signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.metrics import adjusted_from_scores
from givens.numerics.polar import polar
from givens.numerics.scaling import unit_rows
from givens.sparse_pca.estimator import with_signs
from givens.sparse_pca.truncated_power import SampleForm, SparseRows, settled


def adjusted(X, Z):
    E = X @ Z.T
    return adjusted_from_scores(E[:, np.argsort(-np.linalg.norm(E, axis=0))]).sum()


def refitted(X, Z, growth=1e-9):
    return settled(SampleForm(X), SparseRows.of(Z), None, growth).dense(Z.shape[1])


@given(seed=st.integers(0, 1000))
def test_refitting_never_lowers_the_adjusted_variance(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 30))
    Z = unit_rows(rng.standard_normal((4, 30)) * (rng.uniform(size=(4, 30)) < 0.2))
    Z = Z[Z.any(axis=1)]
    found = refitted(X, Z)
    assert adjusted(X, found) >= adjusted(X, Z) * (1 - 1e-12)
    assert np.all((found != 0) <= (Z != 0))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


@pytest.mark.parametrize("m", [1, 3, 6])
def test_without_a_zero_any_basis_of_the_principal_subspace_becomes_principal_components(rng, m):
    X = rng.standard_normal((25, 12)) * 1.5 ** -np.arange(12)
    Vt = np.linalg.svd(X)[2][:m]
    found = refitted(X, polar(rng.standard_normal((m, m))) @ Vt, 1e-15)
    assert adjusted(X, found) == pytest.approx(adjusted(X, Vt), rel=1e-6)


def test_unit_rows_bear_any_size():
    Z = unit_rows(np.array([[3e200, 4e200], [3e-200, 4e-200], [0, 0]]))
    np.testing.assert_allclose(Z, [[0.6, 0.8], [0.6, 0.8], [0, 0]])


def test_no_zero_is_negative_after_the_signs_are_set():
    Z = with_signs(np.array([[0.0, 2.0, -0.0], [0.0, -1.0, 0.5]]))
    assert np.array_equal(Z, [[0.0, 2.0, 0.0], [0.0, 1.0, -0.5]])
    assert not np.signbit(Z[Z == 0]).any()
