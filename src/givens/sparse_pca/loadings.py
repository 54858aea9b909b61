"""From the rotated data Y = AU to sparse loadings: solveForZ, exact counts, refitting, order and signs.

The loadings of a threshold are what is left above it, z_j ∝ S(y_j), normalised (the paper's solveForZ, after
Journée et al.). Given a pattern of non-zeros, values without the threshold's shrinkage raise tr(VᵀAᵀZ) over
orthonormal V and unit z_j with that pattern, by turns:

    V ← polar(AᵀZ),    z_j ← (A v_j on the pattern of j), normalised.

Of few non-zeros that explains more; but with many, the largest trace belongs to loadings that are all alike, whose variances
overlap. So it goes on only as long as the adjusted variance grows.

Arrays are stored one component per row: Y and Z are components x features, X is samples x features (Aᵀ).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.numerics.polar import polar

__all__ = [
    "explained",
    "keep_largest",
    "order_and_sign",
    "refit",
    "shrink",
    "unit_rows",
]


def shrink(Y: np.ndarray, gamma: float | np.ndarray, penalty: str = "l1") -> np.ndarray:
    """S(y): sign(y)·[|y| − γ]₊ for "l1", y where y² > γ and 0 elsewhere for "l0"; one γ, or one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import shrink
    >>> shrink(np.array([[3.0, -1.0, -2.0]]), 1.5)
    array([[ 1.5, -0. , -0.5]])
    """
    gamma = np.asarray(gamma, dtype=np.float64)
    level = gamma[:, None] if gamma.ndim else gamma
    if penalty == "l0":
        return np.where(np.square(Y, dtype=np.float64) > level, Y, Y.dtype.type(0))
    return np.copysign(np.maximum(np.abs(Y) - level, 0.0), Y).astype(Y.dtype, copy=False)


def unit_rows(S: np.ndarray) -> np.ndarray:
    """Rows divided by their norms; zero rows stay zero."""
    largest = np.max(np.abs(S), axis=1, keepdims=True) if S.shape[1] else np.zeros((len(S), 1))
    largest[largest == 0] = 1.0
    S = S / largest
    norms = np.linalg.norm(S, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    return S / norms


def keep_largest(Y: np.ndarray, counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """The pattern of the counts[j] largest |y| of each row, as an array of booleans.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import keep_largest
    >>> keep_largest(np.array([[3.0, -1.0, -2.0]]), [2]).astype(int)
    array([[1, 0, 1]])
    """
    pattern = np.zeros(Y.shape, dtype=bool)
    for j, count in enumerate(counts):
        if count >= Y.shape[1]:
            pattern[j] = True
        elif count > 0:
            pattern[j, np.argpartition(-np.abs(Y[j]), count - 1)[:count]] = True
    return pattern


def refit(
    X: np.ndarray, Z: np.ndarray, pattern: np.ndarray | None = None, *, tol: float = 1e-9, max_iter: int = 200
) -> np.ndarray:
    """Re-estimate the values of unit loadings Z on their pattern of non-zeros, as long as they explain more.

    Parameters
    ----------
    X : array, shape (samples, features)
        Centred.
    Z : array, shape (components, features)
        Where to begin; rows of zeros stay so.
    pattern : array of bool, shape (components, features), optional
        By default where Z is not zero.

    Returns
    -------
    array, shape (components, features)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import refit
    >>> X = np.outer([2.0, -1.0, -1.0], [3.0, 4.0, 0.1])
    >>> refit(X, np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2)).round(6)
    array([[0.6, 0.8, 0. ]])
    """
    pattern = Z != 0 if pattern is None else pattern
    used = np.flatnonzero(pattern.any(axis=0))
    alive = np.flatnonzero(pattern.any(axis=1))
    refitted = np.zeros(Z.shape)
    if len(used) == 0:
        return refitted
    B = np.asarray(X[:, used], dtype=np.float64)
    keep = pattern[np.ix_(alive, used)]
    best = np.asarray(Z[np.ix_(alive, used)], dtype=np.float64)
    scores = best @ B.T
    held = explained(scores)
    for _ in range(max_iter):
        # No more orthonormal columns than samples: the weakest components would get none.
        V = polar(scores)
        W = unit_rows(np.where(keep, V @ B, 0.0))
        scores = W @ B.T
        before, held = held, explained(scores)
        if held > before:
            best = W
        if held - before <= tol * before:
            break
    refitted[np.ix_(alive, used)] = best
    return refitted


def explained(scores: np.ndarray) -> float:
    """The sum of the adjusted variances of centred scores, one component per row, the strongest first."""
    order = np.argsort(-np.einsum("ij,ij->i", scores, scores), kind="stable")
    return float(adjusted_from_scores(scores[order].T).sum())


def order_and_sign(
    Z: np.ndarray, variances: np.ndarray, *, keep_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the rows by decreasing variance (unless `keep_order`), and make each row's largest entry positive.

    Returns the rows and the order.
    """
    order = np.arange(len(Z)) if keep_order else np.argsort(-variances, kind="stable")
    Z = Z[order]
    where = np.argmax(np.abs(Z), axis=1)
    signs = np.where(Z[np.arange(len(Z)), where] < 0, -1.0, 1.0).astype(Z.dtype)
    # Adding zero takes the sign off zeros that were turned over.
    return Z * signs[:, None] + Z.dtype.type(0), order
