"""Sources with heavy and light tails: the measure that needs no signs, and what the default contrast recovers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime, linear_sum_assignment

from givens import ICA
from givens.ica.adaptive import GAUSSIAN_MEAN, TYPICAL_DEVIATION, NonGaussianity
from givens.metrics import amari
from givens.objectives.columns import Columns
from tests.cases import value_at
from tests.ica.sources import white


def correlations(S, found):
    """|correlation| of each source with its match among those that were found."""
    r = np.abs(np.corrcoef(S.T, found.T)[: S.shape[1], S.shape[1] :])
    rows, columns = linear_sum_assignment(-r)
    return r[rows, columns]


def log_cosh(y):
    return np.logaddexp(y, -y) - np.log(2)


def test_the_mean_of_a_gaussian_variable():
    mean = 2 * quad(lambda y: log_cosh(y) * np.exp(-y * y / 2) / np.sqrt(2 * np.pi), 0, 30)[0]
    assert mean == pytest.approx(GAUSSIAN_MEAN, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("squared", [False, True])
def test_value_slopes_and_curvatures(squared, weighted):
    rng = np.random.default_rng(3)
    Z = white(np.column_stack((rng.laplace(size=(300, 2)), rng.uniform(-1, 1, (300, 2)))))
    weights = rng.uniform(0.5, 2, 300) if weighted else None

    def f(U):
        h = np.average(log_cosh(Z @ U), axis=0, weights=weights) - GAUSSIAN_MEAN
        total = 300 if weights is None else weights.sum()
        return -total * np.sum(h * h / (2 * TYPICAL_DEVIATION) if squared else np.abs(h))

    objective = Columns(Z, NonGaussianity(squared), weights=weights)
    U = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    state = objective.state(U)
    look = objective.look(state)
    assert look.value == pytest.approx(f(U), rel=1e-10)
    assert value_at(objective, state) == pytest.approx(look.value, rel=1e-12)
    for i, j in zip(*np.triu_indices(4, 1)):

        def turned(t, i=i, j=j):
            V = U.copy()
            V[:, i], V[:, j] = (
                np.cos(t) * U[:, i] + np.sin(t) * U[:, j],
                np.cos(t) * U[:, j] - np.sin(t) * U[:, i],
            )
            return f(V)

        slope = approx_fprime(np.zeros(1), lambda t: turned(float(t[0])), 1e-6)[0]
        bend = (turned(1e-3) - 2 * turned(0.0) + turned(-1e-3)) / 1e-6
        assert look.slopes[i, j] == pytest.approx(slope, rel=1e-3, abs=1e-2)
        assert look.curvatures[i, j] == pytest.approx(bend, rel=1e-3, abs=1e-2)


def test_a_given_start_may_use_samples_of_the_rows_too():
    rng = np.random.default_rng(1)
    X = rng.laplace(size=(20_000, 4)) @ rng.standard_normal((4, 4))
    start = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    few, many = ICA(w_init=start).fit(X), ICA().fit(X)
    np.testing.assert_allclose(few.components_, many.components_, rtol=1e-5, atol=1e-5)
    assert few.n_iter_ < 12


def test_sources_with_heavy_tails_are_those_of_log_cosh():
    X = np.random.default_rng(4).laplace(size=(3000, 5)) @ np.random.default_rng(5).standard_normal((5, 5))
    model = ICA().fit(X)
    assert (model.signs_ == 1).all()
    np.testing.assert_allclose(model.components_, ICA(contrast="logcosh").fit(X).components_, atol=1e-6)


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "kurtosis"])
def test_a_contrast_for_heavy_tails_warns_of_light_ones(contrast):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3)) @ rng.standard_normal((3, 3))
    with pytest.warns(UserWarning, match="light tails .* fit with contrast='adaptive'"):
        ICA(contrast=contrast).fit(X)
    ICA(contrast=contrast).fit(rng.standard_normal((2000, 3)))  # Gaussian sources are no reason to warn


def test_weak_sources_that_a_sample_cannot_tell_are_told_by_all_samples():
    rng = np.random.default_rng(704)
    S = np.column_stack((rng.triangular(-1, 0, 1, (30_000, 5)), rng.logistic(size=(30_000, 5))))
    assert correlations(S, ICA().fit_transform(S @ rng.standard_normal((10, 10)))).min() > 0.98


def test_starts_have_signs_of_their_own():
    rng = np.random.default_rng(6)
    S = np.column_stack((rng.laplace(size=(600, 3)), rng.uniform(-1, 1, (600, 3))))
    A = rng.standard_normal((6, 6))
    model = ICA(n_starts=4, random_state=0).fit(S @ A.T)
    assert len(model.result_.starts) == 4
    assert amari(model.components_, A) < 0.1
