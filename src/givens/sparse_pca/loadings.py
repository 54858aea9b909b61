"""From the rotated data Y = AU to sparse loadings: solveForZ, exact counts, refitting, order and signs.

The loadings of a threshold are what is left above it, z_j ∝ S(y_j), normalised (the paper's solveForZ, after
Journée et al.). They are shrunk by it; and as the threshold goes to 0, the columns y_j are a rotated basis of the principal
subspace, whose scores overlap: the same span, less adjusted variance. Refitting takes the pattern of non-zeros from them
and finds the values of the largest adjusted variance. The scores of unit loadings, E = XZ = QR, have the adjusted
variance Σ R_jj² (`givens.metrics`), whose derivative is 2·Q D² R⁻ᵀ, D = diag R. So with

    W = Q D² R⁻ᵀ,        z_j ← (Xᵀw_j on the pattern of j), normalised

the linearised variance rises as far as the pattern permits, and it goes on as long as the variance itself grows. Where the
pattern is everything, principal components come out.

Arrays are stored one component per row: Y and Z are components x features, X is samples x features (Aᵀ).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from givens.metrics import DEPENDENT, adjusted_from_scores

__all__ = [
    "directions",
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


def directions(E: np.ndarray, order: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """W for scores E, one component per row, and the adjusted variance in this order, by default the strongest score first.

    A score that the ones before it explain has no derivative; its row is the score itself.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.sparse_pca.loadings import directions
    >>> W, held = directions(np.array([[3.0, 0.0], [1.0, 2.0]]))
    >>> (W * 3).round(9).tolist(), held
    ([[9.0, -2.0], [0.0, 6.0]], 13.0)
    """
    size = np.linalg.norm(E, axis=1)
    order = np.argsort(-size, kind="stable") if order is None else order
    order = order[size[order] > 0]
    W = E.copy()
    while len(order):
        Q, R = np.linalg.qr(E[order].T)
        rest = np.abs(np.diagonal(R))
        dependent = np.flatnonzero(rest <= DEPENDENT * size[order[: len(rest)]])
        if len(dependent) == 0 and len(rest) == len(order):
            W[order] = solve_triangular(R, (Q * rest**2).T, check_finite=False)
            return W, float(rest @ rest)
        order = np.delete(order, dependent[0] if len(dependent) else -1)
    return W, 0.0


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
    tol : float
        A step that raises the adjusted variance by no more than this share of it is the last.
    max_iter : int

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
    best = here = np.asarray(Z[np.ix_(alive, used)], dtype=np.float64)
    before = -np.inf
    for _ in range(max_iter + 1):
        W, held = directions(here @ B.T)
        if held > before:
            best = here
        if held <= before * (1 + tol):
            break
        before = held
        here = unit_rows(np.where(keep, W @ B, 0.0))
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
