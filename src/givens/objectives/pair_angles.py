"""The best angle of two columns for any function of U, from values alone.

The pair problem g(θ) = f(U·G(i, j, θ)) is periodic. It is interpolated by a sum of harmonics, whose global minimum is found
(`harmonics`). If f is a polynomial of degree p in the entries of U, 2p+1 evaluations make this exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from givens.objectives.harmonics import FIRST_POINTS, MAX_HARMONICS, Search, periodic, polynomial
from givens.rotations import turn


class BlockRotation(NamedTuple):
    """The rotation of a block of columns, pair by pair.

    Attributes
    ----------
    rotation : array
        Orthogonal, of the order of the block.
    gain : float
        The sum of the gains of the pairs.
    points : int
        The number of points with which the next search begins.
    error : float
        The largest difference between f and a sum of harmonics.
    """

    rotation: np.ndarray
    gain: float
    points: int
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

    def rotation(self, Ut: np.ndarray, block: np.ndarray, value: float, points: int) -> BlockRotation:
        """Find the best angle of every pair of a block, one after the other.

        The number of points affects the rounding errors of the next search. It is passed from pair to pair within a block, and
        to the state by `Function.apply`, so that results do not depend on how threads share the blocks.
        """
        size = len(block)
        Vt = Ut.copy() if size > 2 else Ut
        Q = np.eye(size)
        total, error = 0.0, 0.0
        for a in range(np.searchsorted(block, self.active)):
            for b in range(a + 1, size):
                search, points = self._search(Vt, (int(block[a]), int(block[b])), value, points)
                error = max(error, search.error)
                if not self._exceeds_rounding(search):
                    continue
                G = turn(search.theta)
                if size > 2:
                    Vt[block[[a, b]]] = G.T @ Vt[block[[a, b]]]
                Q[:, [a, b]] = Q[:, [a, b]] @ G
                value -= search.gain
                total += search.gain
        return BlockRotation(Q, total, points, error)

    def _search(self, Vt: np.ndarray, pair: tuple[int, int], value: float, points: int) -> tuple[Search, int]:
        """The best angle of a pair, and the number of points with which the next search begins."""
        i, j = pair

        def g(theta: float) -> float:
            U = Vt[: self.active].T.copy()
            c, s = math.cos(theta), math.sin(theta)
            U[:, i] = c * Vt[i] + s * Vt[j]
            if j < self.active:
                U[:, j] = c * Vt[j] - s * Vt[i]
            return self.f(U)

        if self.degree is not None:
            return polynomial(g, value, self.degree, noise=self.noise), points
        search = periodic(g, value, points=points, noise=self.noise)
        return search, min(max(FIRST_POINTS, 4 * search.harmonics.order), 4 * MAX_HARMONICS)

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
