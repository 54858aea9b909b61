"""What the estimators with a `transform` share: names, types and checks of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose scores have a column for each row of `components_`, in the precision of the data."""

    components_: Any

    def _checked_scores(self, X: Any) -> np.ndarray:
        """Scores that are to be transformed back, which must have a column for each component."""
        check_is_fitted(self)
        scores = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            input_name="X",
        )
        if scores.ndim != 2 or scores.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have a column for each of {self._n_features_out} components, got shape {scores.shape}"
            )
        return scores

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
