"""The compiled part of `phases.quasi_newton`, which would call NumPy a dozen times per step."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def add(
    rows: np.ndarray,
    inverses: np.ndarray,
    grams: np.ndarray,
    first: int,
    last: int,
    step: np.ndarray,
    change: np.ndarray,
) -> bool:
    """Append a pair to those from `first` to `last` if its curvature is clearly positive; return whether it is."""
    curvature, steps, changes = 0.0, 0.0, 0.0
    for k in range(len(step)):
        curvature += step[k] * change[k]
        steps += step[k] * step[k]
        changes += change[k] * change[k]
    if not curvature > 1e-10 * np.sqrt(steps) * np.sqrt(changes):
        return False
    root = curvature**-0.5
    s, y = rows[2 * last], rows[2 * last + 1]
    for k in range(len(step)):
        s[k] = step[k] * root
        y[k] = change[k] * root
    # The new columns of R⁻¹ and of Y Yᵀ.
    products = np.dot(rows[2 * first : 2 * last + 2], y)
    for i in range(first, last):
        total = 0.0
        for j in range(i, last):
            total -= inverses[i, j] * products[2 * (j - first)]
        inverses[i, last] = total
        inverses[last, i] = 0.0
    inverses[last, last] = 1.0
    for i in range(first, last + 1):
        grams[last, i] = grams[i, last] = products[2 * (i - first) + 1]
    return True


@kernel
def solve(
    rows: np.ndarray,
    inverses: np.ndarray,
    grams: np.ndarray,
    first: int,
    last: int,
    slopes: np.ndarray,
    weight: float,
) -> np.ndarray:
    """H g, where W is `weight` times the identity."""
    kept = last - first
    products = np.dot(rows[2 * first : 2 * last], slopes)
    u, inner, along = np.empty(kept), np.empty(kept), np.zeros(2 * kept)
    for i in range(kept):
        total = 0.0
        for j in range(i, kept):
            total += inverses[first + i, first + j] * products[2 * j]
        u[i] = total
        along[2 * i + 1] = -weight * total
    for i in range(kept):
        total = -products[2 * i + 1]
        for j in range(kept):
            total += grams[first + i, first + j] * u[j]
        inner[i] = u[i] + weight * total
    for i in range(kept):
        for j in range(i, kept):
            along[2 * j] += inner[i] * inverses[first + i, first + j]
    out = np.dot(along, rows[2 * first : 2 * last])
    for k in range(len(out)):
        out[k] += weight * slopes[k]
    return out


@kernel
def bounded(
    direction: np.ndarray, slopes: np.ndarray, pairs: np.ndarray, largest: float, skew: np.ndarray
) -> tuple[float, float]:
    """Turn H g into the step −H g, in place, and shorten it if an angle is above `largest`.

    Writes the antisymmetric matrix of the step, with minus the angle of the pair (i, j), i < j, at (i, j), into `skew`. Returns
    the decrease of f that the slopes predict, and the factor by which the step may be lengthened.
    """
    n = len(skew)
    most, along = 0.0, 0.0
    for k in range(len(direction)):
        most = max(most, abs(direction[k]))
        along += direction[k] * slopes[k]
    shrink = min(1.0, largest / most) if most > 0.0 else 1.0
    for k in range(len(direction)):
        direction[k] *= -shrink
        i, j = divmod(pairs[k], n)
        skew[i, j] = -direction[k]
        skew[j, i] = direction[k]
    return shrink * along, largest / (shrink * most) if most > 0.0 else 1.0
