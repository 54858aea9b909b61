"""What scikit-learn's tests hold true of `GaussianMixture` with spherical covariances holds for `SphericalMixture`.

Where it does not, the test's comment names the line of docs/mixture.md, "In place of GaussianMixture", that says so.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from givens import SphericalMixture

VARIANCES = ["common", "distinct"]


def clusters(seed=0, rows=500, k=2, features=2, scale=50.0):
    """Rows of k clusters with the weights, means and variances that they were drawn from, and the cluster of each row."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.0, k)
    weights /= weights.sum()
    means = scale * rng.uniform(size=(k, features))
    variances = 0.5 + rng.uniform(size=k)
    y = np.repeat(np.arange(k), np.diff(np.round(np.append(0, np.cumsum(weights)) * rows)).astype(int))
    X = means[y] + np.sqrt(variances)[y, None] * rng.standard_normal((rows, features))
    return X, y, weights, means, variances


def noise(rows, features, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, features))


# The model that is fitted.


@pytest.mark.parametrize(("k", "features"), [(2, 2), (3, 2), (4, 6)])
def test_the_truth_is_recovered(k, features):
    X, y, weights, means, variances = clusters(rows=2000, k=k, features=features)
    model = SphericalMixture(k, variance="distinct").fit(X)
    found, true = np.argsort(model.means_[:, 0]), np.argsort(means[:, 0])
    np.testing.assert_allclose(model.weights_[found], weights[true], rtol=0.1)
    np.testing.assert_allclose(model.means_[found], means[true], rtol=0.1, atol=0.2)
    np.testing.assert_allclose(model.variances_[found], variances[true], rtol=0.15)
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("max_iter", [2, 300])
@pytest.mark.parametrize("tol", [1e-7, 1e-1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_predict_is_fit_and_then_predict(max_iter, tol, dtype):
    X, y, *_ = clusters(1)
    X = X.astype(dtype)
    one, two = (SphericalMixture(2, max_iter=max_iter, tol=tol) for _ in range(2))
    labels = one.fit_predict(X)
    np.testing.assert_array_equal(labels, two.fit(X).predict(X))
    assert adjusted_rand_score(y, labels) > 0.95
    # "float64": scikit-learn keeps the precision of X.
    assert one.means_.dtype == one.weights_.dtype == one.variances_.dtype == np.float64


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variance", VARIANCES)
def test_means_differ_and_lie_among_the_rows(seed, variance):
    X, *_ = clusters(seed, scale=5.0)
    model = SphericalMixture(2, variance=variance).fit(X)
    assert model.converged_
    assert model.means_.shape == (2, 2)
    assert (X.min(axis=0) <= model.means_).all()
    assert (model.means_ <= X.max(axis=0)).all()
    # "Moments only" is scikit-learn's max_iter=0.
    for fitted in (model, SphericalMixture(2, variance=variance, max_iter=0).fit(X)):
        for one, two in itertools.combinations(fitted.means_, 2):
            assert not np.allclose(one, two)


def test_one_component_of_few_rows():
    X = noise(3, 2)
    model = SphericalMixture(1).fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.variances_[0], X.var(axis=0).mean(), rtol=1e-12)
    assert model.sample()[0].shape == (1, 2)


@pytest.mark.parametrize("variance", VARIANCES)
def test_clusters_without_spread(variance):
    # "Variances have a floor": scikit-learn needs reg_covar here, and raises an error without it.
    X = np.repeat([[1.0] * 5, [0.0] * 5], 5, axis=0)
    for k in (2, 10):
        model = SphericalMixture(k, variance=variance).fit(X)
        assert len(model.weights_) == k
        assert (model.variances_ > 0).all()
        assert np.isfinite(model.score(X))
        np.testing.assert_array_equal(model.predict(X) == model.predict(X)[0], np.repeat([True, False], 5))
    with pytest.raises(ValueError, match="ill-defined"), np.errstate(all="ignore"):
        GaussianMixture(10, covariance_type="spherical", reg_covar=0, init_params="k-means++").fit(X)


# EM and its starts.


def test_em_that_is_cut_short_warns_and_leaves_a_model():
    X = noise(30, 3)
    for model in (
        SphericalMixture(6, variance="distinct", max_iter=1),
        GaussianMixture(6, covariance_type="spherical", max_iter=1, random_state=0),
    ):
        with pytest.warns(ConvergenceWarning, match="not converged|did not converge"):
            model.fit(X)
        assert not model.converged_
        assert model.means_.shape == (6, 3)
        assert np.isfinite(model.score(X))


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("variance", VARIANCES)
def test_every_step_raises_the_likelihood(variance):
    """Also from one fit to the next longer one: there is no `warm_start`, since the start is always the same."""
    X, *_ = clusters(rows=300, k=3, features=3, scale=2.0)
    scores = [
        SphericalMixture(3, variance=variance, max_iter=steps, tol=0).fit(X).score(X)
        for steps in (1, 2, 4, 8)
    ]
    assert np.diff(scores).min() > 0
    model = SphericalMixture(3, variance=variance, max_iter=600, tol=1e-4).fit(X)
    assert model.converged_
    assert np.diff(model.result_.trace.value).min() > 0
    assert model.score(X) > scores[-1]


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("seed", range(5))
def test_more_starts_are_not_worse(variance, seed):
    X = noise(50, 5, seed)
    one, more = (SphericalMixture(2, variance=variance, n_starts=n).fit(X) for n in (1, 6))
    assert more.score(X) >= one.score(X)


def test_the_likelihood_is_as_good_as_scikit_learns():
    """In the plane, where all starts are random in both."""
    for seed in range(3):
        X, *_ = clusters(seed, rows=800, k=5, scale=20.0)
        model = SphericalMixture(5, variance="distinct").fit(X)
        other = GaussianMixture(
            5, covariance_type="spherical", n_init=5, init_params="k-means++", random_state=0
        ).fit(X)
        assert model.score(X) > other.score(X) - 1e-3


# Predictions.


@pytest.mark.parametrize("variance", VARIANCES)
def test_probabilities_densities_and_labels_belong_together(variance):
    X, *_ = clusters(rows=200, k=3, features=4, scale=3.0)
    model = SphericalMixture(3, variance=variance).fit(X)
    joint = np.array(
        [
            w * multivariate_normal(mean, v * np.eye(4)).pdf(X)
            for w, mean, v in zip(model.weights_, model.means_, model.variances_)
        ]
    ).T
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares, joint / joint.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
    scores = model.score_samples(X)
    assert scores.shape == (200,)
    np.testing.assert_allclose(scores, np.log(joint.sum(axis=1)), rtol=1e-8)
    assert model.score(X) == pytest.approx(scores.mean(), rel=1e-12)


def test_precisions_are_inverse_variances():
    X, *_ = clusters(scale=7.0)
    model = SphericalMixture(2, variance="distinct").fit(X)
    same = model.to_sklearn()
    np.testing.assert_allclose(same.precisions_, 1 / model.variances_, rtol=1e-12)
    np.testing.assert_allclose(same.covariances_, model.variances_, rtol=1e-12)
    for name in ("weights_", "means_", "precisions_cholesky_", "n_iter_", "lower_bound_"):
        assert hasattr(same, name)


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_number_of_parameters(variance):
    """k means of d numbers, k − 1 weights, and a variance for each component, or for all."""
    X = noise(50, 5)
    model = SphericalMixture(2, variance=variance).fit(X)
    parameters = 2 * 5 + 1 + (1 if variance == "common" else 2)
    total = model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(2 * parameters - 2 * total)
    assert model.bic(X) == pytest.approx(np.log(50) * parameters - 2 * total)
    if variance == "distinct":
        other = GaussianMixture(2, covariance_type="spherical", random_state=0).fit(X)
        assert other.bic(X) + 2 * other.score_samples(X).sum() == pytest.approx(np.log(50) * parameters)


def test_one_variable_and_one_component_is_any_gaussian():
    X = noise(100, 1)
    for kind in ("full", "tied", "diag", "spherical"):
        other = GaussianMixture(1, covariance_type=kind, reg_covar=0).fit(X)
        assert SphericalMixture(1).fit(X).bic(X) == pytest.approx(other.bic(X), rel=1e-10)


# Samples of the mixture.


@pytest.mark.parametrize("variance", VARIANCES)
def test_samples_have_the_moments_of_the_mixture(variance):
    with pytest.raises(NotFittedError):
        SphericalMixture(3).sample(1)
    X, *_ = clusters(k=3, scale=7.0)
    model = SphericalMixture(3, variance=variance).fit(X)
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
        model.sample(0)
    drawn, y = model.sample(20_000)
    for i in range(3):
        np.testing.assert_allclose(drawn[y == i].mean(axis=0), model.means_[i], atol=0.1)
        np.testing.assert_allclose((drawn[y == i] - model.means_[i]).var(), model.variances_[i], atol=0.1)
    for size in range(1, 20):
        rows, labels = model.sample(size)
        assert rows.shape == (size, 2)
        assert labels.shape == (size,)


def test_parameters_of_scikit_learn_that_have_no_counterpart():
    # "No start can be given", "reg_covar", "warm_start", "verbose".
    missing = set(GaussianMixture().get_params()) - set(SphericalMixture().get_params())
    assert missing == {
        "covariance_type",  # `variance`
        "init_params",
        "means_init",
        "n_init",  # `n_starts`
        "precisions_init",
        "reg_covar",
        "verbose",
        "verbose_interval",
        "warm_start",
        "weights_init",
    }
