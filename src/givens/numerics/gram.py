"""Gram matrices C = AᵀA of tall data, block of rows by block of rows; the root R of C = RᵀR; the leading axes of data.

Whatever depends on A through AᵀA only, as sparse PCA does, needs R alone: as many rows as A has rank. The products of
a sparse matrix are summed through its non-zeros, those of a dense one by matrix products; no more than a block of rows is ever
centred, converted or made dense. Every entry of C is summed by one thread in the order of the rows, so the number of threads
does not change the bits.

C holds the squares of the singular values of A: of those below 1e-7 of the largest nothing is left. R is Cholesky's factor, with
pivots, of the correlations: so features of any size keep their digits, and dependent ones cost rows, not an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpstrf

from givens.numerics import parallel
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.scaling import EPS
from givens.numerics.tiles import scores, turned

BLOCK_ENTRIES = 1 << 21  # entries of a block of rows that are converted, centred or made dense together
TILE_COLUMNS = 512  # columns of a matrix product of the upper triangle
MANY_ROWS = 1500  # up to which the products of all rows are decomposed
SPARE_VECTORS = 10  # of the subspace iteration, beside those that are asked for


def add_dense(C: np.ndarray, block: np.ndarray) -> None:
    """C ← C + blockᵀ·block, in the upper triangle of tiles; `block` is rows x features, float64."""
    cut = parallel.slices(len(C), TILE_COLUMNS)
    pairs = [(a, b) for k, a in enumerate(cut) for b in cut[k:]]

    def work(pair: tuple[slice, slice]) -> None:
        a, b = pair
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # who needs the products refuses what is not finite
            C[a, b] += block[:, a].T @ block[:, b]

    parallel.each(work, pairs)


def add_sparse(C: np.ndarray, block: sparse.csr_matrix) -> None:
    """C ← C + blockᵀ·block, in the upper triangle, through the non-zeros of a block whose indices are sorted."""
    from givens.kernels.sparse_products import add_products

    rows, features = block.shape
    starts, indices = block.indptr.astype(np.int64), block.indices.astype(np.int32, copy=False)
    values = block.data.astype(np.float64, copy=False)
    # Where each entry stands by rows, sorted by columns.
    places = sparse.csr_matrix((np.arange(len(values)), indices, starts), shape=(rows, features)).tocsc()
    columns, samples = places.indptr.astype(np.int64), places.indices.astype(np.int32, copy=False)

    def work(part: slice) -> None:
        add_products(starts, indices, values, columns, samples, places.data, part.start, part.stop, C)

    parallel.each(work, parallel.parts(features, 64))


def packed(C: np.ndarray) -> np.ndarray:
    """The upper triangle of C, row by row: half of the numbers, for what has to be sent."""
    return np.concatenate([row[k:] for k, row in enumerate(C)])


def unpacked(upper: np.ndarray, n: int) -> np.ndarray:
    """A matrix of order n with this upper triangle, as `packed` returns it, and zeros below.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.numerics.gram import packed, unpacked
    >>> unpacked(packed(np.array([[1.0, 2.0], [9.0, 3.0]])), 2)
    array([[1., 2.],
           [0., 3.]])
    """
    C, end = np.zeros((n, n)), 0
    for k in range(n):
        C[k, k:] = upper[end : end + n - k]
        end += n - k
    return C


def completed(C: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """C with its upper triangle in the lower one too, and the squares of the norms on the diagonal; C is overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.numerics.gram import completed
    >>> completed(np.array([[4.0, 1.0], [9.0, 1.0]]), np.array([2.0, 1.0]))
    array([[4., 1.],
           [1., 1.]])
    """
    cut = parallel.slices(len(C), TILE_COLUMNS)

    def work(k: int) -> None:
        a = cut[k]
        tile = np.triu(C[a, a], 1)
        C[a, a] = tile + tile.T
        for b in cut[k + 1 :]:
            C[b, a] = C[a, b].T

    parallel.each(work, range(len(cut)))
    C.flat[:: len(C) + 1] = norms**2
    some = norms > 0
    C[~some] = 0.0
    C[:, ~some] = 0.0
    return C


def root(C: np.ndarray, norms: np.ndarray, rows: int = 0) -> np.ndarray:
    """R with RᵀR = C, as many rows as C has rank, and at least `rows`; the upper triangle of C is read, and C overwritten.

    Parameters
    ----------
    C : array of float64, shape (features, features)
    norms : array, shape (features,)
        The roots of the diagonal; features of norm 0 have columns of zeros.
    rows : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from givens.numerics.gram import root
    >>> A = np.random.default_rng(0).standard_normal((50, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    >>> R = root(A.T @ A, np.linalg.norm(A, axis=0))
    >>> R.shape, np.allclose(R.T @ R, A.T @ A)
    ((2, 3), True)
    """
    some = norms > 0
    inverse = np.where(some, 1.0 / np.where(some, norms, 1.0), 0.0)
    C *= inverse
    C *= inverse[:, None]
    C.flat[:: len(C) + 1] = some
    # The upper triangle of rows is the lower one of columns.
    factor, pivots, rank, _ = dpstrf(C.T, tol=len(C) * EPS, lower=1, overwrite_a=1)
    R = factor.T
    R[int(rank) :] = 0.0
    for k in range(int(rank)):
        row = R[k, k:].copy()
        R[k] = 0.0
        R[k, pivots[k:] - 1] = row
    R *= norms
    kept = max(int(rank), rows)
    return R if kept == len(R) else R[:kept].copy()


def leading_axes(At: np.ndarray | CentredSparse, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The m leading left singular vectors of At, rows x m, and the squares of their singular values."""
    n = At.shape[0]
    if decomposed_whole(n, m) and isinstance(At, np.ndarray | CentredSparse):
        C = At.outer_products() if isinstance(At, CentredSparse) else scores(At, At, few=False)
        squares, vectors = np.linalg.eigh(C)
        return np.ascontiguousarray(vectors[:, ::-1][:, :m]), np.maximum(squares[::-1][:m], 0.0)
    from scipy.sparse.linalg import LinearOperator, eigsh

    # Not from the vector of ones, which is orthogonal to centred data.
    first = np.random.default_rng(0).standard_normal(n)
    products = LinearOperator((n, n), matvec=lambda v: At @ (At.T @ v), dtype=np.float64)
    squares, vectors = eigsh(products, k=m, which="LA", v0=first)
    return np.ascontiguousarray(vectors[:, ::-1]), np.maximum(squares[::-1], 0.0)


def rough_axes(At: np.ndarray | CentredSparse, m: int) -> tuple[np.ndarray, np.ndarray]:
    """As `leading_axes`; of many rows by a few steps of subspace iteration, which find the leading axes well enough."""
    n = len(At)
    if decomposed_whole(n, m):
        return leading_axes(At, m)
    Y = np.empty((m + SPARE_VECTORS, At.shape[1]))

    def step(rows: np.ndarray) -> np.ndarray:
        turned(rows, At, Y)
        return scores(Y, At, few=False)

    V = leading_subspace(n, m, step)
    turned(V, At, Y)
    squares, vectors = np.linalg.eigh(Y @ Y.T)
    return np.ascontiguousarray(V.T) @ vectors[:, ::-1][:, :m], np.maximum(squares[::-1][:m], 0.0)


def decomposed_whole(n: int, m: int) -> bool:
    """Whether m axes of a matrix of order n come from all of its eigenvectors, which takes less time than iterations."""
    return n <= MANY_ROWS or 5 * m > n


def leading_subspace(n: int, m: int, step: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Orthonormal rows that span about the m leading axes; `step` multiplies rows with a symmetric matrix of order n."""
    V = np.random.default_rng(0).standard_normal((m + SPARE_VECTORS, n))
    for _ in range(5):
        V = step(np.ascontiguousarray(np.linalg.qr(V.T)[0].T))
    return np.ascontiguousarray(np.linalg.qr(V.T)[0].T)
