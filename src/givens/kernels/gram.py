"""Compiled sums of products of the features of a sparse matrix."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel


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
