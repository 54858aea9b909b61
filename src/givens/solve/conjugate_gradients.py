"""The minimum of a quadratic model of f within a radius, by conjugate gradients (Steihaug 1983).

    f(U exp(K)) − f(U)  ≈  ⟨g, K⟩ + ½ ⟨K, H K⟩  over antisymmetric K whose entries, the angles of pairs, are at most a radius

Only products H K are needed. The iteration ends at the radius or at a direction of negative curvature, so H need not be positive
definite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MOST_PRODUCTS = 500
TINY = 1e-290  # in place of a zero of the direction, along which there is all the room


class Minimum(NamedTuple):
    """The step K, the predicted decrease of f, whether the step ends at the radius, and the number of products H K.

    The predicted decrease is NaN if the slopes, the weights or a product are not finite.
    """

    step: np.ndarray
    promised: float
    bounded: bool
    products: int


def bounded_minimum(
    slopes: np.ndarray,
    weights: np.ndarray,
    product: Callable[[np.ndarray], np.ndarray],
    radius: float,
    little: float,
) -> Minimum:
    """Find the minimum, until a share `little` of the squared slopes is left.

    Parameters
    ----------
    slopes : array of shape (n, n)
        As in `Look`: entry (i, j), i < j, is the slope of the pair (i, j), whose angle is K_ji.
    weights : array of shape (n, n)
        The preconditioner: positive and symmetric, about the inverses of the curvatures of pairs.
    product : callable
        Maps K to H K, as in `Product`.
    radius : float
        The largest angle.
    little : float
        The share of the slopes, squared and weighted, at which the iteration stops.
    """
    left = slopes.T.copy()
    K = np.zeros_like(left)
    direction = -weights * left
    size = first = -_inner(left, direction)
    bounded, products = False, 0
    while products < MOST_PRODUCTS and size > little * first and size != 0.0 and not bounded:
        image = product(direction)
        products += 1
        curvature = _inner(direction, image)
        ahead = np.where(direction > 0.0, K, -K)
        room = max(float(((radius - ahead) / np.maximum(np.abs(direction), TINY)).min()), 0.0)
        length = size / curvature if curvature > 0.0 else math.inf
        bounded = length >= room
        length = min(length, room)
        K += length * direction
        left += length * image
        steepest = weights * left
        last, size = size, _inner(steepest, left)
        direction = size / last * direction - steepest
    # ⟨g, K⟩ + ½ ⟨K, H K⟩, where g + H K is left; comparisons with NaN have ended the loop.
    promised = -0.5 * _inner(slopes.T + left, K) if math.isfinite(size) else math.nan
    return Minimum(K, promised, bounded, products)


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product over pairs, each of which occurs twice in an antisymmetric matrix."""
    return 0.5 * float(np.vdot(a, b))
