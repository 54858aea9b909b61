"""The compiled part of `solve.quasi_newton`, which would call NumPy a dozen times per step."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def add(
    rows: np.ndarray, weights: np.ndarray, place: int, first: bool, step: np.ndarray, change: np.ndarray
) -> bool:
    """Write a pair to a place if its curvature is clearly positive, and update the weights; return whether it is.

    The weights begin with the `first` pair: s·y / y·y for all.
    """
    curvature, steps, changes = 0.0, 0.0, 0.0
    for k in range(len(step)):
        curvature += step[k] * change[k]
        steps += step[k] * step[k]
        changes += change[k] * change[k]
    # At a smaller cosine the curvature may be rounding.
    if not curvature > 1e-10 * np.sqrt(steps) * np.sqrt(changes):
        return False
    root = curvature**-0.5
    s, y = rows[2 * place], rows[2 * place + 1]
    changes = 0.0
    for k in range(len(step)):
        s[k] = step[k] * root
        y[k] = change[k] * root
        changes += y[k] * y[k]
    if first:
        for k in range(len(weights)):
            weights[k] = 1.0 / changes
    size = 0.0
    for k in range(len(step)):
        size += s[k] * s[k] / weights[k]
    changes = 0.0
    for k in range(len(step)):
        inverse = 1.0 / weights[k]
        along = s[k] * inverse
        learned = inverse + y[k] * y[k] - along * along / size
        # Positive, but for rounding errors; a pair may raise a weight by a large factor, but not without limit.
        if learned > 1e-12 * inverse:
            weights[k] = 1.0 / learned
        changes += weights[k] * y[k] * y[k]
    for k in range(len(step)):
        weights[k] /= changes
    return True


@kernel
def solve(
    rows: np.ndarray, place: int, kept: int, weights: np.ndarray, out: np.ndarray, shares: np.ndarray
) -> None:
    """Turn g into H g, in place, by Nocedal's two loops over the last `kept` pairs before a place; overwrites `shares`."""
    most = len(rows) // 2
    for m in range(kept):
        pair = (place - 1 - m) % most
        s, y = rows[2 * pair], rows[2 * pair + 1]
        share = 0.0
        for k in range(len(out)):
            share += s[k] * out[k]
        for k in range(len(out)):
            out[k] -= share * y[k]
        shares[m] = share
    for k in range(len(out)):
        out[k] *= weights[k]
    for m in range(kept - 1, -1, -1):
        pair = (place - 1 - m) % most
        s, y = rows[2 * pair], rows[2 * pair + 1]
        share = shares[m]
        for k in range(len(out)):
            share -= y[k] * out[k]
        for k in range(len(out)):
            out[k] += share * s[k]


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
