"""A third moment given by its samples: T = (1/N) Σ y⊗y⊗y − (a⊗G in its three placements), never formed.

Moments of mixtures and topic models have this form: a vector a and a symmetric matrix G take out what the noise adds. With
z = yU, α = Uᵀa and Γ = UᵀGU,

    T̃_ijk = (1/N) Σ z_i z_j z_k − α_i Γ_jk − α_j Γ_ik − α_k Γ_ij,

so the samples rotate instead of the tensor, and a block's subtensor is made of its own b columns of z: N b³/3 flops in
matrix products. This pays where there are few samples, or where d³ numbers are too many.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from givens.kernels import tensor as kernels
from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import binary_exponent, check_data
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Plan, Rotations, solved_in_shares
from givens.objectives.tensor import (
    EPS,
    SymmetricTensor,
    check_rank,
    leading_eigenvectors,
    look_of_pairs,
    solve_cubes,
)
from givens.schedules import Tournament

CHUNK_SAMPLES = 4096
"""Samples that one matrix product takes at a time."""

BLOCK_COLUMNS = 16
"""Columns solved together: what a cube of them costs grows with b³, what is saved by it with b."""


@dataclass
class Rotated:
    """The state: z as (d, N), one component per contiguous row; α; Γ."""

    z: np.ndarray
    a: np.ndarray
    G: np.ndarray


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
        Y, a, G, exponent = _scaled(Y, a, G)
        self.n = Y.shape[1]
        self.active = check_rank(rank, self.n)
        self.factor = -float(np.ldexp(1.0, 3 * exponent))
        self.samples = Rotated(np.ascontiguousarray(Y.T), a, G)
        with parallel.pool(None):
            self.norm = float(np.sqrt(max(self._squared_norm(), 0.0)))
        self.scale = float(np.sqrt(self.active)) * self.norm or 1.0

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The eigenvectors of T contracted with a random vector."""
        return leading_eigenvectors(_contract(self.samples, rng.standard_normal(self.n)))

    def state(self, U: np.ndarray) -> Rotated:
        """The rotated samples, α and Γ."""
        flop_counts.count(2.0 * self.samples.z.size * self.n + 4.0 * self.n**3)
        z = np.empty_like(self.samples.z)
        Ut = np.ascontiguousarray(U.T)
        parallel.each(
            lambda part: np.matmul(Ut, self.samples.z[:, part], out=z[:, part]),
            parallel.slices(z.shape[1], CHUNK_SAMPLES),
        )
        return Rotated(z, U.T @ self.samples.a, U.T @ self.samples.G @ U)

    def value(self, state: Rotated) -> float:
        """Minus the sum of T̃_iii."""
        return -float(np.sum(self._diagonal(state)))

    def _diagonal(self, state: Rotated) -> np.ndarray:
        rows = parallel.each(lambda z: float(np.mean(z**3)), state.z[: self.active])
        return np.array(rows) - 3 * (state.a * np.diag(state.G))[: self.active]

    def squares(self, U: np.ndarray) -> np.ndarray:
        """T(·, u, u) for the columns u of U, over the unit: what the power method iterates."""
        z, a, G = self.samples.z, self.samples.a, self.samples.G
        partial = parallel.each(
            lambda part: z[:, part] @ (z[:, part].T @ U) ** 2, parallel.slices(z.shape[1], CHUNK_SAMPLES)
        )
        flop_counts.count(4.0 * z.shape[1] * U.size)
        GU = G @ U
        return np.sum(partial, axis=0) / z.shape[1] - np.outer(a, np.sum(U * GU, axis=0)) - 2 * GU * (a @ U)

    def solve(self, state: Rotated, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """The best rotation of each block on the subtensor of its columns; one pass over its pairs."""
        floor = EPS * self.scale
        if not isinstance(blocks, np.ndarray):

            def cube(block: np.ndarray) -> np.ndarray:
                return form(Rotated(state.z[block], state.a[block], state.G[np.ix_(block, block)]))

            flop_counts.count(sum(len(block) ** 3 for block in blocks) * state.z.shape[1] / 3)
            return solve_cubes(blocks, self.active, floor, cube)

        def solve(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            moments = np.empty((len(pairs), 4))
            kernels.moments_of_pairs(state.z, pairs, moments)
            rotations, gains = np.empty((len(pairs), 2, 2)), np.empty(len(pairs))
            flops = kernels.solve_moments(
                moments, pairs, state.a, state.G, self.active, floor, rotations, gains
            )
            flop_counts.count(flops + 12.0 * len(pairs) * state.z.shape[1])
            return rotations, gains

        return PairSolutions(*solved_in_shares(solve, blocks))

    def apply(
        self, state: Rotated, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the samples, α and Γ."""
        for block, Q in zip(blocks, rotations):
            state.a[block] = Q.T @ state.a[block]
            state.G[block] = Q.T @ state.G[block]
            state.G[:, block] = state.G[:, block] @ Q

        def turn(part: slice) -> None:
            for block, Q in zip(blocks, rotations):
                state.z[block, part] = Q.T @ state.z[block, part]

        N = state.z.shape[1]
        flop_counts.count(sum(2 * len(block) ** 2 * N for block in blocks))
        parallel.each(turn, parallel.slices(N, CHUNK_SAMPLES))

    def look(self, state: Rotated, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """As for `SymmetricTensor`, from the samples."""
        if Q is None:
            return look_of_pairs(self._doubles(state), self.active, self.scale)
        turned = copy.deepcopy(state)
        self.apply(turned, [np.arange(self.n)], [Q])
        return look_of_pairs(self._doubles(turned), self.active)

    def _doubles(self, state: Rotated) -> np.ndarray:
        """The matrix of the T̃_iij."""
        z, a, G = state.z, state.a, state.G
        flop_counts.count(2.0 * self.n * z.size)
        partial = parallel.each(
            lambda part: (z[:, part] ** 2) @ z[:, part].T, parallel.slices(z.shape[1], CHUNK_SAMPLES)
        )
        return np.sum(partial, axis=0) / z.shape[1] - np.outer(np.diag(G), a) - 2 * a[:, None] * G

    def plan(self) -> Plan:
        """A tournament of small blocks."""
        return Plan(schedule=Tournament(block=BLOCK_COLUMNS))

    def residual(self, U: np.ndarray, weights: np.ndarray) -> float:
        """‖T − Σ λ_i u_i⊗u_i⊗u_i‖/‖T‖ for the weights λ_i = T(u_i, u_i, u_i), over the unit; good to 1e-8."""
        return float(np.sqrt(max(0.0, 1.0 - np.sum((weights / self.norm) ** 2)))) if self.norm else 0.0

    def data(self) -> Sequence[np.ndarray]:
        """Samples and correction."""
        return self.samples.z, self.samples.a, self.samples.G, np.array([self.factor])

    def _squared_norm(self) -> float:
        """‖T‖², by the Gram matrix of the samples or by the entries, whichever is less work."""
        z, a, G = self.samples.z, self.samples.a, self.samples.G
        d, N = z.shape
        if d * d < 3 * N:
            return sum(_weight(rows, j) for j, rows in _entries(self.samples))
        chunks = parallel.slices(N, 512)
        gram = sum(parallel.each(lambda part: float(np.sum((z[:, part].T @ z) ** 3)), chunks))
        cross = np.mean((a @ z) * np.einsum("in,in->n", G @ z, z))
        return gram / N**2 - 6 * cross + 3 * (a @ a) * np.sum(G**2) + 6 * np.sum((G @ a) ** 2)


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
        True never forms the tensor, False always does. By default the flops of some sweeps of either decide, and
        a tensor that would take more than half of the memory is not formed.
    """
    Y = check_data(Y, "Y", 2)
    if implicit is None:
        N, d = Y.shape
        sweeps = 8
        formed = N * d**3 / 3 + sweeps * 4 * d**4
        sampled = sweeps * N * d**2 * (2 * BLOCK_COLUMNS / 3 + 4)
        # The tensor and the rotated one.
        memory = 2 * 8 * d**3
        implicit = sampled < formed or memory > _memory() / 2
    if implicit:
        return MomentTensor(Y, a, G, rank)
    Y, a, G, exponent = _scaled(Y, a, G)
    check_rank(rank, Y.shape[1])
    with parallel.pool(None):
        T = form(Rotated(np.ascontiguousarray(Y.T), a, G))
    T *= 2.0 ** (3 * exponent)
    return SymmetricTensor(T, rank)


def form(rotated: Rotated) -> np.ndarray:
    """The tensor; every entry is computed once and written to its six places."""
    d = len(rotated.a)
    T = np.empty((d, d, d))
    for j, rows in _entries(rotated):
        T[: j + 1, j, j:] = rows
        T[: j + 1, j:, j] = rows
        T[j, : j + 1, j:] = rows
        T[j, j:, : j + 1] = rows.T
        T[j:, : j + 1, j] = rows.T
        T[j:, j, : j + 1] = rows.T
    return T


def _entries(rotated: Rotated) -> Iterator[tuple[int, np.ndarray]]:
    """For every j the entries (i ≤ j, j, k ≥ j), as a matrix: together each entry once."""
    z, a, G = rotated.z, rotated.a, rotated.G
    d, N = z.shape

    def middle(j: int) -> np.ndarray:
        total = np.zeros((j + 1, d - j))
        for part in parallel.slices(N, CHUNK_SAMPLES):
            total += (z[: j + 1, part] * z[j, part]) @ z[j:, part].T
        total /= N
        total -= np.outer(a[: j + 1], G[j, j:]) + np.outer(G[j, : j + 1], a[j:]) + a[j] * G[: j + 1, j:]
        return total

    width = 2 * parallel.width()
    for start in range(0, d, width):
        yield from zip(range(start, d), parallel.each(middle, range(start, min(d, start + width))))


def _weight(rows: np.ndarray, j: int) -> float:
    """Sum of squares of the entries (i ≤ j, j, k ≥ j), each as often as the full tensor has it."""
    squares = rows**2
    # 6 orders for three different indices, 3 if two are equal, 1 if all are.
    return float(
        6 * np.sum(squares[:j, 1:]) + 3 * np.sum(squares[:j, 0]) + 3 * np.sum(squares[j, 1:]) + squares[j, 0]
    )


def _contract(samples: Rotated, r: np.ndarray) -> np.ndarray:
    z, a, G = samples.z, samples.a, samples.G
    partial = parallel.each(
        lambda part: (z[:, part] * (r @ z[:, part])) @ z[:, part].T,
        parallel.slices(z.shape[1], CHUNK_SAMPLES),
    )
    Gr = G @ r
    return np.sum(partial, axis=0) / z.shape[1] - (a @ r) * G - np.outer(a, Gr) - np.outer(Gr, a)


def _scaled(
    Y: np.ndarray, a: np.ndarray | None, G: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Check samples and correction, and divide them by a power of two: y by 2^e, G by 2^2e."""
    Y = check_data(Y, "Y", 2).astype(np.float64, copy=False)
    if Y.size == 0:
        raise ValueError(f"Y must have the shape (samples, d), with at least one of each, got {Y.shape}")
    d = Y.shape[1]
    if (a is None) != (G is None):
        raise ValueError("the correction takes both a and G, or neither")
    a = np.zeros(d) if a is None else check_data(a, "a").astype(np.float64)
    G = np.zeros((d, d)) if G is None else check_data(G, "G").astype(np.float64)
    if a.shape != (d,) or G.shape != (d, d):
        raise ValueError(
            f"with d = {d}, a and G must have the shapes ({d},) and ({d}, {d}), got {a.shape} and {G.shape}"
        )
    if np.abs(G - G.T).max() > np.sqrt(EPS) * np.abs(G).max():
        raise ValueError(
            f"G is not symmetric: G and its transpose differ by up to {np.abs(G - G.T).max():.3g}"
        )
    exponent = binary_exponent(np.abs(Y).max())
    if abs(3 * exponent) > 1000:
        raise ValueError("the third moments of Y over- or underflow; rescale Y")
    return np.ldexp(Y, -exponent), np.ldexp(a, -exponent), np.ldexp(G, -2 * exponent), exponent


def _memory() -> float:
    """The machine's memory in bytes; 8 GB where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 8e9
