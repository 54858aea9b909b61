"""What an objective is: the arrays that rotate with U, and the best rotation of a block of columns.

The loop in `givens.minimize` knows nothing of data, contrasts or tensors. It asks an objective for its `state` at
U, has a `look` at f and its slopes there, lets it `solve` the blocks of a round (which only reads the state), and then has it
`apply` the rotations found (which only writes). A rotation is a small orthogonal matrix Q, so that U[:, block] ← U[:, block] @ Q;
for a block of two columns Q is the Givens rotation G(i, j, θ) of the paper. Nothing outside the kernels assumes one angle.

To write an objective, derive from `Objective` and give it `n`, `scale`, `state`, `look`, `solve` and `apply`;
`givens.check_objective` then tells what is wrong with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Blocks = Sequence[np.ndarray] | np.ndarray
"""Disjoint sets of columns, each ascending. A round of pairs is one integer array of shape (k, 2)."""

Rotations = Sequence[np.ndarray] | np.ndarray
"""One small orthogonal matrix per block. For a round of pairs, one array of shape (k, 2, 2)."""


class Solved(NamedTuple):
    """The best rotations of some blocks.

    Attributes
    ----------
    rotations : sequence of arrays
        One orthogonal Q per block.
    gains : array of float64
        By how much each rotation, applied alone, lowers f: 0 for a block that stays as it is (then Q is I).
    rotated : int
        How many Givens rotations these matrices are made of.
    flops : float
        Additions and multiplications spent.
    payload : sequence, optional
        For each block, what was worked out on the way and would help `apply`, which gets it back.
    note : str
        What the result's message should say about the searches (that they are not exact, say); empty if nothing.
    """

    rotations: Rotations
    gains: np.ndarray
    rotated: int
    flops: float
    payload: Sequence[Any] | None = None
    note: str = ""


class NotFinite(ValueError):
    """An objective, or its gradient, is NaN or infinite at some U: a run that has begun ends where it was before."""


class Look(NamedTuple):
    """What one look at a state tells: f, and how f changes as each pair of columns begins to turn.

    Attributes
    ----------
    value : float
        f.
    slopes : array of float64, shape (n, n), or None
        Antisymmetric; entry (i, j), i < j, is g'(0) of the pair problem g(θ) = f(U·G(i, j, θ)). With E = ∂f/∂U this is
        EᵀU − UᵀE. Entries of two columns that do not count (i, j ≥ active) are 0. None where slopes are unknown.
    curvatures : array of float64, shape (n, n), or None
        Symmetric; entry (i, j) is g''(0) of the pair. Only rows i < active are read. None where curvatures are unknown.
    flops : float
        Additions and multiplications spent.
    left : float, optional
        What all pairs together could still gain, each by its best angle, where a look can tell. A run ends where it is rounding.
    gradient : array of float64, shape (n, n), optional
        E = ∂f/∂U, where f is a sum over columns (each column of E depends on that column of U only): descent learns the second
        derivatives of each column from it, and needs fewer steps.
    """

    value: float
    slopes: np.ndarray | None = None
    curvatures: np.ndarray | None = None
    flops: float = 0.0
    left: float | None = None
    gradient: np.ndarray | None = None


class Second(NamedTuple):
    """The second derivatives of f with respect to the angles of all pairs, as a product.

    Attributes
    ----------
    product : callable
        For an antisymmetric K of order n, the antisymmetric H so that f(U exp(tK)) has the second derivative ½ Σ K_ij H_ij at
        t = 0, and a bilinear form of two such matrices likewise. K_ji is the angle of the pair (i, j), i < j.
    flops : float
        Additions and multiplications spent.
    """

    product: Callable[[np.ndarray], np.ndarray]
    flops: float


class Leap(NamedTuple):
    """A rotation of all columns at once.

    Attributes
    ----------
    rotation : array, shape (n, n)
        Orthogonal, of determinant 1.
    flops : float
    again : bool
        Whether another leap is worth its while.
    memory : object
        Handed to the next leap, if U has not been repaired in between.
    """

    rotation: np.ndarray
    flops: float
    again: bool
    memory: Any


@dataclass(frozen=True)
class Plan:
    """How an objective is minimised if nobody says.

    Attributes
    ----------
    phases : tuple of str
        In their order: "descent", "newton", "leaps", "sweeps".
    schedule : str or Schedule
        The order of pairs in a sweep.
    certify : bool
        End a run with a search of every pair over all angles.
    coarse : callable, optional
        Returns a cheaper objective of the same order with a minimum near this one's (some of the data, or single precision), or
        None where there is none. A run that nobody gives a start begins with the first phase of its plan, and goes on from there.
    rough : float
        Where this objective is the cheaper form of another one: a run on it ends where the next step would gain no more than
        this, times the scale.
    second : callable, optional
        `second(state, Q)` gives the second derivatives of all pairs at U @ Q, for the phase "newton": a `Second`.
    state_flops : float
        Additions and multiplications that `state` takes.
    at_once : bool
        Solve all blocks of a round in one call, since a call is a pass over data in chunks: threads do not share them.
    rounding : float
        Relative error of slopes where data are in single precision: the loop accepts no tolerance below its square.
    """

    phases: tuple[str, ...] = ("leaps", "sweeps")
    schedule: Any = "tournament"
    certify: bool = False
    coarse: Callable[[], Objective | None] | None = None
    rough: float = 1e-4
    second: Callable[[Any, np.ndarray], Second] | None = None
    state_flops: float = 0.0
    at_once: bool = False
    rounding: float = 0.0


class Objective(ABC):
    """A function f of an orthogonal matrix that the loop minimises.

    Attributes
    ----------
    n : int
        Order of U.
    active : int
        Only pairs (i, j) with i < active are turned: active < n is the Stiefel form, in which f depends on the first
        `active` columns only. A block's active columns come first, since blocks are ascending.
    separable : bool
        f is a sum over columns, so the gains of disjoint blocks add up. If not, blocks go one after the other.
    scale : float
        A size of f; tolerances are relative to it.
    factor : float
        What people call the value is factor * f: negative for what is maximised, and of another size than 1 where an objective
        has rescaled its data to avoid overflow.
    """

    n: int
    active: int
    separable: bool = True
    scale: float = 1.0
    factor: float = 1.0

    @abstractmethod
    def state(self, U: np.ndarray) -> Any:
        """The arrays that rotate with U, made anew: a pure function of the data and U."""

    @abstractmethod
    def look(self, state: Any, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value, slopes and curvatures of all pairs, in one pass: at U, or at U @ Q for an orthogonal Q of order n.

        Reads the state only. Without `slopes` nothing but the value is needed: those that take much longer may be left out.
        """

    @abstractmethod
    def solve(self, state: Any, blocks: Blocks, enough: float = 0.0) -> Solved:
        """Find the best rotation of each block by itself. Reads the state only; may run in several threads at once.

        A gain of `enough` is as good as none: what a run stops at.
        """

    @abstractmethod
    def apply(
        self, state: Any, blocks: Blocks, rotations: Rotations, payload: Sequence[Any] | None = None
    ) -> float:
        """Rotate the state's columns of every block of a round; return the flops spent.

        The payload is what `solve` gave with these rotations; None where they do not come from it.
        """

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Where to start if nobody says: at a random rotation."""
        from givens.rotations import random_orthogonal

        return random_orthogonal(self.n, rng, determinant=1)

    def plan(self) -> Plan:
        """How to run it if nobody says."""
        return Plan()

    def propose(self, state: Any, memory: Any, first: bool) -> Leap | None:
        """A rotation of all columns at once that should gain much, found without pair problems; None where there is none.

        Asked for at the beginning of a run, if the schedule wants leaps: with `first`, then with the `memory` of the last
        leap, or None where that is lost. Reads the state only. The loop takes back a leap that raises f.
        """
        return None

    def data(self) -> Sequence[np.ndarray | str]:
        """The arrays and words that define the problem, so that a checkpoint of another one is refused."""
        return ()
