"""The base class of the estimators of independent components: whitening, order and signs of sources, transforms.

A method only has to find the orthogonal U that turns white samples into sources, S = Z U; see `SourceSeparation._separate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from givens.data.by_rows import by_rows
from givens.data.rows import Numbers, Rows
from givens.ica.whitening import WhiteSpace, white_space
from givens.numerics import parallel
from givens.numerics.scaling import power_of_two
from givens.result import Result
from givens.support.arguments import Samples, number_or_share, warn_caller, weighted_rows
from givens.support.fitting import Transformer, atomic_fit, validate_data


class Separated(NamedTuple):
    """The outcome of a method.

    Attributes
    ----------
    space : WhiteSpace
    result : Result
        The run that found U.
    white : object
        The white samples, if `_settle` needs them.
    samples : float
        The number of samples, or the sum of their weights.
    """

    space: WhiteSpace
    result: Result
    white: Any = None
    samples: float = 0.0


class SourceSeparation(Transformer, ABC):
    """Base class of estimators of sources with unit variance, of which the samples are linear mixtures."""

    n_components: int | float | None
    threads: int | None
    components_: np.ndarray
    mixing_: np.ndarray
    mean_: np.ndarray

    # `copy` is not for scikit-learn's metadata routing to pass on.
    __metadata_request__transform: ClassVar[dict[str, str]] = {"copy": UNUSED}
    __metadata_request__inverse_transform: ClassVar[dict[str, str]] = {"copy": UNUSED}

    @abstractmethod
    def _separate(self, rows: Rows, sample_weight: ArrayLike | None) -> Separated:
        """Whiten samples and find the orthogonal U, components x components, that turns white samples into sources."""

    def _number(self, most: int) -> tuple[int | None, float | None]:
        """The number of components that `n_components` asks for, or the share of the variance."""
        return number_or_share(self.n_components, "n_components", most, "the number of samples or features")

    def _space(self, X: np.ndarray, weights: np.ndarray | None = None) -> WhiteSpace:
        """The white space of `n_components` components."""
        number, share = self._number(min(X.shape))
        return white_space(X, number, share=share, weights=weights)

    def _settle(self, separated: Separated, order: np.ndarray) -> None:
        """Set the attributes that only this method has; `order` is that of the sources."""

    @atomic_fit
    def fit(self, X: Samples, y: None = None) -> Self:
        """Find the sources.

        Parameters
        ----------
        X : array or data frame, shape (samples, features)
            For signals: time x channels.
        y : ignored, optional

        Returns
        -------
        self
        """
        return self._fit(X)

    def _fit(self, X: Samples, sample_weight: ArrayLike | None = None) -> Self:
        rows = Rows(X, self, Numbers(least_rows=2, as_given=True))
        with parallel.pool(self.threads):
            self._describe(self._separate(rows, sample_weight), rows.dtype)
        return self

    def _describe(self, separated: Separated, dtype: Any) -> None:
        """Order and sign the sources, and assign the fitted attributes."""
        space, result = separated.space, separated.result
        if not result.converged:
            warn_caller(
                f"{type(self).__name__} did not converge ({result.message}); raise max_iter or tol",
                ConvergenceWarning,
            )
        mixing = space.B @ result.U  # of samples in their unit
        energies = np.sum(mixing * mixing, axis=0)
        order = np.argsort(-energies, kind="stable")
        peaks = mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))]
        U, energies = (result.U * np.where(peaks < 0, -1.0, 1.0))[:, order], energies[order]
        self.components_ = (U.T @ space.whitening).astype(dtype)
        self.n_components_ = len(self.components_)
        self.mixing_ = (space.dewhitening @ U).astype(dtype)
        with np.errstate(over="ignore", under="ignore"):
            self.explained_variance_ = energies * space.unit * space.unit
        self.explained_variance_ratio_ = energies / space.variance
        self.whitening_ = space.whitening.astype(dtype)
        self.mean_ = space.mean.astype(dtype)
        self.result_ = result
        self.converged_ = result.converged
        self.n_iter_ = max(result.steps, 1)
        self._settle(separated, order)

    def transform(self, X: Samples, copy: bool = True) -> np.ndarray:
        """The sources of samples: (X − mean) times `components_` transposed.

        Parameters
        ----------
        X : array or data frame, shape (samples, features), or anything that `fit` takes
            What is read in chunks (a list of arrays, say) gives one array of all samples.
        copy : bool, default=True
            Ignored, for code that was written for `FastICA`: X is never changed.

        Returns
        -------
        array, shape (samples, components)
            For a dask array or data frame, a dask array not computed yet.
        """
        check_is_fitted(self)
        return by_rows(self, "_sources", X, len(self.components_))

    def _sources(self, X: Samples) -> np.ndarray:
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return (X - self.mean_.astype(X.dtype)) @ self.components_.T.astype(X.dtype)

    def inverse_transform(self, X: Samples, copy: bool = True) -> np.ndarray:
        """The samples that belong to sources: sources times `mixing_` transposed, plus the mean; `copy` is ignored."""
        X = self._checked_scores(X)
        return X @ self.mixing_.T.astype(X.dtype) + self.mean_.astype(X.dtype)


def counted_samples(
    X: np.ndarray, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None, float]:
    """The samples of positive weight; their weights over a power of two, or None if all are equal; the sum of the weights."""
    X, weights = weighted_rows(X, sample_weight, counted=False)
    if weights is None:
        return X, None, float(len(X))
    total = float(weights.sum())
    return X, None if weights.min() == weights.max() else weights / power_of_two(weights), total
