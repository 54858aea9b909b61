"""Few sparse components of many samples: rotations of m columns against a complement that is chosen anew each time.

With m < n columns of U in the objective, the other n − m are any completion: f does not depend on it. All crossing
pairs (i ≤ m, j > m) together have the gradient R = (I − VVᵀ)AᵀS, V the m columns and S the thresholded AV. So the completion
may be turned until R, and the step before, lie in its first 2m columns: the crossing pairs of all others have derivative
zero. One sweep here is: choose these columns W, make A·W by one matrix product, and turn all pairs of the block [V W], of
which the first m count, by the exact rotations of `givens.kernels.threshold`. Nothing of order n² is ever stored.

With `counts` the thresholds are moved before each sweep so that exactly so many entries of each column exceed them.
The value then belongs to another threshold each time and need not rise; what is kept is the sweep whose counted entries make
the loadings of the largest adjusted variance.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from givens import lapack, parallel
from givens.loadings import polar, unit_rows
from givens.metrics import adjusted_from_scores
from givens.objectives.threshold import LOOSE, RELAXATION, SHARE
from givens.objectives.tiles import tiles
from givens.result import Result, Trace

__all__ = ["maximise"]

EPS = float(np.finfo(np.float64).eps)
PATIENCE = 8  # sweeps: with counts the value may fall and rise again
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
        self.Y = self._product(self.Vt)
        self.step = np.zeros((0, V.shape[0]))
        self.scale = float(np.einsum("ij,ij->", At, At)) or 1.0
        self.flops = 2.0 * At.size * (len(self.Vt) + 1)
        self.rotations = 0
        self.gains: list[float] = []
        self.stale = 0

    def run(self, show: Callable[[int, float], None] | None) -> tuple[Result, np.ndarray]:
        began = perf_counter()
        trace = Trace()
        best: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
        message, converged, sweep = "", False, 0
        while True:
            if self.counts is not None:
                self._adapt()
            S, value = self._shrunk()
            trace.append(sweep, perf_counter() - began, self.flops, value, float("nan"))
            if show is not None:
                show(sweep, value)
            if self.counts is not None:
                held = self._held()
                self.stale = 0 if best is None or held > best[0] * (1 + self.tol) else self.stale + 1
                if best is None or held > best[0]:
                    best = held, self.Vt.copy(), self.Y.copy(), self.levels.copy()
            message, converged = self._stop(sweep, trace)
            R = self._crossing(S)
            if message:
                break
            self._sweep(S, R)
            sweep += 1
        if best is not None:
            _, self.Vt, self.Y, self.levels[:] = best
            S, value = self._shrunk()
            R = self._crossing(S)
            trace.value[-1] = value
        trace.gradient_norm[-1] = self._gradient_norm(S, R)
        return self._result(trace, message, converged, perf_counter() - began), self.Y

    def _product(self, Wt: np.ndarray) -> np.ndarray:
        """(AW)ᵀ, by tiles that the threads share."""
        Y = np.empty((len(Wt), self.At.shape[1]))

        def tile(part: slice) -> None:
            np.matmul(Wt, self.At[:, part], out=Y[:, part])

        parallel.each(tile, parallel.parts(Y.shape[1], max(1, min(16, Y.shape[1] // 256))))
        return Y

    def _adapt(self) -> None:
        """Set each level between the count-th and the next largest entry."""
        assert self.counts is not None
        for j, count in enumerate(self.counts):
            sizes = np.abs(self.Y[j])
            if count >= len(sizes):
                self.levels[j] = 0.0
            else:
                self.levels[j] = np.partition(sizes, len(sizes) - count - 1)[len(sizes) - count - 1]

    def _held(self) -> float:
        """The adjusted variance of the loadings that the counted entries make, the strongest scores first."""
        Z = unit_rows(np.where(np.abs(self.Y) > self.levels[:, None], self.Y, 0.0))
        used = np.flatnonzero(Z.any(axis=0))
        scores = self.At[:, used] @ Z[:, used].T
        self.flops += 2.0 * len(Z) * len(used) * len(self.At)
        order = np.argsort(-np.einsum("ij,ij->j", scores, scores), kind="stable")
        return float(adjusted_from_scores(scores[:, order]).sum())

    def _shrunk(self) -> tuple[np.ndarray, float]:
        from givens.kernels import threshold

        S = np.empty_like(self.Y)
        value, _ = threshold.shrink(self.Y, self.levels, self.l0, S)
        self.flops += 3.0 * S.size
        return S, float(value)

    def _crossing(self, S: np.ndarray) -> np.ndarray:
        """R = (I − VVᵀ)AᵀS, transposed."""
        used = np.flatnonzero(S.any(axis=0))
        few = 4 * len(used) < S.shape[1]
        if few:
            E = S[:, used] @ self.At[:, used].T
        else:
            cut = tiles(len(self.At), S.shape[1])
            parts = parallel.each(lambda part: S[:, part] @ self.At[:, part].T, cut)
            E = sum(parts[1:], start=parts[0])
        self.flops += 2.0 * len(S) * (len(used) if few else S.shape[1]) * len(self.At)
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
            return f"converged: for {PATIENCE} sweeps the counted entries explained no more than before", True
        if trace.value[-1] == 0.0 and sweep > 0:
            return "converged: nothing exceeds the thresholds", True
        if sweep >= self.max_sweeps:
            return f"not converged: max_sweeps = {self.max_sweeps} reached", False
        return "", False

    def _sweep(self, S: np.ndarray, R: np.ndarray) -> None:
        from givens.kernels import threshold

        m = len(self.Vt)
        Wt = self._directions(R)
        block = np.concatenate((self.Y, self._product(Wt))) if len(Wt) else self.Y
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
            self.Y = self._product(self.Vt)
            self.flops += 2.0 * self.At.size * m + lapack.svd(*self.Vt.shape) + 2.0 * m * self.Vt.size
        else:
            self.Y = np.ascontiguousarray(Qt[:m] @ block)
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

    def _gradient_norm(self, S: np.ndarray, R: np.ndarray) -> float:
        inside = S @ self.Y.T
        inside = 2.0 * np.triu(inside - inside.T, 1)
        return float(np.sqrt(2.0 * np.sum(inside**2) + 8.0 * np.sum(R**2)))

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
