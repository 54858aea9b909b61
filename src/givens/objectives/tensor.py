"""The paper's tensor objective: Σ_i T(u_i, u_i, u_i), which an orthogonal decomposition of T maximises.

If T = Σ λ_i v_i⊗v_i⊗v_i with orthonormal v_i and λ_i > 0, the maximum over orthogonal U is Σ λ_i, attained by the v_i only. (A
negative λ with v is a positive −λ with −v.) The state is the rotated tensor T̃_ijk = T(u_i, u_j, u_k), the paper's auxiliary
tensor. A pair problem depends on four of its entries, a block on its own subtensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy.linalg.lapack import dsyevd

from givens.kernels import tensor as kernels
from givens.numerics import flop_counts, modes, parallel
from givens.numerics.scaling import EPS, check_data, power_of_two
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Rotations, gathered
from givens.schedules import Shape, Tournament, all_pairs
from givens.support.arguments import whole


class SymmetricTensor(Objective):
    """Σ_{i < rank} T(u_i, u_i, u_i) of a symmetric tensor, maximised.

    Parameters
    ----------
    T : array, shape (d, d, d)
        A symmetric tensor; it is read once and not kept.
    rank : int, optional
        Number of columns in the sum, by default d.
    symmetrize : bool, default=False
        Average T over the six permutations of its indices. Otherwise a T that is not symmetric raises an error.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import SymmetricTensor
    >>> V = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    >>> T = np.einsum("a,ia,ja,ka->ijk", [4.0, 3.0, 2.0, 1.0], V, V, V)
    >>> round(minimize(SymmetricTensor(T)).value, 10)
    10.0
    """

    def __init__(self, T: np.ndarray, rank: int | None = None, *, symmetrize: bool = False) -> None:
        T = np.ascontiguousarray(check_data(T, "T", 3))
        if len(set(T.shape)) != 1 or T.size == 0:
            raise ValueError(f"T must have the shape (d, d, d) with d ≥ 1, got {T.shape}")
        self.n = len(T)
        self.shape = (self.n, self.n)
        self.active = check_rank(rank, self.n)
        # One block if d is small. Else an even number of groups of columns, so that none is idle, and two groups are a block of b
        # up to 40: its work grows with b³, the number of rounds with 1/b, and b³ numbers must fit into the cache.
        groups = 2 * -(-self.n // 40)
        block = max(2, self.n) if self.n <= 32 else 2 * -(-self.n // groups)
        self.method = (Tournament(block=block),)
        # Products of the entries of T over a power of two neither over- nor underflow.
        self.T, largest, unit = _divided(T)
        self.factor = -unit
        apart = kernels.symmetrize(self.T)
        if not symmetrize and not apart <= math.sqrt(np.finfo(T.dtype).eps) * largest:
            raise ValueError(
                f"T is not symmetric: entries whose indices differ in order only are up to {apart * unit:.3g} apart "
                f"(the largest entry is {largest * unit:.3g}); symmetrize=True takes their mean"
            )
        self.norm = math.sqrt(modes.squared_norm(self.T))
        self.scale = math.sqrt(self.active) * self.norm or 1.0

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The eigenvectors of T contracted with a random vector: for a T without noise, the solution up to signs."""
        return leading_eigenvectors(modes.contracted(self.T, rng.standard_normal(self.n)))

    def state(self, U: np.ndarray) -> np.ndarray:
        """T̃ = T(U, U, U)."""
        state = self.T.copy()
        modes.rotate(state, [np.arange(self.n)], [U])
        return state

    def squares(self, U: np.ndarray) -> np.ndarray:
        """T(·, u, u) for the columns u of U, in the unit of the state: a step of the power method."""
        return modes.squares(self.T, U)

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """Find the best rotation of each pair; rotate the pairs of each larger block on its own subtensor."""
        if isinstance(blocks, np.ndarray):
            i, j = blocks.T
            entries = state[i, i, i], state[i, i, j], state[i, j, j], state[j, j, j]
            return solve_entries(np.stack(entries), j < self.active, EPS * self.scale)
        passes = 30 if len(blocks[0]) == self.n else 1
        return solve_cubes(
            blocks,
            self.active,
            EPS * self.scale,
            lambda block: modes.subtensor(state, block),
            passes,
            negligible(min_gain, self.scale),
        )

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the three modes of T̃."""
        modes.rotate(state, blocks, rotations)

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes and curvatures, from the T̃_iij; at U @ Q from the vectors T̃(·, q, q), without rotating T̃."""
        if Q is None:
            return look_of_pairs(modes.doubles(state), self.active, self.scale)
        flop_counts.count(2.0 * self.n**3)
        return look_of_pairs(modes.squares(state, Q).T @ Q, self.active)

    def residual(self, U: np.ndarray, weights: np.ndarray) -> float:
        """‖T − Σ λ_i u_i⊗u_i⊗u_i‖/‖T‖ for the weights λ_i = T(u_i, u_i, u_i) of the active columns, in the unit of the state."""
        if self.norm == 0.0:
            return 0.0
        share = weights / self.norm
        left = 1.0 - float(share @ share)
        if left < 1e-10:
            # The difference may be rounding only: sum the squares of T̃ − diag(λ) instead.
            rotated = self.state(U)
            modes.diagonal(rotated)[: self.active] -= weights
            left = modes.squared_norm(rotated) / self.norm**2
        return math.sqrt(left)


def look_of_pairs(doubles: np.ndarray, active: int, scale: float | None = None) -> Look:
    """The value −Σ T̃_iii, and slopes and curvatures of all pairs, from the matrix of the T̃_iij.

    The slope of a pair of active columns is −3(T̃_iij − T̃_ijj), its curvature 3(T̃_iii + T̃_jjj) − 6(T̃_iij + T̃_ijj). If column j is
    inactive, its terms of the sum are left out. With a scale, the look also has the gains of all pairs, by any angle.
    """
    n = len(doubles)
    slopes, curvatures = np.zeros((n, n)), np.zeros((n, n))
    coefficients = np.empty((4, active * (2 * n - active - 1) // 2))
    kernels.derivatives(doubles, active, slopes, curvatures, coefficients)
    gains = None if scale is None else partial(gains_of_pairs, coefficients, n, active, EPS * scale)
    return Look(-float(np.diagonal(doubles)[:active].sum()), slopes, curvatures, gains=gains)


def gains_of_pairs(coefficients: np.ndarray, n: int, active: int, floor: float) -> np.ndarray:
    """The gain of each pair, rotated alone to its best angle, from A, B, D and E."""
    i, j = _pairs(n, active).T
    gains = np.zeros((n, n))
    gains[i, j] = gains[j, i] = _directions(coefficients, floor)[2]
    return gains


def _directions(coefficients: np.ndarray, floor: float) -> np.ndarray:
    """c, s and gain of each pair problem, from its A, B, D and E."""
    out = np.empty((3, coefficients.shape[1]))
    flop_counts.count(kernels.directions(coefficients, floor, out))
    return out


def solve_entries(entries: np.ndarray, both: np.ndarray, floor: float) -> PairSolutions:
    """The best rotation of each pair, from T_iii, T_iij, T_ijj and T_jjj; `both` where both columns are active."""
    iii, iij, ijj, jjj = entries
    coefficients = np.where(both, (iii + jjj, iij - ijj, iij + ijj, jjj - iii), entries)
    c, s, gains = _directions(coefficients, floor)
    return PairSolutions(np.stack((c, -s, s, c), axis=1).reshape(-1, 2, 2), gains)


@lru_cache(maxsize=16)
def _pairs(n: int, active: int) -> np.ndarray:
    return all_pairs(Shape(n, active))


def leading_eigenvectors(M: np.ndarray) -> np.ndarray:
    """The eigenvectors of a symmetric matrix, as columns; those of the largest |eigenvalue| first."""
    # The function that np.linalg.eigh calls, without its checks.
    values, vectors, failed = dsyevd(M)
    if failed:
        raise np.linalg.LinAlgError("the eigenvectors of a contraction of T could not be computed")
    return vectors.take((-np.abs(values)).argsort(kind="stable"), axis=1)


def negligible(min_gain: float, scale: float) -> float:
    """The total gain of all pairs below which another sweep is not made.

    A sweep that gains `min_gain`, t times the scale, rotates by angles of order √t. Where convergence is quadratic, the angles
    that are left are of order t, and their gains of order t². Gains below 1e-26 times the scale are rounding.
    """
    return max(min_gain**2 / scale, 1e-26 * scale)


def solve_cubes(
    blocks: Blocks,
    active: int,
    floor: float,
    cube: Callable[[np.ndarray], np.ndarray],
    passes: int = 1,
    min_gain: float = 0.0,
) -> PairSolutions:
    """Solve blocks on their subtensors, which `cube(block)` returns as new arrays.

    The pairs of a block are rotated in up to `passes` passes, until another one is unlikely to gain more than `min_gain`. Gains
    below `floor` are rounding.
    """
    return gathered(
        blocks,
        parallel.each(
            lambda block: _solve_cube(cube(block), int(block.searchsorted(active)), floor, passes, min_gain),
            blocks,
        ),
    )


def _solve_cube(
    S: np.ndarray, active: int, floor: float, passes: int, min_gain: float
) -> tuple[np.ndarray, float]:
    """Rotate every pair of a block on its own subtensor S, which is overwritten: Q and the gain."""
    b = len(S)
    V, W = np.eye(b), modes.doubles(S)
    T = S.copy() if passes > 1 else S
    gain, _, flops = kernels.turn_pairs(T, S, _pairs(b, active), active, floor, passes, min_gain, V, W)
    flop_counts.count(flops)
    return np.ascontiguousarray(V.T), gain


def check_rank(rank: int | None, d: int) -> int:
    """The number of columns in the sum, by default d."""
    return d if rank is None else whole(rank, "rank", 1, d, "the order of the tensor")


def _divided(T: np.ndarray) -> tuple[np.ndarray, float, float]:
    """T over the power of two above its largest |entry|, in float64 and as a new array; its largest |entry|; the power."""
    largest = max(float(T.max()), -float(T.min()))
    unit = power_of_two(largest)
    return np.multiply(T, 1.0 / unit, dtype=np.float64), largest / unit, unit
