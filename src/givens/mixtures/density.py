"""Methods of a fitted spherical mixture: probabilities, likelihoods, samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from givens.cluster import applied
from givens.cluster.graph import computed
from givens.mixtures.model import Mixture, posterior
from givens.numerics import parallel
from givens.support.arguments import is_dask, refuse_mask, whole


class SphericalDensity(DensityMixin, BaseEstimator, ABC):
    """Prediction, scores and samples; a subclass defines `_mixture`."""

    threads: int | None
    random_state: Any
    log_likelihood_: list[float]
    n_features_in_: int

    @abstractmethod
    def _mixture(self) -> tuple[Mixture, float]:
        """The fitted mixture of unit·x, and the unit, a power of two; or NotFittedError."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of X."""

    @property
    @abstractmethod
    def converged_(self) -> bool:
        """Whether all iterations converged."""

    @property
    @abstractmethod
    def _common(self) -> bool:
        """Whether there is one variance for all components."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each component, given each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Of a dask array or data frame the outcome of this and the next methods is a dask array, not computed yet.

        Returns
        -------
        array of shape (n, k)
        """
        if is_dask(X):
            return applied(self, "predict_proba", X, len(self._mixture()[0].weights))
        return self._posterior(X)[0]

    def predict(self, X: Any) -> np.ndarray:
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        array of shape (n,)
        """
        if is_dask(X):
            self._mixture()
            return applied(self, "predict", X, None, np.intp)
        return np.argmax(self.predict_proba(X), axis=1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        array of shape (n,)
        """
        return self.fit(X).predict(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        array of shape (n,)
        """
        if is_dask(X):
            self._mixture()
            return applied(self, "score_samples", X, None)
        return self._posterior(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        scores = self.score_samples(X)
        total, n = scores.sum(), (~np.isnan(scores)).sum()  # no number is known of some dask arrays' rows
        if is_dask(X):
            total, n = computed((total, n))
        return float(-2 * total + self._freedom() * np.log(n))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion on X; lower is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._freedom())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int

        Returns
        -------
        X : array of shape (n_samples, d)
        y : array of shape (n_samples,)
            The component of each row.
        """
        whole(n_samples, "n_samples", 1)
        mixture, unit = self._mixture()
        rng = check_random_state(self.random_state)
        y = rng.choice(len(mixture.weights), size=n_samples, p=mixture.weights)
        noise = rng.standard_normal((n_samples, mixture.means.shape[1]))
        return (mixture.means[y] + np.sqrt(mixture.variances)[y, None] * noise) / unit, y

    def to_sklearn(self) -> GaussianMixture:
        """The same mixture as a fitted `sklearn.mixture.GaussianMixture` of spherical covariances.

        Returns
        -------
        GaussianMixture
        """
        mixture, unit = self._mixture()
        other = GaussianMixture(
            len(mixture.weights), covariance_type="spherical", random_state=self.random_state
        )
        other.weights_, other.means_, other.covariances_ = (
            part.copy() for part in mixture.moved(1 / unit, 0.0)
        )
        other.precisions_cholesky_ = 1 / np.sqrt(other.covariances_)
        other.precisions_ = other.precisions_cholesky_**2
        other.converged_ = self.converged_
        other.n_iter_ = len(self.log_likelihood_)
        other.lower_bound_ = self.log_likelihood_[-1] if self.log_likelihood_ else -np.inf
        other.n_features_in_ = self.n_features_in_
        return other

    def _posterior(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        mixture, unit = self._mixture()
        refuse_mask(X, "X")
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        with parallel.pool(self.threads):
            return posterior(mixture, X, unit)

    def _freedom(self) -> int:
        k, d = self._mixture()[0].means.shape
        return k * d + k - 1 + (1 if self._common else k)
