"""What fitted sparse loadings can be asked: scores, the data they stand for, the variance they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from givens.metrics import span
from givens.sparse_pca.data import largest


class SparseScores(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scores and their inverse, from `components_`, `mean_` and `scale_` (None: not scaled)."""

    components_: Any
    mean_: Any
    scale_: Any

    def _standard(self, X: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """X as validated, and the loadings and means that apply to it as it is."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], reset=False)
        Z = self.components_ if self.scale_ is None else self.components_ / self.scale_
        return X, Z.astype(X.dtype, copy=False), self.mean_.astype(X.dtype, copy=False)

    def transform(self, X: Any) -> np.ndarray:
        """The scores (X − mean)Zᵀ, Z the loadings by rows."""
        X, Z, mean = self._standard(X)
        if sparse.issparse(X):
            return np.asarray(X @ Z.T) - mean @ Z.T
        return (X - mean) @ Z.T

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The data nearest to what the scores say, by least squares: scores (ZZᵀ)⁻¹Z + mean."""
        check_is_fitted(self)
        scores = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            input_name="scores",
        )
        Z = self.components_
        if scores.ndim != 2 or scores.shape[1] != len(Z):
            raise ValueError(
                f"scores must have a column for each of {len(Z)} components, got shape {scores.shape}"
            )
        recovered = scores @ np.linalg.pinv(Z.astype(np.float64)).T.astype(Z.dtype)
        if self.scale_ is not None:
            recovered = recovered * self.scale_
        return recovered + self.mean_

    def score(self, X: Any, y: None = None) -> float:
        """The share of the variance of X, about the fitted mean, within the span of the loadings."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], reset=False)
        basis = span(self.components_.astype(np.float64))
        divisor = np.ones(X.shape[1]) if self.scale_ is None else self.scale_
        unit = max(largest(X), float(np.max(np.abs(self.mean_)))) or 1.0
        squares = inside = 0.0
        for start in range(0, X.shape[0], 1024):
            part = X[start : start + 1024]
            part = part.toarray() if sparse.issparse(part) else part
            part = (np.asarray(part, dtype=np.float64) / unit - self.mean_ / unit) * (unit / divisor)
            if self.scale_ is None:
                part /= unit
            squares += float(np.sum(part**2))
            inside += float(np.sum((part @ basis) ** 2))
        return inside / squares if squares > 0 else 1.0

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
