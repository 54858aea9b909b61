"""The paper's tensor objective: Σ_i T(u_i, u_i, u_i), which an orthogonal decomposition of T maximises.

If T = Σ λ_i v_i⊗v_i⊗v_i with orthonormal v_i and λ_i > 0, the maximum over orthogonal U is Σ λ_i, attained by the v_i only. The
state is the rotated tensor T̃_ijk = T(u_i, u_j, u_k), the paper's auxiliary tensor: a pair problem needs four of its entries,
and a block only its own subtensor. A component with λ < 0 is one with −λ and −v: signs need no care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from givens.kernels import tensor as kernels
from givens.numerics.packed import Packed
from givens.numerics.scaling import binary_exponent
from givens.objectives.base import Blocks, Look, Objective, Plan, Rotations, Solved
from givens.schedules import Tournament
from givens.support.arguments import whole

EPS = float(np.finfo(np.float64).eps)

BLOCK = 40
"""Columns solved together: a block's own work grows with b³, the number of rounds falls with 1/b; a cube has to fit in cache."""

WHOLE = 32
"""Up to here all columns are one block, which is solved to the end: a sweep of the loop is then many of its passes."""

PASSES = 30

LITTLE = 1e-6
"""Of the scale: a look does not add up what the pairs could gain beyond this."""


class SymmetricTensor(Objective):
    """Σ_{i < rank} T(u_i, u_i, u_i) of a symmetric tensor, maximised.

    Parameters
    ----------
    T : array, shape (d, d, d)
        Symmetric; it is read once and not kept.
    rank : int, optional
        How many columns count, d by default.
    symmetrize : bool
        Average T over the six orders of its indices. Without it, a T that is not symmetric is refused.

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
        T = _checked(T)
        packed, largest, spread = Packed.from_full(T)
        if np.isnan(largest):
            for i, j, k in np.argwhere(~np.isfinite(T)):
                raise ValueError(f"T has an entry that is not finite: T[{i}, {j}, {k}] = {T[i, j, k]}")
            raise ValueError("T has entries too large to be compared with each other; divide it by 1e10, say")
        if not symmetrize and not spread <= np.sqrt(np.finfo(T.dtype).eps) * largest:
            raise ValueError(
                f"T is not symmetric: entries whose indices differ in order only are up to {spread:.3g} apart "
                f"(the largest entry is {largest:.3g}); symmetrize=True takes their mean"
            )
        self._settle(packed, rank, 1.0)

    @classmethod
    def from_packed(cls, packed: Packed, rank: int | None = None, *, unit: float = 1.0) -> SymmetricTensor:
        """The objective of `unit` times a packed tensor, which it takes over."""
        self = cls.__new__(cls)
        self._settle(packed, rank, unit)
        return self

    def _settle(self, packed: Packed, rank: int | None, unit: float) -> None:
        """Scale the tensor by a power of two, so that no product of its entries over- or underflows."""
        self.n = packed.d
        self.active = check_rank(rank, packed.d)
        exponent = min(binary_exponent(np.max(np.abs(packed.entries))), 1023)
        np.ldexp(packed.entries, -exponent, out=packed.entries)
        self.factor = -float(np.ldexp(unit, exponent))
        self.packed = packed
        self.norm = float(np.sqrt(packed.squared_norm()))
        self.scale = float(np.sqrt(self.active)) * self.norm or 1.0

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The eigenvectors of T contracted with a random vector: those of a T without noise, up to signs."""
        values, vectors = np.linalg.eigh(self.packed.contract(rng.standard_normal(self.n)))
        return np.ascontiguousarray(vectors[:, np.argsort(-np.abs(values), kind="stable")])

    def state(self, U: np.ndarray) -> Packed:
        """T̃ = T(U, U, U)."""
        return self.packed.rotated(U)

    def value(self, state: Packed) -> float:
        """Minus the sum of T̃_iii."""
        return -float(state.diagonal[: self.active].sum())

    def squares(self, U: np.ndarray) -> np.ndarray:
        """T(·, u, u) for the columns u of U, over the unit: what the power method iterates."""
        return self.packed.squares(U)

    @property
    def squares_flops(self) -> float:
        """The flops of `squares` of n columns."""
        return 1.0 * self.n**4

    def squaring(self) -> Callable[[np.ndarray], np.ndarray]:
        """`squares`, made ready to be called often, for half of the memory that T takes."""
        unfolded = self.packed.unfolded()
        return lambda U: self.packed.squares(U, unfolded)

    def solve(self, state: Packed, blocks: Blocks, enough: float = 0.0) -> Solved:
        """The best rotation of each block on its own subtensor."""
        if isinstance(blocks, np.ndarray):
            return self._solve_pairs(state, blocks)
        passes = PASSES if len(blocks[0]) == self.n else 1
        return solve_cubes(
            blocks, self.active, EPS * self.scale, state.cube, passes, negligible(enough, self.scale)
        )

    def _solve_pairs(self, state: Packed, pairs: np.ndarray) -> Solved:
        rotations = np.empty((len(pairs), 2, 2))
        gains = np.empty(len(pairs))
        flops = kernels.solve_pairs(
            state.entries, state.row, pairs, self.active, EPS * self.scale, rotations, gains
        )
        return Solved(rotations, gains, int(np.count_nonzero(gains)), flops)

    def apply(
        self, state: Packed, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate the three modes."""
        return state.rotate(blocks, rotations)

    def look(self, state: Packed, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes and curvatures, from the T̃_iij; at U @ Q from the vectors T̃(·, q, q): no tensor is rotated."""
        if Q is None:
            return look_of_pairs(state.doubles(), self.active, 0.0, self.scale)
        images = state.squares(Q)
        return look_of_pairs((Q.T @ images).T, self.active, self.squares_flops + 2.0 * self.n**3)

    def plan(self) -> Plan:
        """A tournament: an even number of groups of columns, so that none rests; one block while d is small."""
        groups = 2 * -(-self.n // BLOCK)
        block = max(2, self.n) if self.n <= WHOLE else 2 * -(-self.n // groups)
        return Plan(schedule=Tournament(block=block), state_flops=self.packed.making())

    def residual(self, U: np.ndarray, weights: np.ndarray) -> float:
        """‖T − Σ λ_i u_i⊗u_i⊗u_i‖/‖T‖ for the weights λ_i = T(u_i, u_i, u_i), over the unit, of the columns that count."""
        if self.norm == 0.0:
            return 0.0
        left = 1.0 - float(np.sum((weights / self.norm) ** 2))
        if left < 1e-10:
            # Nothing but rounding may be left of this difference: sum what is off the diagonal instead.
            rotated = self.packed.rotated(U)
            index = np.arange(self.active)
            rotated.entries[rotated.row[index, index] + index] -= weights
            left = rotated.squared_norm() / self.norm**2
        return float(np.sqrt(left))

    def data(self) -> Sequence[np.ndarray]:
        """The tensor, and its unit."""
        return self.packed.entries, np.array([self.factor])


def look_of_pairs(doubles: np.ndarray, active: int, flops: float, scale: float | None = None) -> Look:
    """−Σ T̃_iii, with −3(T̃_iij − T̃_ijj) and 3(T̃_iii + T̃_jjj) − 6(T̃_iij + T̃_ijj) of every pair, from the matrix of the T̃_iij.

    Of a column j that does not count, T̃_jjj and T̃_iij's mirror image are left out. With a scale, the look also tells what the
    pairs have left to gain, be it by a wide turn.
    """
    diagonal = np.where(np.arange(len(doubles)) < active, np.diagonal(doubles), 0.0)
    counted = doubles.copy()
    counted[active:] = 0.0
    # Row i holds T̃_iij: it belongs to the column i, and T̃_ijj = T̃_jji to the column j.
    slopes = -3.0 * (counted - counted.T)
    curvatures = 3.0 * (diagonal[:, None] + diagonal)
    inside = slice(0, active)
    curvatures[inside, inside] -= 6.0 * (doubles + doubles.T)[inside, inside]
    curvatures[inside, active:] -= 6.0 * doubles.T[inside, active:]
    curvatures[active:, inside] -= 6.0 * doubles[active:, inside]
    left = None if scale is None else kernels.gain_of_pairs(doubles, active, EPS * scale, LITTLE * scale)
    return Look(-float(np.sum(diagonal)), slopes, curvatures, flops, left)


def negligible(enough: float, scale: float) -> float:
    """A gain of all pairs together that is not worth a sweep.

    A sweep that gains the share t of the scale, which is `enough`, turns by angles of √t. Where convergence is quadratic
    it leaves angles of t, and gains of t². Below 1e-26 all is rounding.
    """
    return max(enough**2 / scale, 1e-26 * scale)


def solve_cubes(
    blocks: Blocks,
    active: int,
    floor: float,
    cube: Callable[[np.ndarray, np.ndarray], None],
    passes: int = 1,
    enough: float = 0.0,
) -> Solved:
    """Solve blocks on their subtensors, which `cube(block, out)` writes into a flat array."""
    room = np.empty(max(len(block) for block in blocks) ** 3)
    rotations, gains = [], np.empty(len(blocks))
    rotated, flops = 0, 0.0
    for n, block in enumerate(blocks):
        b = len(block)
        S = room[: b**3]
        cube(block, S)
        V, W = np.empty((b, b)), np.empty((b, b))
        inside = int(np.searchsorted(block, active))
        gains[n], turned, spent = kernels.solve_block(S.reshape(b, b, b), inside, floor, passes, enough, V, W)
        rotations.append(np.ascontiguousarray(V.T))
        rotated += turned
        flops += spent
    return Solved(rotations, gains, rotated, flops)


def check_rank(rank: int | None, d: int) -> int:
    """How many columns count."""
    return d if rank is None else whole(rank, "rank", 1, d, "the order of the tensor")


def _checked(T: np.ndarray) -> np.ndarray:
    T = np.asarray(T)
    if T.ndim != 3 or len(set(T.shape)) != 1 or T.size == 0:
        raise ValueError(f"T must have the shape (d, d, d) with d ≥ 1, got {T.shape}")
    if T.dtype.kind not in "fiub":
        raise TypeError(f"T must be real, got the type {T.dtype}")
    if T.dtype not in (np.float32, np.float64):
        T = T.astype(np.float64)
    return np.ascontiguousarray(T)
