"""Givens rotations: build, apply, compose; factor an orthogonal matrix into them; measure and repair rounding errors.

Multiplied from the right, G(i, j, θ) rotates columns i and j: with c = cos θ and s = sin θ,

    y_i ← c·y_i + s·y_j        y_j ← c·y_j − s·y_i,

so that G_ii = G_jj = c, G_ji = s and G_ij = −s. Rotations keep an orthogonal matrix orthogonal up to rounding errors. These grow
like a random walk, and one Newton-Schulz step removes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.scaling import check_data
from givens.support.arguments import as_array, generator, whole

if TYPE_CHECKING:
    from givens.objectives.base import Blocks, Rotations

__all__ = ["compose", "factor", "random_orthogonal", "rotate", "rotate_blocks", "rotation", "turn"]


def turn(theta: float | np.ndarray) -> np.ndarray:
    """The 2 x 2 matrices of rotations.

    Parameters
    ----------
    theta : float or array
        Angles in radians.

    Returns
    -------
    array of float64, shape (..., 2, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import turn
    >>> (np.array([[3.0, 4.0]]) @ turn(np.arctan2(4, 3))).round(12)
    array([[5., 0.]])
    """
    theta = np.asarray(theta, dtype=np.float64)
    c, s = np.cos(theta), np.sin(theta)
    Q = np.empty((*theta.shape, 2, 2))
    Q[..., 0, 0] = Q[..., 1, 1] = c
    Q[..., 1, 0] = s
    Q[..., 0, 1] = -s
    return Q


def rotation(n: int, i: int, j: int, theta: float) -> np.ndarray:
    """The n x n matrix G(i, j, θ).

    Parameters
    ----------
    n : int
        Order of the matrix.
    i : int
        The first column to rotate.
    j : int
        The second one.
    theta : float
        The angle in radians.

    Returns
    -------
    array of float64, shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import rotation
    >>> rotation(3, 0, 2, np.pi / 6).round(3)
    array([[ 0.866,  0.   , -0.5  ],
           [ 0.   ,  1.   ,  0.   ],
           [ 0.5  ,  0.   ,  0.866]])
    """
    n = whole(n, "n", least=1)
    _check_pair(n, i, j)
    if not np.isfinite(theta):
        raise ValueError(f"theta must be a finite angle, got {theta!r}")
    G = np.eye(n)
    G[np.ix_([i, j], [i, j])] = turn(theta)
    return G


def rotate(Y: np.ndarray, i: int, j: int, theta: float) -> np.ndarray:
    """Y·G(i, j, θ), a copy of Y with columns i and j rotated.

    Parameters
    ----------
    Y : array, shape (rows, n)
    i : int
        The first column to rotate.
    j : int
        The second one.
    theta : float
        The angle in radians.

    Returns
    -------
    array, shape (rows, n)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import rotate
    >>> np.abs(rotate(np.eye(3), 0, 2, np.pi / 2).round(12))
    array([[0., 0., 1.],
           [0., 1., 0.],
           [1., 0., 0.]])
    """
    Y = np.array(Y, dtype=np.result_type(np.asarray(Y).dtype, np.float32))
    _check_pair(Y.shape[1], i, j)
    Y[:, [i, j]] = Y[:, [i, j]] @ turn(theta)
    return Y


@dataclass(frozen=True)
class Factors:
    """An orthogonal matrix as rotations and signs: U = G(i₁, j₁, θ₁) ··· G(i_K, j_K, θ_K) · diag(signs).

    Attributes
    ----------
    pairs : array of int, shape (K, 2)
    angles : array of float64, shape (K,)
        Each in [−π/2, π/2].
    signs : array of float64, shape (n,)
        ±1 each; their product is the determinant of U.
    """

    pairs: np.ndarray
    angles: np.ndarray
    signs: np.ndarray

    def compose(self) -> np.ndarray:
        """The matrix U.

        Examples
        --------
        >>> import numpy as np
        >>> from givens import rotations
        >>> U = rotations.random_orthogonal(5, np.random.default_rng(0))
        >>> np.allclose(rotations.factor(U).compose(), U)
        True
        """
        return compose(len(self.signs), self.pairs, self.angles) * self.signs


def compose(n: int, pairs: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The product G(i₁, j₁, θ₁) ··· G(i_K, j_K, θ_K) of n x n rotations.

    Parameters
    ----------
    n : int
        Order of the matrices.
    pairs : array of int, shape (K, 2)
    angles : array, shape (K,)

    Returns
    -------
    array of float64, shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import compose, rotation
    >>> U = compose(3, [(0, 1), (1, 2)], [0.3, 0.2])
    >>> np.allclose(U, rotation(3, 0, 1, 0.3) @ rotation(3, 1, 2, 0.2))
    True
    """
    U = np.eye(n)
    for (i, j), Q in zip(np.asarray(pairs, dtype=int).reshape(-1, 2), turn(angles)):
        _check_pair(n, i, j)
        U[:, [i, j]] = U[:, [i, j]] @ Q
    return U


def factor(U: np.ndarray) -> Factors:
    """Factor an orthogonal matrix into at most n(n−1)/2 rotations and signs.

    The columns of Uᵀ are rotated until it is diagonal: row by row, each rotation annihilates one entry.

    Parameters
    ----------
    U : array, shape (n, n)
        Orthogonal.

    Returns
    -------
    Factors

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import factor
    >>> parts = factor(np.array([[0.6, 0.8], [0.8, -0.6]]))
    >>> parts.angles.round(4), parts.signs
    (array([0.9273]), array([ 1., -1.]))
    """
    U = check_orthogonal(U)
    n = len(U)
    V = U.T.copy()
    pairs, angles = [], []
    for i in range(n):
        for j in range(i + 1, n):
            if V[i, j] == 0:
                continue
            # The sign of V_ii goes into `signs`, so that the angle is at most a quarter turn.
            theta = np.arctan2(np.copysign(V[i, j], V[i, j] * V[i, i]), abs(V[i, i]))
            V[:, [i, j]] = V[:, [i, j]] @ turn(theta)
            pairs.append((i, j))
            angles.append(theta)
    signs = np.where(np.diag(V) < 0, -1.0, 1.0)
    return Factors(np.array(pairs, dtype=int).reshape(-1, 2), np.array(angles, dtype=float), signs)


def orthogonality(U: np.ndarray) -> float:
    """How far U is from orthogonal: the Frobenius norm of UᵀU − I.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import orthogonality
    >>> orthogonality(np.diag([1.0, 2.0]))
    3.0
    """
    U = _matrix(U)
    excess = U.T @ U
    excess.reshape(-1)[:: len(excess) + 1] -= 1.0
    return math.sqrt(np.vdot(excess, excess))


def repair(U: np.ndarray) -> np.ndarray:
    """Remove the rounding errors of a nearly orthogonal U: U(3I − UᵀU)/2, a Newton-Schulz step towards the polar factor.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import orthogonality, random_orthogonal, repair
    >>> U = 1.0001 * random_orthogonal(5, 0)
    >>> bool(orthogonality(repair(U)) < 1e-6 < orthogonality(U))
    True
    """
    U = _matrix(U)
    return U @ (1.5 * np.eye(U.shape[1]) - 0.5 * (U.T @ U))


def determinant(U: np.ndarray) -> int:
    """The determinant of an orthogonal U, 1 or −1: the component of O(n) that it is in.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import determinant
    >>> determinant(np.diag([1.0, -1.0]))
    -1
    """
    U = _matrix(U)
    if U.shape[0] != U.shape[1]:
        raise ValueError(f"U must be a square matrix, got shape {U.shape}")
    return 1 if np.linalg.slogdet(U)[0] > 0 else -1


def random_orthogonal(
    n: int,
    rng: np.random.Generator | int | None = None,
    determinant: int | None = None,
    *,
    columns: int | None = None,
) -> np.ndarray:
    """An orthogonal matrix from the uniform (Haar) distribution on O(n), or on one of its two components.

    Parameters
    ----------
    n : int
        Order of the matrix.
    rng : Generator or int, optional
        Random generator, or its seed.
    determinant : 1 or -1, optional
        The component of O(n); by default both are equally likely.
    columns : int, optional
        Draw an n x columns matrix with orthonormal columns instead of a square one; such matrices have no determinant.

    Returns
    -------
    array of float64, shape (n, n) or (n, columns)

    Examples
    --------
    >>> from givens.rotations import orthogonality, random_orthogonal
    >>> U = random_orthogonal(5, 0, determinant=1)
    >>> bool(orthogonality(U) < 1e-14)
    True
    """
    n, rng = whole(n, "n", least=1), generator(rng)
    m = n if columns is None else whole(columns, "columns", 1, n, "the order n")
    # The Q of a Gaussian matrix is uniform if the diagonal of R is made positive.
    Q, R = np.linalg.qr(rng.standard_normal((n, m)))
    U = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return U if determinant is None else with_determinant(U, determinant)


def with_determinant(U: np.ndarray, sign: int) -> np.ndarray:
    """U itself if it has the determinant `sign`, else U with its last column reversed.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import with_determinant
    >>> with_determinant(np.eye(2), -1).diagonal()
    array([ 1., -1.])
    """
    if determinant(U) == sign:
        return U
    U = np.array(U, dtype=np.float64)
    U[:, -1] *= -1
    return U


def complete(V: np.ndarray) -> np.ndarray:
    """An orthogonal matrix whose first columns are V, an n x m matrix with orthonormal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import complete, orthogonality
    >>> U = complete(np.array([[0.6], [0.8]]))
    >>> U[:, 0], bool(orthogonality(U) < 1e-14)
    (array([0.6, 0.8]), True)
    """
    V = _matrix(V)
    U = np.linalg.qr(V, mode="complete")[0]
    U[:, : V.shape[1]] = V
    return U


def check_orthogonal(
    U: np.ndarray, name: str = "U", tolerance: float = 1e-6, columns: int | None = None
) -> np.ndarray:
    """Check that U is orthogonal, and remove its rounding errors.

    Parameters
    ----------
    U : array, shape (n, n)
    name : str, default="U"
        What error messages call it.
    tolerance : float, default=1e-6
        Largest ‖UᵀU − I‖ that is accepted, divided by n.
    columns : int, optional
        U must be an n x columns matrix with orthonormal columns, instead of a square one.

    Returns
    -------
    array of float64
        A copy, orthogonal up to rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.rotations import check_orthogonal
    >>> check_orthogonal(np.array([[0, 1], [1, 0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    U = as_array(U, name)
    if U.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be a real matrix, got values of type {U.dtype}")
    if U.ndim != 2 or U.shape[0] < 1 or U.shape[1] != (U.shape[0] if columns is None else columns):
        form = "square matrix" if columns is None else f"matrix of {columns} columns"
        raise ValueError(f"{name} must be a {form}, got shape {U.shape}")
    U = np.array(U, dtype=np.float64, order="C")
    if not np.isfinite(U).all():
        where = np.argwhere(~np.isfinite(U))[0]
        raise ValueError(f"{name} must be finite, got {U[tuple(where)]} at row {where[0]}, column {where[1]}")
    defect = orthogonality(U)
    if defect > tolerance * len(U):
        raise ValueError(
            f"{name} must be orthogonal, but ‖UᵀU − I‖ = {defect:.3g} (allowed: {tolerance * len(U):.3g}); "
            "take its polar factor, or the Q of its QR factorisation"
        )
    # A matrix of single precision is accepted, without its rounding errors.
    return repair(U) if defect > 1e-13 * len(U) else U


def rotate_blocks(Ut: np.ndarray, blocks: Blocks, rotations: Rotations) -> None:
    """Rotate columns of U, stored transposed, in place: U[:, B] ← U[:, B] Q for every block B."""
    if isinstance(blocks, np.ndarray) and blocks.shape[1] == 2:
        from givens.kernels.rotate import rotate_rows

        flop_counts.count(6.0 * len(blocks) * Ut.shape[1])
        rotate_rows(Ut, blocks, np.asarray(rotations))
        return
    for block, Q in zip(blocks, rotations):
        flop_counts.count(2.0 * len(block) ** 2 * Ut.shape[1])
        if len(block) == len(Ut):
            Ut[:] = Q.T @ Ut
        else:
            Ut[block] = Q.T @ Ut[block]


def _matrix(U: np.ndarray) -> np.ndarray:
    """Check that U is a matrix of real numbers; quickly for arrays of floats, since every step calls this."""
    if type(U) is np.ndarray and U.ndim == 2 and U.dtype in (np.float64, np.float32):
        return U
    return check_data(U, "U", 2)


def _check_pair(n: int, i: int, j: int) -> None:
    if not (0 <= i < n and 0 <= j < n and i != j):
        raise ValueError(f"a rotation turns two different columns between 0 and {n - 1}, got {i} and {j}")
