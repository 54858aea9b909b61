"""Points: the matrix of a run, and where a step from it leads.

A step has a coordinate for every pair of columns, the angle by which they rotate.

For a square U the step with the antisymmetric matrix K of all angles is U ← U Cay(K), where Cayley's transform
Cay(K) = (I − K/2)⁻¹(I + K/2) agrees with exp(K) to second order. Coordinates belong to the columns, which move, so those of
different steps can be compared directly.

For an n x m matrix V of orthonormal columns, the first m of U = [V W], W is not known, and the angles with columns of W are given
by an n x m matrix D = W B in the coordinates of the space (`objectives.angle_derivatives`). With the angles M inside V, and K as
above, the same step is

    U Cay(K) = Cay(S) U,    S = U K Uᵀ = F Vᵀ − V Fᵀ,    F = D + V Mᵀ/2,

and with X = [F V] and P = [0 I; −I 0], so that S = X P Xᵀ,

    Cay(S)  =  I + X C Xᵀ,    C = (I − P XᵀX/2)⁻¹ P,

which takes products of n x 2m matrices only (Wen and Yin 2013). W moves by the same Cay(S), and so would the matrices D and R
of earlier steps. They are left as they are: to move them would take more time than the rest of a step, and saves no evaluation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.cayley import turned
from givens.objectives.angle_derivatives import few_slopes, square_slopes
from givens.objectives.base import Blocks, Rotations
from givens.rotations import complete, repair, rotate_blocks

MAX_ANGLE = 0.8
"""The largest angle of a step, of two columns or of a column of an n x m matrix, in radians: Cayley's transform agrees with the
exponential to second order only, and slopes further away could not be compared with those here."""


class Move(NamedTuple):
    """A direction from a point.

    Attributes
    ----------
    promised : float
        By how much f decreases along the step, as its slopes predict.
    longest : float
        The factor by which the step may be lengthened.
    generator : array
        Of the rotation: for a square U the antisymmetric K, for n x m matrices X = [F V], of which S is made.
    """

    promised: float
    longest: float
    generator: np.ndarray


class Point:
    """The matrix of a run: here a square U, whose steps rotate it by one matrix, the product of all since the state was made.

    Attributes
    ----------
    Ut : array
        Uᵀ, so that a column of U is a contiguous row: where the state of the objective was made, and turned since by `rotate`.
        For an n x m matrix, further columns may follow the first m.
    rotation : array or None
        By which U has been rotated since the state was made; None if it has not, and always for n x m matrices.
    in_place : bool
        Whether columns have been rotated in place, so that rounding errors add up.
    """

    in_place = False

    def __init__(self, Ut: np.ndarray, active: int, rotation: np.ndarray | None = None) -> None:
        self.Ut, self.active, self.rotation = Ut, active, rotation
        self._transposed: np.ndarray | None = None

    @property
    def matrix(self) -> np.ndarray:
        """U, n x n or n x m, with orthonormal columns."""
        return self.base if self.rotation is None else repair(self.Ut.T @ self.rotation)

    @property
    def base(self) -> np.ndarray:
        """The matrix of all columns at which the state is made."""
        return np.ascontiguousarray(self.Ut.T)

    @property
    def transposed(self) -> np.ndarray:
        """Uᵀ of a square U as it is, not repaired."""
        if self.rotation is None:
            return self.Ut
        if self._transposed is None:
            self._transposed = self.rotation.T @ self.Ut
        return self._transposed

    @property
    def pairs(self) -> np.ndarray:
        """Where the slopes of the coordinates are in `Look.slopes`, as flat indices: all pairs i < j with i < active."""
        return _flat_indices(len(self.Ut), self.active)

    def aim(self, direction: np.ndarray, slopes: np.ndarray) -> Move:
        """The step −H g for the direction H g, which it becomes in place, shortened if an angle is above `MAX_ANGLE`."""
        from givens.kernels.quasi_newton import bounded

        skew = np.zeros(self.Ut.shape)
        promised, longest = bounded(direction, slopes, self.pairs, MAX_ANGLE, skew)
        return Move(promised, longest, skew)

    def moved(self, step: Move, length: float = 1.0) -> Point:
        """The point after this multiple of a step: by Cayley's transform, a product and a repair."""
        flop_counts.count(26.0 / 3.0 * len(self.Ut) ** 3)
        here = np.eye(len(self.Ut)) if self.rotation is None else self.rotation
        return Point(self.Ut, self.active, turned(here, step.generator, length))

    def largest(self, angles: np.ndarray) -> float:
        """The largest angle of a step with these coordinates."""
        return float(np.abs(angles).max())

    def norm(self, slopes: np.ndarray) -> float:
        """The norm of the Riemannian gradient, by the slopes of a look; every pair occurs twice in the antisymmetric matrix."""
        return float(np.vdot(slopes, slopes)) ** 0.5

    def slopes_of(self, E: np.ndarray) -> np.ndarray:
        """The slopes of a look, EᵀU − UᵀE, from the gradient E = ∂f/∂U, of as many columns as the matrix."""
        return square_slopes(E, self.matrix)

    def slopes_of_pairs(self, slopes: np.ndarray) -> np.ndarray:
        """The slopes of a look as an antisymmetric matrix of the order of all columns."""
        return slopes

    def completed(self) -> Point:
        """A copy with as many columns as rows, which may be rotated in place."""
        return Point(self.Ut.copy(), self.active)

    def rebased(self) -> Point:
        """The same matrix, repaired, as a point whose state is to be made."""
        flop_counts.count(4.0 * len(self.Ut) * self.Ut.size)
        U = self.matrix if self.rotation is not None else repair(self.matrix)
        return type(self)(np.ascontiguousarray(U.T), self.active)

    def rotate(self, blocks: Blocks, rotations: Rotations) -> None:
        """Rotate columns in place, a block by each rotation."""
        rotate_blocks(self.Ut, blocks, rotations)


class Stiefel(Point):
    """An n x m matrix V of orthonormal columns, and further columns where rotations of pairs need them."""

    @property
    def matrix(self) -> np.ndarray:
        """V."""
        return np.ascontiguousarray(self.Ut[: self.active].T)

    @property
    def pairs(self) -> np.ndarray:
        """The pairs inside V, and all entries of R."""
        return _stiefel_indices(self.Ut.shape[1], self.active)[0]

    def aim(self, direction: np.ndarray, slopes: np.ndarray) -> Move:
        """No column moves by more than `MAX_ANGLE`."""
        m, V = self.active, self.matrix
        _, inside = _stiefel_indices(len(V), m)
        D = direction[len(inside[0]) :].reshape(V.shape)
        D -= V @ (V.T @ D)  # H may have added multiples of the columns
        most = self.largest(direction)
        shrink = min(1.0, MAX_ANGLE / most) if most > 0.0 else 1.0
        direction *= -shrink
        M = np.zeros((m, m))
        M[inside] = direction[: len(inside[0])]
        X = np.empty((len(V), 2 * m))
        np.add(D, V @ (0.5 * (M.T - M)), out=X[:, :m])
        X[:, m:] = V
        longest = MAX_ANGLE / (shrink * most) if most > 0.0 else 1.0
        return Move(-float(direction @ slopes), longest, X)

    def moved(self, step: Move, length: float = 1.0) -> Stiefel:
        """By Cayley's transform of S, from products of n x 2m matrices, and a repair."""
        m, X = self.active, step.generator
        gram = X.T @ X
        flop_counts.count(26.0 * self.Ut.shape[1] * m**2)
        eye, P = _eye_and_P(m)
        C = np.linalg.solve(eye / length - 0.5 * (P @ gram), P)
        V = X @ (C @ gram[:, m:])
        V += X[:, m:]
        return Stiefel(repair(V).T, m)

    def largest(self, angles: np.ndarray) -> float:
        """The largest angle by which a column moves."""
        m, n = self.active, self.Ut.shape[1]
        _, inside = _stiefel_indices(n, m)
        skip = len(inside[0])
        beyond = angles[skip:].reshape(n, m)
        squares = np.einsum("ij,ij->j", beyond, beyond)
        for k in inside:
            squares += np.bincount(k, angles[:skip] ** 2, m)
        return float(np.sqrt(squares.max()))

    def norm(self, slopes: np.ndarray) -> float:
        """Every pair inside V occurs twice, those with columns beside it once."""
        beyond = slopes[self.active :]
        return float(np.vdot(slopes, slopes) + np.vdot(beyond, beyond)) ** 0.5

    def slopes_of(self, E: np.ndarray) -> np.ndarray:
        """Those inside V, and R."""
        return few_slopes(E, self.matrix)

    def slopes_of_pairs(self, slopes: np.ndarray) -> np.ndarray:
        """Those with the further columns are RᵀW."""
        m = self.active
        upper = np.zeros((len(self.Ut), len(self.Ut)))
        upper[:m, :m] = np.triu(slopes[:m])
        upper[:m, m:] = slopes[m:].T @ self.Ut[m:].T
        return upper - upper.T

    def completed(self) -> Stiefel:
        """V with any other columns that complete it, if it has none."""
        n, m = self.Ut.shape[1], self.active
        return Stiefel(self.Ut.copy() if len(self.Ut) == n else complete(self.matrix).T.copy(), m)


@lru_cache(maxsize=8)
def _flat_indices(n: int, active: int) -> np.ndarray:
    """The flat indices of the pairs (i, j), i < j and i < active, in a matrix of order n, row by row."""
    i, j = np.triu_indices(n, 1)
    return np.ascontiguousarray((i * n + j)[i < active])


@lru_cache(maxsize=8)
def _eye_and_P(m: int) -> tuple[np.ndarray, np.ndarray]:
    eye = np.eye(2 * m)
    return eye, np.concatenate([eye[m:], -eye[:m]])


@lru_cache(maxsize=8)
def _stiefel_indices(n: int, m: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Flat indices of all coordinates in an array of m + n rows and m columns; rows and columns of those inside V."""
    i, j = np.triu_indices(m, 1)
    return np.concatenate([i * m + j, np.arange(m * m, m * (m + n))]), (i, j)
