"""The Generalized Power Method of Journée, Nesterov, Richtárik and Sepulchre (2010) for sparse PCA: the rival.

It maximises the same convex function of U as `givens.SparsePCA`, by maximising its linearisation again and again:

    block:   Y = AU,  S = S(Y),  U ← polar(AᵀS)          (U n x m with orthonormal columns)
    greedy:  the same with m = 1, then A ← A − z zᵀA, component by component.

Both come with the ℓ1 and the ℓ0 form. Two rules of its authors' own program are options here. `fill` estimates the values of the
loadings anew on their pattern P of non-zeros (their Algorithm 6), by turns,

    V ← polar(AᵀZ),    Z ← AV on P, columns normalised;

in the greedy form before each deflation. `relative` takes the threshold as a share of the largest norm of a feature ("l0": of its
square), in the greedy form of the deflated data, so that later components are not all empty.

Every iteration is two matrix products, one compiled pass over Y, which is thresholded in
place, and a thin polar step. Features whose norm is below the threshold are left out. The block form is cut into pieces of
the features, each multiplied and thresholded while it is in a core's cache, by threads: faster than whole products by a
multithreaded BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from givens.numerics import flop_counts, parallel
from givens.numerics.polar import polar
from givens.numerics.scaling import check_data, refuse_too_large, unit_rows
from givens.support.arguments import tolerance, whole

__all__ = ["GPower", "fill_pattern", "gpower"]

PIECE_FEATURES = 800  # features, at least, that are worked on together


@dataclass
class GPower:
    """What the method returns.

    Attributes
    ----------
    Z : array, shape (features, m)
        Loadings, of unit norm or zero.
    U : array, shape (samples, m)
    value : float
        Of the block's objective, or the sum of the components' for the greedy form.
    values, seconds, flops : list of float
        After each iteration (greedy: after each component).
    iterations : int
    converged : bool
    """

    Z: np.ndarray
    U: np.ndarray
    value: float
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    iterations: int = 0
    converged: bool = False


def gpower(
    A: np.ndarray,
    m: int,
    gamma: float,
    *,
    penalty: str = "l1",
    block: bool = True,
    fill: bool = False,
    relative: bool = False,
    start: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    threads: int | None = None,
) -> GPower:
    """Sparse principal components by the Generalized Power Method.

    Parameters
    ----------
    A : array, shape (features, samples)
        Centred data.
    m : int
        Number of components.
    gamma : float
        The threshold, as in the paper: of |y| for "l1", of y² for "l0"; with `relative` a share of the largest possible.
    penalty : {"l1", "l0"}, default="l1"
    block : bool, default=True
        All components together, or one after the other with deflation.
    fill : bool, default=False
        Estimate the values of the loadings anew on their pattern (pattern filling), as the authors' program does.
    relative : bool, default=False
        Take `gamma`, from 0 to 1, relative to the largest norm of a feature, as the authors' program does.
    start : array, shape (samples, m), optional
        Orthonormal columns; the greedy form starts each component at its column. By default the samples' coordinates of
        the largest feature (greedy) or the right singular vectors (block).
    tol : float, default=1e-4
        Stop when the value grows by less than this times itself.
    max_iter : int, default=1000
        Per component in the greedy form.
    threads : int, optional
        By default one per core, at most 8.

    Returns
    -------
    GPower

    Examples
    --------
    >>> from paper.baselines import gpower
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(40, 200, n_modules=2, module_size=10, random_state=0)
    >>> A = (data.X - data.X.mean(axis=0)).T
    >>> found = gpower(A, 2, gamma=15.0)
    >>> bool((found.Z != 0).sum() < 40), found.converged
    (True, True)
    """
    if penalty not in ("l1", "l0"):
        raise ValueError(f"penalty must be 'l1' or 'l0', got {penalty!r}")
    A = np.ascontiguousarray(check_data(A, "A", 2), dtype=np.float64)
    if 0 in A.shape:
        raise ValueError(f"A must have features and samples, got shape {A.shape}")
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->", A, A)
    refuse_too_large(squares, "A", "their squares", "divide it by the largest")
    if squares < np.finfo(float).tiny and A.any():
        raise ValueError(
            "A has numbers so small that their squares vanish in float64: divide it by the largest"
        )
    m = whole(m, "m", 1, A.shape[1], "the number of samples")
    gamma = tolerance(gamma, "gamma")
    if relative and not 0 <= gamma < 1:
        raise ValueError(f"gamma must be at least 0 and below 1 where it is relative, got {gamma!r}")
    level = float(np.sqrt(gamma) if penalty == "l0" else gamma)
    rules = _Rules(level, penalty == "l0", fill, relative, tol, max_iter)
    if block:
        return _block(A, m, rules, start, threads)
    with threadpool_limits(parallel.count(threads), user_api="blas"):
        return _greedy(A, m, rules, start)


@dataclass(frozen=True)
class _Rules:
    """How to threshold, fill and stop."""

    level: float
    l0: bool
    fill: bool
    relative: bool
    tol: float
    max_iter: int

    def threshold(self, largest: float) -> float:
        """Of |y|, for data whose largest feature has this norm."""
        return self.level * largest if self.relative else self.level

    def shrink(self, level: float, Y: np.ndarray) -> float:
        """S(y) in place of y; returns Σ φ(y)."""
        from givens.kernels import threshold

        return threshold.shrink(Y, np.full(len(Y), level), self.l0, Y)[0]


def _block(
    A: np.ndarray,
    m: int,
    rules: _Rules,
    start: np.ndarray | None,
    threads: int | None,
) -> GPower:
    began = perf_counter()
    d, n = A.shape
    with parallel.pool(threads):
        squares = np.einsum("ij,ij->i", A, A)
        level = rules.threshold(float(np.sqrt(squares.max())))
        kept = np.flatnonzero(squares > level * level)
        if start is None:
            start = np.linalg.eigh(A.T @ A)[1][:, ::-1][:, :m]
        Ut = np.ascontiguousarray(start.T)
        cut = parallel.parts(len(kept), max(len(kept) // PIECE_FEATURES, 1))
        At: list[np.ndarray] = parallel.each(lambda part: np.ascontiguousarray(A[kept[part]].T), cut)
        Y = [np.empty((m, piece.shape[1])) for piece in At]
        entries = float(m * len(kept))
        found = GPower(np.zeros((d, m)), start, 0.0)
        flops = 2.0 * A.size
        while True:
            value = sum(parallel.each(partial(_thresholded, rules, level, Ut), zip(At, Y)))
            flops += (2 * n + 3) * entries
            before = found.values[-1] if found.values else -np.inf
            found.values.append(value)
            found.seconds.append(perf_counter() - began)
            found.flops.append(flops)
            found.converged = value - before <= rules.tol * value
            if found.converged or found.iterations == rules.max_iter:
                break
            E = parallel.each(lambda piece: piece[1] @ piece[0].T, zip(At, Y))
            Ut, spent = _polar_rows(sum(E[1:], start=E[0]))
            flops += 2 * n * entries + spent
            found.iterations += 1
        Z = unit_rows(np.concatenate(Y, axis=1))
        if rules.fill:
            Z, spent = fill_pattern(A[kept].T, Z, tol=rules.tol, max_iter=rules.max_iter)
            found.flops[-1] += spent
            found.seconds[-1] = perf_counter() - began
    found.Z[kept] = Z.T
    found.U, found.value = np.ascontiguousarray(Ut.T), value
    return found


def _thresholded(rules: _Rules, level: float, Ut: np.ndarray, piece: tuple[np.ndarray, np.ndarray]) -> float:
    At, Y = piece
    np.matmul(Ut, At, out=Y)
    return rules.shrink(level, Y)


def fill_pattern(
    X: np.ndarray, Z: np.ndarray, *, tol: float = 1e-4, max_iter: int = 1000
) -> tuple[np.ndarray, float]:
    """Estimate the values of loadings anew on their pattern of non-zeros (Algorithm 6 of Journée et al.).

    Parameters
    ----------
    X : array, shape (samples, features)
        Centred data, Aᵀ.
    Z : array, shape (m, features)
        Loadings, of unit norm or zero; the latter stay so.
    tol : float, default=1e-4
        Stop when tr(VᵀAᵀZ) grows by less than this times itself.
    max_iter : int, default=1000

    Returns
    -------
    Z : array, shape (m, features)
    flops : float

    Examples
    --------
    >>> import numpy as np
    >>> from paper.baselines import fill_pattern
    >>> X = np.outer([2.0, -1.0, -1.0], [3.0, 4.0, 0.1])
    >>> fill_pattern(X, np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2))[0].round(6)
    array([[0.6, 0.8, 0. ]])
    """
    alive, used = np.flatnonzero(Z.any(axis=1)), np.flatnonzero(Z.any(axis=0))
    filled = np.zeros(Z.shape)
    where = np.ix_(alive, used)
    At, values = np.ascontiguousarray(X[:, used]), Z[where]
    pattern, value, flops = values != 0, -np.inf, 0.0
    for _ in range(max_iter if len(alive) else 0):
        Vt, spent = _polar_rows(values @ At.T)
        W = Vt @ At
        W[~pattern] = 0.0
        values = unit_rows(W)
        before, value = value, float(np.vdot(W, values))
        flops += spent + 4.0 * values.size * len(At) + 3.0 * values.size
        if value - before <= tol * value:
            break
    filled[where] = values
    return filled, flops


def _polar_rows(M: np.ndarray) -> tuple[np.ndarray, float]:
    """The polar factor of a wide or square M, and the flops; by singular values, faster than Newton's iteration up to 400."""
    m, n = M.shape
    flops = flop_counts.svd(m, m) + 2.0 * m**3
    if m < n:
        Q, R = np.linalg.qr(M.T)
        return (Q @ polar(R)).T, flops + flop_counts.qr(n, m) + 2.0 * n * m * m
    return polar(M), flops


def _greedy(A: np.ndarray, m: int, rules: _Rules, start: np.ndarray | None) -> GPower:
    began = perf_counter()
    A = A.copy()
    d, n = A.shape
    found = GPower(np.zeros((d, m)), np.zeros((n, m)), 0.0, converged=True)
    squares = np.einsum("ij,ij->i", A, A)
    flops = 2.0 * A.size
    for j in range(m):
        level = rules.threshold(float(np.sqrt(squares.max())))
        kept = np.flatnonzero(np.sqrt(squares) > level)
        B = A[kept]
        u = (
            B[np.argmax(squares[kept])]
            if start is None and len(kept)
            else (A[0] if start is None else start[:, j])
        )
        u = u / (np.linalg.norm(u) or 1.0)
        value = -np.inf
        for k in range(rules.max_iter + 1):
            s = B @ u
            before, value = value, rules.shrink(level, s[None])
            flops += (2 * n + 3) * len(s)
            if value - before <= rules.tol * value or value == 0.0:
                break
            if k == rules.max_iter:
                found.converged = False
                break
            rows = np.flatnonzero(s)
            # Few non-zeros: a product with their rows alone.
            few = 4 * len(rows) < len(s)
            v = s[rows] @ B[rows] if few else s @ B
            flops += 2 * n * (1 + (len(rows) if few else len(s)))
            u = v / np.linalg.norm(v)
            found.iterations += 1
        found.value += value
        found.U[:, j] = u
        found.Z[kept, j] = unit_rows(s[None])[0]
        rows = np.flatnonzero(found.Z[:, j])
        if rules.fill and len(rows):
            filled, spent = fill_pattern(
                A[rows].T, found.Z[rows, j][None], tol=rules.tol, max_iter=rules.max_iter
            )
            found.Z[rows, j] = filled[0]
            flops += spent
        z = found.Z[rows, j]
        A[rows] -= np.outer(z, z @ A[rows])
        squares[rows] = np.einsum("ij,ij->i", A[rows], A[rows])
        flops += 6 * n * len(rows)
        found.values.append(found.value)
        found.seconds.append(perf_counter() - began)
        found.flops.append(flops)
    return found
