"""Slopes and curvatures of all pairs by central differences of values, for functions without a gradient.

The difference of order 2 takes two values for each pair. Where all slopes are small it is too coarse, and the one of order 4
takes four more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import EPS
from givens.objectives.pair_angles import rotated, with_columns

# Steps at which the two errors of a central difference, of order h^p and eps/h, are equal, for p = 4 and 2.
FOURTH_ORDER_STEP, SECOND_ORDER_STEP = EPS**0.2, EPS ** (1 / 3)
# If all slopes are below this, relative to the scale, they are computed by the difference of order 4.
SMALL_SLOPE = 1e-5


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

    def beside(step: float) -> tuple[np.ndarray, np.ndarray]:
        return at(step), at(-step)

    def at(step: float) -> np.ndarray:
        x, y = rotated(U[:, i], U[:, j], step)
        pairs = zip(i.tolist(), j.tolist(), x.T, y.T)
        return np.array(parallel.each(lambda pair: f(with_columns(U, active, *pair)), pairs))

    ahead, behind = beside(SECOND_ORDER_STEP)
    slopes[i, j] = (ahead - behind) / (2 * SECOND_ORDER_STEP)
    bends[i, j] = (ahead - 2 * value + behind) / SECOND_ORDER_STEP**2
    if np.abs(slopes).max(initial=0.0) <= SMALL_SLOPE * scale:
        near, far = beside(FOURTH_ORDER_STEP), beside(2 * FOURTH_ORDER_STEP)
        slopes[i, j] = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * FOURTH_ORDER_STEP)
        bends[i, j] = (near[0] - 2 * value + near[1]) / FOURTH_ORDER_STEP**2
    return slopes, bends
