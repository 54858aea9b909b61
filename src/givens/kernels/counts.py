"""Products of a sparse matrix of counts with dense ones.

Each entry of XᵀY is added up document by document, in their order, by one thread. So its bits depend neither on how the work is
shared between threads nor on how the documents are cut into chunks.
"""

from __future__ import annotations

from givens.kernels.compile import kernel


@kernel
def project(data, indices, indptr, W, first, last, out):  # type: ignore[no-untyped-def]
    """Write rows `first` to `last` of XW into `out`."""
    r = W.shape[1]
    for n in range(first, last):
        row = out[n]
        for a in range(r):
            row[a] = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            count = data[j]
            w = W[indices[j]]
            for a in range(r):
                row[a] += count * w[a]


@kernel
def add_transposed(data, indices, indptr, Y, low, high, out):  # type: ignore[no-untyped-def]
    """Add columns `low` to `high` of XᵀY to those of `out`."""
    for n in range(len(indptr) - 1):
        y = Y[n]
        for j in range(indptr[n], indptr[n + 1]):
            count = data[j]
            row = out[indices[j]]
            for a in range(low, high):
                row[a] += count * y[a]
