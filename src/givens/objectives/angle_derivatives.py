"""First and second derivatives with respect to the angles of pairs, from those with respect to the entries of U.

With E = ∂f/∂U the slopes of all pairs of a square U are EᵀU − UᵀE. For an antisymmetric K, with M = Uᵀ(dE/dt) along UK and the
symmetric part Σ of UᵀE,

    f(U exp(tK))  =  f(U) + t ⟨UᵀE, K⟩ + ½ t² ⟨K, M − ΣK⟩ + O(t³).

An n x m matrix V with orthonormal columns is the first m columns of an orthogonal U = [V W], and f does not depend on W. The
pairs of columns that f depends on are those inside V, and those of a column of V and one of W. Their slopes are EᵀV − VᵀE and
EᵀW. The second of these are R = W(WᵀE) in the coordinates of the n-dimensional space, where

    R  =  (I − VVᵀ) E.

So descent computes nothing of order n², and W need not be chosen: `solve.charts` makes steps from these slopes. Rotations of two
columns need a W; any will do, and the loop chooses one (`Run.complete`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from givens.objectives.base import NotFinite


def square_slopes(E: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The slopes of all pairs of a square U."""
    P = E.T @ U
    return _if_finite(P - P.T)


def few_slopes(E: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The slopes of n x m matrices: m rows of an antisymmetric matrix, and R below it."""
    P = V.T @ E
    R = E - V @ P
    R -= V @ (V.T @ R)  # the first time leaves rounding errors of the size of E
    return _if_finite(np.concatenate([P.T - P, R]))


def few_slopes_of_pairs(upper: np.ndarray, U: np.ndarray, m: int) -> np.ndarray:
    """The same, from the slopes of the pairs i < j, i < m, of a square U."""
    inside = upper[:m, :m]
    return np.concatenate([inside - inside.T, U[:, m:] @ upper[:m, m:].T])


def second_product(
    E: np.ndarray, U: np.ndarray, hess: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """The product of the second derivatives with an antisymmetric K, as in `Second`; `hess` maps V to dE/dt along V."""
    P = U.T @ E
    curved = 0.5 * (P + P.T)

    def product(K: np.ndarray) -> np.ndarray:
        M = U.T @ hess(U @ K) - curved @ K
        return M - M.T

    return product


def _if_finite(slopes: np.ndarray) -> np.ndarray:
    if not np.isfinite(slopes).all():
        raise NotFinite("jac must be finite, but it returned NaN or infinity")
    return slopes
