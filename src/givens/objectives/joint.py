"""Joint diagonalisation: the orthogonal U that makes every UᵀC_kU as diagonal as it can be.

    f(U) = Σ_k Σ_{i≠j} (UᵀC_kU)_ij²  =  Σ_k ‖C_k‖² − Σ_i Σ_k (u_iᵀC_ku_i)²

Each rotation has a closed form (Cardoso and Souloumiac 1996). With one symmetric matrix this is Jacobi's eigenvalue method,
and `scipy.linalg.eigh` is faster.

Multiples of the identity do not matter for f, but they do for rounding errors: they are subtracted first, so that the diagonal of
every C_k has the mean 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import EPS, check_data, power, power_of_two
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Product, Rotations
from givens.objectives.contrasts import quarter_gains, second_of_columns
from givens.rotations import turn
from givens.schedules import Tournament


@dataclass
class RotatedStack(PairSolutions):
    """The solution of a block of all columns, and the upper triangles of the rotated matrices."""

    entries: Sequence[np.ndarray] = ()


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
        C = check_data(matrices, "matrices")
        if C.ndim == 2:
            C = C[None]
        if C.ndim != 3 or C.shape[1] != C.shape[2] or C.shape[0] < 1 or C.shape[1] < 1:
            raise ValueError(
                f"matrices must be square, of shape (K, n, n) or (n, n), got shape {np.shape(matrices)}"
            )
        self.divisor = power_of_two(C)
        C = np.ascontiguousarray(np.moveaxis(C, 0, -1), dtype=np.float64) / self.divisor
        self.n = self.active = len(C)
        self.shape = (self.n, self.n)
        # Blocks are large enough for matrix products and small enough for the cache. On flat problems, where sweeps gain little,
        # they give way to descent and Newton's method.
        sweeps, newton = Tournament(block=64), () if self.second is None else ("newton",)
        self.method = (sweeps, "descent", *newton, sweeps)
        subtract_mean_of_diagonals(C)
        self.factor = power(self.divisor, 2)
        # Not by BLAS, whose threads would spin beside the run.
        self.scale = float(np.einsum("ijk,ijk", C, C)) or 1.0
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

    def state(self, U: np.ndarray) -> np.ndarray:
        """The rotated matrices UᵀC_kU, as an array with the indices i, j, k."""
        if np.array_equal(U, np.eye(self.n)):
            return self.C.copy()
        flop_counts.count(4.0 * self.C.size * self.n)
        state = np.empty_like(self.C)

        def rotate(part: slice) -> None:
            state[:, :, part] = rotated(self.C[:, :, part], U)

        parallel.each(rotate, self._tiles())
        return state

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """Solve pairs by the closed form; for each larger block, rotate its pairs once, on a copy."""
        from givens.kernels import joint

        depth = state.shape[2]
        if isinstance(blocks, np.ndarray):
            i, j = blocks.T
            u, v = state[i, i] - state[j, j], 2.0 * state[i, j]
            P, Q = 2.0 * np.einsum("pk,pk->p", u, v), np.einsum("pk,pk->p", u - v, u + v)
            found = quarter_gains(P, Q, self.least)
            angles = np.where(found > 0.0, 0.25 * np.arctan2(P, Q), 0.0)
            flop_counts.count(9.0 * depth * len(blocks))
            return PairSolutions(turn(angles), found)

        def solve(block: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
            b = len(block)
            i, j = np.triu_indices(b)
            entries, Qt = state[block[i], block[j]], np.eye(b)
            gain, turned = joint.turn_block(entries, Qt, self.least)
            flop_counts.count(b * (b - 1) / 2 * 9 * depth + turned * ((6.0 * b + 2) * depth + 6 * b))
            return np.ascontiguousarray(Qt.T), gain, entries

        rotations, gains, entries = zip(*parallel.each(solve, blocks))
        if len(blocks[0]) == self.n:
            return RotatedStack(rotations, np.array(gains), entries=entries)
        return PairSolutions(rotations, np.array(gains))

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the rows and columns of all matrices."""
        depth = state.shape[2]
        if isinstance(solutions, RotatedStack):
            # One block of all columns: `solve` has rotated its entries.
            i, j = np.triu_indices(self.n)
            state[i, j] = state[j, i] = solutions.entries[0]
            return
        flop_counts.count(sum(4.0 * len(block) ** 2 * self.n * depth for block in blocks))
        # All rows before all columns: within either, blocks have no entry in common.
        parallel.each(lambda k: _rotate_rows(state, blocks[k], rotations[k]), range(len(blocks)))
        parallel.each(lambda k: _rotate_columns(state, blocks[k], rotations[k]), range(len(blocks)))

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes −P and curvatures 4Q (see `kernels.joint`), from which the gains of all pairs follow."""
        from givens.kernels import joint

        flop_counts.count(5.5 * state.size + (0.0 if Q is None else 4.0 * state.size * self.n))
        if Q is None:
            value, first, second = joint.look(state)
        else:
            # Sums over the matrices, a few of which are rotated at a time.
            parts = parallel.each(lambda part: joint.look(rotated(state[:, :, part], Q)), self._tiles())
            value, first, second = (sum(terms) for terms in zip(*parts))
        gains = partial(quarter_gains, first, 0.25 * second, self.least)
        return Look(self.constant + value, first, second, gains=gains)

    def _tiles(self) -> list[slice]:
        """Slices of the matrices of about 1 MB."""
        return parallel.slices(self.C.shape[2], max(1, (1 << 17) // self.n**2))

    @property
    def second(self) -> Callable[[np.ndarray, np.ndarray], Product] | None:
        """The second derivatives, n³ numbers, up to order 256."""
        return self._second if self.n <= 256 else None

    def _second(self, state: np.ndarray, Q: np.ndarray) -> Product:
        """Second derivatives of the sum −Σ_i Σ_k (u_iᵀC_ku_i)² over columns, from its derivatives with respect to each."""
        n = self.n
        flop_counts.count(8.0 * state.size * n)
        M, T = np.zeros((n, n)), np.zeros((n, n, n))
        for part in self._tiles():
            C = rotated(state[:, :, part], Q)
            diagonals = C[np.arange(n), np.arange(n)]
            M -= 4.0 * np.einsum("ijk,ik->ij", C, diagonals)
            T -= 4.0 * (diagonals @ C.reshape(n * n, -1).T).reshape(n, n, n)
            T -= 8.0 * (C @ C.swapaxes(1, 2))
        return second_of_columns(M, T)


def subtract_mean_of_diagonals(C: np.ndarray) -> None:
    """Subtract from the matrices C[:, :, k] the multiples of the identity after which their diagonals have the mean 0."""
    i = np.arange(len(C))
    C[i, i] -= C[i, i].mean(axis=0)


def rotated(C: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """QᵀC_kQ for the symmetric matrices C[:, :, k]."""
    n = len(C)
    half = (Q.T @ C.reshape(n, -1)).reshape(C.shape)
    return (Q.T @ half.swapaxes(0, 1).reshape(n, -1)).reshape(C.shape)


def _rotate_rows(C: np.ndarray, block: np.ndarray, Q: np.ndarray) -> None:
    rows = C[block]
    C[block] = (Q.T @ rows.reshape(len(block), -1)).reshape(rows.shape)


def _rotate_columns(C: np.ndarray, block: np.ndarray, Q: np.ndarray) -> None:
    C[:, block] = np.matmul(Q.T, C[:, block])
