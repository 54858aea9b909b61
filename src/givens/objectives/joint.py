"""Joint diagonalisation: the orthogonal U that makes every UᵀC_kU as diagonal as it can be.

    f(U) = Σ_k Σ_{i≠j} (UᵀC_kU)_ij²

Each rotation has a closed form (Cardoso and Souloumiac 1996). With one symmetric matrix this is Jacobi's eigenvalue method,
and `scipy.linalg.eigh` is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import EPS, check_data, power, power_of_two
from givens.objectives.base import Blocks, Look, Objective, Plan, Rotations, Solved
from givens.schedules import Tournament
from givens.support.arguments import as_array


class JointDiagonal(Objective):
    """The sum of squared off-diagonal entries of UᵀC_kU.

    Parameters
    ----------
    matrices : array, shape (K, n, n) or (n, n)
        Real matrices. If they are not symmetric, only their symmetric parts can be made diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import JointDiagonal
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> result = minimize(JointDiagonal(A))
    >>> np.sort(np.diag(result.U.T @ A @ result.U))
    array([1., 3.])
    """

    def __init__(self, matrices: np.ndarray) -> None:
        C = as_array(matrices, "matrices")
        if C.ndim == 2:
            C = C[None]
        if C.ndim != 3 or C.shape[1] != C.shape[2] or C.shape[0] < 1 or C.shape[1] < 1:
            raise ValueError(
                f"matrices must be square, of shape (K, n, n) or (n, n), got shape {np.shape(matrices)}"
            )
        C = check_data(C, "matrices")
        self.divisor = power_of_two(C)
        C = np.ascontiguousarray(np.moveaxis(C, 0, -1), dtype=np.float64) / self.divisor
        self.n = self.active = len(C)
        self.factor = power(self.divisor, 2)
        self.scale = float(np.sum(C**2)) or 1.0
        # Antisymmetric parts add a constant to f: their entries are all off the diagonal, and rotations keep their norm.
        self.constant = 0.0
        transposed = C.swapaxes(0, 1)
        if not np.array_equal(C, transposed):
            self.constant = 0.25 * float(np.sum((C - transposed) ** 2))
            C = 0.5 * (C + transposed)
        self.C = C
        # Smaller gains are rounding: a gain is the square of the entries that it removes.
        self.least = (8 * EPS) ** 2 * self.scale

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The identity."""
        return np.eye(self.n)

    def plan(self) -> Plan:
        """Sweeps in blocks that are large enough for matrix products and small enough for the cache."""
        return Plan(schedule=Tournament(block=64), state_flops=4.0 * self.C.size * self.n)

    def data(self) -> list[np.ndarray]:
        """The symmetric parts of the matrices, the power of two they were divided by, and the constant."""
        return [self.C, np.array([self.divisor, self.constant])]

    def state(self, U: np.ndarray) -> np.ndarray:
        """The rotated matrices UᵀC_kU, as an array with the indices i, j, k."""
        state = self.C.copy()
        if not np.array_equal(U, np.eye(self.n)):
            self.apply(state, [np.arange(self.n)], [U])
        return state

    def value(self, state: np.ndarray) -> float:
        """Evaluate f as a sum over off-diagonal entries; a difference of norms would cancel."""
        squares = np.sum(state**2, axis=2)
        return self.constant + float(squares.sum(where=~np.eye(self.n, dtype=bool)))

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> Solved:
        """Solve pairs by the closed form; for each larger block, rotate its pairs once, on a copy."""
        from givens.kernels import joint

        depth = state.shape[2]
        if isinstance(blocks, np.ndarray):
            rotations, gains, rotated = joint.solve_pairs(state, blocks, self.least)
            return Solved(rotations, gains, rotated, 9.0 * depth * len(blocks))
        rotations, gains, payload = [], [], []
        rotated, flops = 0, 0.0
        for block in blocks:
            b = len(block)
            i, j = np.triu_indices(b)
            entries = state[block[i], block[j]]
            Q, gain, turned = joint.solve_block(entries, b, self.least)
            rotations.append(Q)
            gains.append(gain)
            payload.append(entries if b == self.n else None)
            rotated += turned
            flops += b * (b - 1) / 2 * 9 * depth + turned * ((6.0 * b + 2) * depth + 6 * b)
        return Solved(rotations, np.array(gains), rotated, flops, payload)

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate the rows and columns of all matrices."""
        depth = state.shape[2]
        if isinstance(blocks, np.ndarray):
            from givens.kernels import joint

            joint.rotate_pairs(state, blocks, np.asarray(rotations))
            return 12.0 * len(blocks) * self.n * depth
        if payload is not None and payload[0] is not None:
            # One block of all columns: `solve` has rotated its entries.
            i, j = np.triu_indices(self.n)
            state[i, j] = state[j, i] = payload[0]
            return 0.0
        # All rows before all columns: within either, blocks have no entry in common.
        parallel.each(lambda k: _rotate_rows(state, blocks[k], rotations[k]), range(len(blocks)))
        parallel.each(lambda k: _rotate_columns(state, blocks[k], rotations[k]), range(len(blocks)))
        return sum(4.0 * len(block) ** 2 * self.n * depth for block in blocks)

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes −P and curvatures 4Q (see `kernels.joint`), from which the gains of all pairs follow."""
        from givens.kernels import joint

        turning = 0.0
        if Q is not None:
            state = state.copy()
            turning = self.apply(state, [np.arange(self.n)], [Q])
        value, first, second = joint.look(state)
        gains = partial(joint.gains_of_pairs, first, second, self.least)
        return Look(self.constant + value, first, second, turning + 5.5 * state.size, gains=gains)


def _rotate_rows(C: np.ndarray, block: np.ndarray, Q: np.ndarray) -> None:
    rows = C[block]
    C[block] = (Q.T @ rows.reshape(len(block), -1)).reshape(rows.shape)


def _rotate_columns(C: np.ndarray, block: np.ndarray, Q: np.ndarray) -> None:
    C[:, block] = np.matmul(Q.T, C[:, block])
