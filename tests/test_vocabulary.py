"""Every estimator has the common parameters and fitted attributes, with one meaning."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import givens
from givens.result import Stop, Trace
from tests.test_docstrings import entries

ESTIMATORS = {
    name: cls
    for name in givens.__all__
    if isinstance(cls := getattr(givens, name), type) and issubclass(cls, BaseEstimator)
}
PARAMETERS = {
    "n_components": lambda default: default is None or default >= 1,
    "max_iter": lambda default: default >= 10,
    "tol": lambda default: 0 < default <= 1e-2,
    "n_starts": lambda default: default >= 1,
    "scale": lambda default: default is False,
    "threads": lambda default: default is None,
    "random_state": lambda default: default == 0,
}
"""Each with a check of its default."""

ABSENT = {
    ("FactorRotation", "n_components"): "all factors of the loadings are rotated",
    (
        "FactorRotation",
        "scale",
    ): "the scale of the data is in the loadings; normalize=True gives variables length 1",
    ("ICA", "scale"): "whitening makes every scale of the features the same problem",
    ("JADE", "scale"): "as ICA",
    ("JADE", "n_starts"): "the run begins at the principal axes, and finds its optimum from there",
    ("JADE", "random_state"): "nothing is random",
    ("SOBI", "scale"): "as ICA",
    ("SOBI", "n_starts"): "as JADE",
    ("SOBI", "random_state"): "as JADE",
    ("SphericalMixture", "scale"): "components are spherical in the units of the data",
    ("TopicModel", "scale"): "counts have no unit",
    ("TopicModel", "n_starts"): "the moments have one solution, where the variational passes begin",
}
"""Where a parameter does not apply, and why."""

every_estimator = pytest.mark.parametrize("name", sorted(ESTIMATORS))


def easy(name: str) -> tuple[BaseEstimator, np.ndarray]:
    """An estimator and data on which it converges."""
    rng = np.random.default_rng(1)
    if name == "FactorRotation":
        return ESTIMATORS[name](), rng.standard_normal((30, 4))
    model = ESTIMATORS[name](n_components=3)
    if name == "TopicModel":
        return model.set_params(max_iter=200), rng.poisson(3 * rng.gamma(0.5, size=(80, 20))) + 1
    X = rng.laplace(size=(400, 6)) @ rng.standard_normal((6, 6))
    return model, X


def hard(name: str) -> tuple[BaseEstimator, np.ndarray]:
    """An estimator and data on which it does not converge in three iterations."""
    rng = np.random.default_rng(0)
    if name == "FactorRotation":
        return ESTIMATORS[name](), rng.standard_normal((3000, 30))
    if name == "RotatedPCA":
        return ESTIMATORS[name](n_components=30), rng.standard_normal((60, 3000))
    if name == "TopicModel":
        return ESTIMATORS[name](n_components=3), rng.poisson(3 * rng.gamma(0.5, size=(300, 40)))
    return ESTIMATORS[name](n_components=25), rng.laplace(size=(150, 60)) @ rng.standard_normal((60, 60))


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_the_common_parameters_and_their_defaults(name, parameter):
    signature = inspect.signature(ESTIMATORS[name]).parameters
    assert (parameter in signature) != ((name, parameter) in ABSENT)
    if parameter in signature:
        assert PARAMETERS[parameter](signature[parameter].default)
        assert (signature[parameter].kind is inspect.Parameter.KEYWORD_ONLY) == (parameter != "n_components")


@every_estimator
def test_tol_means_one_thing(name):
    lines = inspect.getdoc(ESTIMATORS[name]).splitlines()
    assert "tol" in [described for described, _ in entries("\n".join(lines))]
    text = " ".join(lines[next(k for k, line in enumerate(lines) if line.startswith("tol : ")) + 1 :])
    text = " ".join(text.split())
    assert text.startswith(("Converged when an iteration gains at most tol² times", "As in `", "As for `"))


@every_estimator
def test_the_fitted_attributes(name):
    model, X = easy(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X)
    assert model.converged_ is True
    result = model.result_
    assert result.converged
    assert isinstance(result.stop, Stop)
    assert result.stop.converged
    assert isinstance(result.trace, Trace)
    assert len(result.trace) > 0
    assert result.method
    assert result.message
    assert 1 <= model.n_iter_ <= model.max_iter
    assert model.n_iter_ == max(result.steps, 1)
    rows = model.means_ if name == "SphericalMixture" else model.components_
    assert model.n_components_ == len(rows)


@pytest.mark.parametrize("name", ["ICA", "JADE", "RotatedPCA", "SOBI", "SparsePCA", "StreamingSparsePCA"])
def test_components_explain_shares_of_the_variance(name):
    model, X = easy(name)
    ratio = model.fit(X).explained_variance_ratio_
    assert ratio.shape == model.explained_variance_.shape == (3,)
    assert (ratio > 0).all()
    assert ratio.sum() < 1
    np.testing.assert_allclose(ratio / ratio[0], model.explained_variance_ / model.explained_variance_[0])


@every_estimator
@pytest.mark.parametrize("max_iter", [1, 3])
def test_a_cut_run_warns_and_has_counted_what_max_iter_limits(name, max_iter):
    model, X = hard(name)
    model.set_params(max_iter=max_iter, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X)
    assert model.converged_ is False
    assert model.result_.stop is Stop.MAX_ITER
    assert model.n_iter_ == max_iter
