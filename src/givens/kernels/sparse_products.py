"""Products of a sparse matrix with dense ones, and of its features with each other.

Each entry of XᵀY is summed over the documents in order, by one thread. So its bits depend neither on the number of threads nor on
the division of the documents into chunks.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


@kernel
def project(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    W: np.ndarray,
    first: int,
    last: int,
    out: np.ndarray,
) -> None:
    """Write rows `first` to `last` of XW into `out`; X has the arrays `data`, `indices`, `indptr` of a CSR matrix."""
    r = W.shape[1]
    for n in range(first, last):
        row = out[n]
        for a in range(r):
            row[a] = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            count = W.dtype.type(data[j])
            w = W[indices[j]]
            for a in range(r):
                row[a] += count * w[a]


@kernel
def by_words(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, words: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transpose: counts and documents, sorted by word and then by document, and the index at which each word begins."""
    starts = np.zeros(words + 1, dtype=np.int64)
    for j in range(len(indices)):
        starts[indices[j] + 1] += 1
    for v in range(words):
        starts[v + 1] += starts[v]
    place = starts[:-1].copy()
    counts = np.empty(len(indices), dtype=data.dtype)
    documents = np.empty(len(indices), dtype=np.int32)
    for n in range(len(indptr) - 1):
        for j in range(indptr[n], indptr[n + 1]):
            k = place[indices[j]]
            counts[k] = data[j]
            documents[k] = n
            place[indices[j]] = k + 1
    return counts, documents, starts


@kernel
def add_by_words(
    counts: np.ndarray,
    documents: np.ndarray,
    starts: np.ndarray,
    Y: np.ndarray,
    first: int,
    last: int,
    out: np.ndarray,
) -> None:
    """Add rows `first` to `last` of XᵀY to those of `out`; X is given by the results of `by_words`."""
    r = Y.shape[1]
    for v in range(first, last):
        row = out[v]
        for j in range(starts[v], starts[v + 1]):
            count = counts[j]
            y = Y[documents[j]]
            for a in range(r):
                row[a] += count * y[a]


@kernel
def add_products(
    starts: np.ndarray,
    features: np.ndarray,
    values: np.ndarray,
    column_starts: np.ndarray,
    samples: np.ndarray,
    places: np.ndarray,
    first: int,
    last: int,
    C: np.ndarray,
) -> None:
    """C[i, j] ← C[i, j] + Σ_s x_si x_sj for first ≤ i < last and j ≥ i.

    `starts`, `features`, `values` are x in CSR format, features ascending. `column_starts` and `samples` are x in CSC format, and
    `places` has the index of each of its entries in `values`. So the products of a feature are added to one row of C, which stays
    in the cache, and the features j ≥ i of a sample are the rest of its row.
    """
    for i in range(first, last):
        row = C[i]
        for k in range(column_starts[i], column_starts[i + 1]):
            place = places[k]
            value = values[place]
            for e in range(place, starts[samples[k] + 1]):
                row[features[e]] += value * values[e]
