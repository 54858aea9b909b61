"""Loadings of a fitted decomposition: variables x factors, in the units of the variables.

A loading is the covariance of a variable with a factor of unit variance. A PCA has orthonormal components and scores of variance
λ; its loadings are the components times √λ, and its scores divided by √λ are the factors. A FactorAnalysis has loadings as its
components, and scores that are factors already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


@dataclass(frozen=True)
class Extraction:
    """What is rotated.

    Attributes
    ----------
    loadings : array of float64, shape (variables, factors)
    deviation : array, shape (factors,)
        What the decomposition's scores are divided by to have unit variance; infinite for scores without variance.
    total : float or None
        The variance of all variables together, where it is known.
    variables : list of str or None
        Names.
    """

    loadings: np.ndarray
    deviation: np.ndarray
    total: float | None
    variables: list[str] | None


def is_decomposition(X: Any) -> bool:
    """Whether this is an estimator and no matrix."""
    return hasattr(X, "fit") and not hasattr(X, "__array__")


def of_decomposition(model: Any) -> Extraction:
    """Loadings of a fitted PCA, TruncatedSVD, FactorAnalysis or whatever has the same attributes."""
    check_is_fitted(model)
    name = type(model).__name__
    components = getattr(model, "components_", None)
    variances = getattr(model, "explained_variance_", None)
    noise = getattr(model, "noise_variance_", None)
    if components is None or (variances is None and noise is None):
        raise TypeError(
            f"{name} has no loadings to rotate: they come from a fitted PCA, TruncatedSVD or FactorAnalysis, "
            "or are given as a matrix, variables x factors"
        )
    components = np.asarray(components, dtype=np.float64)
    if len(components) == 0:
        raise ValueError(f"{name} has no components to rotate: ask for at least one")
    names = getattr(model, "feature_names_in_", None)
    variables = None if names is None else [str(name) for name in names]
    if variances is None:
        loadings = np.ascontiguousarray(components.T)
        total = float(np.sum(loadings**2) + np.sum(np.asarray(noise)))
        return Extraction(loadings, np.ones(len(components)), total, variables)
    if np.abs(components @ components.T - np.eye(len(components))).max() > 1e-4:
        raise TypeError(f"the components of {name} are not orthonormal, so they are no loadings to rotate")
    variances = np.asarray(variances, dtype=np.float64)
    deviation = np.sqrt(np.maximum(variances, 0.0))
    loadings = np.ascontiguousarray(components.T * deviation)
    ratios = float(np.sum(getattr(model, "explained_variance_ratio_", 0.0)))
    all_variance = float(variances.sum()) / ratios if ratios > 0 else None
    # Scores without variance are rounding; divided by infinity they are left out.
    scores = np.where(deviation > 1e-7 * deviation.max(initial=0.0), deviation, np.inf)
    if getattr(model, "whiten", False):
        scores = np.where(np.isinf(scores), np.inf, 1.0)
    return Extraction(loadings, scores, all_variance, variables)
