"""Explained variance against the number of non-zeros along a path of thresholds, for choosing one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from givens.support.arguments import Samples, whole


@dataclass(frozen=True)
class SparsePath:
    """What `sparse_pca_path` returns: one entry per threshold, from the smallest to the largest.

    Attributes
    ----------
    thresholds, gammas : array, shape (thresholds,)
        As shares of the largest useful one, and in the units of the data.
    n_nonzero : array of int, shape (thresholds, components)
    explained_variance_ratio : array, shape (thresholds, components)
        Adjusted.
    projected_variance_ratio : array, shape (thresholds,)
    components : array, shape (thresholds, components, features)
    """

    thresholds: np.ndarray
    gammas: np.ndarray
    n_nonzero: np.ndarray
    explained_variance_ratio: np.ndarray
    projected_variance_ratio: np.ndarray
    components: np.ndarray


def sparse_pca_path(
    X: Samples,
    n_components: int = 5,
    *,
    thresholds: np.ndarray | None = None,
    n_thresholds: int = 12,
    penalty: str = "l1",
    **parameters: Any,
) -> SparsePath:
    """Fit `SparsePCA` for many thresholds, each starting from the one before.

    Parameters
    ----------
    X : array, data frame or sparse matrix, shape (samples, features)
    n_components : int, default=5
    thresholds : array, optional
        As shares of the largest useful one. By default `n_thresholds` from 0.01 to 0.7, evenly on a logarithmic scale.
    n_thresholds : int, default=12
    penalty : {"l1", "l0"}, default="l1"
    **parameters
        Of `SparsePCA`, other than threshold and n_nonzero.

    Returns
    -------
    SparsePath

    Examples
    --------
    >>> from givens import sparse_pca_path
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(40, 200, n_modules=3, module_size=10, random_state=0)
    >>> path = sparse_pca_path(data.X, 3, n_thresholds=4)
    >>> path.n_nonzero.shape, bool((path.n_nonzero[0] >= path.n_nonzero[-1]).all())
    ((4, 3), True)
    """
    from givens.sparse_pca.estimator import SparsePCA

    if thresholds is None:
        thresholds = np.geomspace(0.01, 0.7, whole(n_thresholds, "n_thresholds", 1))
    thresholds = np.sort(np.asarray(thresholds, dtype=np.float64).ravel())
    if not len(thresholds):
        raise ValueError("thresholds must hold at least one threshold, got none")
    models = list[SparsePCA]()
    with warnings.catch_warnings():
        # At large thresholds components are empty, which needs no warning here.
        warnings.filterwarnings("ignore", message="nothing of", category=UserWarning)
        for threshold in thresholds:
            model = SparsePCA(n_components, threshold=(penalty, float(threshold)), **parameters)
            models.append(model._fit_from(X, previous=models[-1].components_ if models else None))
    return SparsePath(
        thresholds,
        np.array([model.gamma_[0] for model in models]),
        np.array([model.n_nonzero_ for model in models]),
        np.array([model.explained_variance_ratio_ for model in models]),
        np.array([model.projected_variance_ratio_ for model in models]),
        np.array([model.components_ for model in models]),
    )
