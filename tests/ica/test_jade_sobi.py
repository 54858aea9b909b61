"""JADE and SOBI: their matrices by brute force, sources found again, scikit-learn's contract, bad input."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from givens import JADE, SOBI
from givens.ica.jade import cumulant_matrices
from givens.ica.sobi import as_lags, lagged_covariances
from givens.ica.whitening import white_space
from givens.metrics import amari
from tests.ica.sources import autoregressive, mixed_tails, white


@parametrize_with_checks([JADE(), SOBI()])
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weighted", [False, True])
def test_cumulant_matrices_by_brute_force(weighted):
    Z = white(mixed_tails(60, 3, seed=0)[2])
    weights = np.random.default_rng(0).integers(1, 4, 60) if weighted else np.ones(60)

    def cumulant(i, j, k, m):
        """Of white variables: E[z_i z_j z_k z_m] less the products of second moments, in the three ways of pairing."""
        fourth = np.average([z[i] * z[j] * z[k] * z[m] for z in Z], weights=weights)
        return fourth - (i == j) * (k == m) - (i == k) * (j == m) - (i == m) * (j == k)

    expected = []
    for p in range(3):
        for q in range(p, 3):
            factor = 1.0 if p == q else np.sqrt(2)
            expected.append([[factor * cumulant(p, q, k, m) for m in range(3)] for k in range(3)])
    found = cumulant_matrices(Z, weights if weighted else None)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    # With p < q weighted by √2, the n(n+1)/2 matrices count like all n² of them.
    full = [cumulant(*index) for index in np.ndindex(3, 3, 3, 3)]
    assert np.sum(found**2) == pytest.approx(np.sum(np.square(full)))


def test_lagged_covariances_by_brute_force():
    Z = np.random.default_rng(0).standard_normal((37, 3))
    found = lagged_covariances(Z, [1, 4, 36])
    for matrix, lag in zip(found, (1, 4, 36)):
        plain = sum(np.outer(Z[t], Z[t + lag]) for t in range(37 - lag)) / (37 - lag)
        np.testing.assert_allclose(matrix, (plain + plain.T) / 2, atol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("samples", "features"), [(500, 4), (5, 4), (6, 20)])
def test_white_samples_are_white(samples, features, weighted):
    rng = np.random.default_rng(samples)
    X = rng.standard_normal((samples, features)) @ rng.standard_normal((features, features)) + 5.0
    weights = rng.uniform(0.1, 2.0, samples) if weighted else None
    space = white_space(X, weights=weights)
    Z = space.coordinates(X)
    np.testing.assert_allclose(space.mean, np.average(X, axis=0, weights=weights))
    C = np.cov(Z.T, aweights=weights, bias=True)
    np.testing.assert_allclose(C, np.eye(min(samples - 1, features)), atol=1e-9)
    np.testing.assert_allclose((X - space.mean) @ space.whitening.T, Z, atol=1e-9)
    np.testing.assert_allclose(Z @ space.dewhitening.T + space.mean, X, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_jade_finds_sources_with_heavy_and_light_tails(scale):
    S, A, X = mixed_tails(20_000, 6, seed=2)
    model = JADE().fit(X * scale)
    assert amari(model.components_ * scale, A) < 0.02
    assert np.abs(np.corrcoef(S.T, model.transform(X * scale).T)[:6, 6:]).max(axis=1).min() > 0.995


def test_sobi_finds_gaussian_sources_with_different_spectra():
    S, A, X = autoregressive(20_000, 6, seed=3)
    model = SOBI(lags=20).fit(X)
    assert amari(model.components_, A) < 0.02
    assert np.abs(np.corrcoef(S.T, model.transform(X).T)[:6, 6:]).max(axis=1).min() > 0.995
    # Fourth-order cumulants see nothing in them.
    assert amari(JADE().fit(X).components_, A) > 0.1


def test_weights_of_jade_are_repetitions():
    X = mixed_tails(800, 4, seed=1)[2]
    weights = np.random.default_rng(0).integers(0, 4, 800)
    weighted = JADE(tol=1e-9).fit(X, sample_weight=weights)
    repeated = JADE(tol=1e-9).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_)


@pytest.mark.parametrize("estimator", [JADE(), SOBI(lags=[1, 2, 3, 7])])
class TestEstimators:
    def test_attributes(self, estimator):
        X = autoregressive(3000, 4, seed=4)[2] + mixed_tails(3000, 4, seed=5)[2] + 3.0
        sources = estimator.fit_transform(X)
        np.testing.assert_allclose(estimator.transform(X), sources, atol=1e-9)
        np.testing.assert_allclose(sources.T @ sources / len(X), np.eye(4), atol=1e-9)
        np.testing.assert_allclose(estimator.inverse_transform(sources), X, atol=1e-9)
        np.testing.assert_allclose(estimator.components_ @ estimator.mixing_, np.eye(4), atol=1e-9)
        np.testing.assert_allclose(estimator.mean_, X.mean(axis=0))

    def test_fewer_components_pandas_and_pipelines(self, estimator):
        X = pandas.DataFrame(mixed_tails(800, 5, seed=6)[2], columns=list("abcde"))
        model = make_pipeline(StandardScaler(), estimator.set_params(n_components=2))
        scores = model.set_output(transform="pandas").fit_transform(X)
        estimator.set_params(n_components=None)
        name = type(estimator).__name__.lower()
        assert list(scores.columns) == [f"{name}0", f"{name}1"]
        assert scores.shape == (800, 2)

    def test_the_same_bits_for_any_number_of_threads(self, estimator):
        X = mixed_tails(5000, 7, seed=7)[2]
        one, two = (estimator.set_params(threads=t).fit(X).components_ for t in (1, 2))
        estimator.set_params(threads=None)
        assert np.array_equal(one, two)

    def test_refusals_leave_the_model_as_it_was(self, estimator):
        X = mixed_tails(500, 4, seed=9)[2]
        estimator.fit(X)
        before = dict(vars(estimator))
        for bad, sentence in (
            (X * np.nan, "NaN"),
            (X * 1j, "Complex data not supported"),
            (np.ones((50, 4)), "all samples are equal"),
            (X[:1], "minimum of 2 is required"),
        ):
            with pytest.raises(ValueError, match=sentence):
                estimator.fit(bad)
        with pytest.raises(
            ValueError,
            match="n_components must be a whole number from 1 to 3, the number of samples or features",
        ):
            estimator.set_params(n_components=4).fit(X[:, :3])
        estimator.set_params(n_components=None)
        assert all(vars(estimator)[name] is before[name] for name in before)
        with pytest.raises(ValueError, match="a column for each of 4 components, got shape"):
            estimator.inverse_transform(np.ones((2, 3)))
        with pytest.raises(NotFittedError):
            type(estimator)().transform(X)


def test_a_cut_run_says_so():
    with pytest.warns(
        ConvergenceWarning, match=r"JADE did not converge .*max_iter = 1.*raise max_iter or tol"
    ):
        JADE(max_iter=1).fit(np.random.default_rng(0).standard_normal((200, 8)))


def test_lags():
    assert as_lags(None, 1000).tolist() == list(range(1, 101))
    assert as_lags(None, 10).tolist() == [1, 2, 3, 4, 5]
    assert as_lags(None, 2).tolist() == [1]
    assert as_lags(3, 10).tolist() == [1, 2, 3]
    assert as_lags((2, 5), 10).tolist() == [2, 5]


@pytest.mark.parametrize(
    ("lags", "sentence"),
    [
        ([], "lags must be at least one whole number, got none"),
        ([[1]], "lags must be at least one whole number"),
        (0, "lags must be a whole number from 1 to 49, the number of samples less 1"),
        (50, "lags must be a whole number from 1 to 49, the number of samples less 1, got 50"),
        ([1, 50], "lags must be less than the number of samples, 50, got 50"),
        ([0, 1], "lags must be whole numbers of at least 1"),
        ([1.5], "lags must be whole numbers of at least 1"),
        ("abc", "lags must be"),
    ],
)
def test_lags_that_are_none(lags, sentence):
    X = np.random.default_rng(0).standard_normal((50, 2))
    with pytest.raises(ValueError, match=sentence):
        SOBI(lags=lags).fit(X)


def test_too_many_components_for_jade():
    with pytest.raises(ValueError, match="would need 8,385 cumulant matrices; use n_components"):
        JADE().fit(np.random.default_rng(0).standard_normal((300, 129)))
