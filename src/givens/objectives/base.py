"""The base class of objectives: the arrays that rotate with U, and how to find rotations of blocks of columns.

The loop in `givens.solve` knows nothing of data, contrasts or tensors. It asks an objective for its `state` at U, for a `look`
at f and its slopes, to `solve` the blocks of a round (which only reads the state), and to `apply` the rotations found (which
writes it). A rotation is a small orthogonal matrix Q: U[:, block] ← U[:, block] @ Q. For a block of two columns Q is the Givens
rotation G(i, j, θ) of the paper.

To write an objective, derive from `Objective` and define `shape`, `active`, `scale`, `state`, `look`, `solve` and `apply`;
`givens.check_objective` finds errors in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from givens.numerics import parallel

Blocks = Sequence[np.ndarray] | np.ndarray
"""Disjoint sets of columns, each in ascending order. A round of pairs is one integer array of shape (k, 2)."""

Rotations = Sequence[np.ndarray] | np.ndarray
"""One small orthogonal matrix per block. For a round of pairs, one array of shape (k, 2, 2)."""


@dataclass
class PairSolutions:
    """The rotations that `Objective.solve` found, one for each block.

    An objective may derive from this class, and hand its `apply` further sequences with an entry for each block.

    Attributes
    ----------
    rotations : sequence of arrays
        One orthogonal Q per block.
    gains : array of float64
        By how much each rotation, applied alone, lowers f; 0 if the block is not rotated (then Q is I). For blocks of more than
        two columns, a lower bound is enough.
    error : float
        How far gains may be off: 0 if the searches are exact, NaN if that is not known.
    """

    rotations: Rotations
    gains: np.ndarray
    error: float = 0.0


def chosen(solutions: PairSolutions, which: np.ndarray) -> PairSolutions:
    """The solutions of some of the blocks, by their indices."""
    of_blocks = {name: values for name, values in vars(solutions).items() if name != "error"}
    return replace(solutions, **{name: _chosen(values, which) for name, values in of_blocks.items()})


def _chosen(values: Any, which: np.ndarray) -> Any:
    return values[which] if isinstance(values, np.ndarray) else [values[k] for k in which.tolist()]


def gathered(blocks: Blocks, found: Iterable[tuple[np.ndarray, float]], error: float = 0.0) -> PairSolutions:
    """The solutions of all blocks, from the rotation and the gain of each."""
    rotations, gains = zip(*found)
    return PairSolutions(
        np.array(rotations) if isinstance(blocks, np.ndarray) else rotations, np.array(gains), error
    )


def solved_pairs(
    pairs: np.ndarray, solve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], error: float = 0.0
) -> PairSolutions:
    """The solutions of pairs, which the threads of the pool share; `solve` returns rotations and gains."""
    shares = parallel.parts(len(pairs), parallel.width())
    rotations, gains = zip(*parallel.each(lambda share: solve(pairs[share]), shares))
    return PairSolutions(np.concatenate(rotations), np.concatenate(gains), error)


def solved_blocks(
    blocks: Blocks,
    of_pairs: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    of_block: Callable[[np.ndarray], tuple[np.ndarray, float]],
    error: float = 0.0,
) -> PairSolutions:
    """The solutions of pairs, or of larger blocks one by one."""
    if isinstance(blocks, np.ndarray):
        return solved_pairs(blocks, of_pairs, error)
    return gathered(blocks, parallel.each(of_block, blocks), error)


class NotFinite(ValueError):
    """An objective or its gradient is NaN or infinite at some U. A run then ends at the U before."""


class Look(NamedTuple):
    """The value of f, and its first and second derivatives with respect to the angle of each pair of columns.

    Attributes
    ----------
    value : float
        The value of f.
    slopes : array of float64, shape (n, n), or None
        Antisymmetric; entry (i, j), i < j, is g'(0) of the pair problem g(θ) = f(U·G(i, j, θ)). With E = ∂f/∂U this is
        EᵀU − UᵀE. Entries with i, j ≥ active are 0. None if slopes are unknown.
    curvatures : array of float64, shape (n, n), or None
        Symmetric; entry (i, j) is g''(0) of the pair. Only rows i < active are read. None if curvatures are unknown.
    gradient : array of float64, shape (n, n), optional
        E = ∂f/∂U. If f is a quadratic function of U, descent learns second derivatives from it, and needs fewer steps. Without
        slopes, those of E are taken; then E may have the active columns alone.
    gains : callable, optional
        Returns a symmetric array of float64, shape (n, n): entry (i, j) is the gain of the pair, rotated alone to its best angle,
        or a close upper bound; the diagonal is 0. For objectives that can tell it from what the look has summed, or by little
        work at the same state: a run ends where all gains together are rounding, and certificates search no pairs.
    """

    value: float
    slopes: np.ndarray | None = None
    curvatures: np.ndarray | None = None
    gradient: np.ndarray | None = None
    gains: Callable[[], np.ndarray] | None = None


Product = Callable[[np.ndarray], np.ndarray]
"""The second derivatives of f with respect to the angles of all pairs, as a linear map.

It maps an antisymmetric K of order n, in which K_ji is the angle of the pair (i, j), i < j, to an antisymmetric matrix H(K). The
map is symmetric, and f(U exp(tK)) has the second derivative ½ Σ K_ij H(K)_ij at t = 0.
"""


class Objective(ABC):
    """A function f of an orthogonal matrix that the loop minimises.

    Its methods tell `numerics.flop_counts.count` how many additions and multiplications they execute.

    Attributes
    ----------
    shape : tuple of int
        The shape of U: (n, n), or (n, m) for functions of n x m matrices with orthonormal columns. `look` then gets no Q, but the
        state of each matrix to look at, and its slopes are those of `angle_derivatives.few_slopes`.
    active : int
        Number of columns that f depends on, the first ones: those of U, or fewer in the Stiefel form. Only pairs (i, j) with
        i < active are rotated. The active columns of a block come first, since blocks are in ascending order.
    separable : bool
        Whether the gains of disjoint blocks add up, as for a sum over columns. If not, blocks are rotated one after the other.
    scale : float
        The size of f; tolerances are relative to it.
    factor : float
        Users see the value factor * f: negative if the objective is maximised, and not ±1 if it has rescaled its data to avoid
        overflow.
    method : tuple of str and Schedule
        The phases of a run by default, in their order: some of "descent", "newton", "sweeps" and "widened sweeps", or a
        schedule in the place of "sweeps".
    second : callable or None
        second(state, Q) returns the second derivatives at U @ Q, a `Product`, for the phase "newton".
    """

    shape: tuple[int, int]
    active: int
    separable: bool = True
    scale: float = 1.0
    factor: float = 1.0
    method: tuple[Any, ...] = ("sweeps",)

    @property
    def second(self) -> Callable[[Any, np.ndarray], Product] | None:
        """None: runs use no second derivatives. An objective that has them returns `second(state, Q)`."""
        return None

    @abstractmethod
    def state(self, U: np.ndarray) -> Any:
        """Compute the arrays that rotate with U: a pure function of the data and U."""

    @abstractmethod
    def look(self, state: Any, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Compute the value, and slopes and curvatures of all pairs: at U, or at U @ Q for an orthogonal Q of order n.

        Only reads the state. With `slopes=False` only the value is needed; slopes may be left out if they take much longer.
        """

    @abstractmethod
    def solve(self, state: Any, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """Find a rotation of each block, applied alone, that lowers f; for a block of two columns the best one.

        Only reads the state; the blocks may be shared among threads (`parallel.each`, `solved_pairs`). `min_gain` is the gain
        at which a run stops: smaller gains need not be found.
        """

    @abstractmethod
    def apply(
        self, state: Any, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the columns of the state, for every block of a round.

        `solutions` are those of `solve` that have these rotations; None if they do not come from it.
        """

    def start(self, rng: np.random.Generator) -> np.ndarray | Objective:
        """The default start: a random rotation. It may also be a cheaper objective, at whose minimum a run starts."""
        from givens.rotations import random_orthogonal

        n, m = self.shape
        return random_orthogonal(n, rng, determinant=1 if m == n else None, columns=m)
