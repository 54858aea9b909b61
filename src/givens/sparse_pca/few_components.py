"""Sparse PCA with few components: m columns that count, and of their completion only what is worth turning against.

With m < n columns of U in the objective, the other n − m are any completion: f does not depend on it. All crossing
pairs (i ≤ m, j > m) together have the gradient R = (I − VVᵀ)AᵀS, V the m columns and S the thresholded AV. So the completion
may be turned until R, and the step before, lie in its first 2m columns: the crossing pairs of all others have derivative
zero. Before each sweep these columns W are chosen and A·W is made by one matrix product; the sweep is that of the block
[V W], of which the first m count. Nothing of order n² is ever stored, and U is n x m.

With `counts` the thresholds are moved before each sweep so that exactly so many entries of each column exceed them.
The value then belongs to another threshold each time and need not rise; what is kept is the sweep whose counted entries make
the loadings of the largest adjusted variance. It costs next to nothing: the product that has the gradient has the scores too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from givens.metrics import total_adjusted
from givens.numerics import flop_counts
from givens.numerics.polar import polar
from givens.numerics.tiles import scores, turned
from givens.objectives.base import Blocks, Objective, Rotations, Solved
from givens.objectives.sparse_columns import LOOSE, RELAXATION, SHARE
from givens.schedules import Schedule, Tournament

EPS = float(np.finfo(np.float64).eps)
PATIENCE = 2  # sweeps: with counts the explained variance may fall and rise again
GROWTH = 3e-3  # of the explained variance in so many sweeps


class Seen(NamedTuple):
    """What one look at a state tells: Σ φ, E = AᵀS transposed; with counts, the entries' scores and adjusted variance."""

    value: float
    E: np.ndarray
    scores: np.ndarray
    held: float


@dataclass
class State:
    """[V W] and its image under A, both transposed; V before the last sweep; and what was seen here."""

    Ut: np.ndarray
    Y: np.ndarray
    step: np.ndarray
    seen: Seen | None = None


class FewColumns(Objective):
    """Σ φ over m < n columns of AU, maximised.

    Parameters
    ----------
    At : array of float64, shape (n, features)
        Samples x features, contiguous, of a size whose squares are in no danger.
    levels : array, shape (m,)
        γ for ℓ1, √γ for ℓ0.
    l0 : bool
    counts : array of int, shape (m,), optional
        How many entries of each column are to exceed its level; `levels` is then overwritten.
    shared : bool
        One level for all columns, which as many entries exceed as all counts together: the way of a common threshold.

    Attributes
    ----------
    columns : array, shape (m, features)
        (AU)ᵀ at the end of a run.
    scores : array, shape (m, n)
        With counts, of the counted entries of these columns, as they are.
    """

    thin = True
    sense = -1

    def __init__(
        self,
        At: np.ndarray,
        levels: np.ndarray,
        l0: bool,
        counts: np.ndarray | None = None,
        shared: bool = False,
    ) -> None:
        self.At, self.levels, self.l0, self.counts, self.shared = At, levels, l0, counts, shared
        self.n, self.active = len(At), len(levels)
        self.size = float(np.einsum("ij,ij->", At, At)) or 1.0
        self.making = 2.0 * At.size * self.active
        # S(Y), and below it, with counts, the entries themselves.
        rows = self.active if counts is None or l0 else 2 * self.active
        self.S = np.empty((rows, At.shape[1]))
        self.flops = 2.0 * At.size
        self.prepare(np.zeros(0))

    def prepare(self, start: np.ndarray) -> None:
        """Forget the best of another run."""
        self.best: tuple[Seen, np.ndarray, np.ndarray, np.ndarray] | None = None
        self.stale = 0

    def schedule(self) -> Schedule:
        """All columns in one block."""
        return Tournament(block=max(3 * self.active, 2))

    def data(self) -> list[np.ndarray]:
        """What defines the problem."""
        return [self.At, np.array(self.l0), self.levels if self.counts is None else self.counts]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Start at the principal axes, the strongest first."""
        return np.ascontiguousarray(np.linalg.eigh(self.At @ self.At.T)[1][:, ::-1][:, : self.active])

    def state(self, U: np.ndarray) -> State:
        """V and AV, with room for the columns beside them."""
        most = min(3 * self.active, self.n)
        Ut, Y = np.zeros((most, self.n)), np.empty((most, self.At.shape[1]))
        Ut[: self.active] = U.T
        turned(Ut[: self.active], self.At, Y[: self.active])
        return State(Ut, Y, np.zeros((0, self.n)))

    def value(self, state: State) -> float:
        """Evaluate f."""
        return -self._look(state).value

    def gradient(self, state: State) -> np.ndarray:
        """The pairs inside, and beside them all crossing ones, as if the n coordinates were the completion."""
        E = self._look(state).E
        inside = E @ state.Ut[: self.active].T
        return -2.0 * np.hstack((inside - inside.T, self._crossing(state, E)))

    def complete(self, state: State) -> tuple[np.ndarray, float]:
        """The columns W, transposed: the gradient's directions and where the columns came from, next to V."""
        m = self.active
        Wt = self._directions(state, self._crossing(state, self._look(state).E))
        if len(Wt):
            state.Ut[m : m + len(Wt)] = Wt
            turned(Wt, self.At, state.Y[m : m + len(Wt)])
        spent, self.flops = self.flops, 0.0
        return Wt, spent + 2.0 * self.At.size * len(Wt)

    def solve(self, state: State, blocks: Blocks) -> Solved:
        """Turn the pairs of each block on a compact copy."""
        from givens.kernels import sparse_blocks

        levels = np.concatenate((self.levels, np.full(len(state.Y) - self.active, np.inf)))
        # Far below what values can tell: near a maximum, slopes tell more.
        noise = EPS**2 * self.size
        rotations, gains, turns, spent = [], [], 0, 0.0
        for block in blocks:
            C, _, _ = sparse_blocks.compact(state.Y, block, levels[block].min() / np.sqrt(2.0))
            Qt = np.eye(len(block))
            gain, rotated, flops = sparse_blocks.turn_block(
                C, levels[block], self.l0, noise, SHARE, LOOSE, RELAXATION, Qt, np.empty((0, 4))
            )
            rotations.append(np.ascontiguousarray(Qt.T))
            gains.append(gain)
            turns, spent = turns + rotated, spent + flops
        return Solved(
            np.array(rotations) if isinstance(blocks, np.ndarray) else rotations,
            np.array(gains),
            turns,
            spent,
        )

    def apply(self, state: State, blocks: Blocks, rotations: Rotations) -> float:
        """Turn V and AV; the columns beside them only where a later round of the sweep needs them."""
        flops = 0.0
        if state.seen is not None:
            state.seen, state.step = None, state.Ut[: self.active].copy()
        for block, Q in zip(blocks, rotations):
            kept = self.active if len(block) > self.active and block[-1] == len(block) - 1 else len(block)
            Qt = Q[:, :kept].T
            state.Ut[block[:kept]] = Qt @ state.Ut[block]
            state.Y[block[:kept]] = Qt @ state.Y[block]
            flops += 2.0 * kept * len(block) * (self.n + state.Y.shape[1])
        return flops

    def settled(self, state: State) -> str:
        """With counts: why there is nothing more to be had from rotations."""
        if self.stale < PATIENCE:
            return ""
        return f"converged: in {PATIENCE} sweeps the counted entries did not explain {GROWTH:g} of it more"

    def outcome(self, state: State) -> np.ndarray | None:
        """With counts, the U of the best sweep; and AU for those who go on from there."""
        m = self.active
        self.columns = state.Y[:m]
        if self.best is None:
            return None
        state.seen, state.Ut[:m], self.columns, self.levels[:] = self.best
        self.scores = state.seen.scores
        state.Y[:m] = self.columns
        return np.ascontiguousarray(state.Ut[:m].T)

    def _look(self, state: State) -> Seen:
        """Value, gradient and, with counts, what the counted entries explain: once for each point of the way."""
        if state.seen is not None:
            return state.seen
        from givens.kernels import threshold

        m = self.active
        Y = state.Y[:m]
        if self.counts is not None:
            self._adapt(Y, self.counts)
        value, nonzeros = threshold.shrink(Y, self.levels, self.l0, self.S[:m])
        if len(self.S) > m:
            threshold.shrink(Y, self.levels, True, self.S[m:])
        E, flops = scores(self.S, self.At, few=4 * nonzeros < Y.size)
        self.flops += flops + 3.0 * self.S.size
        self.scale = float(value) or 1.0
        held = 0.0
        if self.counts is not None:
            self.flops += 2.0 * Y.size
            size = np.linalg.norm(self.S[-m:], axis=1, keepdims=True)
            held = total_adjusted(E[-m:] / np.where(size > 0, size, 1.0))
        state.seen = Seen(float(value), E[:m], E[-m:], held)
        if self.counts is not None:
            self._remember(state, state.seen)
        return state.seen

    def _remember(self, state: State, seen: Seen) -> None:
        m = self.active
        most = -np.inf if self.best is None else self.best[0].held
        self.stale = 0 if seen.held > most * (1 + GROWTH) or self.best is None else self.stale + 1
        if seen.held > most:
            self.best = seen, state.Ut[:m].copy(), state.Y[:m].copy(), self.levels.copy()

    def _adapt(self, Y: np.ndarray, counts: np.ndarray) -> None:
        """Set each level just above the largest entry that is not to count."""
        if self.shared:
            self.levels[:] = _level(Y.ravel(), int(counts.sum()))
        else:
            self.levels[:] = [_level(y, int(count)) for y, count in zip(Y, counts)]

    def _crossing(self, state: State, E: np.ndarray) -> np.ndarray:
        """R = (I − VVᵀ)AᵀS, transposed."""
        for _ in range(2):  # twice: the first time leaves rounding errors of the size of E
            E = self._aside(state, E)
        return E

    def _aside(self, state: State, D: np.ndarray) -> np.ndarray:
        """D(I − VVᵀ): what is left of the rows of D beside V."""
        Vt = state.Ut[: self.active]
        self.flops += (4.0 * len(Vt) + 1.0) * D.size
        return D - (D @ Vt.T) @ Vt

    def _directions(self, state: State, R: np.ndarray) -> np.ndarray:
        """An orthonormal basis of the gradient's directions and of where the columns came from, next to V."""
        room = self.n - self.active
        D = np.concatenate([_directed(part) for part in (R, self._aside(state, state.step))])
        if room <= 0 or len(D) == 0:
            return np.zeros((0, self.n))
        D = self._aside(state, D)
        # The polar factor keeps each direction nearest to the column it belongs to.
        P, size, Qt = np.linalg.svd(D, full_matrices=False)
        some = size > 1e-7 * size[0]
        some[room:] = False
        self.flops += flop_counts.svd(*D.shape) + 4.0 * D.size
        if some.all():
            W = P @ Qt
            self.flops += 2.0 * len(P) * D.size
        else:
            W = Qt[some]
        W = self._aside(state, W)
        self.flops += flop_counts.svd(*W.shape) + 2.0 * len(W) * W.size
        return np.ascontiguousarray(polar(W))


def _directed(D: np.ndarray) -> np.ndarray:
    """Normalise the rows that are larger than rounding errors, and drop the others."""
    size = np.linalg.norm(D, axis=1, keepdims=True)
    some = size[:, 0] > 1e-12 * max(1.0, float(size.max(initial=0.0)))
    return D[some] / size[some]


def _level(y: np.ndarray, count: int) -> float:
    """A number that the `count` largest |y| exceed, and no others."""
    sizes = np.abs(y)
    next_one = len(sizes) - count - 1
    # Above, not at it: squares of equal numbers may compare as unequal where they are fused with a subtraction.
    return float(np.partition(sizes, next_one)[next_one]) * (1 + 4 * EPS) if next_one >= 0 else 0.0
