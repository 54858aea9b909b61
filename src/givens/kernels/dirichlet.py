"""Variational inference of a document's topics, and the digamma function it needs.

With the variational Dirichlet parameters γ of a document and θ_k = exp(ψ(γ_k)), up to a common factor, a step sets

    γ_k = α_k + θ_k Σ_v c_v β_vk / (Σ_l θ_l β_vl)

(Blei, Ng and Jordan 2003, with the word assignments eliminated). exp(ψ(x)) itself is computed, not ψ:

    exp(ψ(x)) = exp(ψ(x + 8)) · exp(−Σ_{i<8} 1/(x + i)),    exp(ψ(y + ½)) = y + 1/(24y) − 37/(5760y³) + ...
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.elementary import exp


@inline
def write_exp_digamma(x: np.ndarray, size: int, out: np.ndarray) -> None:
    """exp(ψ(x)) of the first `size` numbers x > 0, with a relative error below 1e-10 where the result is at least 1e-300.

    The loop has no branches or calls, so that the compiler can vectorise it.
    """
    for t in range(size):
        square = x[t] * x[t] + 7.0 * x[t]
        # 1/(x + i) + 1/(x + 7 − i) = (2x + 7) / (x² + 7x + i(7 − i)); the four of them with a common denominator.
        a, b = square * (square + 6.0), (square + 10.0) * (square + 12.0)
        numerator = (2.0 * square + 6.0) * b + (2.0 * square + 22.0) * a
        fall = np.divide((2.0 * x[t] + 7.0) * numerator, a * b)
        y = x[t] + 7.5
        z = np.divide(1.0, y * y)
        series = 1.0 + z * (
            1.0 / 24.0 - z * (37.0 / 5760.0 - z * (10313.0 / 2903040.0 - z * (5509121.0 / 1393459200.0)))
        )
        out[t] = y * series * exp(-fall)


@inline
def _word_probabilities(theta: np.ndarray, rows: np.ndarray, size: int, out: np.ndarray) -> None:
    """Σ_k θ_k β_vk of each word; four topics at a time, to read and write `out` less often."""
    for i in range(size):
        # So that a word without a topic gives finite numbers, even in single precision.
        out[i] = 1e-30
    for t in range(0, len(theta), 4):
        a, b, c, d = theta[t], theta[t + 1], theta[t + 2], theta[t + 3]
        A, B, C, D = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
        for i in range(size):
            out[i] += a * A[i] + b * B[i] + c * C[i] + d * D[i]


@inline
def _topic_sums(ratio: np.ndarray, rows: np.ndarray, size: int, zero: float, out: np.ndarray) -> None:
    """Σ_v ratio_v β_vk of each topic, four at a time."""
    for t in range(0, len(out), 4):
        A, B, C, D = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
        a, b, c, d = zero, zero, zero, zero
        for i in range(size):
            a += ratio[i] * A[i]
            b += ratio[i] * B[i]
            c += ratio[i] * C[i]
            d += ratio[i] * D[i]
        out[t], out[t + 1], out[t + 2], out[t + 3] = a, b, c, d


@kernel
def infer(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    topics: np.ndarray,
    alpha: np.ndarray,
    first: int,
    last: int,
    most: int,
    tol: float,
    gamma: np.ndarray,
    weights: np.ndarray,
    ratios: np.ndarray,
) -> int:
    """Infer γ of the documents `first` to `last`, in at most `most` steps each; return the number of steps.

    `topics` has a row of k numbers β_vk for each word v, and its type is that of the inner loops. Also writes the `weights` θ of
    each document, which are not normalised, and the `ratios` c_v / Σ_k θ_k β_vk, from which the expected counts of topics are
    computed. A document is done when a step changes γ by at most `tol` times its number of words.
    """
    k = topics.shape[1]
    padded = (k + 3) // 4 * 4
    longest = 0
    for n in range(first, last):
        longest = max(longest, indptr[n + 1] - indptr[n])
    zero = topics.dtype.type(0.0)
    theta = np.zeros(padded, topics.dtype)
    sums = np.zeros(padded, topics.dtype)
    counts = np.empty(longest, topics.dtype)
    ratio = np.empty(longest, topics.dtype)
    # β of the document's words, one row per topic, which stays in the cache from step to step.
    rows = np.zeros((padded, longest), topics.dtype)
    steps = 0
    for n in range(first, last):
        start = indptr[n]
        size = indptr[n + 1] - start
        words = 0.0
        for i in range(size):
            counts[i] = data[start + i]
            words += data[start + i]
            row = topics[indices[start + i]]
            for t in range(k):
                rows[t, i] = row[t]
        g = gamma[n]
        for t in range(k):
            g[t] = alpha[t] + words / k
        done = False
        for step in range(most + 1):
            write_exp_digamma(g, k, theta)
            _word_probabilities(theta, rows, size, ratio)
            for i in range(size):
                ratio[i] = np.divide(counts[i], ratio[i])
            if done or step == most:
                break
            steps += 1
            _topic_sums(ratio, rows, size, zero, sums)
            change = 0.0
            for t in range(k):
                new = alpha[t] + theta[t] * sums[t]
                change += abs(new - g[t])
                g[t] = new
            done = change <= tol * words
        for i in range(size):
            ratios[start + i] = ratio[i]
        for t in range(k):
            weights[n, t] = theta[t]
    return steps
