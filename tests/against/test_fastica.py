"""What scikit-learn's tests hold true of `FastICA` and `fastica` holds for `ICA`.

Where it does not, the test's comment names the line of docs/ica.md, "In place of FastICA", that says so.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.signal import sawtooth
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

from givens import ICA
from tests.ica.sources import picard as ica

DTYPES = [np.float32, np.float64]
WHITENINGS = ["unit-variance", "arbitrary-variance"]
SEEDS = range(3)


def standardized(S):
    return (S - S.mean(axis=0)) / S.std(axis=0)


def correlations(S, found):
    """|correlation| of each source with its match among those that were found."""
    r = np.abs(np.corrcoef(S.T, found.T)[: S.shape[1], S.shape[1] :])
    return r[linear_sum_assignment(-r)]


def square_and_outliers(seed, noise, dtype=np.float64):
    """A square wave and a Cauchy variable, turned by an angle; the sources and the mixtures."""
    rng = np.random.default_rng(seed)
    S = standardized(np.column_stack((np.sign(np.sin(np.linspace(0, 100, 1000))), rng.standard_cauchy(1000))))
    angle = rng.uniform(0, 2 * np.pi)
    A = np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])
    return S.astype(dtype), standardized(S @ A + noise * rng.standard_normal((1000, 2))).astype(dtype)


def sine_and_pulses(seed, noise):
    """A sine and a train of pulses, seen by six channels; the sources and the mixtures."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 100, 1000)
    S = standardized(np.column_stack((np.sin(t), np.ceil(np.sin(np.pi * t)))))
    X = S @ rng.standard_normal((2, 6)) + noise * rng.standard_normal((1000, 6))
    return S, standardized(X)


def uniform(seed=0, rows=100, features=10):
    return np.random.default_rng(seed).uniform(size=(rows, features))


# Sources.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("noise", "error"), [(0.0, 0.01), (0.1, 0.1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_square_wave_and_outliers(seed, noise, error, dtype):
    S, X = square_and_outliers(seed, noise, dtype)
    models = [ICA(whiten=whiten).fit(X) for whiten in WHITENINGS]
    for model in models:
        assert model.components_.shape == model.mixing_.shape == (2, 2)
        assert correlations(S, model.transform(X)).min() > 1 - error
    Z = PCA(whiten=True).fit_transform(X) * np.sqrt(1000 / 999)
    assert correlations(S, ICA(whiten=False).fit_transform(Z)).min() > 1 - error


@pytest.mark.parametrize(("noise", "least"), [(0.0, 0.99), (0.2, 0.97)])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sine_a_square_wave_and_a_saw_tooth(seed, noise, least):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 8, 2000)
    S = standardized(np.column_stack((np.sin(2 * t), np.sign(np.sin(3 * t)), sawtooth(2 * np.pi * t))))
    X = (S + noise * rng.standard_normal(S.shape)) @ rng.standard_normal((3, 3))
    assert correlations(S, ICA().fit_transform(X)).min() > least


@pytest.mark.parametrize(("noise", "error"), [(0.0, 1e-3), (0.1, 0.1)])
@pytest.mark.parametrize("seed", SEEDS)
def test_more_channels_than_sources(seed, noise, error):
    S, X = sine_and_pulses(seed, noise)
    model = ICA(2).fit(X)
    assert model.components_.shape == (2, 6)
    assert model.mixing_.shape == (6, 2)
    assert correlations(S, model.transform(X)).min() > 1 - error
    if not noise:
        # "by default the rank of the data": FastICA without n_components makes six sources, four of them of rounding errors.
        np.testing.assert_array_equal(ICA().fit(X).components_, model.components_)


# The attributes and the three arrays of the function.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("whiten", [*WHITENINGS, False])
def test_attributes_and_sources_have_the_precision_of_the_data(whiten, dtype):
    X = PCA(whiten=True).fit_transform(uniform()).astype(dtype)
    model = ICA(whiten=whiten)
    sources = model.fit_transform(X)
    for array in (model.components_, model.mixing_, model.mean_, model.whitening_, sources):
        assert array.dtype == dtype
    assert model.inverse_transform(sources).dtype == dtype
    for array in ica(X.T, whiten=bool(whiten)):
        assert array is None or array.dtype == dtype


def test_whitening_and_mean_beside_fasticas():
    X = uniform(2)
    for whiten, factor in (("arbitrary-variance", 1.0), ("unit-variance", np.sqrt(len(X)))):
        ours, theirs = (
            ICA(5, whiten=whiten).fit(X),
            FastICA(5, whiten=whiten, random_state=0, tol=1e-2).fit(X),
        )
        np.testing.assert_allclose(ours.mean_, theirs.mean_)
        # `whitening_`: with unit variance, FastICA's leaves the factor √samples to `components_`.
        np.testing.assert_allclose(np.abs(ours.whitening_), factor * np.abs(theirs.whitening_), rtol=1e-6)
        np.testing.assert_allclose(ours.mixing_, np.linalg.pinv(ours.components_), rtol=1e-6, atol=1e-9)
        rotation = ours.components_ @ np.linalg.pinv(ours.whitening_)
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(5), atol=1e-9)
    # "named `ica0`".
    assert list(ours.get_feature_names_out()) == [
        name.replace("fastica", "ica") for name in theirs.get_feature_names_out()
    ]


# Transforms.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_components", [5, 10])
@pytest.mark.parametrize("whiten", WHITENINGS)
def test_inverse_transform(whiten, n_components, dtype):
    X = uniform(3).astype(dtype)
    model = ICA(n_components, whiten=whiten)
    back = model.inverse_transform(model.fit_transform(X))
    assert model.mixing_.shape == (10, n_components)
    assert back.shape == X.shape
    if n_components == 10:
        np.testing.assert_allclose(back, X, atol=1e-5 if dtype == np.float32 else 1e-12)
    else:
        # What is lost is what a PCA loses.
        pca = PCA(n_components).fit(uniform(3))
        np.testing.assert_allclose(back, pca.inverse_transform(pca.transform(uniform(3))), atol=1e-5)


# Data without whitening, and of low rank.


def test_without_whitening_all_columns_are_sources():
    X = np.array([[0, 1], [1, 0]])
    # `whiten`: where FastICA warns that it ignores n_components, ours refuses it; of data that are not white, ours warns.
    with pytest.raises(ValueError, match="whiten=False keeps all 2 columns"):
        ICA(1, whiten=False).fit(X)
    with pytest.warns(UserWarning, match="X is not white"):
        model = ICA(whiten=False).fit(X)
    assert model.mixing_.shape == (2, 2)
    with pytest.warns(UserWarning, match="X is not white"):
        model = ICA(10, whiten=False).fit(uniform())
    assert model.components_.shape == (10, 10)
    # "`mean_` is 0": X is not centred.
    np.testing.assert_array_equal(model.mean_, 0.0)
    np.testing.assert_allclose(model.inverse_transform(model.transform(uniform())), uniform(), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_data_of_low_rank(seed):
    A = np.random.default_rng(seed).standard_normal((10, 2))
    X = A @ A.T
    # "by default the rank of the data": without a warning, which FastICA gives with `whiten_solver="eigh"` only.
    model = ICA().fit(X)
    assert model.rank_ == len(model.components_) == 2
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)
    # "more than the rank is refused".
    with pytest.raises(ValueError, match="have rank 2 only"):
        ICA(3).fit(X)
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 10"):
        ICA(11).fit(X)


# Warnings and errors.


@pytest.mark.parametrize("seed", range(3))
def test_too_few_steps_warn_and_leave_a_model(seed):
    _, X = sine_and_pulses(seed, 0.0)
    model = ICA(2, max_iter=2, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="ICA did not converge"):
        model.fit(X)
    assert model.n_iter_ <= 2
    np.testing.assert_allclose(model.transform(X).var(axis=0), 1.0)
