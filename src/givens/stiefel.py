"""Few sparse components of many samples: rotations of m columns against a complement that is chosen anew each time.

With m < n columns of U in the objective, the other n − m are any completion: f does not depend on it. All crossing
pairs (i ≤ m, j > m) together have the gradient R = (I − VVᵀ)AᵀS, V the m columns and S the thresholded AV. So the completion
may be turned until R, and the step before, lie in its first 2m columns: the crossing pairs of all others have derivative
zero. One sweep here is: choose these columns W, make A·W by one matrix product, and turn all pairs of the block [V W], of
which the first m count, by the exact rotations of `givens.kernels.threshold`. Nothing of order n² is ever stored.

With `counts` the thresholds are moved before each sweep so that exactly so many entries of each column exceed them.
The value then belongs to another threshold each time and need not rise; what is kept is the sweep whose counted entries make
the loadings of the largest adjusted variance. It costs next to nothing: the product that has the gradient has the scores too.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from givens import lapack
from givens.loadings import explained, polar
from givens.objectives.threshold import LOOSE, RELAXATION, SHARE
from givens.objectives.tiles import scores, turned
from givens.result import Result, Trace

__all__ = ["maximise"]

EPS = float(np.finfo(np.float64).eps)
PATIENCE = 2  # sweeps: with counts the explained variance may fall and rise again
GROWTH = 3e-3  # of the explained variance in so many sweeps; what is left is for `loadings.recount`, at a third of the cost
FRESH = 10  # sweeps after which V is made orthonormal and Y computed anew


def maximise(
    At: np.ndarray,
    V: np.ndarray,
    levels: np.ndarray,
    l0: bool,
    *,
    counts: np.ndarray | None = None,
    tol: float = 1e-9,
    max_sweeps: int = 200,
    show: Callable[[int, float], None] | None = None,
) -> tuple[Result, np.ndarray]:
    """Maximise the sparse PCA objective over n x m matrices with orthonormal columns.

    Parameters
    ----------
    At : array of float64, shape (n, features)
        Samples x features, contiguous.
    V : array, shape (n, m)
        Where to start.
    levels : array, shape (m,)
        γ for ℓ1, √γ for ℓ0.
    counts : array of int, shape (m,), optional
        How many entries of each column are to exceed its level; `levels` is then overwritten.
    tol : float
        Converged when a sweep gains less than tol times the value.
    show : callable, optional
        Called with the sweep and the value.

    Returns
    -------
    Result, array
        `Result.U` is the n x m matrix; the array is Y = (AV)ᵀ, one component per row.
    """
    return _Run(At, V, levels, l0, counts, tol, max_sweeps).run(show)


class _Run:
    def __init__(
        self,
        At: np.ndarray,
        V: np.ndarray,
        levels: np.ndarray,
        l0: bool,
        counts: np.ndarray | None,
        tol: float,
        max_sweeps: int,
    ) -> None:
        self.At, self.levels, self.l0, self.counts = At, levels, l0, counts
        self.tol, self.max_sweeps = tol, max_sweeps
        self.Vt = np.ascontiguousarray(V.T)
        m = len(self.Vt)
        self.block = np.empty((min(3 * m, len(At)), At.shape[1]))
        self.Y = self.block[:m]
        # S(Y), and below it, with counts, the entries themselves.
        self.S = np.empty((m if counts is None or l0 else 2 * m, At.shape[1]))
        turned(self.Vt, self.At, self.Y)
        self.step = np.zeros((0, V.shape[0]))
        self.scale = float(np.einsum("ij,ij->", At, At)) or 1.0
        self.flops = 2.0 * At.size * (m + 1)
        self.rotations = 0
        self.gains: list[float] = []
        self.stale = 0

    def run(self, show: Callable[[int, float], None] | None) -> tuple[Result, np.ndarray]:
        began = perf_counter()
        trace = Trace()
        best: tuple[float, float, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
        message, converged, sweep = "", False, 0
        while True:
            if self.counts is not None:
                self._adapt()
            value, E, held = self._look()
            trace.append(sweep, perf_counter() - began, self.flops, value, float("nan"))
            if show is not None:
                show(sweep, value)
            if self.counts is not None:
                self.stale = 0 if best is None or held > best[0] * (1 + GROWTH) else self.stale + 1
                if best is None or held > best[0]:
                    best = held, value, E, self.Vt, self.Y.copy(), self.levels.copy()
            message, converged = self._stop(sweep, trace)
            if message:
                break
            self._sweep(self._crossing(E))
            sweep += 1
        if best is not None:
            _, trace.value[-1], E, self.Vt, self.Y, self.levels[:] = best
        trace.gradient_norm[-1] = self._gradient_norm(E)
        return self._result(trace, message, converged, perf_counter() - began), self.Y

    def _adapt(self) -> None:
        """Set each level just above the largest entry that is not to count."""
        assert self.counts is not None
        for j, count in enumerate(self.counts):
            sizes = np.abs(self.Y[j])
            if count >= len(sizes):
                self.levels[j] = 0.0
            else:
                # Above, not at it: squares of equal numbers may compare as unequal where they are fused with a subtraction.
                self.levels[j] = np.partition(sizes, len(sizes) - count - 1)[len(sizes) - count - 1] * (
                    1 + 4 * EPS
                )

    def _look(self) -> tuple[float, np.ndarray, float]:
        """The value, E = AᵀS transposed, and with counts the adjusted variance, the strongest scores first."""
        from givens.kernels import threshold

        m = len(self.Y)
        value, nonzeros = threshold.shrink(self.Y, self.levels, self.l0, self.S[:m])
        if self.counts is not None and not self.l0:
            _, nonzeros = threshold.shrink(self.Y, self.levels, True, self.S[m:])
        E, flops = scores(self.S, self.At, few=4 * nonzeros < self.Y.size)
        self.flops += flops + 3.0 * self.S.size
        held = 0.0
        if self.counts is not None:
            self.flops += 2.0 * self.Y.size
            size = np.linalg.norm(self.S[-m:], axis=1, keepdims=True)
            held = explained(E[-m:] / np.where(size > 0, size, 1.0))
        return float(value), E[:m], held

    def _crossing(self, E: np.ndarray) -> np.ndarray:
        """R = (I − VVᵀ)AᵀS, transposed."""
        for _ in range(2):  # twice: the first time leaves rounding errors of the size of E
            E = self._aside(E)
        return E

    def _aside(self, D: np.ndarray) -> np.ndarray:
        """D(I − VVᵀ): what is left of the rows of D beside V."""
        self.flops += (4.0 * len(self.Vt) + 1.0) * D.size
        return D - (D @ self.Vt.T) @ self.Vt

    def _stop(self, sweep: int, trace: Trace) -> tuple[str, bool]:
        if sweep > 0 and self.counts is None and self.gains[-1] <= self.tol * trace.value[-1]:
            return f"converged: a sweep gained at most {self.tol:g} times the value", True
        if self.stale >= PATIENCE:
            return (
                f"converged: in {PATIENCE} sweeps the counted entries explained no more than {GROWTH:g} of it more",
                True,
            )
        if trace.value[-1] == 0.0 and sweep > 0:
            return "converged: nothing exceeds the thresholds", True
        if sweep >= self.max_sweeps:
            return f"not converged: max_sweeps = {self.max_sweeps} reached", False
        return "", False

    def _sweep(self, R: np.ndarray) -> None:
        from givens.kernels import threshold

        m = len(self.Vt)
        Wt = self._directions(R)
        block = self.block[: m + len(Wt)]
        if len(Wt):
            turned(Wt, self.At, block[m:])
        self.flops += 2.0 * self.At.size * len(Wt)
        levels = np.concatenate((self.levels, np.full(len(Wt), np.inf)))
        C, _, _ = threshold.compact(block, np.arange(len(block)), self.levels.min() / np.sqrt(2.0))
        Qt = np.eye(len(block))
        # Far below what values can tell: near a maximum, slopes tell more.
        noise = EPS**2 * self.scale
        gain, rotated, flops = threshold.turn_block(
            C, levels, self.l0, noise, SHARE, LOOSE, RELAXATION, Qt, np.empty((0, 4))
        )
        self.gains.append(gain)
        self.rotations += rotated
        self.flops += flops + 2.0 * m * len(block) * len(self.At)
        before = self.Vt
        self.Vt = Qt[:m] @ np.concatenate((self.Vt, Wt))
        if len(self.gains) % FRESH == 0:
            self.Vt = polar(self.Vt)
            turned(self.Vt, self.At, self.Y)
            self.flops += 2.0 * self.At.size * m + lapack.svd(*self.Vt.shape) + 2.0 * m * self.Vt.size
        else:
            self.Y[:] = Qt[:m] @ block
            self.flops += 2.0 * m * block.size
        self.step = before

    def _directions(self, R: np.ndarray) -> np.ndarray:
        """An orthonormal basis of the gradient's directions and of where the columns came from, next to V."""
        room = self.Vt.shape[1] - len(self.Vt)
        old = self._aside(self.step)
        parts = []
        for D in (R, old):
            size = np.linalg.norm(D, axis=1)
            parts.append(D[size > 1e-12 * max(1.0, float(size.max(initial=0.0)))])
        D = np.concatenate([_unit(part) for part in parts])
        if room <= 0 or len(D) == 0:
            return np.zeros((0, self.Vt.shape[1]))
        # The Gram matrix's eigenvectors keep each direction nearest to the column it belongs to.
        D = self._aside(D)
        P, size, Qt = np.linalg.svd(D, full_matrices=False)
        some = size > 1e-7 * size[0]
        some[room:] = False
        self.flops += lapack.svd(*D.shape) + 4.0 * D.size
        if some.all():
            W = P @ Qt
            self.flops += 2.0 * len(P) * D.size
        else:
            W = Qt[some]
        W = self._aside(W)
        self.flops += lapack.svd(*W.shape) + 2.0 * len(W) * W.size
        return np.ascontiguousarray(polar(W))

    def _gradient_norm(self, E: np.ndarray) -> float:
        inside = E @ self.Vt.T
        inside = 2.0 * np.triu(inside - inside.T, 1)
        return float(np.sqrt(2.0 * np.sum(inside**2) + 8.0 * np.sum(self._crossing(E) ** 2)))

    def _result(self, trace: Trace, message: str, converged: bool, seconds: float) -> Result:
        U = np.ascontiguousarray(self.Vt.T)
        return Result(
            U=U,
            value=trace.value[-1],
            converged=converged,
            message=message,
            sweeps=trace.sweep[-1],
            rotations=self.rotations,
            flops=self.flops,
            gradient_norm=trace.gradient_norm[-1],
            orthogonality=float(np.linalg.norm(U.T @ U - np.eye(U.shape[1]))),
            determinant=1,
            seconds=seconds,
            trace=trace,
        )


def _unit(D: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(D, axis=1, keepdims=True)
    return D / size if len(D) else D
