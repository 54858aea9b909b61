"""ICA of a stream: moments up to the fourth, and the components of one fit on all samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from givens import ICA, minimize
from givens.ica.fourth_moments import FourthMoments, TensorKurtosis
from givens.objectives import Columns
from tests.properties import examples


def streamed(X, cuts, **options):
    model = ICA(contrast="kurtosis", **options)
    for batch in np.split(X, sorted(cuts)):
        if len(batch):
            model.partial_fit(batch)
    return model


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(21)
    return rng.laplace(size=(9500, 5)) @ rng.standard_normal((5, 6)) + 3.0


@examples(8)
@given(st.lists(st.integers(1, 9499), max_size=6, unique=True))
def test_batches_do_not_matter_and_the_components_are_those_of_a_fit(cuts):
    rng = np.random.default_rng(21)
    X = rng.laplace(size=(9500, 5)) @ rng.standard_normal((5, 6)) + 3.0
    known = streamed(X, [])
    found = streamed(X, cuts)
    np.testing.assert_array_equal(found.components_, known.components_)
    expected = ICA(contrast="kurtosis").fit(X)
    for name in ("components_", "mixing_", "kurtosis_", "explained_variance_", "mean_"):
        theirs = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(found, name), theirs, atol=1e-6 * np.abs(theirs).max(), err_msg=name
        )
    assert found.rank_ == expected.rank_ == 5
    assert found.gradient_norm_ <= 1e-7
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 3},
        {"n_components": 0.9},
        {"whiten": "arbitrary-variance"},
        {"certify": True},
        {"n_starts": 3, "random_state": 0},
    ],
    ids=str,
)
def test_options_hold_for_streams(X, options):
    found, expected = streamed(X, [100, 5000], **options), ICA(contrast="kurtosis", **options).fit(X)
    size = np.abs(expected.components_).max()
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6 * size)
    if "certify" in options:
        assert found.certificate_ == pytest.approx(expected.certificate_, abs=1e-9)


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_huge_and_tiny_numbers(X, factor):
    found = streamed(X * factor, [4000])
    np.testing.assert_allclose(found.mixing_ / factor, streamed(X, [4000]).mixing_, rtol=1e-6, atol=1e-6)


def test_single_precision_stays_single_precision(X):
    found = streamed(X.astype(np.float32), [4000])
    assert found.components_.dtype == np.float32
    np.testing.assert_allclose(found.components_, streamed(X, []).components_, atol=1e-3)


def test_the_threads_do_not_change_the_bits(X):
    one, two = (streamed(X, [7000], threads=threads).components_ for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("rows", [50, 5000])
def test_moments_are_those_of_the_definition(rows):
    rng = np.random.default_rng(1)
    X = rng.exponential(size=(rows, 3)) * [1.0, 10.0, 0.1] - 5.0
    stream = FourthMoments()
    for part in np.array_split(X, 9):
        stream = stream.with_rows(part)
    mean, covariance, fourth = stream.central()
    C = X - X.mean(axis=0)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True))
    expected = np.einsum("ta,tb,tc,td->abcd", C, C, C, C) / rows
    np.testing.assert_allclose(fourth, expected, atol=1e-10 * expected.max())


def test_the_tensor_sees_what_the_samples_do(X):
    Z = ICA(contrast="kurtosis").fit(X).transform(X)
    T = np.einsum("ta,tb,tc,td->abcd", Z, Z, Z, Z, optimize=True) / len(Z)
    tensor, columns = TensorKurtosis(T, len(Z)), Columns(Z, "kurtosis")
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    ours, theirs = tensor.look(tensor.state(U)), columns.look(columns.state(U))
    assert ours.value == pytest.approx(theirs.value)
    np.testing.assert_allclose(ours.slopes, theirs.slopes, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(ours.curvatures, theirs.curvatures, rtol=1e-4)
    by_pairs = minimize(tensor, U, phases=("sweeps",))
    assert by_pairs.converged
    assert by_pairs.value == pytest.approx(minimize(columns, U).value)


def test_there_is_no_model_before_there_are_enough_samples(X):
    model = ICA(contrast="kurtosis")
    for row in X[:6]:
        model.partial_fit(row[None])
    with pytest.raises(NotFittedError):
        model.transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few samples may have no optimum
        model.partial_fit(X[6:20])
    assert model.transform(X).shape == (9500, 5)


def test_a_fit_begins_anew(X):
    model = streamed(X, [3000])
    model.fit(X[:2000])
    model.partial_fit(X[2000:4000])
    np.testing.assert_array_equal(model.components_, streamed(X[2000:4000], []).components_)


def test_what_streams_cannot_do_is_refused_and_the_model_kept(X):
    assert not hasattr(ICA(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        ICA().partial_fit(X)
    assert "it needs contrast='kurtosis', got 'adaptive'" in str(refused.value.__cause__ or refused.value)
    with pytest.raises(ValueError, match="stability needs all samples, and partial_fit keeps moments only"):
        ICA(contrast="kurtosis", stability=2).partial_fit(X)
    with pytest.raises(ValueError, match="whiten=False needs all samples"):
        ICA(contrast="kurtosis", whiten=False).partial_fit(X)
    with pytest.raises(ValueError, match="at most 64 features, got 65"):
        ICA(contrast="kurtosis").partial_fit(np.ones((3, 65)))
    model = streamed(X, [3000])
    before = model.components_.copy()
    for bad in (X[:, :3], np.full((5, 6), np.nan), np.full((5000, 6), 1e200)):
        with pytest.raises(ValueError, match=r"features|NaN|too large"):
            model.partial_fit(bad)
        np.testing.assert_array_equal(model.components_, before)
