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

    `starts`, `features`, `values` are x by rows (csr, features ascending); `column_starts` and `samples` are its columns (csc),
    and `places` says where each entry of a column stands among `values`. So the products of a feature meet one row of C only,
    which stays in the cache, and the features after it are the rest of the sample's row.
    """
    for i in range(first, last):
        row = C[i]
        for k in range(column_starts[i], column_starts[i + 1]):
            place = places[k]
            value = values[place]
            for e in range(place, starts[samples[k] + 1]):
                row[features[e]] += value * values[e]
