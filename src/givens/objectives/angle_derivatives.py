"""First and second derivatives with respect to the angles of pairs: from those with respect to the entries of U, or from values.

With E = ∂f/∂U the slopes of all pairs of a square U are EᵀU − UᵀE. For an antisymmetric K, with M = Uᵀ(dE/dt) along UK and the
symmetric part Σ of UᵀE,

    f(U exp(tK))  =  f(U) + t ⟨UᵀE, K⟩ + ½ t² ⟨K, M − ΣK⟩ + O(t³).

An n x m matrix V with orthonormal columns is the first m columns of an orthogonal U = [V W], and f does not depend on W. The
pairs of columns that f depends on are those inside V, and those of a column of V and one of W. Their slopes are EᵀV − VᵀE and
EᵀW. The second of these are R = W(WᵀE) in the coordinates of the n-dimensional space, where

    R  =  (I − VVᵀ) E.

So descent computes nothing of order n², and W need not be chosen: `solve.point` makes steps from these slopes. Rotations of two
columns need a W; any will do, and the loop chooses one (`Run.prepare_rotations`).

Without a gradient, slopes and curvatures are central differences of values. The difference of order 2 takes two values for each
pair. Where all slopes are small it is too coarse, and the one of order 4 takes four more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import EPS
from givens.objectives.base import NotFinite, Product

# In radians: the step at which the two errors of a central difference of order 4, of order h⁴ and eps/h, are equal.
FOURTH_ORDER_STEP = EPS**0.2


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


def second_product(E: np.ndarray, U: np.ndarray, hess: Callable[[np.ndarray], np.ndarray]) -> Product:
    """The second derivatives of a function of a square U; `hess` maps V to dE/dt along V."""
    P = U.T @ E
    curved = 0.5 * (P + P.T)

    def product(K: np.ndarray) -> np.ndarray:
        M = U.T @ hess(U @ K) - curved @ K
        return M - M.T

    return product


def differences(
    f: Callable[[np.ndarray], float], U: np.ndarray, active: int, value: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """The slopes and the curvatures of all pairs i < j, i < active, of a function of the first `active` columns of U.

    Parameters
    ----------
    f : callable
        A function of n x active matrices.
    U : array, shape (n, n)
    active : int
    value : float
        The value of f at U.
    scale : float
        The size of f.

    Returns
    -------
    tuple of arrays, shape (n, n)
        Upper triangles.
    """
    slopes, bends = np.zeros((2, *U.shape))
    i, j = np.triu_indices(len(U), 1)
    i, j = i[i < active], j[i < active]

    def at(theta: float) -> np.ndarray:
        pairs = zip(i.tolist(), j.tolist())
        return np.array(parallel.each(lambda pair: f(with_pair_rotated(U, active, pair, theta)), pairs))

    def central(step: float) -> tuple[np.ndarray, np.ndarray]:
        """The differences of order 2: slopes and curvatures."""
        ahead, behind = at(step), at(-step)
        return (ahead - behind) / (2 * step), (ahead - 2 * value + behind) / step**2

    # Errors of order h² and eps/h are equal.
    slopes[i, j], bends[i, j] = central(EPS ** (1 / 3))
    # The errors of the differences of order 2 are no longer small beside slopes of this size.
    if np.abs(slopes).max(initial=0.0) <= 1e-5 * scale:
        near, bends[i, j] = central(FOURTH_ORDER_STEP)
        slopes[i, j] = (4 * near - central(2 * FOURTH_ORDER_STEP)[0]) / 3
    return slopes, bends


def rotated(x: np.ndarray, y: np.ndarray, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Two columns after a rotation."""
    c, s = math.cos(theta), math.sin(theta)
    return c * x + s * y, c * y - s * x


def with_pair_rotated(U: np.ndarray, active: int, pair: tuple[int, int], theta: float) -> np.ndarray:
    """The first `active` columns of U·G(i, j, θ), a new array; i < active."""
    i, j = pair
    x, y = rotated(U[:, i], U[:, j], theta)
    V = U[:, :active].copy()
    V[:, i] = x
    if j < active:
        V[:, j] = y
    return V


def _if_finite(slopes: np.ndarray) -> np.ndarray:
    if not np.isfinite(slopes).all():
        raise NotFinite("jac must be finite, but it returned NaN or infinity")
    return slopes
