"""After a refused or interrupted fit every estimator predicts bit for bit as before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import givens
from givens.numerics import parallel
from tests.interrupt import SignalAt

# Small counts are data that every model takes: two groups of rows that differ in half of the features.
GROUPS = (
    np.random.default_rng(0).poisson(np.repeat([[9, 9, 9, 2, 2, 2], [2, 2, 2, 9, 9, 9]], 30, axis=0)) + 1.0
)
OTHERS = (
    np.random.default_rng(1).poisson(np.repeat([[2, 9, 2, 9, 2, 9], [9, 2, 9, 2, 9, 2]], 25, axis=0)) + 4.0
)
PACKAGE = str(Path(givens.__file__).parent)
FITS = ("fit", "partial_fit", "fit_covariance")


@pytest.fixture(autouse=True)
def closes_pools() -> Iterator[None]:
    """Fail if a fit leaves a pool open. Chunks of a test before may still be at work, and end."""
    before = parallel._limited_blas.pools
    yield
    assert parallel._limited_blas.pools <= before


def estimators() -> list[type]:
    found = [getattr(givens, name) for name in givens.__all__]
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, BaseEstimator)]


def cases() -> list[tuple[type, str]]:
    return [(cls, fit) for cls in estimators() for fit in FITS if hasattr(cls, fit)]


def unfitted(cls: type) -> BaseEstimator:
    model = cls()
    wanted = {"n_components": 2, "random_state": 0, "threads": 1}
    return model.set_params(**{name: value for name, value in wanted.items() if name in model.get_params()})


def arguments(fit: str, X: np.ndarray) -> tuple:
    return (np.cov(X.T), len(X)) if fit == "fit_covariance" else (X,)


def state(model: BaseEstimator, X: np.ndarray = GROUPS) -> dict[str, str]:
    """Hashes of all public fitted attributes and of the predictions."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    for method in ("transform", "predict_proba", "score_samples"):
        if hasattr(model, method):
            found[method] = getattr(model, method)(X)
    return {name: joblib.hash(value) for name, value in found.items()}


def test_estimators_are_found():
    assert {"SparsePCA", "SphericalMixture", "StreamingSparsePCA"} <= {cls.__name__ for cls in estimators()}


def refusals(model: BaseEstimator, fit: str):
    """What to change in a model, and data that it refuses then."""
    X = OTHERS + 100
    bad = X.copy()
    bad[-1, -1] = np.nan
    yield {}, arguments(fit, bad)
    yield {}, arguments(fit, X + 1j)
    yield {}, (X[0], *arguments(fit, X)[1:])
    # More topics than words start at random, with a warning, as in scikit-learn.
    many = -1 if isinstance(model, givens.TopicModel) else 10**6
    for name, value in (("n_components", many), ("threads", 0), ("tol", -1.0), ("n_components", "many")):
        if name in model.get_params():
            yield {name: value}, arguments(fit, X)


@pytest.mark.parametrize(("cls", "fit"), cases())
def test_a_refused_fit_changes_nothing(cls, fit):
    model = unfitted(cls)
    getattr(model, fit)(*arguments(fit, GROUPS))
    before, parameters = state(model), model.get_params()
    seen = 0
    for changed, data in refusals(model, fit):
        with pytest.raises((ValueError, TypeError)):
            getattr(model.set_params(**changed), fit)(*data)
        model.set_params(**parameters)
        assert state(model) == before
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize(("cls", "fit"), cases())
def test_an_interrupt_at_any_moment_changes_nothing(cls, fit):
    model = unfitted(cls)
    getattr(model, fit)(*arguments(fit, GROUPS))
    before, data = state(model), arguments(fit, OTHERS)
    with SignalAt(within=PACKAGE) as every:
        getattr(unfitted(cls), fit)(*data)
    assert every.count > 20
    for moment in np.random.default_rng(0).choice(every.count, min(every.count, 40), replace=False):
        # A stream that goes on makes other calls than one that begins, and may have ended before the interrupt.
        with SignalAt(int(moment) + 1, PACKAGE) as interrupt:
            try:
                getattr(model, fit)(*data)
                interrupted = False
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            assert state(model) == before, f"changed at moment {moment} of {every.count}"
        else:
            assert interrupt.count < moment + 1
            before = state(model)
