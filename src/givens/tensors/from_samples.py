"""A third moment given by its samples: T = (1/N) Σ y⊗y⊗y − (a⊗G in its three placements), never formed.

Moments of mixtures and topic models have this form: a vector a and a symmetric matrix G take out what the noise adds. With
the eigenvectors of G the placements are a sum of cubes too (`cubes_of_placements`), so that with some 3d vectors more, and
the cube roots of all weights,

    T = Σ y⊗y⊗y,        T̃_ijk = Σ z_i z_j z_k,        z = yU.

The vectors rotate instead of the tensor, and a block's subtensor is made of its own b columns of z: N b³/3 flops in
matrix products. This pays where there are few samples, or where d³ numbers are too many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from givens.data.passes import TILE_ROWS
from givens.data.third_moments import (
    cubes_of_placements,
    packed_blocks,
    packed_triples,
    summed_triples,
    unpacked_triples,
)
from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import binary_exponent, check_data
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Rotations
from givens.objectives.tensor import (
    EPS,
    SymmetricTensor,
    check_rank,
    leading_eigenvectors,
    look_of_pairs,
    solve_cubes,
)
from givens.schedules import Tournament

BLOCK_COLUMNS = 16
"""Columns solved together: what a cube of them costs grows with b³, what is saved by it with b."""


class MomentTensor(Objective):
    """Σ_{i < rank} T(u_i, u_i, u_i) of a third moment, maximised; the tensor is not formed.

    Parameters
    ----------
    Y : array, shape (N, d)
        Samples.
    a : array, shape (d,), optional
    G : array, shape (d, d), optional
        Symmetric. Both or none.
    rank : int, optional
        How many columns count, d by default.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import MomentTensor, SymmetricTensor
    >>> Y = np.random.default_rng(0).exponential(size=(50, 3))
    >>> implicit = minimize(MomentTensor(Y), random_state=0)
    >>> explicit = minimize(SymmetricTensor(np.einsum("ni,nj,nk->ijk", Y, Y, Y) / 50), random_state=0)
    >>> bool(np.isclose(implicit.value, explicit.value, rtol=1e-12))
    True
    """

    def __init__(
        self, Y: np.ndarray, a: np.ndarray | None = None, G: np.ndarray | None = None, rank: int | None = None
    ) -> None:
        cubes, exponent = _cubes(Y, a, G)
        # One column of the mathematics per contiguous row.
        self.z = np.ascontiguousarray(cubes.T)
        self.n = len(self.z)
        self.shape = (self.n, self.n)
        self.active = check_rank(rank, self.n)
        self.method = (Tournament(block=BLOCK_COLUMNS),)
        self.factor = -float(np.ldexp(1.0, 3 * exponent))
        with parallel.pool(None):
            self.norm = float(np.sqrt(max(self._squared_norm(), 0.0)))
        self.scale = float(np.sqrt(self.active)) * self.norm or 1.0

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The eigenvectors of T contracted with a random vector."""
        r = rng.standard_normal(self.n)
        return leading_eigenvectors(_summed(self.z, lambda z: (z * (r @ z)) @ z.T))

    def state(self, U: np.ndarray) -> np.ndarray:
        """The rotated vectors z, as (d, N)."""
        state = self.z.copy()
        self.apply(state, [np.arange(self.n)], [U])
        return state

    def squares(self, U: np.ndarray) -> np.ndarray:
        """T(·, u, u) for the columns u of U, over the unit: what the power method iterates."""
        flop_counts.count(4.0 * self.z.shape[1] * U.size)
        return _summed(self.z, lambda z: z @ (z.T @ U) ** 2)

    def solve(self, state: np.ndarray, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """The best rotation of each block on the subtensor of its columns; one pass over its pairs."""
        flop_counts.count(sum(len(block) ** 3 for block in blocks) * state.shape[1] / 3)
        return solve_cubes(blocks, self.active, EPS * self.scale, lambda block: _formed(state[block]))

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the vectors."""

        def turn(part: slice) -> None:
            for block, Q in zip(blocks, rotations):
                state[block, part] = Q.T @ state[block, part]

        N = state.shape[1]
        parallel.each(turn, parallel.slices(N, TILE_ROWS))
        flop_counts.count(float(sum(2 * len(block) ** 2 * N for block in blocks)))

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """As for `SymmetricTensor`, from the samples."""
        flop_counts.count(2.0 * self.n * state.size)
        if Q is not None:
            state = state.copy()
            self.apply(state, [np.arange(self.n)], [Q])
        doubles = _summed(state, lambda z: z**2 @ z.T)
        return look_of_pairs(doubles, self.active, self.scale if Q is None else None)

    def residual(self, U: np.ndarray, weights: np.ndarray) -> float:
        """‖T − Σ λ_i u_i⊗u_i⊗u_i‖/‖T‖ for the weights λ_i = T(u_i, u_i, u_i), over the unit; good to 1e-8."""
        return float(np.sqrt(max(0.0, 1.0 - np.sum((weights / self.norm) ** 2)))) if self.norm else 0.0

    def _squared_norm(self) -> float:
        """‖T‖², by the products of the vectors or by the entries, whichever is less work."""
        d, N = self.z.shape
        if d * d < 3 * N:
            return float(sum(_weight(block) for block in packed_blocks(summed_triples(self.z.T), d)))
        chunks = parallel.slices(N, 512)
        return sum(parallel.each(lambda part: float(np.sum((self.z[:, part].T @ self.z) ** 3)), chunks))


def from_samples(
    Y: np.ndarray,
    a: np.ndarray | None = None,
    G: np.ndarray | None = None,
    rank: int | None = None,
    *,
    implicit: bool | None = None,
) -> SymmetricTensor | MomentTensor:
    """The objective of a third moment, with its tensor formed or not, whichever is faster.

    Parameters
    ----------
    Y : array, shape (N, d)
        As for `MomentTensor`.
    a : array, shape (d,), optional
        As for `MomentTensor`.
    G : array, shape (d, d), optional
        As for `MomentTensor`.
    rank : int, optional
        As for `MomentTensor`.
    implicit : bool, optional
        True never forms the tensor, False always does. By default the flops of some sweeps of either decide; a tensor of
        order 353 or more is not formed.
    """
    Y = check_data(Y, "Y", 2)
    if implicit is None:
        N, d = Y.shape
        sweeps = 8
        formed = N * d**3 / 3 + sweeps * 4 * d**4
        sampled = sweeps * N * d**2 * (2 * BLOCK_COLUMNS / 3 + 4)
        implicit = sampled < formed
    if implicit:
        return MomentTensor(Y, a, G, rank)
    cubes, exponent = _cubes(Y, a, G)
    check_rank(rank, cubes.shape[1])
    with parallel.pool(None):
        T = unpacked_triples(summed_triples(cubes), cubes.shape[1])
    return SymmetricTensor(T * 2.0 ** (3 * exponent), rank)


def _summed(z: np.ndarray, work: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The sum of `work` over chunks of the columns of z."""
    chunks = parallel.slices(z.shape[1], TILE_ROWS)
    return np.sum(parallel.each(lambda part: work(z[:, part]), chunks), axis=0)


def _formed(z: np.ndarray) -> np.ndarray:
    """The tensor Σ z⊗z⊗z of the columns of z, of which there are few rows."""
    return unpacked_triples(packed_triples(z), len(z))


def _weight(block: np.ndarray) -> float:
    """The squares of a block's entries (a, b, c), b, c ≥ a, each as often as the full tensor has it."""
    squares = block**2
    # 6 orders of three different indices, of which the symmetric block has 2; 3 if two are equal, 1 if all are.
    return float(3 * np.sum(squares) - 3 * np.sum(squares[0]) + squares[0, 0])


def _cubes(Y: np.ndarray, a: np.ndarray | None, G: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Rows y with T = 2^3e Σ y⊗y⊗y, and e, of samples and a correction, which are checked."""
    Y = check_data(Y, "Y", 2).astype(np.float64, copy=False)
    if Y.size == 0:
        raise ValueError(f"Y must have the shape (samples, d), with at least one of each, got {Y.shape}")
    d = Y.shape[1]
    if (a is None) != (G is None):
        raise ValueError("the correction takes both a and G, or neither")
    exponent = binary_exponent(np.abs(Y).max())
    if abs(3 * exponent) > 1000:
        raise ValueError("the third moments of Y over- or underflow; rescale Y")
    cubes = np.ldexp(Y, -exponent) / np.cbrt(len(Y))
    if a is None or G is None:
        return cubes, exponent
    a, G = (check_data(part, name).astype(np.float64) for part, name in ((a, "a"), (G, "G")))
    if a.shape != (d,) or G.shape != (d, d):
        raise ValueError(
            f"with d = {d}, a and G must have the shapes ({d},) and ({d}, {d}), got {a.shape} and {G.shape}"
        )
    if np.abs(G - G.T).max() > np.sqrt(EPS) * np.abs(G).max():
        raise ValueError(
            f"G is not symmetric: G and its transpose differ by up to {np.abs(G - G.T).max():.3g}"
        )
    weights, axes = np.linalg.eigh(np.ldexp(G, -2 * exponent))
    return np.concatenate(
        (cubes, cubes_of_placements(axes.T, -weights[:, None] * np.ldexp(a, -exponent)))
    ), exponent
