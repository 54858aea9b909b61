"""`givens.ica(X)`: independent components as a function, with the arguments and the three arrays of `picard.picard`."""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.ica.estimator import ICA
from givens.objectives.contrasts import Contrast
from givens.support.arguments import as_array


def ica(
    X: Any,
    n_components: int | None = None,
    *,
    contrast: str | Contrast = "adaptive",
    extended: bool | None = None,
    whiten: bool = True,
    centering: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
    w_init: np.ndarray | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Independent components of signals, one row per signal; a replacement for `picard.picard`.

    Parameters
    ----------
    X : array, shape (n_features, n_samples)
    n_components : int, optional
        By default the rank of the data.
    contrast : str or Contrast, default="adaptive"
        As for `ICA`.
    extended : bool, optional
        As for `picard`: True is ``contrast="adaptive"``, False is ``contrast="logcosh"``. By default `contrast` decides.
    whiten : bool, default=True
        Whiten first. If False, X is assumed to be white, and K is None.
    centering : bool, default=True
        Subtract the mean of each row first; with `whiten` this is always done.
    tol : float, default=1e-8
        As for `ICA`.
    max_iter : int, default=1000
        `max_iter` of `ICA`.
    w_init : array, shape (n_components, n_components), optional
        As for `ICA`.
    threads : int, optional
        As for `ICA`.

    Returns
    -------
    K : array, shape (n_components, n_features), or None
        The whitening matrix.
    W : array, shape (n_components, n_components)
        Orthogonal. Sources are W K (X − mean).
    Y : array, shape (n_components, n_samples)
        The sources.

    Examples
    --------
    >>> import numpy as np
    >>> import givens
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3, 3)) @ rng.laplace(size=(3, 2000))
    >>> K, W, Y = givens.ica(X)
    >>> bool(np.allclose(W @ K @ (X - X.mean(axis=1, keepdims=True)), Y))
    True
    """
    X = as_array(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix with a row per signal, got shape {X.shape}")
    if not whiten and centering:
        X = X - X.mean(axis=1, keepdims=True)
    if extended is not None:
        contrast = "adaptive" if extended else "logcosh"
    model = ICA(
        n_components,
        contrast=contrast,
        whiten="unit-variance" if whiten else False,
        tol=tol,
        max_iter=max_iter,
        w_init=w_init,
        threads=threads,
    )
    Y = model.fit_transform(X.T).T
    if not whiten:
        return None, model.components_, Y
    K = model.whitening_
    return K, model.components_ @ np.linalg.pinv(K), Y
