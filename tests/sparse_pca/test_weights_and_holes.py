"""Samples that count several times, values that are missing, and non-zeros that components share."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine

from givens import SparsePCA
from givens.data.missing import completed
from givens.datasets import sparse_modules

DATA = sparse_modules(60, 200, n_modules=3, module_size=20, random_state=0)
TALL = np.where(np.abs(DATA.X[:, :25]) > 1, DATA.X[:, :25], 0.0)
FORMS = [np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix]


@pytest.mark.parametrize(
    "parameters", [{"n_nonzero": 10}, {"threshold": 0.3}, {"threshold": 0.3, "scale": True}]
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "X", [DATA.X, TALL, 1e150 * DATA.X, TALL + 1e4], ids=["wide", "tall", "large", "far"]
)
def test_a_weight_counts_samples(parameters, form, X):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = SparsePCA(3, **parameters).fit(form(X), sample_weight=weights)
    repeated = SparsePCA(3, **parameters).fit(form(np.repeat(X, weights, axis=0)))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=2e-4)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-9, atol=1e-9 * np.abs(X).max())
    if parameters.get("scale"):
        np.testing.assert_allclose(weighted.scale_, repeated.scale_, rtol=1e-7)


def test_equal_weights_change_nothing_but_the_number_of_samples():
    plain = SparsePCA(3, n_nonzero=10).fit(DATA.X)
    weighted = SparsePCA(3, n_nonzero=10).fit(DATA.X, sample_weight=np.full(60, 2.5))
    np.testing.assert_allclose(weighted.components_, plain.components_, atol=1e-12)
    np.testing.assert_allclose(weighted.explained_variance_ratio_, plain.explained_variance_ratio_)
    ratio = (2.5 / (2.5 * 60 - 1)) / (1 / 59)
    np.testing.assert_allclose(weighted.explained_variance_, ratio * plain.explained_variance_)


def test_weights_that_will_not_do():
    for weights, told in [
        ([1.0] * 59, "sample_weight"),
        ([-1.0] + [1.0] * 59, "[Nn]egative"),
        ([np.nan] + [1.0] * 59, "finite and not negative, but that of sample 0 is nan"),
        ([1.0] + [0.0] * 59, "positive for at least two samples"),
        ([1 / 60] * 60, "sum to more than 1"),
    ]:
        with pytest.raises(ValueError, match=told):
            SparsePCA(3).fit(DATA.X, sample_weight=weights)


@pytest.mark.parametrize(
    ("n", "d", "rank", "share"), [(60, 30, 3, 0.1), (30, 200, 2, 0.2), (200, 20, 4, 0.2)]
)
@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150])
def test_low_rank_tables_with_holes_are_recovered(n, d, rank, share, unit):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + 3 * rng.normal(size=d)
    X *= unit
    holes = rng.random(X.shape) < share
    filled, _, _, stayed = completed(np.where(holes, np.nan, X), rank)
    assert stayed
    np.testing.assert_array_equal(filled[~holes], X[~holes])
    assert np.abs(filled - X).max() < 1e-3 * X.std()


def test_noise_is_not_fitted_where_values_are_missing():
    """Estimates are nearer to what lies below the noise than the noisy values themselves would be."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 40))
    noisy = truth + 0.5 * rng.normal(size=truth.shape)
    holes = rng.random(truth.shape) < 0.15
    filled = completed(np.where(holes, np.nan, noisy), 2)[0]
    assert np.sqrt(np.mean((filled - truth)[holes] ** 2)) < 0.3


def test_complete_data_give_the_same_with_and_without():
    plain = SparsePCA(3, n_nonzero=20).fit(DATA.X)
    model = SparsePCA(3, n_nonzero=20, missing="em").fit(DATA.X)
    np.testing.assert_array_equal(plain.components_, model.components_)
    np.testing.assert_array_equal(plain.transform(DATA.X), model.transform(DATA.X))
    assert model.n_missing_ == 0


def test_components_survive_holes_and_scores_can_be_had_of_them():
    rng = np.random.default_rng(0)
    plain = SparsePCA(3, n_nonzero=20).fit(DATA.X)
    holed = np.where(rng.random(DATA.X.shape) < 0.1, np.nan, DATA.X)
    model = SparsePCA(3, n_nonzero=20, missing="em").fit(holed)
    assert model.n_missing_ == np.isnan(holed).sum()
    assert (np.abs(np.sum(plain.components_ * model.components_, axis=1)) > 0.99).all()
    scores, wanted = model.transform(holed), plain.transform(DATA.X)
    for k in range(3):
        assert abs(np.corrcoef(scores[:, k], wanted[:, k])[0, 1]) > 0.99
    assert np.isfinite(model.score(holed))
    with pytest.raises(ValueError, match="NaN"):
        plain.transform(holed)


def test_holes_that_will_not_do():
    holed = DATA.X.copy()
    holed[:, 7] = np.nan
    with pytest.raises(ValueError, match="feature 7 has no value at all"):
        SparsePCA(3, missing="em").fit(holed)
    with pytest.raises(ValueError, match="NaN"):
        SparsePCA(3).fit(holed)
    holed = np.where(np.arange(200) == 7, np.inf, DATA.X)
    with pytest.raises(ValueError, match="infinity"):
        SparsePCA(3, missing="em").fit(holed)
    with pytest.raises(ValueError, match="for dense data"):
        SparsePCA(3, missing="em").fit(sparse.csr_matrix(DATA.X))
    with pytest.raises(ValueError, match="missing must be 'em' or None"):
        SparsePCA(3, missing="mean").fit(DATA.X)
    holed = DATA.X.copy()
    holed[0, 0] = np.nan
    with pytest.raises(ValueError, match="cannot be estimated with sample_weight"):
        SparsePCA(3, missing="em").fit(holed, sample_weight=np.full(60, 2.0))


TABLES = {"modules": DATA.X, "wine": load_wine().data, "cancer": load_breast_cancer().data}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("total", [4, 13, 20, 28])
def test_a_shared_budget_explains_at_least_what_equal_counts_do(name, total):
    X, m = TABLES[name], 4
    shared = SparsePCA(m, n_nonzero=("total", total), scale=True).fit(X)
    equal = SparsePCA(m, n_nonzero=[total // m + (k < total % m) for k in range(m)], scale=True).fit(X)
    assert shared.n_nonzero_.sum() == total
    assert shared.n_nonzero_.min() >= 1
    assert shared.explained_variance_ratio_.sum() >= equal.explained_variance_ratio_.sum() * (1 - 1e-9)


def test_a_budget_goes_where_the_variance_is():
    rng = np.random.default_rng(0)
    X = 0.1 * rng.normal(size=(100, 30))
    X[:, :12] += rng.normal(size=(100, 1))
    X[:, 12:15] += 1.5 * rng.normal(size=(100, 1))
    model = SparsePCA(2, n_nonzero=("total", 15)).fit(X)
    assert sorted(model.n_nonzero_.tolist()) == [3, 12]


def test_budgets_that_will_not_do():
    for parameters, told in [
        ({"n_nonzero": ("total", 2)}, "total of n_nonzero"),
        ({"n_nonzero": ("total", 601)}, "total of n_nonzero"),
        ({"n_nonzero": ("total", 20), "threshold": 0.1}, "give threshold or n_nonzero, not both"),
        ({"n_nonzero": ("total", 20), "refit": False}, "refit=False goes with a threshold"),
        ({"n_nonzero": ("total", 20), "schedule": "cyclic"}, "schedule"),
    ]:
        with pytest.raises(ValueError, match=told), warnings.catch_warnings():
            SparsePCA(3, **parameters).fit(DATA.X)


def test_a_covariance_fit_keeps_nothing_of_an_earlier_fit_to_samples():
    X = DATA.X.copy()
    X[3, 2] = np.nan
    model = SparsePCA(2, n_nonzero=5, missing="em", stability=2, random_state=0).fit(X)
    assert hasattr(model, "completion_")
    assert hasattr(model, "stability_")
    model.set_params(missing=None, stability=None).fit_covariance(np.cov(DATA.X.T), len(DATA.X))
    for name in ("selection_frequency_", "stability_", "completion_", "n_missing_"):
        assert not hasattr(model, name)
    assert not model.mean_.any()
