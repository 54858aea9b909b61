"""Whitening: samples of uncorrelated coordinates with unit variance, what every method of ICA starts from.

With the covariance C = E diag(λ) Eᵀ of centred samples x, z = W x with W = diag(λ)^{-½} Eᵀ has the covariance I. What is left to
find is an orthogonal matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.numerics.scaling import check_data, power_of_two
from givens.support.arguments import whole


@dataclass(frozen=True)
class Whitened:
    """White samples and the way back.

    Attributes
    ----------
    Z : array of float64, shape (samples, components)
        White: mean 0, covariance I (divisor: the number of samples).
    whitening : array, shape (components, features)
        W: Z = (X − mean) Wᵀ.
    dewhitening : array, shape (features, components)
        B: X ≈ Z Bᵀ + mean.
    mean : array, shape (features,)
    rank : int
        Of the centred data.
    """

    Z: np.ndarray
    whitening: np.ndarray
    dewhitening: np.ndarray
    mean: np.ndarray
    rank: int


def whiten_samples(X: np.ndarray, n_components: int | None = None, *, share: float | None = None) -> Whitened:
    """Whiten samples by their leading principal components.

    Parameters
    ----------
    X : array, shape (samples, features)
    n_components : int, optional
        By default as many as the rank of the centred data.
    share : float, optional
        Instead of a number: as many as hold this share of the variance.

    Returns
    -------
    Whitened

    Examples
    --------
    >>> import numpy as np
    >>> from givens.ica import whiten_samples
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) @ np.diag([3.0, 2.0, 1.0])
    >>> Z = whiten_samples(X).Z
    >>> (Z.T @ Z / len(Z)).round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    X = check_data(X, "X", 2)
    samples, features = X.shape
    if n_components is not None:
        n_components = whole(n_components, "n_components", least=1)
    # Exact: no square of what follows leaves the range of numbers.
    unit = power_of_two(X)
    centred = np.asarray(X, dtype=np.float64) / unit
    mean = centred.mean(axis=0)
    centred -= mean
    if samples > 2 * features:
        variances, axes = np.linalg.eigh(centred.T @ centred / samples)
        deviations, axes = np.sqrt(np.maximum(variances[::-1], 0.0)), axes[:, ::-1]
        # Of a product, only half the digits of small deviations are left.
        least = np.sqrt(max(samples, features) * np.finfo(np.float64).eps)
    else:
        _, deviations, rows = np.linalg.svd(centred, full_matrices=False)
        deviations, axes = deviations / np.sqrt(samples), rows.T
        least = max(samples, features) * np.finfo(np.float64).eps
    # Constant features have deviations of the order of rounding of their mean.
    size = max(
        float(deviations.max(initial=0.0)), np.finfo(np.float64).eps * float(np.abs(mean).max(initial=0.0))
    )
    rank = int(np.sum(deviations > least * size))
    if rank == 0:
        raise ValueError("all samples are equal: there is nothing to separate")
    number = rank if n_components is None else n_components
    if share is not None:
        held = np.cumsum(deviations[:rank] ** 2)
        number = int(np.searchsorted(held, share * held[-1])) + 1
    if number > rank:
        raise ValueError(
            f"n_components = {number}, but the centred data have rank {rank} only; ask for at most so many"
        )
    deviations, axes = deviations[:number], axes[:, :number]
    W = axes.T / deviations[:, None]
    return Whitened(centred @ W.T, W / unit, axes * deviations * unit, mean * unit, rank)
