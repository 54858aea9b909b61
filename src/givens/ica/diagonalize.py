"""`joint_diagonalize`: the orthogonal matrix that makes a set of symmetric matrices as diagonal as it can.

The criterion Σ_k w_k Σ_{i≠j} (VX_kVᵀ)_ij² stays the same if the matrices are replaced by orthogonal combinations of them. So more
than n(n+1)/2 matrices of order n, the dimension of the space they live in, are first replaced by as many as that, by a QR
decomposition that reads a few of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from givens.numerics import parallel
from givens.numerics.scaling import check_data, power_of_two
from givens.objectives.joint import JointDiagonal
from givens.result import Result
from givens.solve.minimize import minimize
from givens.support.arguments import as_array, warn_caller


def joint_diagonalize(
    matrices: Any,
    *,
    start: np.ndarray | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    certify: bool = False,
    threads: int | None = None,
    return_result: bool = False,
) -> tuple[np.ndarray, np.ndarray | Result]:
    """Diagonalise symmetric matrices jointly, as far as an orthogonal matrix can.

    Minimises Σ_k w_k Σ_{i≠j} (VX_kVᵀ)_ij² over orthogonal V, by rotations of two rows in closed form (Cardoso and Souloumiac
    1996).

    Parameters
    ----------
    matrices : array of shape (K, n, n), or list or iterator of K arrays of shape (n, n)
        Real and symmetric. An array of float64 is not copied where K > n(n+1)/2.
    start : array, shape (n, n), optional
        An orthogonal matrix, the start of V. By default the identity.
    sample_weight : array, shape (K,), optional
        Positive weights of the matrices.
    tol : float, default=1e-8
        Converged when an iteration gains at most tol² times the sum of the squares of all entries: tol is about the error that
        is left in V.
    max_iter : int, default=1000
        Maximum number of steps: sweeps and, where these gain little, steps of descent and of Newton's method. A warning is given
        if they were not enough.
    certify : bool, default=False
        Search all pairs of rows over all angles at the end; `result.certificate` has the largest gain that was found.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    return_result : bool, default=False
        Return the `Result` of the run in the place of D, which is then not computed.

    Returns
    -------
    V : array, shape (n, n)
        Orthogonal; a row for each vector of the common basis.
    D : array, shape (K, n, n)
        The matrices VX_kVᵀ, nearly diagonal. With `return_result` a `givens.Result`, whose U is the transpose of V.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import joint_diagonalize
    >>> basis = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    >>> X = [basis @ np.diag(d) @ basis.T for d in ([1.0, 2.0, 3.0], [2.0, 5.0, 1.0])]
    >>> V, D = joint_diagonalize(X)
    >>> np.abs(D - np.array([np.diag(np.diag(d)) for d in D])).max() < 1e-12
    np.True_
    >>> V, result = joint_diagonalize(X, certify=True, return_result=True)
    >>> result.converged, bool(result.certificate.gain < 1e-12)
    (True, True)
    """
    X = as_stack(matrices)
    with parallel.pool(threads):
        result = minimize(
            JointDiagonal(reduced_stack(X, _weights(sample_weight, len(X)))),
            None if start is None else as_array(start, "start").T,
            tol=tol,
            max_iter=max_iter,
            certify=certify,
            threads=threads,
        )
        if not result.converged:
            warn_caller(
                f"joint_diagonalize did not converge ({result.message}); raise max_iter or tol",
                ConvergenceWarning,
            )
        V = np.ascontiguousarray(result.U.T)
        return V, result if return_result else _rotated(X, V)


def as_stack(matrices: Any) -> np.ndarray:
    """Symmetric matrices as one array of shape (K, n, n), float64 or float32, or an error that says what is wrong."""
    if hasattr(matrices, "toarray"):
        raise TypeError(f"matrices must be dense, got one sparse {type(matrices).__name__}")
    if not hasattr(matrices, "__array__") and isinstance(matrices, Iterable):
        matrices = _collected(matrices)
    X = as_array(matrices, "matrices")
    if X.ndim != 3 or X.shape[1] != X.shape[2] or 0 in X.shape:
        raise ValueError(f"matrices must be square and have the shape (K, n, n), got {X.shape}")
    X = check_data(X, "matrices")
    for part in _parts(X):
        size = np.abs(X[part]).max(axis=(1, 2))
        asymmetry = np.abs(X[part] - X[part].swapaxes(1, 2)).max(axis=(1, 2))
        # Rounding errors in single precision are smaller.
        wrong = np.flatnonzero(asymmetry > 1e-6 * size)
        if len(wrong):
            k = int(wrong[0])
            raise ValueError(
                f"matrices must be symmetric, but matrix {part.start + k} differs from its transpose by {asymmetry[k]:.3g}; pass "
                "(X + X.swapaxes(1, 2)) / 2 for the symmetric parts"
            )
    return X


def _collected(matrices: Iterable[Any]) -> np.ndarray:
    arrays = [as_array(matrix, f"matrices[{k}]") for k, matrix in enumerate(matrices)]
    if not arrays:
        raise ValueError("there are no matrices to diagonalise: the list or iterator is empty")
    shapes = {matrix.shape for matrix in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"all matrices must have the same shape, got {' and '.join(map(str, sorted(shapes)))}"
        )
    return np.stack(arrays)


def _weights(sample_weight: ArrayLike | None, number: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = check_data(sample_weight, "sample_weight").astype(np.float64)
    if weights.shape != (number,) or not (weights > 0).all():
        raise ValueError(
            f"sample_weight must be {number} positive numbers, one for each matrix, got {sample_weight!r}"
        )
    return weights


def reduced_stack(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """At most n(n+1)/2 matrices with the same criterion as the weighted X; X itself if it has no more and no weights."""
    n = X.shape[1]
    i, j = np.triu_indices(n)
    if len(X) <= len(i):
        return X if weights is None else X * np.sqrt(weights)[:, None, None]
    # Entries off the diagonal occur twice in the criterion.
    factor = np.where(i == j, 1.0, np.sqrt(2.0))
    # Squares of very large or small entries would overflow or underflow.
    unit = power_of_two(X)
    R = np.zeros((0, len(i)))
    for part in _parts(X, least=len(i)):
        rows = X[part][:, i, j].astype(np.float64) / unit
        # Multiples of the identity do not matter, but their rounding errors would reach all entries.
        rows[:, i == j] -= rows[:, i == j].mean(axis=1, keepdims=True)
        rows *= factor
        if weights is not None:
            rows *= np.sqrt(weights[part])[:, None]
        R = np.asarray(np.linalg.qr(np.concatenate((R, rows)), mode="r"))
    # The matrices innermost, as `JointDiagonal` stores them.
    stack = np.empty((n, n, len(R)))
    stack[i, j] = stack[j, i] = (R / factor * unit).T
    return np.moveaxis(stack, -1, 0)


def _rotated(X: np.ndarray, V: np.ndarray) -> np.ndarray:
    D = np.empty(X.shape)

    def part(which: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(V @ X[which], V.T, out=D[which])

    parallel.each(part, _parts(X))
    if not np.isfinite(D).all():
        raise ValueError(
            "the matrices are so large that rotated ones exceed what float64 holds: divide them by the largest entry"
        )
    return D


def _parts(X: np.ndarray, least: int = 1) -> list[slice]:
    """Parts of 8 MB that are read at a time; each QR decomposition also decomposes what the parts before left."""
    return parallel.slices(len(X), max(least, (1 << 20) // (X.shape[1] * X.shape[2])))
