"""Explained variance against the number of non-zeros along a path of thresholds, for choosing one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from givens.support.arguments import whole


@dataclass(frozen=True)
class SparsePath:
    """What `sparse_pca_path` returns: one entry per threshold, from the smallest to the largest.

    Attributes
    ----------
    alphas, gammas : array, shape (thresholds,)
    n_nonzero : array of int, shape (thresholds, components)
    explained_variance_ratio : array, shape (thresholds, components)
        Adjusted.
    projected_variance_ratio : array, shape (thresholds,)
    components : array, shape (thresholds, components, features)
    """

    alphas: np.ndarray
    gammas: np.ndarray
    n_nonzero: np.ndarray
    explained_variance_ratio: np.ndarray
    projected_variance_ratio: np.ndarray
    components: np.ndarray


def sparse_pca_path(
    X: Any, n_components: int = 5, *, alphas: np.ndarray | None = None, n_alphas: int = 12, **parameters: Any
) -> SparsePath:
    """Fit `SparsePCA` for many thresholds, each starting from the one before.

    Parameters
    ----------
    X : array, data frame or sparse matrix, shape (samples, features)
    n_components : int, default=5
    alphas : array, optional
        Thresholds as shares of the largest useful one. By default `n_alphas` from 0.01 to 0.7, evenly on a logarithmic scale.
    n_alphas : int, default=12
    **parameters
        Of `SparsePCA`, other than gamma, alpha, n_nonzero and warm_start.

    Returns
    -------
    SparsePath

    Examples
    --------
    >>> from givens import sparse_pca_path
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(40, 200, n_modules=3, module_size=10, random_state=0)
    >>> path = sparse_pca_path(data.X, 3, n_alphas=4)
    >>> path.n_nonzero.shape, bool((path.n_nonzero[0] >= path.n_nonzero[-1]).all())
    ((4, 3), True)
    """
    from givens.sparse_pca.estimator import SparsePCA

    for name in ("gamma", "alpha", "n_nonzero", "warm_start"):
        if name in parameters:
            raise TypeError(f"sparse_pca_path sets {name} itself; give alphas to choose the thresholds")
    if alphas is None:
        alphas = np.geomspace(0.01, 0.7, whole(n_alphas, "n_alphas", 1))
    alphas = np.sort(np.asarray(alphas, dtype=np.float64).ravel())
    if not len(alphas):
        raise ValueError("alphas must hold at least one threshold, got none")
    model = SparsePCA(n_components, warm_start=True, **parameters)
    rows = []
    with warnings.catch_warnings():
        # At large thresholds components are empty, which needs no warning here.
        warnings.filterwarnings("ignore", message="nothing of", category=UserWarning)
        for alpha in alphas:
            model.set_params(alpha=float(alpha)).fit(X)
            rows.append(
                (
                    model.gamma_[0],
                    model.n_nonzero_,
                    model.explained_variance_ratio_,
                    model.projected_variance_ratio_,
                    model.components_,
                )
            )
    columns = [np.array(column) for column in zip(*rows)]
    return SparsePath(alphas, *columns)
