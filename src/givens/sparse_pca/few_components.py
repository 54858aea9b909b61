"""Sparse PCA with few components: m columns, and of their completion only the directions with a gradient.

With m < n columns of U in the objective, the other n − m are any completion: f does not depend on it. All crossing
pairs (i ≤ m, j > m) together have the gradient R = (I − VVᵀ)AᵀS, V the m columns and S the thresholded AV. So the completion
may be turned until R, and the step before, lie in its first 2m columns: the crossing pairs of all others have derivative
zero. So this is an outer loop: choose W and make A·W by one matrix product, turn the block [V W], of which the first m columns
count, by `Threshold.solve_block`, and choose anew. Nothing of order n² is ever stored, and U is n x m.

With `counts` the thresholds are moved before each sweep so that exactly so many entries of each column exceed them.
The value then belongs to another threshold each time and need not rise; what is kept is the sweep whose counted entries make
the loadings of the largest adjusted variance. It costs next to nothing: the product that has the gradient has the scores too.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from givens.metrics import total_adjusted
from givens.numerics import flop_counts, parallel
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.scaling import EPS
from givens.numerics.tiles import scores, turned
from givens.objectives.sparse_columns import Threshold
from givens.result import PhaseSummary, Result, Trace
from givens.rotations import check_orthogonal, orthogonality, repair
from givens.solve.loop import DRIFT
from givens.support.arguments import counted
from givens.support.progress import bar

PATIENCE_SWEEPS = 2  # sweeps: with counts the explained variance may fall and rise again
SWEEP_GROWTH = 3e-3  # of the explained variance in so many sweeps
REPAIR_EVERY = 10  # sweeps after which V is made orthonormal again and AV recomputed


class Seen(NamedTuple):
    """Quantities at a state: Σ φ, E = AᵀS and R, transposed; with counts, the entries' scores and adjusted variance."""

    value: float
    E: np.ndarray
    R: np.ndarray
    scores: np.ndarray
    held: float


@dataclass
class State:
    """[V W] and its image under A, both transposed; V before the last sweep; and what was seen here."""

    Ut: np.ndarray
    Y: np.ndarray
    step: np.ndarray
    seen: Seen | None = None


class FewColumns:
    """Σ φ over m < n columns of AU, maximised; every sweep has a new complement.

    Parameters
    ----------
    At : array of float64, shape (n, features), or CentredSparse
        Samples x features, contiguous, scaled so that squares do not overflow.
    levels : array, shape (m,)
        γ for ℓ1, √γ for ℓ0.
    l0 : bool
    counts : array of int, shape (m,), optional
        How many entries of each column are to exceed its level; `levels` is then overwritten.
    shared : bool, default=False
        One level for all columns, exceeded by as many entries as all counts together.

    Attributes
    ----------
    columns : array, shape (m, features)
        (AU)ᵀ at the end of a run.
    scores : array, shape (m, n)
        With counts, of the counted entries of these columns, as they are.
    """

    def __init__(
        self,
        At: np.ndarray | CentredSparse,
        levels: np.ndarray,
        l0: bool,
        counts: np.ndarray | None = None,
        shared: bool = False,
    ) -> None:
        self.At, self.levels, self.l0, self.counts, self.shared = At, levels, l0, counts, shared
        self.n, self.active = len(At), len(levels)
        self.contrast = Threshold(levels, l0)
        # Far below the rounding of values: near a maximum, slopes are more exact.
        squares = (
            At.sum_of_squares() if isinstance(At, CentredSparse) else float(np.einsum("ij,ij->", At, At))
        )
        self.squares = squares or 1.0
        self.contrast.noise = EPS**2 * self.squares
        # S(Y), and below it, with counts, the entries themselves.
        rows = self.active if counts is None or l0 else 2 * self.active
        self.S = np.empty((rows, At.shape[1]))

    def maximise(
        self,
        V: np.ndarray,
        *,
        tol: float = 1e-18,
        gradient_tol: float | None = None,
        max_sweeps: int = 200,
        threads: int | None = None,
        progress: bool = False,
    ) -> Result:
        """Choose a complement and make one sweep, repeatedly; parameters and stopping rules are those of `minimize`.

        Parameters
        ----------
        V : array, shape (n, m)
            Orthonormal columns to start from.
        tol, gradient_tol, max_sweeps, threads, progress
            As for `minimize`; the scale is the value itself.

        Returns
        -------
        Result
            Its U is n x m.
        """
        began = perf_counter()
        self.flops = 2.0 * self.At.size
        with parallel.pool(threads), bar(progress) as shown, flop_counts.job(self):
            V = check_orthogonal(V, name="start", columns=self.active)
            if len(V) != self.n:
                raise ValueError(f"start is of order {len(V)}, but the data have {self.n} samples")
            self.best: tuple[Seen, np.ndarray, np.ndarray, np.ndarray] | None = None
            self.stale = 0
            state = self._state(V)
            trace, summary, rotations, gain = Trace(), PhaseSummary("sweeps"), 0, np.inf
            while True:
                self._record(state, trace, summary.steps, began)
                shown.show(trace.value[-1], gain / self.scale)
                norm = trace.gradient_norm[-1]
                message = self._stop(summary.steps, gain, norm, tol, gradient_tol, max_sweeps)
                if message:
                    break
                pairs = self.active * (2 * self.n - self.active - 1) // 2
                shown.step("sweeps", summary.steps + 1, max_sweeps, pairs)
                gain, turned = self._sweep(state)
                rotations += turned
                summary.steps += 1
                summary.gain += gain
                if summary.steps % REPAIR_EVERY == 0:
                    state = self._state(repair(state.Ut[: self.active].T))
            summary.flops, summary.seconds = self.flops, perf_counter() - began
            return self._result(state, trace, summary, rotations, message, began)

    def _state(self, U: np.ndarray) -> State:
        """V and AV, with room for the columns beside them."""
        most = min(3 * self.active, self.n)
        Ut, Y = np.zeros((most, self.n)), np.empty((most, self.At.shape[1]))
        Ut[: self.active] = U.T
        turned(Ut[: self.active], self.At, Y[: self.active])
        self.flops += 2.0 * self.At.size * self.active
        return State(Ut, Y, np.zeros((0, self.n)))

    def _record(self, state: State, trace: Trace, sweeps: int, began: float) -> None:
        value, norm = self._look(state).value, self._gradient_norm(state)
        phase = "sweeps" if sweeps else ""
        trace.append(sweeps, perf_counter() - began, self.flops, value, norm, phase)

    def _gradient_norm(self, state: State) -> float:
        """Of the pairs inside, and of all crossing ones as if the n coordinates were the completion."""
        seen = self._look(state)
        inside = seen.E @ state.Ut[: self.active].T
        inside = np.triu(inside - inside.T, 1)
        return float(np.sqrt(8.0 * (np.vdot(inside, inside) + np.vdot(seen.R, seen.R))))

    def _stop(
        self, sweeps: int, gain: float, norm: float, tol: float, gradient_tol: float | None, most: int
    ) -> str:
        """Why to stop here; empty if there is no reason."""
        if self.active == self.n == 1:
            return "there is nothing to rotate"
        if gradient_tol is not None and norm <= gradient_tol * self.scale:
            return f"converged: the gradient norm is at most {gradient_tol:g} times the scale"
        if gain <= tol * self.scale:
            return f"converged: a sweep gained at most {tol:g} times the scale"
        if self.stale >= PATIENCE_SWEEPS:
            return f"converged: in {PATIENCE_SWEEPS} sweeps the counted entries did not explain {SWEEP_GROWTH:g} of it more"
        return f"not converged: max_sweeps = {most} reached" if sweeps >= most else ""

    def _sweep(self, state: State) -> tuple[float, int]:
        """Rotate V against the chosen complement; returns the gain and the number of rotations."""
        m = self.active
        Wt = self._directions(state, self._look(state).R)
        block = np.arange(m + len(Wt))
        if len(Wt):
            state.Ut[m : len(block)] = Wt
            turned(Wt, self.At, state.Y[m : len(block)])
            self.flops += 2.0 * self.At.size * len(Wt)
        Q, gain, _ = self.contrast.solve_block(state.Y, block, 0.0)
        if gain <= 0.0:
            return 0.0, 0
        state.seen, state.step = None, state.Ut[:m].copy()
        # The next sweep has another complement, so these columns need not be rotated.
        Qt = Q[:, :m].T
        state.Ut[:m] = Qt @ state.Ut[block]
        state.Y[:m] = Qt @ state.Y[block]
        self.flops += 2.0 * m * len(block) * (self.n + state.Y.shape[1])
        return gain, 1

    def _result(
        self, state: State, trace: Trace, summary: PhaseSummary, rotations: int, message: str, began: float
    ) -> Result:
        """Where the run ended; with counts, the best sweep of it. `columns` are AU for those who go on from there."""
        m = self.active
        self.columns = state.Y[:m]
        value, norm = trace.value[-1], trace.gradient_norm[-1]
        if self.best is not None:
            state.seen, state.Ut[:m], self.columns, self.levels[:] = self.best
            self.scores = state.seen.scores
            value, norm = state.seen.value, self._gradient_norm(state)
        U = np.ascontiguousarray(state.Ut[:m].T)
        if orthogonality(U) > DRIFT:
            U = repair(U)
        return Result(
            U=U,
            value=value,
            converged=not message.startswith("not"),
            message=message,
            sweeps=summary.steps,
            rotations=rotations,
            flops=self.flops,
            gradient_norm=norm,
            orthogonality=orthogonality(U),
            seconds=perf_counter() - began,
            trace=trace,
            method=f"{counted(summary.steps, 'sweep', 'sweeps')} of rotations in blocks",
            phases=(summary,),
        )

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
        E = scores(self.S, self.At, few=4 * nonzeros < Y.size)
        self.flops += 3.0 * self.S.size
        self.scale = float(value) or 1.0
        held = 0.0
        if self.counts is not None:
            self.flops += 2.0 * Y.size
            size = np.linalg.norm(self.S[-m:], axis=1, keepdims=True)
            held = total_adjusted(E[-m:] / np.where(size > 0, size, 1.0))
        state.seen = Seen(float(value), E[:m], self._crossing(state, E[:m]), E[-m:], held)
        if self.counts is not None:
            self._remember(state, state.seen)
        return state.seen

    def _remember(self, state: State, seen: Seen) -> None:
        m = self.active
        most = -np.inf if self.best is None else self.best[0].held
        self.stale = 0 if seen.held > most * (1 + SWEEP_GROWTH) or self.best is None else self.stale + 1
        if seen.held > most:
            self.best = seen, state.Ut[:m].copy(), state.Y[:m].copy(), self.levels.copy()

    def _adapt(self, Y: np.ndarray, counts: np.ndarray) -> None:
        """Set each level just above the largest entry that is not to count."""
        # Above it, since squares of equal numbers may compare as unequal where they are fused with a subtraction.
        margin = 1 + 4 * EPS
        if self.shared:
            self.levels[:] = margin * largest_beyond(Y, int(counts.sum()))
        else:
            self.levels[:] = [margin * largest_beyond(y, int(count)) for y, count in zip(Y, counts)]

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
        D = np.concatenate((_directed(R, self.squares), _directed(self._aside(state, state.step), 1.0)))
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
        # Orthonormal but for the rounding errors of what was subtracted.
        W = repair(self._aside(state, W).T).T
        self.flops += 4.0 * len(W) * W.size
        return np.ascontiguousarray(W)


def _directed(D: np.ndarray, unit: float) -> np.ndarray:
    """Normalise the rows that are larger than rounding errors of numbers as large as `unit`, and drop the others."""
    size = np.linalg.norm(D, axis=1, keepdims=True)
    some = size[:, 0] > 1e-12 * max(unit, float(size.max(initial=0.0)))
    return D[some] / size[some]


def largest_beyond(y: np.ndarray, count: int) -> float:
    """The largest |y| that is not among the `count` largest; 0 if there is none.

    >>> largest_beyond(np.array([3.0, -1.0, -2.0]), 1)
    2.0
    """
    sizes = np.abs(y).ravel()
    place = len(sizes) - count - 1
    return float(np.partition(sizes, place)[place]) if place >= 0 else 0.0
