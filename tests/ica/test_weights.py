"""Weights of samples: a weight of 2 is the sample twice, a weight of 0 leaves it out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import ICA, minimize
from givens.ica.whitening import white_space
from givens.objectives import Columns
from givens.objectives.contrasts import Contrast, Exp, LogCosh
from givens.objectives.quartic import Kurtosis, Orthomax
from tests.ica.sources import OWN
from tests.properties import examples

CONTRASTS = {"logcosh": LogCosh(), "exp": Exp(), "kurtosis": Kurtosis(), "own": OWN}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = rng.laplace(size=(2500, 4)) @ rng.standard_normal((4, 5)) + 3.0
    return X, rng.integers(0, 4, 2500)


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "kurtosis", "adaptive", OWN], ids=str)
@pytest.mark.parametrize("whiten", ["unit-variance", "arbitrary-variance"])
def test_weights_are_repetitions(data, contrast, whiten):
    X, weights = data
    options = {"contrast": contrast, "whiten": whiten, "tol": 1e-11, "certify": True}
    weighted = ICA(**options).fit(X, sample_weight=weights)
    repeated = ICA(**options).fit(np.repeat(X, weights, axis=0))
    for name in ("components_", "mixing_", "whitening_", "mean_", "kurtosis_", "explained_variance_"):
        ours, theirs = getattr(weighted, name), getattr(repeated, name)
        if name == "whitening_":  # principal axes have any sign
            ours, theirs = np.abs(ours), np.abs(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max(), err_msg=name)
    np.testing.assert_array_equal(weighted.signs_, repeated.signs_)
    assert weighted.certificate_ == pytest.approx(repeated.certificate_, abs=1e-9)
    assert weighted.gradient_norm_ <= 1e-9


def test_samples_without_weight_are_left_out_and_equal_weights_are_none(data):
    X, weights = data
    kept = (weights > 0).astype(float)
    expected = ICA().fit(X[weights > 0]).components_
    np.testing.assert_array_equal(ICA().fit(X, sample_weight=kept).components_, expected)
    np.testing.assert_array_equal(ICA().fit(X, sample_weight=kept * 7.0).components_, expected)


@pytest.mark.parametrize("factor", [2.0**-600, 2.0**600])
def test_the_size_of_all_weights_does_not_matter(data, factor):
    X, weights = data
    expected = ICA(stability=1, random_state=0).fit(X, sample_weight=weights)
    found = ICA(stability=1, random_state=0).fit(X, sample_weight=weights * factor)
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.stability_, expected.stability_)


def test_white_data_with_weights(data):
    X, weights = data
    Z = white_space(X, weights=weights + 0.5).coordinates(X)
    with pytest.warns(UserWarning, match="whiten=False, but X is not white"):
        ICA(whiten=False).fit(2.0 * Z, sample_weight=weights + 0.5)
    model = ICA(whiten=False).fit(Z, sample_weight=weights + 0.5)
    turned = ICA().fit(X, sample_weight=weights + 0.5)
    np.testing.assert_allclose(np.sort(model.kurtosis_), np.sort(turned.kurtosis_), rtol=1e-5)


def test_the_same_bits_for_one_thread_and_two(data):
    X, weights = data
    models = [ICA(contrast="adaptive", threads=k).fit(X, sample_weight=weights) for k in (1, 2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)


@examples(20)
@given(st.sampled_from(sorted(CONTRASTS)), st.integers(0, 10_000))
def test_looks_and_searches_of_weighted_rows_are_those_of_repeated_ones(name, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((int(rng.integers(5, 700)), 4))
    weights = rng.integers(1, 5, len(A))
    weighted = Columns(A, CONTRASTS[name], weights=weights)
    repeated = Columns(np.repeat(A, weights, axis=0), CONTRASTS[name])
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    states = weighted.state(np.eye(4)), repeated.state(np.eye(4))
    ours, theirs = weighted.look(states[0], Q), repeated.look(states[1], Q)
    slack = 1e-9 * weights.sum()
    assert ours.value == pytest.approx(theirs.value, abs=slack)
    np.testing.assert_allclose(ours.slopes, theirs.slopes, atol=slack)
    # Curvatures are summed in single precision; those of fourth powers are large where few rows are.
    slack = 1e-4 * weights.sum() + 1e-5 * np.abs(theirs.curvatures).max()
    np.testing.assert_allclose(ours.curvatures, theirs.curvatures, atol=slack)
    pairs = np.array([[0, 2], [1, 3]])
    one, other = weighted.solve(states[0], pairs), repeated.solve(states[1], pairs)
    np.testing.assert_allclose(one.gains, other.gains, atol=1e-7 * weights.sum())


@pytest.mark.parametrize("contrast", ["logcosh", "kurtosis"])
def test_samples_of_weighted_rows_lead_to_the_optimum(contrast):
    rng = np.random.default_rng(3)
    A = rng.laplace(size=(20_000, 3)) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    weights = rng.uniform(0.1, 3.0, 20_000)
    objective = Columns(A, contrast, weights=weights)
    assert objective.coarse() is not None
    few = minimize(objective, method="descent", tol=1e-9)
    many = minimize(objective, np.eye(3), method="descent", tol=1e-9)
    assert few.value == pytest.approx(many.value, rel=1e-9)


class Mine(Orthomax):
    """No sum over rows."""


def test_bad_weights_get_one_sentence(data):
    X, weights = data
    with pytest.raises(ValueError, match="positive for at least two samples; 1 are positive"):
        ICA().fit(X, sample_weight=np.eye(len(X))[0])
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        ICA().fit(X, sample_weight=-weights)
    with pytest.raises(ValueError, match="sample_weight"):
        ICA().fit(X, sample_weight=weights[:7])
    assert isinstance(Mine(1.0), Contrast)
    with pytest.raises(ValueError, match="is not a sum over rows that could have weights"):
        ICA(contrast=Mine(1.0)).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match="weights must be 3 positive numbers, one for each row of A"):
        Columns(np.ones((3, 2)), "logcosh", weights=[1.0, 0.0, 1.0])
