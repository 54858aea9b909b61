"""Missing values of a table, estimated from the values that are there.

The model is that of probabilistic PCA (Tipping and Bishop 1999): x = μ + Vᵀz + ε, V of r orthonormal rows, z with the variances
λ_k − σ², ε with the variance σ² in every variable. Two steps alternate until the estimates stay:

- each sample's missing values become their expectation given its other values o: with the posterior mean of z,
  z = (V_o V_oᵀ + σ² diag(1/(λ − σ²)))⁻¹ V_o (x_o − μ_o), they are μ + Vᵀz;
- μ, V, λ and σ² are those of the principal components of the table so completed.

This is EM without the conditional variances of what is missing: estimates lie on the model, so the variance of variables with
many holes comes out too small. A table of rank r with few enough holes is recovered. Values that are there are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from givens.numerics.gram import leading_axes
from givens.support.arguments import Samples, counted


@dataclass
class Completion:
    """The model that missing values are estimated by."""

    mean: np.ndarray
    axes: np.ndarray  # r x features
    variances: np.ndarray  # of z: λ − σ²
    noise: float  # σ²

    def fill(self, X: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Return X with the expectations of its missing values."""
        filled = X.copy()
        for i in np.flatnonzero(missing.any(axis=1)):
            hole = missing[i]
            there = self.axes[:, ~hole]
            rest = (X[i, ~hole] - self.mean[~hole]) @ there.T
            # In units of √variances, so that a direction without variance has no effect, and σ² may be 0.
            root = np.sqrt(self.variances)
            product = root[:, None] * (there @ there.T) * root + self.noise * np.eye(len(root))
            z = root * (np.linalg.lstsq(product, root * rest, rcond=1e-12)[0] if len(root) else rest)
            filled[i, hole] = self.mean[hole] + z @ self.axes[:, hole]
        return filled


def holes_of(X: Samples, missing: Any, weights: np.ndarray | None) -> np.ndarray:
    """Where X has missing values, which are to be estimated as the parameter `missing` says; what cannot be done is refused."""
    if missing != "em":
        raise ValueError(f"missing must be 'em' or None, got {missing!r}")
    if sparse.issparse(X):
        raise ValueError("missing='em' is for dense data: in a sparse matrix what is not stored is zero")
    holes = np.isnan(X)
    if weights is not None and holes.any():
        raise ValueError("missing values cannot be estimated with sample_weight: leave one of them out")
    return holes


def missing_explained(error: ValueError, X: Samples, name: str = "X") -> ValueError:
    """The error of a check that refuses missing values of X, but with their number and what fills them in; others as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.missing import missing_explained
    >>> print(missing_explained(ValueError("Input contains NaN"), np.array([[1.0, np.nan]])))
    X has 1 missing value (NaN): fit with missing='em', which fills it in, or leave out the samples that have any
    """
    number = _number_missing(X) if "contains NaN" in str(error) else 0
    if not number:
        return error
    values = f"{name} has {counted(number, 'missing value', 'missing values')} (NaN)"
    remedy = f"fit with missing='em', which fills {'it' if number == 1 else 'them'} in"
    if sparse.issparse(X):
        remedy = f"make X dense (toarray) and {remedy}"
    return ValueError(f"{values}: {remedy}, or leave out the samples that have any")


def _number_missing(X: Samples) -> int:
    """How many values of a table are NaN; 0 where it is no table of numbers."""
    if hasattr(X, "isna"):
        return int(np.asarray(X.isna()).sum())
    try:
        return int(np.isnan(np.asarray(X.data if sparse.issparse(X) else X, dtype=np.float64)).sum())
    except (TypeError, ValueError):
        return 0


def fitted(X: np.ndarray, rank: int) -> Completion:
    """Return the model of a table without missing values."""
    n, d = X.shape
    mean = X.mean(axis=0)
    centred = X - mean
    # The smaller of the two products determines the components.
    few = n <= d
    vectors, squares = leading_axes(centred if few else centred.T, rank)
    axes = vectors.T @ centred if few else vectors.T
    lengths = np.linalg.norm(axes, axis=1, keepdims=True)
    axes = axes / np.where(lengths > 0, lengths, 1.0)
    rest = max(float(np.sum(centred * centred)) - float(squares.sum()), 0.0)
    free = max(d - rank, 1)
    noise = rest / (free * max(n - 1, 1)) if d > rank else 0.0
    return Completion(mean, axes, np.maximum(squares / max(n - 1, 1) - noise, 0.0), noise)


def completed(X: np.ndarray, rank: int) -> tuple[np.ndarray, Completion, int, bool]:
    """Return the table without missing values, the model, the number of steps, and whether the estimates stayed.

    Parameters
    ----------
    X : array of float64, samples x features
        NaN where a value is missing.
    rank : int
        Of the model; at most half of the samples or features.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.missing import completed
    >>> rng = np.random.default_rng(0)
    >>> X = np.outer(rng.normal(size=20), rng.normal(size=6))
    >>> holed = X.copy()
    >>> holed[::4, 2] = np.nan
    >>> bool(np.abs(completed(holed, rank=1)[0] - X).max() < 1e-4)
    True
    """
    missing = np.isnan(X)
    empty = np.flatnonzero(missing.all(axis=0))
    if len(empty):
        raise ValueError(
            f"feature {empty[0]} has no value at all: leave it out, or begin with more samples ({len(empty)} in all)"
        )
    rank = min(rank, max(1, min(X.shape) // 2))
    mean = np.nanmean(X, axis=0)
    unit = float(np.nanmax(np.abs(X - mean))) or 1.0
    # In units of the largest deviation, so that no square overflows or vanishes.
    offset, holed = mean, (X - mean) / unit
    filled = np.where(missing, 0.0, holed)
    least = 1e-5 * float(np.sqrt(np.nanmean(holed**2)))  # a smaller change of the estimates is none
    steps, stayed = 0, not missing.any()
    model = fitted(filled, rank)
    while not stayed and steps < 300:
        better = model.fill(holed, missing)
        stayed = float(np.sqrt(np.mean((better[missing] - filled[missing]) ** 2))) <= least
        filled, steps = better, steps + 1
        model = fitted(filled, rank)
    whole = np.where(missing, offset + unit * filled, X)
    # The posterior mean depends on ratios of variances only, so these stay in the units of the steps.
    noise = model.noise
    return whole, Completion(offset + unit * model.mean, model.axes, model.variances, noise), steps, stayed
