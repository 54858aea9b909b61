"""The compiled part of `solve.conjugate_gradients`, which would call NumPy a dozen times per product."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

TINY = 1e-290


@kernel
def advance(
    K: np.ndarray,
    left: np.ndarray,
    direction: np.ndarray,
    image: np.ndarray,
    weights: np.ndarray,
    radius: float,
    size: float,
) -> tuple[float, bool]:
    """Move K along a direction, to the minimum there or to the radius; then find the next direction.

    `left` are the slopes at K, and `image` is the product of the second derivatives and the direction. K, `left` and `direction`
    are overwritten. Takes and returns the squared and weighted slopes; also returns whether K has reached the radius.
    """
    n = len(K)
    curvature, room = 0.0, np.inf
    for i in range(n):
        for j in range(n):
            along = direction[i, j]
            curvature += 0.5 * along * image[i, j]
            ahead = K[i, j] if along > 0.0 else -K[i, j]
            room = min(room, (radius - ahead) / max(abs(along), TINY))
    length = size / curvature if curvature > 0.0 else np.inf
    bounded = length >= room
    if bounded:
        length = max(room, 0.0)
    after = 0.0
    for i in range(n):
        for j in range(n):
            K[i, j] += length * direction[i, j]
            left[i, j] += length * image[i, j]
            after += 0.5 * weights[i, j] * left[i, j] * left[i, j]
    if not bounded:
        for i in range(n):
            for j in range(n):
                direction[i, j] = after / size * direction[i, j] - weights[i, j] * left[i, j]
    return after, bounded
