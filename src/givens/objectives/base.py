"""What an objective is: the arrays that rotate with U, and the best rotation of a block of columns.

The loop in `givens.minimize` knows nothing of data, contrasts or tensors. It asks an objective for its `state` at
U, lets it `solve` the blocks of a round (which only reads the state), and then has it `apply` the rotations found
(which only writes). A rotation is a small orthogonal matrix Q, so that U[:, block] ← U[:, block] @ Q; for a block
of two columns Q is the Givens rotation G(i, j, θ) of the paper. Nothing outside the kernels assumes one angle.

To write an objective, derive from `Objective` and give it `n`, `scale`, `state`, `value`, `solve` and `apply`;
`givens.check_objective` then tells what is wrong with it.
"""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
    """

    rotations: Rotations
    gains: np.ndarray
    rotated: int
    flops: float


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
    """

    value: float
    slopes: np.ndarray | None
    curvatures: np.ndarray | None
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
    sense : int
        -1 if what people call the value is -f.
    unit : float
        What people call the value is sense * unit * f: objectives may rescale their data to avoid overflow.
    scale : float
        A size of f; tolerances are relative to it.
    floor : float
        What rounding alone may feign as the gain of a sweep, relative to the scale: no tolerance is tighter than this.
    enough : float
        Set by the loop, from its tolerance: a gain below it need not be pursued within a block.
    dear : bool
        The gradient costs so much that it is wanted at the end of a run only.
    making : float
        Additions and multiplications that `state` takes.
    thin : bool
        U is n x active, and is completed before each sweep by what `complete` says: f depends on no other column.
    certified : bool
        End a run with a search of every pair over all angles, if nobody says.
    """

    n: int
    active: int
    separable: bool = True
    sense: int = 1
    unit: float = 1.0
    scale: float = 1.0
    floor: float = 0.0
    enough: float = 0.0
    dear: bool = False
    making: float = 0.0
    thin: bool = False
    certified: bool = False

    @abstractmethod
    def state(self, U: np.ndarray) -> Any:
        """The arrays that rotate with U, made anew: a pure function of the data and U."""

    @abstractmethod
    def value(self, state: Any) -> float:
        """Evaluate f, in float64."""

    @abstractmethod
    def solve(self, state: Any, blocks: Blocks) -> Solved:
        """Find the best rotation of each block by itself. Reads the state only; may run in several threads at once."""

    @abstractmethod
    def apply(self, state: Any, blocks: Blocks, rotations: Rotations) -> float:
        """Rotate the state's columns of every block of a round; return the flops spent."""

    @abstractmethod
    def gradient(self, state: Any) -> np.ndarray:
        """First derivatives g'_ij(0) of every pair problem: the certificate of a run, and what schedules go by.

        Entry (i, j), i < j, i < active, belongs to the pair (i, j); the others are not read.
        """

    def look(self, state: Any) -> Look:
        """Value, slopes and curvatures of all pairs, in one pass; asked for once per step. Reads the state only."""
        value = self.value(state)
        if self.dear or self.thin:
            return Look(value, None, None, 0.0)
        upper = np.triu(self.gradient(state), 1)
        upper[self.active :] = 0.0
        return Look(value, upper - upper.T, None, 0.0)

    def turned_look(self, state: Any, Q: np.ndarray) -> Look:
        """As `look`, at U @ Q, for an orthogonal Q of order n; the state stays as it is."""
        turned = copy.deepcopy(state)
        flops = self.apply(turned, [np.arange(self.n)], [Q])
        look = self.look(turned)
        return look._replace(flops=look.flops + flops)

    def phases(self) -> tuple[str, ...]:
        """The phases of a run if nobody says, in their order: "descent", "leaps", "sweeps"."""
        return ("leaps", "sweeps")

    def fingerprint(self) -> str:
        """Identify the problem, so that a checkpoint of another one is refused."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.n} {self.active}".encode())
        for array in self.data():
            array = np.ascontiguousarray(array)
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def data(self) -> Sequence[np.ndarray]:
        """The arrays that define the problem, for `fingerprint`."""
        return ()

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Where to start if nobody says: at a random rotation."""
        from givens.rotations import random_orthogonal

        return random_orthogonal(self.n, rng, determinant=1)

    def coarse(self) -> Objective | None:
        """A cheaper objective of the same order, with a minimum near this one's: some of the data, or single precision.

        A run that nobody gives a start descends on it first, and goes on from there. None: there is no such objective.
        """
        return None

    def schedule(self) -> str | Any:
        """The order of pairs to use if nobody says: a name, or a `Schedule`."""
        return "tournament"

    def leap(self, state: Any, memory: Any, first: bool) -> Leap | None:
        """A rotation of all columns at once that should gain much, found without pair problems; None where there is none.

        Asked for at the beginning of a run, if the schedule wants leaps: with `first`, then with the `memory` of the last
        leap, or None where that is lost. Reads the state only. The loop takes back a leap that raises f.
        """
        return None

    def complete(self, state: Any) -> tuple[np.ndarray, float]:
        """Of a thin objective, the columns to turn the active ones against in this sweep, as rows; and the flops."""
        return np.zeros((0, self.n)), 0.0

    def settled(self, state: Any) -> str:
        """Why to stop here, if the objective knows a reason of its own; else empty."""
        return ""

    def outcome(self, state: Any) -> np.ndarray | None:
        """The U to return, where that is not the last one; the state is then put back to it."""
        return None

    def prepare(self, start: np.ndarray) -> None:  # noqa: B027 (most objectives know their scale beforehand)
        """Settle, from the start of the run, what is to hold for all of it, such as `scale`."""

    def notes(self, state: Any) -> str:
        """What the result's message should add (an inexact search, say); empty if nothing."""
        return ""
