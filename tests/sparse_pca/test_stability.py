"""Stability of components: halves, matches, planted modules, and what depends on the number of samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from givens import SparsePCA
from givens.datasets import sparse_modules
from givens.sparse_pca.stability import halves, matches

DATA = sparse_modules(60, 200, n_modules=3, module_size=20, random_state=0)


def test_halves_are_complementary():
    parts = halves(11, 5, np.random.default_rng(1))
    assert [len(part) for part in parts] == [5] * 5
    for first, second in zip(parts[::2], parts[1::2]):
        assert not set(first) & set(second)
    assert len({tuple(part) for part in parts}) == 5


def test_matches_undo_any_order_and_sign():
    rng = np.random.default_rng(0)
    Z = np.linalg.qr(rng.normal(size=(9, 4)))[0].T
    order, signs = rng.permutation(4), rng.choice([-1.0, 1.0], (4, 1))
    found, cosines = matches(Z, (signs * Z)[order])
    np.testing.assert_array_equal(order[found], np.arange(4))
    np.testing.assert_allclose(cosines, 1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_planted_modules_are_found_again_and_noise_is_not(form):
    model = SparsePCA(3, n_nonzero=30, stability=12, random_state=0).fit(form(DATA.X))
    # The module of each component.
    planted = DATA.components[matches(model.components_, DATA.components)[0]] != 0
    assert model.selection_frequency_.shape == model.components_.shape
    assert (model.stability_ > 0.95).all()
    assert (model.stability_ <= 1).all()
    held = model.components_ != 0
    assert (model.selection_frequency_[held & planted] == 1).all()
    # Ten of each component's thirty are noise: halves agree on few of them.
    assert model.selection_frequency_[held & ~planted].mean() < 0.6
    np.testing.assert_allclose(model.selection_frequency_.sum(axis=1), 30)


def test_noise_alone_is_not_stable():
    X = np.random.default_rng(0).normal(size=(40, 150))
    model = SparsePCA(3, n_nonzero=10, stability=10, random_state=0).fit(X)
    assert model.stability_.max() < 0.95
    assert model.selection_frequency_[model.components_ != 0].mean() < 0.8


def test_the_fit_itself_is_the_same_with_and_without():
    plain = SparsePCA(3, n_nonzero=20, random_state=0).fit(DATA.X)
    model = clone(plain).set_params(stability=4).fit(DATA.X)
    np.testing.assert_array_equal(plain.components_, model.components_)
    again = clone(model).set_params(threads=1).fit(DATA.X)
    np.testing.assert_array_equal(model.selection_frequency_, again.selection_frequency_)
    np.testing.assert_array_equal(model.stability_, again.stability_)
    model.set_params(stability=None).fit(DATA.X)
    assert not hasattr(model, "stability_")


def test_too_few_samples_and_bad_numbers():
    with pytest.raises(ValueError, match="half of 5 is too few for 3 components"):
        SparsePCA(3, stability=2).fit(DATA.X[:5])
    with pytest.raises(ValueError, match="stability must be"):
        SparsePCA(3, stability=0).fit(DATA.X)
    with pytest.raises(ValueError, match="which a covariance matrix no longer has"):
        SparsePCA(3, stability=2).fit_covariance(np.eye(5), 10)
