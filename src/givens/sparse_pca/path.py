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
    X: Any,
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

    for name in ("threshold", "n_nonzero"):
        if name in parameters:
            raise TypeError(f"sparse_pca_path sets {name} itself; give thresholds to choose them")
    if thresholds is None:
        thresholds = np.geomspace(0.01, 0.7, whole(n_thresholds, "n_thresholds", 1))
    thresholds = np.sort(np.asarray(thresholds, dtype=np.float64).ravel())
    if not len(thresholds):
        raise ValueError("thresholds must hold at least one threshold, got none")
    model, previous, rows = SparsePCA(n_components, **parameters), None, []
    with warnings.catch_warnings():
        # At large thresholds components are empty, which needs no warning here.
        warnings.filterwarnings("ignore", message="nothing of", category=UserWarning)
        for threshold in thresholds:
            model.set_params(threshold=(penalty, float(threshold)))._fit_from(X, previous=previous)
            previous = model.components_
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
    return SparsePath(thresholds, *columns)
