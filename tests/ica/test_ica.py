"""ICA beside FastICA's contract, its own promises, and data that are hard."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import FastICA
from sklearn.utils.estimator_checks import parametrize_with_checks

from givens import ICA, JADE, SOBI
from givens.metrics import amari
from tests.ica.sources import OWN


@parametrize_with_checks(
    # One of the checks compares two fits to 1e-9, which is less than the default tolerance. It has 15 samples of 30 features: of
    # as many sources as samples there are many equal optima, and rounding decides among them.
    [ICA(2, tol=1e-10), ICA(contrast="kurtosis"), ICA(2, stability=2, random_state=0)]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    S = rng.laplace(size=(4000, 5)) * [1, 2, 3, 4, 5]
    A = rng.standard_normal((5, 5))
    return S @ A.T + 7.0, S, A


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "kurtosis", "adaptive", OWN], ids=str)
def test_sources_are_found_and_the_gradient_is_what_was_asked_for(problem, contrast):
    X, _, A = problem
    model = ICA(contrast=contrast).fit(X)
    assert amari(model.components_, A) < 0.05
    assert model.gradient_norm_ <= 1e-7
    assert model.result_.converged
    assert "descent" in model.result_.method


def test_the_gradient_is_that_of_the_contrast_by_differences(problem):
    X, _, _ = problem
    model = ICA(tol=1e-9).fit(X)
    S = model.transform(X)
    angle = 1e-4

    def contrast(i, j, theta):
        c, s = np.cos(theta), np.sin(theta)
        pair = np.array([c * S[:, i] + s * S[:, j], c * S[:, j] - s * S[:, i]])
        return np.mean(np.log(np.cosh(pair)), axis=1).sum()

    for i in range(5):
        for j in range(i):
            slope = (contrast(i, j, angle) - contrast(i, j, -angle)) / (2 * angle)
            assert abs(slope) < 1e-7
            assert contrast(i, j, angle) > contrast(i, j, 0.0)


def test_order_and_signs_and_the_way_back(problem):
    X, S, _ = problem
    model = ICA().fit(X)
    found = model.transform(X)
    peaks = model.mixing_[np.abs(model.mixing_).argmax(axis=0), np.arange(5)]
    assert np.all(peaks > 0)
    np.testing.assert_allclose(found.std(axis=0), 1.0)
    np.testing.assert_allclose(model.inverse_transform(found), X, atol=1e-9)
    match = np.abs(np.corrcoef(found.T, S.T)[:5, 5:])
    assert np.all(match.max(axis=1) > 0.99)


@pytest.mark.parametrize("estimator", [ICA, JADE, SOBI])
@pytest.mark.parametrize("whiten", ["unit-variance", "arbitrary-variance"])
def test_explained_variance_is_that_of_each_sources_part_of_the_data(problem, estimator, whiten):
    X = problem[0] + 0.1 * np.random.default_rng(0).standard_normal((4000, 5))
    for number in (5, 3):
        model = estimator(number)
        if estimator is ICA:
            model.set_params(whiten=whiten)
        S = model.fit_transform(X)
        parts = [np.outer(s, a).var(axis=0).sum() for s, a in zip(S.T, model.mixing_.T)]
        np.testing.assert_allclose(model.explained_variance_, parts)
        assert (np.diff(parts) <= 0).all()
        np.testing.assert_allclose(model.explained_variance_ratio_, parts / X.var(axis=0).sum())
        # The parts of uncorrelated sources add up to what they explain together.
        left = (X - model.inverse_transform(S)).var(axis=0).sum() / X.var(axis=0).sum()
        assert model.explained_variance_ratio_.sum() == pytest.approx(1 - left)


def test_scaling_the_data_scales_the_mixing_only(problem):
    X, _, _ = problem
    model = ICA().fit(X)
    for factor in (2.0**300, 2.0**-300):
        scaled = ICA().fit(X * factor)
        np.testing.assert_array_equal(scaled.mixing_, model.mixing_ * factor)


def test_no_seed_and_no_number_of_threads_changes_the_default(problem):
    X, _, _ = problem
    first = ICA(random_state=0, threads=1).fit(X)
    second = ICA(random_state=1, threads=2).fit(X)
    np.testing.assert_array_equal(first.components_, second.components_)


def test_stability_tells_sources_from_directions_that_are_luck():
    rng = np.random.default_rng(0)
    S = np.column_stack((rng.laplace(size=(4000, 3)), rng.standard_normal((4000, 3))))
    X = S @ rng.standard_normal((6, 6)).T
    model = ICA(stability=6, random_state=0).fit(X)
    real = np.abs(np.corrcoef(model.transform(X).T, S[:, :3].T)[:6, 6:]).max(axis=1) > 0.95
    assert real.sum() == 3
    assert model.stability_[real].min() > 0.97
    assert model.stability_[~real].max() < 0.9


def test_the_certificate_bounds_every_pair(problem):
    X, _, _ = problem
    model = ICA(certify=True).fit(X)
    S = model.transform(X)
    angles = np.linspace(0, np.pi / 2, 500)
    best = 0.0
    for i in range(5):
        for j in range(i):
            turned = np.outer(np.cos(angles), S[:, i]) + np.outer(np.sin(angles), S[:, j])
            other = np.outer(np.cos(angles), S[:, j]) - np.outer(np.sin(angles), S[:, i])
            value = np.mean(np.log(np.cosh(turned)) + np.log(np.cosh(other)), axis=1)
            best = max(best, value[0] - value.min())
    assert model.certificate_ >= best - 1e-9
    plain = ICA().fit(X)
    assert plain.certificate_ is None
    assert model.n_iter_ == plain.n_iter_ > 1
    assert model.result_.value == pytest.approx(plain.result_.value, rel=1e-9)


def test_a_share_of_the_variance(problem):
    X, _, _ = problem
    model = ICA(0.9).fit(X)
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    number = int(np.searchsorted(np.cumsum(values) / values.sum(), 0.9)) + 1
    assert len(model.components_) == number < 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"contrast": "tanh"},
            "contrast must be one of 'adaptive', 'logcosh', 'exp', 'kurtosis' or a Contrast object, got 'tanh'",
        ),
        (
            {"whiten": "yes"},
            "whiten must be one of 'unit-variance', 'arbitrary-variance' or False, got 'yes'",
        ),
        ({"n_components": 0}, "n_components must be a whole number from 1 to 5"),
        ({"n_components": 1.5}, "n_components must be a whole number from 1 to 5"),
        ({"tol": -1}, "tol must be a number of at least 0"),
        ({"w_init": np.zeros((2, 2))}, r"w_init must be a regular matrix of shape \(5, 5\)"),
        ({"stability": -1}, "stability must be a whole number of at least 0"),
    ],
)
def test_bad_options_get_one_sentence(problem, options, message):
    with pytest.raises(ValueError, match=message):
        ICA(**options).fit(problem[0])


def test_bad_data_get_one_sentence(problem):
    X = problem[0].copy()
    with pytest.raises(ValueError, match="all samples are equal"):
        ICA().fit(np.ones((10, 3)))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ICA().fit(X)
    with pytest.raises(ValueError, match="at least as many samples as features"):
        ICA(whiten=False).fit(np.ones((3, 5)))


def test_a_constant_channel_is_left_out_of_the_rank(problem):
    X = np.column_stack((problem[0], np.full(len(problem[0]), 3.0)))
    model = ICA().fit(X)
    assert model.rank_ == 5
    np.testing.assert_allclose(model.mixing_[5], 0.0, atol=1e-12)


def test_calls_written_for_fastica_work(rng):
    X = rng.laplace(size=(200, 3)) @ rng.standard_normal((3, 3))
    before = X.copy()
    model = ICA().fit(X)
    sources = model.transform(X, copy=False)
    np.testing.assert_array_equal(sources, model.transform(X, copy=True))
    np.testing.assert_allclose(model.inverse_transform(sources, copy=False), X)
    np.testing.assert_array_equal(X, before)
    theirs = FastICA(3, random_state=0).fit(X)
    for name in ("components_", "mixing_", "mean_", "whitening_"):
        assert getattr(model, name).shape == getattr(theirs, name).shape
