"""Samples of Gaussian mixtures as in the paper's experiment on tensor decomposition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import invwishart

from givens.support.arguments import generator, refuse_no_counts


@dataclass(frozen=True)
class MixtureSample:
    """Rows drawn from a mixture, and the mixture.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        The component of each row.
    weights, means, variances : arrays of shape (k,), (k, d) and (k,)
        Parameters of the mixture.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray


def make_spherical_mixture(
    n_samples: int = 10_000,
    *,
    n_components: int = 20,
    n_features: int = 50,
    weights: np.ndarray | None = None,
    variances: float | np.ndarray = 2.0,
    degrees: float | None = None,
    scale: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> MixtureSample:
    """Draw from a mixture of spherical Gaussians whose centres share an inverse-Wishart covariance.

    Parameters
    ----------
    n_samples : int, default=10_000
        n.
    n_components : int, default=20
        k.
    n_features : int, default=50
        d.
    weights : array of shape (k,), optional
        Equal by default.
    variances : float or array of shape (k,), default=2.0
        Variances of the components; the paper's is 2.
    degrees : float, optional
        Degrees of freedom of the inverse Wishart distribution, more than d − 1; d + 2 by default, with which its
        mean is the scale matrix.
    scale : float, default=1.0
        The scale matrix of the inverse Wishart distribution is this multiple of the identity.
    random_state : int or Generator, optional

    Returns
    -------
    MixtureSample

    Examples
    --------
    >>> from givens.datasets import make_spherical_mixture
    >>> data = make_spherical_mixture(1000, n_components=3, n_features=5, random_state=0)
    >>> data.X.shape, data.means.shape, data.variances
    ((1000, 5), (3, 5), array([2., 2., 2.]))
    """
    refuse_no_counts(n_samples=n_samples, n_components=n_components, n_features=n_features)
    weights = np.full(n_components, 1 / n_components) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n_components,) or weights.min() < 0 or not np.isclose(weights.sum(), 1):
        raise ValueError(f"weights must be {n_components} numbers of at least 0 that sum to 1")
    variances = np.broadcast_to(np.asarray(variances, dtype=float), (n_components,)).copy()
    if not variances.min() >= 0:
        raise ValueError("variances must be at least 0")
    rng = generator(random_state)
    means = _centres(n_components, n_features, degrees, scale, rng)
    y = rng.choice(n_components, size=n_samples, p=weights)
    X = rng.standard_normal((n_samples, n_features))
    X *= np.sqrt(variances)[y, None]
    X += means[y]
    return MixtureSample(X, y, weights, means, variances)


def _centres(k: int, d: int, degrees: float | None, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw k points from a Gaussian whose covariance is drawn from an inverse Wishart distribution."""
    degrees = d + 2 if degrees is None else degrees
    if degrees <= d - 1:
        raise ValueError(f"degrees must be more than n_features - 1 = {d - 1}, got {degrees!r}")
    spread = invwishart(df=degrees, scale=scale * np.eye(d)).rvs(random_state=rng)
    root = np.linalg.cholesky(np.reshape(spread, (d, d)))
    return rng.standard_normal((k, d)) @ root.T
