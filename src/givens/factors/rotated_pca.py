"""Principal components, rotated: PCA and FactorRotation in one estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from givens.data.by_rows import by_rows
from givens.data.rows import Numbers, Rows
from givens.factors.factor_rotation import FactorRotation, kappa_of, of_decomposition, score_scale
from givens.factors.principal_components import principal_components
from givens.support.arguments import Samples, dense, warn_of_dominant_feature
from givens.support.fitting import atomic_fit, validate_data


class RotatedPCA(FactorRotation):
    """Principal components rotated to simple structure.

    The loadings of the first principal components (components times standard deviations of their scores) are rotated by
    `FactorRotation`; the scores are standardised and rotated alike, so that they stay uncorrelated and of unit variance, and
    scores times loadings are what PCA reconstructs.

    Parameters
    ----------
    n_components : int or float, optional
        As in scikit-learn's PCA: how many components, or which share of the variance, below 1. By default all with variance.
    method : str or float, default="varimax"
        As in `FactorRotation`.
    normalize : bool, default=True
        As in `FactorRotation`.
    scale : bool, default=False
        Give every feature the variance 1 first: components of the correlation matrix.
    svd_solver : str, default="auto"
        As in PCA. Chunks, and large sparse matrices, allow "auto" and "covariance_eigh" only.
    n_starts : int, default=1
        As in `FactorRotation`.
    tol : float, default=1e-6
        As in `FactorRotation`.
    max_iter : int, default=500
        As in `FactorRotation`.
    threads : int, optional
        As in `FactorRotation`.
    random_state : int, RandomState or None, default=0
        For randomised solvers and for the starts of the rotation.

    Attributes
    ----------
    loadings_ : array, shape (features, components)
        Covariances of the features (correlations, with `scale`) with the rotated scores.
    components_ : array, shape (components, features)
        The transpose of `loadings_`, a row for each component, as in FactorAnalysis.
    n_components_ : int
    rotation_ : array, shape (components, components)
    explained_variance_, explained_variance_ratio_ : array, shape (components,)
        Of the rotated components; they add up to those of the principal components.
    singular_values_ : array, shape (components,)
        √((n − 1)·`explained_variance_`) for n samples, the norm of each rotated component's part of the centred data; their
        squares add up to those of the principal components.
    noise_variance_ : float
        The mean variance of the components that are left out, as in PCA: of the scaled features, with `scale`.
    mean_ : array, shape (features,)
    scale_ : array, shape (features,), or None
        With `scale`, the standard deviations of the features, by which they are divided.
    unrotated_loadings_, criterion_, certificate_, kappa_, result_, n_iter_, converged_
        As in `FactorRotation`.
    pca_ : PCA
        The components before the rotation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from givens import RotatedPCA
    >>> X = load_iris(as_frame=True).data
    >>> model = RotatedPCA(2, scale=True).fit(X)
    >>> model.to_pandas().round(2)
                       rotatedpca0  rotatedpca1
    sepal length (cm)         0.96         0.05
    sepal width (cm)         -0.14         0.99
    petal length (cm)         0.94        -0.31
    petal width (cm)          0.93        -0.26
    >>> model.explained_variance_ratio_.round(3)
    array([0.675, 0.283])
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        method: str | float = "varimax",
        *,
        normalize: bool = True,
        scale: bool = False,
        svd_solver: str = "auto",
        n_starts: int = 1,
        tol: float = 1e-6,
        max_iter: int = 500,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            method,
            normalize=normalize,
            n_starts=n_starts,
            tol=tol,
            max_iter=max_iter,
            threads=threads,
            random_state=random_state,
        )
        self.n_components = n_components
        self.scale = scale
        self.svd_solver = svd_solver

    _row_names = "feature_names_in_"

    @atomic_fit
    def fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the principal components and rotate them.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features), or any other source of rows
            A memory map, a data set of zarr or HDF5, AnnData, a dask array or data frame, or a list of tables.
            One pass sums the means and products of features. More than 8,192 features become a sketch, and n_components must then
            be a whole number. A table in memory with more than 1,000 features, or fewer than ten times as many samples, is
            decomposed itself, as PCA does it; a sparse one, of up to 8,192 samples and features, is made dense for that.
            `result_.method` says what was done.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts, at least 0: a weight of 2 counts the sample twice, a weight of 0 leaves it out. Samples
            on Dask are then refused, and those that are read in blocks are read into memory.

        Returns
        -------
        self
        """
        rows = Rows(X, self, Numbers(sparse=True))
        self.pca_, spectrum = principal_components(rows, self, sample_weight)
        kappa_of(self.method, *self.pca_.components_.shape[::-1])  # refuses what it does not know
        self._rotate(of_decomposition(self.pca_))
        self.mean_ = spectrum.mean.astype(rows.dtype)
        self.scale_ = None if spectrum.deviation is None else spectrum.deviation.astype(rows.dtype)
        with np.errstate(over="ignore", under="ignore"):
            self.singular_values_ = np.sqrt(self.explained_variance_) * np.sqrt(spectrum.weight - 1)
        self.noise_variance_ = float(self.pca_.noise_variance_)
        if self.result_ is not None:
            method = f"principal components from {spectrum.origin}; {self.result_.method}"
            self.result_ = replace(self.result_, method=method)
        if self.explained_variance_ratio_ is not None:
            total = float(self.explained_variance_.sum() / self.explained_variance_ratio_.sum())
            of_features = np.sum(self.loadings_**2, axis=1)
            warn_of_dominant_feature(of_features, total, getattr(self, "feature_names_in_", None))
        return self

    def transform(self, X: Samples) -> np.ndarray:
        """The rotated scores of unit variance, samples x components; of a dask array a dask array, not computed yet."""
        check_is_fitted(self)
        return by_rows(self, "_scores", X, len(self.components_))

    def _scores(self, X: Samples) -> np.ndarray:
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=[np.float64, np.float32])
        scores = score_scale(np.asarray(self.pca_.explained_variance_, dtype=np.float64))
        weights = (self.pca_.components_.T / scores) @ self.rotation_
        if sparse.issparse(X):
            weights = (weights if self.scale_ is None else weights / self.scale_[:, None]).astype(X.dtype)
            return np.asarray(X @ weights) - self.mean_ @ weights
        X = X - self.mean_
        if self.scale_ is not None:
            X = X / self.scale_
        return X @ weights.astype(X.dtype)

    def inverse_transform(self, X: Samples) -> np.ndarray:
        """The data that rotated scores stand for: scores times loadings, plus the mean."""
        X = self._checked_scores(X)
        X = X @ self.components_.astype(X.dtype)
        return (X if self.scale_ is None else X * self.scale_) + self.mean_

    def get_covariance(self) -> np.ndarray:
        """The covariance matrix of probabilistic PCA, features x features, as `PCA.get_covariance` has it.

        A rotation does not change it. With `scale`, it is that of X in its own units.
        """
        check_is_fitted(self)
        covariance = self.pca_.get_covariance()
        return covariance if self.scale_ is None else covariance * np.outer(self.scale_, self.scale_)

    def score_samples(self, X: Samples) -> np.ndarray:
        """The log-likelihood of each sample under the model of probabilistic PCA, as `PCA.score_samples` has it.

        A rotation does not change it. With `scale`, it is the density of X in its own units.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features), or dask array or data frame
            A sparse matrix is made dense.

        Returns
        -------
        array, shape (samples,)
            Of a dask array a dask array, not computed yet.
        """
        check_is_fitted(self)
        return by_rows(self, "_log_likelihoods", X, None, np.float64)

    def _log_likelihoods(self, X: Samples) -> np.ndarray:
        X = dense(validate_data(self, X, accept_sparse="csr", reset=False, dtype=[np.float64, np.float32]))
        if self.scale_ is None:
            return self.pca_.score_samples(X)
        scaled = self.pca_.score_samples((X - self.mean_) / self.scale_)
        return scaled - float(np.sum(np.log(self.scale_, dtype=np.float64)))

    def score(self, X: Samples, y: None = None) -> float:
        """The mean log-likelihood of samples; a grid search over `n_components` maximises it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import GridSearchCV
        >>> from givens import RotatedPCA
        >>> search = GridSearchCV(RotatedPCA(), {"n_components": [2, 3]}).fit(load_iris().data)
        >>> search.best_params_
        {'n_components': 3}
        """
        return float(np.mean(self.score_samples(X)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
