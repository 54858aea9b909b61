"""What the estimators of independent components share: whitening, an orthogonal matrix, order and signs, and the way back.

A method has to find one thing, the orthogonal U that takes white samples to sources, S = Z U; see `SourceSeparation._rotate`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from givens.ica.whitening import Whitened, whiten_samples
from givens.metrics import amari
from givens.numerics import parallel
from givens.result import Result
from givens.support.arguments import whole
from givens.support.fitting import atomic_fit


class SourceSeparation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Sources of unit variance that samples are linear mixtures of.

    Attributes
    ----------
    components_ : array, shape (n_components, n_features)
        Unmixing: sources are (X − mean) times its transpose. Ordered by the variance that a source explains, largest first.
    mixing_ : array, shape (n_features, n_components)
        X is sources times its transpose, plus the mean. The largest entry of each column in absolute value is positive.
    explained_variance_ : array, shape (n_components,)
        Variance that each source gives to all features together.
    whitening_ : array, shape (n_components, n_features)
    mean_ : array, shape (n_features,)
    result_ : Result
        The run: value, trace, and why it stopped.
    n_iter_ : int
        Sweeps.
    """

    n_components: int | None
    threads: int | None
    components_: np.ndarray
    mixing_: np.ndarray
    mean_: np.ndarray

    @abstractmethod
    def _rotate(self, Z: np.ndarray) -> Result:
        """Find the orthogonal U, components x components, for which the columns of ZU are the sources; Z is white."""

    def _refuse(self, X: np.ndarray) -> None:
        """Raise an error where the parameters do not fit the samples."""

    def _whitened(self, X: np.ndarray) -> Whitened:
        """White samples, of as many components as were asked for."""
        if self.n_components is None:
            return whiten_samples(X)
        number = whole(self.n_components, "n_components", 1, X.shape[1], "the number of features")
        return whiten_samples(X, number)

    def _settle(self, white: Whitened, sources: np.ndarray, order: np.ndarray, result: Result) -> None:
        """Set what else a method reports."""

    @atomic_fit
    def fit(self, X: Any, y: None = None) -> Self:
        """Find the sources.

        Parameters
        ----------
        X : array or data frame, shape (samples, features)
            For signals: time x channels.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @atomic_fit
    def fit_transform(self, X: Any, y: None = None) -> np.ndarray:
        """Find the sources and return them: samples x components."""
        return self._fit(X)

    def _fit(self, X: Any) -> np.ndarray:
        values = check_array(
            X, dtype=[np.float64, np.float32], ensure_min_samples=2, estimator=self, input_name="X"
        )
        self._refuse(values)
        with parallel.pool(self.threads):
            white = self._whitened(values)
            result = self._rotate(white.Z)
            mixing = white.dewhitening @ result.U
            order, signs, variance = _order_and_signs(mixing)
            U = result.U[:, order] * signs
            sources = white.Z @ U
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge ({result.message}); allow more iterations or raise tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        validate_data(self, X, skip_check_array=True)
        kind = values.dtype
        self.components_ = (U.T @ white.whitening).astype(kind)
        self.mixing_ = (mixing[:, order] * signs).astype(kind)
        self.explained_variance_ = variance
        self.whitening_ = white.whitening.astype(kind)
        self.mean_ = white.mean.astype(kind)
        self.result_ = result
        self.n_iter_ = max(result.steps, 1)
        self._settle(white, sources, order, result)
        return sources.astype(kind)

    def transform(self, X: Any) -> np.ndarray:
        """The sources of samples: (X − mean) times `components_` transposed."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return (X - self.mean_.astype(X.dtype)) @ self.components_.T.astype(X.dtype)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The samples that sources stand for: sources times `mixing_` transposed, plus the mean."""
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if X.shape[1] != self.mixing_.shape[1]:
            raise ValueError(
                f"X must have a column for each of {self.mixing_.shape[1]} sources, got {X.shape[1]}"
            )
        return X @ self.mixing_.T.astype(X.dtype) + self.mean_.astype(X.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _order_and_signs(mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources by the variance they explain, largest first; the sign that makes the largest entry positive; and the variances."""
    largest = np.abs(mixing).max() or 1.0
    shares = np.sum((mixing / largest) ** 2, axis=0)
    order = np.argsort(-shares, kind="stable")
    peaks = mixing[np.abs(mixing).argmax(axis=0), np.arange(mixing.shape[1])][order]
    with np.errstate(over="ignore", under="ignore"):
        return order, np.where(peaks < 0, -1.0, 1.0), shares[order] * largest * largest


amari_error = amari
"""The same as `givens.metrics.amari`."""
