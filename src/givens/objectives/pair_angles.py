"""The best angle of two columns for any function of U, from values alone.

The pair problem g(θ) = f(U·G(i, j, θ)) is periodic. It is interpolated by a sum of harmonics, whose global minimum is found
(`harmonics`). If f is a polynomial of degree p in the entries of U, 2p+1 evaluations make this exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from givens.objectives.harmonics import Search, periodic, polynomial
from givens.rotations import turn


def rotated(x: np.ndarray, y: np.ndarray, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Two columns after a rotation."""
    c, s = math.cos(theta), math.sin(theta)
    return c * x + s * y, c * y - s * x


def with_columns(U: np.ndarray, active: int, i: int, j: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first `active` columns of U, with x in the place of column i, and y in that of j if this is one of them."""
    V = U[:, :active].copy()
    V[:, i] = x
    if j < active:
        V[:, j] = y
    return V


class BlockRotation(NamedTuple):
    """The rotation of a block of columns, pair by pair.

    Attributes
    ----------
    rotation : array
        Orthogonal, of the order of the block.
    gain : float
        The sum of the gains of the pairs.
    error : float
        The largest difference between f and a sum of harmonics.
    """

    rotation: np.ndarray
    gain: float
    error: float


class PairAngles(NamedTuple):
    """Searches of the angles of pairs.

    Attributes
    ----------
    f : callable
        A function of the first `active` columns of U.
    active : int
    degree : int or None
        The degree of f, if it is a polynomial in the entries of U.
    noise : float
        The rounding error of f.
    """

    f: Callable[[np.ndarray], float]
    active: int
    degree: int | None
    noise: float

    def rotation(self, Ut: np.ndarray, block: np.ndarray, value: float) -> BlockRotation:
        """Find the best angle of every pair of a block, one after the other."""
        size = len(block)
        Vt = Ut.copy() if size > 2 else Ut
        Q = np.eye(size)
        total, error = 0.0, 0.0
        for a in range(np.searchsorted(block, self.active)):
            for b in range(a + 1, size):
                search = self._search(Vt, (int(block[a]), int(block[b])), value)
                error = max(error, search.error)
                if not self._exceeds_rounding(search):
                    continue
                G = turn(search.theta)
                if size > 2:
                    Vt[block[[a, b]]] = G.T @ Vt[block[[a, b]]]
                Q[:, [a, b]] = Q[:, [a, b]] @ G
                value -= search.gain
                total += search.gain
        return BlockRotation(Q, total, error)

    def _search(self, Vt: np.ndarray, pair: tuple[int, int], value: float) -> Search:
        """The best angle of a pair."""
        U = np.ascontiguousarray(Vt.T)

        def g(theta: float) -> float:
            columns = rotated(Vt[pair[0]], Vt[pair[1]], theta)
            return self.f(with_columns(U, self.active, *pair, *columns))

        if self.degree is not None:
            return polynomial(g, value, self.degree, noise=self.noise)
        return periodic(g, value, noise=self.noise)

    def _exceeds_rounding(self, search: Search) -> bool:
        """Whether the gain is more than rounding error.

        A large angle must gain more than the noise of f. A small angle, in the basin of θ = 0, is judged by the slope at 0, which
        is as accurate as the values: from differences of values, an angle would be known to the square root of eps only.
        """
        if search.gain <= 0:
            return False
        if search.gain > self.noise:
            return True
        order = max(search.harmonics.order, 1)
        slope = abs(search.harmonics.slope)
        # A search that reached the limit of harmonics has tested its slope itself.
        small = abs(search.theta) < 1e-3 / order if search.resolved else abs(search.theta) < 1e-2
        return small and (slope > self.noise * order or not search.resolved)
