"""Steps of a stream: centre new samples, rotate the rows that are kept, and compute inner products of all rows.

For matrices of few rows, for which BLAS spends much of its time on copies. Features are processed in strips that fit into the
cache, and sums over features are computed strip by strip in order.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

STRIP = 384  # number of features in a strip
TALL = 4  # number of rows of Q that are processed together; it must divide their number
WIDE = 3  # number of rows of W that are read together; it must divide their number


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
    # Whole rows instead of strips: samples are read from memory, which is fastest in long runs.
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


@kernel
def turn(W: np.ndarray, Q: np.ndarray, first: int, last: int) -> None:
    """Replace the first rows of W by QW, for the features from `first` to `last`."""
    room = np.empty((len(Q), STRIP), W.dtype)
    for start in range(first, last, STRIP):
        _turn_strip(W, Q, start, min(start + STRIP, last), room)


@inline
def _turn_strip(W: np.ndarray, Q: np.ndarray, start: int, stop: int, room: np.ndarray) -> None:
    """Replace the first rows of W by QW, for a strip. Twelve entries of Q stay in registers."""
    length = stop - start
    for i in range(0, len(Q), TALL):
        t0, t1, t2, t3 = room[i, :length], room[i + 1, :length], room[i + 2, :length], room[i + 3, :length]
        for k in range(length):
            t0[k] = t1[k] = t2[k] = t3[k] = 0.0
        for j in range(0, len(W), WIDE):
            w0, w1, w2 = W[j, start:stop], W[j + 1, start:stop], W[j + 2, start:stop]
            a0, a1, a2 = Q[i, j], Q[i, j + 1], Q[i, j + 2]
            b0, b1, b2 = Q[i + 1, j], Q[i + 1, j + 1], Q[i + 1, j + 2]
            c0, c1, c2 = Q[i + 2, j], Q[i + 2, j + 1], Q[i + 2, j + 2]
            d0, d1, d2 = Q[i + 3, j], Q[i + 3, j + 1], Q[i + 3, j + 2]
            for k in range(length):
                x0, x1, x2 = w0[k], w1[k], w2[k]
                t0[k] += a0 * x0 + a1 * x1 + a2 * x2
                t1[k] += b0 * x0 + b1 * x1 + b2 * x2
                t2[k] += c0 * x0 + c1 * x1 + c2 * x2
                t3[k] += d0 * x0 + d1 * x1 + d2 * x2
    for i in range(len(Q)):
        w, t = W[i, start:stop], room[i, :length]
        for k in range(length):
            w[k] = t[k]


@kernel
def multiply(W: np.ndarray, inverse: np.ndarray, first: int, last: int, G: np.ndarray) -> None:
    """Write the lower half of WWᵀ, over the features from `first` to `last`, into G; features are multiplied by `inverse`.

    An empty `inverse` stands for ones.
    """
    G[:] = 0.0
    room = np.empty((len(W) if len(inverse) else 0, STRIP), W.dtype)
    for start in range(first, last, STRIP):
        stop = min(start + STRIP, last)
        source, at = W, start
        if len(inverse):
            for i in range(len(W)):
                for k in range(stop - start):
                    room[i, k] = W[i, start + k] * inverse[start + k]
            source, at = room, 0
        _multiply_strip(source, at, at + stop - start, G)


@inline
def _multiply_strip(W: np.ndarray, start: int, stop: int, G: np.ndarray) -> None:
    """Add the lower half of WWᵀ over a strip to G, in tiles of 3 x 3: nine sums and six factors fit into 16 registers."""
    zero = W.dtype.type(0)
    for i in range(0, len(G), WIDE):
        a0, a1, a2 = W[i, start:stop], W[i + 1, start:stop], W[i + 2, start:stop]
        for j in range(0, i + WIDE, WIDE):
            b0, b1, b2 = W[j, start:stop], W[j + 1, start:stop], W[j + 2, start:stop]
            c00 = c01 = c02 = c10 = c11 = c12 = c20 = c21 = c22 = zero
            for k in range(stop - start):
                x0, x1, x2 = a0[k], a1[k], a2[k]
                y0, y1, y2 = b0[k], b1[k], b2[k]
                c00 += x0 * y0
                c01 += x0 * y1
                c02 += x0 * y2
                c10 += x1 * y0
                c11 += x1 * y1
                c12 += x1 * y2
                c20 += x2 * y0
                c21 += x2 * y1
                c22 += x2 * y2
            G[i, j] += c00
            G[i, j + 1] += c01
            G[i, j + 2] += c02
            G[i + 1, j] += c10
            G[i + 1, j + 1] += c11
            G[i + 1, j + 2] += c12
            G[i + 2, j] += c20
            G[i + 2, j + 1] += c21
            G[i + 2, j + 2] += c22
