"""Charts: where a step of descent leads, and whether the steps and slopes before it can be compared with those after it.

A chart of the matrices around the present one has a coordinate for every pair of columns, the angle by which they rotate.

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
of earlier steps. They are left as they are, since that takes more time than the rest of a step, and for short steps saves no
evaluation; after a step that moves a column by more than `FAR` they are forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from givens.numerics.cayley import turned
from givens.rotations import repair

LARGEST_ANGLE = 0.8  # the largest angle of a step, in radians
LARGEST_MOVE = 1.5  # the largest angle by which a column of an n x m matrix moves
FAR = 0.6  # the angle above which earlier steps of n x m matrices are forgotten


class Place(NamedTuple):
    """Where a step leads.

    Attributes
    ----------
    matrix : array
        For a square U, the rotation Q from the U of the state, so that U @ Q is the place. For an n x m matrix, the place.
    far : bool
        Whether the step is so long that steps and slopes before it cannot be compared with those after it.
    """

    matrix: np.ndarray
    far: bool = False


class Chart(ABC):
    """Coordinates of the steps from the present matrix.

    Attributes
    ----------
    pairs : array of int
        Where the slopes of the coordinates are in `Look.slopes`, as flat indices.
    """

    pairs: np.ndarray

    @abstractmethod
    def begin(self, U: np.ndarray) -> Place:
        """The place of the present matrix."""

    @abstractmethod
    def largest(self, step: np.ndarray) -> float:
        """The largest angle of a step with these coordinates."""

    @abstractmethod
    def aim(self, here: Place, direction: np.ndarray, slopes: np.ndarray) -> tuple[float, float]:
        """Turn H g into the step −H g, in place, and shorten it if an angle is too large.

        Returns the decrease of f that the slopes predict, and the factor by which the step may be lengthened.
        """

    @abstractmethod
    def at(self, here: Place, factor: float) -> Place:
        """The place after this multiple of the step that was aimed at last."""


class SquareChart(Chart):
    """The angles of all pairs of columns of a square U, which stay the same while columns move."""

    def __init__(self, n: int, active: int) -> None:
        from givens.kernels.quasi_newton import bounded

        self._bounded = bounded
        self.pairs = _flat_indices(n, active)
        self.skew = np.zeros((n, n))

    def begin(self, U: np.ndarray) -> Place:
        """No rotation."""
        return Place(np.eye(len(U)))

    def largest(self, step: np.ndarray) -> float:
        """The largest angle of two columns."""
        return float(np.abs(step).max())

    def aim(self, here: Place, direction: np.ndarray, slopes: np.ndarray) -> tuple[float, float]:
        """No angle above `LARGEST_ANGLE`."""
        return self._bounded(direction, slopes, self.pairs, LARGEST_ANGLE, self.skew)  # type: ignore[no-any-return]

    def at(self, here: Place, factor: float) -> Place:
        """By Cayley's transform."""
        return Place(turned(here.matrix, self.skew, factor))


class StiefelChart(Chart):
    """The angles of pairs of columns inside an n x m matrix, and of its columns with the rest of the space."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        i, j = self.inside = np.triu_indices(m, 1)
        self.skip = len(i)  # coordinates inside, which come first
        self.pairs = np.concatenate([i * m + j, np.arange(m * m, m * (m + n))])
        self.eye = np.eye(2 * m)
        self.P = np.block([[np.zeros((m, m)), np.eye(m)], [-np.eye(m), np.zeros((m, m))]])

    def begin(self, U: np.ndarray) -> Place:
        """The matrix itself, without the columns that complete it."""
        return Place(np.ascontiguousarray(U[:, : self.m]))

    def largest(self, step: np.ndarray) -> float:
        """The largest angle by which a column moves."""
        beyond = step[self.skip :].reshape(self.n, self.m)
        squares = np.einsum("ij,ij->j", beyond, beyond)
        for k in self.inside:
            squares += np.bincount(k, step[: self.skip] ** 2, self.m)
        return float(np.sqrt(squares.max()))

    def aim(self, here: Place, direction: np.ndarray, slopes: np.ndarray) -> tuple[float, float]:
        """No column moves by more than `LARGEST_MOVE`."""
        m, V = self.m, here.matrix
        D = direction[self.skip :].reshape(self.n, m)
        D -= V @ (V.T @ D)  # H may have added multiples of the columns
        most = self.largest(direction)
        shrink = min(1.0, LARGEST_MOVE / most) if most > 0.0 else 1.0
        direction *= -shrink
        M = np.zeros((m, m))
        M[self.inside] = direction[: self.skip]
        X = np.empty((self.n, 2 * m))
        np.add(D, V @ (0.5 * (M.T - M)), out=X[:, :m])
        X[:, m:] = V
        self.X, self.gram, self.move = X, X.T @ X, shrink * most
        return -float(direction @ slopes), LARGEST_MOVE / self.move if most > 0.0 else 1.0

    def at(self, here: Place, factor: float) -> Place:
        """By Cayley's transform of S, from products of n x 2m matrices."""
        C = np.linalg.solve(self.eye / factor - 0.5 * (self.P @ self.gram), self.P)
        V = self.X @ (C @ self.gram[:, self.m :])
        V += here.matrix
        return Place(repair(V), factor * self.move > FAR)


@lru_cache(maxsize=8)
def _flat_indices(n: int, active: int) -> np.ndarray:
    """The flat indices of the pairs (i, j), i < j and i < active, in a matrix of order n, row by row."""
    i, j = np.triu_indices(n, 1)
    return np.ascontiguousarray((i * n + j)[i < active])
