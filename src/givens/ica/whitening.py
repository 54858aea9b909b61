"""Whitening: a map to uncorrelated coordinates of unit variance, with which every method of ICA begins.

With the covariance C = E diag(λ) Eᵀ of centred samples x, z = W x with W = diag(λ)^{-½} Eᵀ has the covariance I. What remains to
be found is an orthogonal matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.data.moments import Moments, moments_of
from givens.numerics.scaling import EPS, power_of_two


@dataclass(frozen=True)
class WhiteSpace:
    """The map to white coordinates, z = W (x / unit − origin), and back, x ≈ unit (B z + origin).

    Attributes
    ----------
    W : array, shape (components, features)
    B : array, shape (features, components)
    origin : array, shape (features,)
    rank : int
        Of the centred data.
    variance : float
        Of all features together, in squares of the unit.
    unit : float
        A power of two near the largest entry of the data: samples are divided by it before they are multiplied.
    """

    W: np.ndarray
    B: np.ndarray
    origin: np.ndarray
    rank: int
    variance: float
    unit: float = 1.0

    @property
    def whitening(self) -> np.ndarray:
        """The matrix that takes centred samples to white ones: components x features."""
        return self.W / self.unit

    @property
    def dewhitening(self) -> np.ndarray:
        """The matrix that takes white samples to centred ones: features x components."""
        return self.B * self.unit

    @property
    def mean(self) -> np.ndarray:
        """The mean of the samples."""
        return self.origin * self.unit

    def columns(self, features: int) -> int:
        """The number of components."""
        return len(self.W)

    def coordinates(self, X: np.ndarray, U: np.ndarray | None = None) -> np.ndarray:
        """White samples, in float64; with U, multiplied by it in the same product."""
        return self.shifted(X) @ (self.W.T if U is None else self.axes(U))

    def shifted(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Centred samples in the unit of the whitening, in float64."""
        centred = np.divide(X, self.unit, out=out, dtype=np.float64)
        centred -= self.origin
        return centred

    def axes(self, U: np.ndarray) -> np.ndarray:
        """What shifted samples are multiplied by: the whitening, and U."""
        return self.W.T @ U


def white_space(
    X: np.ndarray,
    n_components: int | None = None,
    *,
    share: float | None = None,
    weights: np.ndarray | None = None,
) -> WhiteSpace:
    """The white space of the leading principal components of finite samples.

    Parameters
    ----------
    X : array, shape (samples, features)
    n_components : int, optional
        By default as many as the rank of the centred data.
    share : float, optional
        In place of a number: as many components as explain this share of the variance.
    weights : array, shape (samples,), optional
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.ica.whitening import white_space
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) @ np.diag([3.0, 2.0, 1.0])
    >>> Z = white_space(X).coordinates(X)
    >>> (Z.T @ Z / len(Z)).round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    samples, features = X.shape
    # Division by a power of two is exact, and keeps squares from overflow and underflow.
    unit = power_of_two(X)
    tall = samples > 2 * features
    moments = moments_of(X, 1 / unit, weights, products=tall)
    if tall:
        return from_moments(moments, n_components, share)
    rows = np.divide(X, unit, dtype=np.float64) - moments.mean
    if weights is not None:
        rows *= np.sqrt(weights)[:, None]
    _, deviations, axes = np.linalg.svd(rows, full_matrices=False)
    deviations /= np.sqrt(moments.weight)
    return _space(moments, deviations, axes.T, max(samples, features) * EPS, n_components, share)


def from_moments(moments: Moments, n_components: int | None = None, share: float | None = None) -> WhiteSpace:
    """The white space of samples with these first and second moments."""
    variances, axes = np.linalg.eigh(moments.covariance())
    deviations = np.sqrt(np.maximum(variances[::-1], 0.0))
    # A covariance holds only half the digits of small deviations.
    least = float(np.sqrt(max(moments.count, len(moments.mean)) * EPS))
    return _space(moments, deviations, axes[:, ::-1], least, n_components, share)


def _space(
    moments: Moments,
    deviations: np.ndarray,
    axes: np.ndarray,
    least: float,
    n_components: int | None,
    share: float | None,
) -> WhiteSpace:
    """The space of the leading principal axes; those whose deviations are rounding errors are left out."""
    # The deviations of constant features are rounding errors of their means.
    size = max(float(deviations.max(initial=0.0)), EPS * float(np.abs(moments.mean).max(initial=0.0)))
    rank = int(np.sum(deviations > least * size))
    if rank == 0:
        raise ValueError("all samples are equal: there is nothing to separate")
    number = rank if n_components is None else n_components
    if share is not None:
        explained = np.cumsum(deviations[:rank] ** 2)
        number = int(np.searchsorted(explained, share * explained[-1])) + 1
    if number > rank:
        raise ValueError(
            f"n_components = {number}, but the centred data have rank {rank} only; ask for at most {rank}"
        )
    variance = float(deviations @ deviations)
    deviations, axes = deviations[:number], axes[:, :number]
    # LAPACK leaves the signs open. With these the whitening is Picard's, so that its W can be a start.
    peaks = axes[np.abs(axes).argmax(axis=0), np.arange(number)]
    axes = axes * np.where(peaks < 0, -1.0, 1.0)
    W = axes.T / deviations[:, None]
    return WhiteSpace(W, axes * deviations, moments.mean, rank, variance, 1.0 / moments.unit)
