"""Compiled centring of a stream by its running mean."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def centre(
    X: np.ndarray,
    unit: float,
    forgetting: float,
    weight: float,
    energy: float,
    mean: np.ndarray,
    squares: np.ndarray,
    out: np.ndarray,
) -> tuple[float, float]:
    """Centre samples one after the other, each by the mean of those before it; `mean` moves along.

    With weights w ← λw + 1 the centred sample is √(1 − 1/w)·(x − mean): then the sum of the centred samples' outer
    products, each λ times weaker per later sample, *is* the scatter about the present mean (Welford's identity).
    Its diagonal goes to `squares`, one number per feature, unless that is empty.
    Returns the weight and the energy, the sum of all squares.
    """
    inverse = 1.0 / unit  # exact: a power of two
    for s in range(len(X)):
        weight = forgetting * weight + 1.0
        rate = 1.0 / weight
        size = np.sqrt(1.0 - rate)
        square = 0.0
        if len(squares) == 0:
            for k in range(X.shape[1]):
                delta = X[s, k] * inverse - mean[k]
                mean[k] += rate * delta
                value = size * delta
                out[s, k] = value
                square += value * value
        else:
            for k in range(X.shape[1]):
                delta = X[s, k] * inverse - mean[k]
                mean[k] += rate * delta
                value = size * delta
                out[s, k] = value
                squares[k] = forgetting * squares[k] + value * value
                square += value * value
        energy = forgetting * energy + square
    return weight, energy
