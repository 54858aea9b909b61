"""The new samples of a stream, centred one after the other."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def centre(
    X: np.ndarray,
    unit: float,
    forgetting: float,
    weights: np.ndarray,
    own: np.ndarray,
    mean: np.ndarray,
    squares: np.ndarray,
    W: np.ndarray,
    begin: int,
    energies: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Write samples, divided by `unit` and centred by the mean of those before them, into rows of W from `begin` on.

    Only the features from `first` to `last` are processed. The mean is updated, and the sums of squares of the centred samples
    are written into `energies`. With the weight v of a sample (`own`), and the total w ← λw + v (`weights`; λ: `forgetting`),
    the centred sample is √(v(1 − v/w))·(x − mean). Then the sum of the outer products of centred samples, each multiplied by λ
    for every later sample, is the scatter about the present mean (Welford's identity). Its diagonal is updated in `squares`,
    unless that is empty.
    """
    inverse = 1.0 / unit  # exact, since the unit is a power of two
    for s in range(len(X)):
        x, m, out = X[s, first:last], mean[first:last], W[begin + s, first:last]
        rate = own[s] / weights[s]
        size = np.sqrt(own[s] * (1.0 - rate))
        square = 0.0
        for k in range(last - first):
            delta = x[k] * inverse - m[k]
            m[k] += rate * delta
            value = size * delta
            out[k] = value
            square += value * value
        energies[s] = square
        if len(squares):
            sums = squares[first:last]
            for k in range(last - first):
                sums[k] = forgetting * sums[k] + np.float64(out[k]) ** 2
