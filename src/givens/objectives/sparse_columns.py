"""Sparse PCA, the objective of the paper's Algorithm 2: a sum over the entries of Y = AU above a threshold.

    ℓ1:  f(U) = −Σ_j Σ_k [ |(AU)_kj| − γ_j ]₊²           ℓ0:  f(U) = −Σ_j Σ_k [ (AU)_kj² − γ_j ]₊

Most entries of Y stay below the threshold: `givens.kernels.sparse_blocks` finds the rotations of a block from the few that do
not. A pair that is rotated by itself gets its global maximum; the pairs of a block do not.

With few components, m < n, U is n x m: A may then be anything with products, and its m columns are rotated with 2m others that
are chosen before each sweep (`givens.solve.widened_sweeps`), by the gradient

    ∂f/∂U  =  −2 AᵀS(AU),    S(y) = sign(y)·[|y| − γ]₊ for ℓ1, y·1[y² > γ] for ℓ0.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.gram import leading_axes
from givens.numerics.scaling import EPS
from givens.numerics.tiles import scores, tile_width, turned
from givens.objectives.base import Blocks, Look, PairSolutions, Rotations, solved_pairs
from givens.objectives.columns import Columns
from givens.objectives.contrasts import Contrast, turned_sums
from givens.objectives.turned_rows import HeldRows
from givens.schedules import Tournament
from givens.support.arguments import is_dask


class TurnedBlock(NamedTuple):
    """How a block was rotated: what `Threshold.solve` has computed and `SparseColumns.apply` can use.

    `steps` are the rotations of pairs, if they are few; `compact` are the rotated compact columns, the indices of their
    features, and those of the other features.
    """

    steps: np.ndarray | None
    compact: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class TurnedBlocks(PairSolutions):
    """The solutions of blocks, and how each was rotated."""

    turned: Sequence[TurnedBlock] = ()


class Threshold(Contrast):
    """Σ [|y| − γ]₊² or Σ [y² − γ]₊ over columns, maximised.

    Parameters
    ----------
    levels : array
        One per active column, in the units of y: γ for "l1", √γ for "l0".
    l0 : bool
        Whether the second sum is meant.
    """

    sense = -1
    degree = 2
    exact = True

    def __init__(self, levels: np.ndarray, l0: bool) -> None:
        self.levels = levels
        self.l0 = l0
        self.noise = 0.0

    def __repr__(self) -> str:
        return f"Threshold({'l0' if self.l0 else 'l1'}, {self.levels.tolist()})"

    def sums(
        self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, slopes: bool = True
    ) -> Sequence[np.ndarray]:
        """The sum, and S(y_i)ᵀy_j."""
        from givens.kernels.threshold import shrink

        def work(y: np.ndarray, rows: slice) -> Sequence[np.ndarray]:
            S = np.empty((active, y.shape[1]))
            value, _ = shrink(y, self.levels[:active], self.l0, S)
            return (np.array([value]), S @ y.T) if slopes else (np.array([value]),)

        # Three for every entry that may exceed its level: in the value, and in S.
        flop_counts.count(3.0 * active * Y.shape[1] + (0.0 if Q is None else 2.0 * len(Y) * Y.size))
        flop_counts.count(active * (2.0 * Y.size + 3.0 * Y.shape[1]) if slopes else 0.0)
        return turned_sums(work, Y, Q, tile_width(len(Y)))

    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """Value and slopes, without curvatures, which jump where an entry crosses its threshold."""
        value, *products = sums
        if not products:
            return Look(-float(value[0]))
        active, n = products[0].shape
        first = np.zeros((n, n))
        first[:active] = -2.0 * products[0]
        return Look(-float(value[0]), first - first.T)

    def solve(self, Y: np.ndarray, blocks: Blocks, active: int, min_gain: float = 0.0) -> PairSolutions:
        """Find the global maximum of each pair, up to rounding errors; of larger blocks, rotate the pairs once, not exactly."""
        if not isinstance(blocks, np.ndarray):
            solved = parallel.each(lambda block: self.solve_block(Y, block, min_gain), blocks)
            rotations, gains, turned = zip(*solved)
            return TurnedBlocks(rotations, np.array(gains), turned=turned)
        return solved_pairs(blocks, lambda pairs: self.solve_pairs(Y, pairs))

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rotation and the gain of each pair."""
        from givens.kernels.sparse_blocks import solve_pairs

        # Of its gain, a pair may miss no more than rounding errors.
        rotations, gains, _, flops = solve_pairs(
            Y, pairs, self.everywhere(len(Y)), self.l0, self.noise, 4 * EPS
        )
        flop_counts.count(flops)
        return rotations, gains

    def solve_block(
        self, Y: np.ndarray, block: np.ndarray, min_gain: float
    ) -> tuple[np.ndarray, float, TurnedBlock]:
        """Rotate the pairs of a block once, on a compact copy: Q, its gain, and how (see `givens.kernels.sparse_blocks`)."""
        from givens.kernels import sparse_blocks

        levels, size = self.everywhere(len(Y))[block], len(block)
        C, rows, others = sparse_blocks.compact(Y, block, levels.min() / np.sqrt(2.0))
        Qt = np.eye(size)
        # Up to so many rotations are applied one by one.
        steps = np.empty((size**2 // 4, 4))
        gain, turned, flops = sparse_blocks.turn_block(
            C,
            levels,
            self.l0,
            max(self.noise, 1e-3 * min_gain / size),
            0.1,  # pairs whose predicted gain is below this share of the mean gain are left to the next sweep
            1e-2,  # the share of its gain that a pair may leave to the next sweep
            1.35,  # of the Newton step of a pair near its maximum, which later pairs move anyway
            Qt,
            steps,
        )
        flop_counts.count(flops)
        how = TurnedBlock(steps[:turned] if turned <= len(steps) else None, (C, rows, others))
        return np.ascontiguousarray(Qt.T), gain, how

    def everywhere(self, n: int) -> np.ndarray:
        """The levels of n columns, ∞ for inactive ones."""
        return np.concatenate((self.levels, np.full(n - len(self.levels), np.inf)))


class ProductRows(HeldRows):
    """Rows of anything with `@`, `T` and `shape`, of double precision, whose squares neither overflow nor vanish."""

    rounding = 0.0

    def __init__(self, A: Any) -> None:
        super().__init__(A)

    def prepared(self, contrast: Contrast) -> tuple[HeldRows, Contrast, float]:
        """As they are."""
        return self, contrast, 1.0

    def sample(self, stride: int) -> np.ndarray:
        """Random combinations of the rows, which have in the mean the sum of squares of one row."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.count, 4))
        return np.asarray(self.A.T @ signs).T / np.sqrt(self.count)

    def state(self, U: np.ndarray) -> np.ndarray:
        """Y transposed."""
        Y = np.empty((U.shape[1], self.count))
        turned(U.T, self.A.T, Y)
        return Y


class SparseColumns(Columns):
    """The sparse PCA objective as a function of U.

    Parameters
    ----------
    A : array, shape (features, n)
        Centred data, features x samples, or L of its factorisation A = LQ. With `active`, anything that has `@`, `T` and `shape`,
        such as a sparse matrix centred implicitly.
    gamma : float or array of `active` floats
        The threshold of the paper: of |y| for "l1", of y² for "l0".
    penalty : {"l1", "l0"}, default="l1"
        Σ [|y| − γ]₊² or Σ [y² − γ]₊.
    active : int, optional
        Number of components, by default n. With fewer, U is n x active.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import SparseColumns
    >>> A = np.random.default_rng(0).standard_normal((50, 6))
    >>> result = minimize(SparseColumns(A, gamma=1.5))
    >>> result.converged
    True
    """

    contrast: Threshold
    rows: HeldRows

    def __init__(
        self,
        A: Any,
        gamma: float | np.ndarray,
        penalty: str = "l1",
        active: int | None = None,
    ) -> None:
        if penalty not in ("l1", "l0"):
            raise ValueError(f"penalty must be 'l1' or 'l0', got {penalty!r}")
        if is_dask(A):
            raise ValueError(
                "SparseColumns needs its rows in memory: pass A.compute(), or fit SparsePCA or StreamingSparsePCA, "
                "which take dask arrays"
            )
        implicit = hasattr(A, "__matmul__") and not hasattr(A, "__array__")
        super().__init__(ProductRows(A) if implicit else A, Threshold(np.zeros(0), penalty == "l0"), active)
        gamma = np.asarray(gamma, dtype=np.float64)
        if gamma.shape not in ((), (self.active,)) or not np.all(gamma >= 0):
            raise ValueError(
                f"gamma must be a number of at least 0, or {self.active} of them, one per component; got {gamma}"
            )
        levels = np.sqrt(gamma) if penalty == "l0" else gamma
        self.few = self.active < self.n
        self.shape = (self.n, self.active)
        self.contrast = self._threshold(np.array(np.broadcast_to(levels / self.divisor, (self.active,))))
        self.gamma = gamma
        # Blocks of all columns up to 16; else half of them, for rounds of two, and at most 64, which fit into the caches.
        sweeps = Tournament(block=max(self.n if self.n <= 16 else min(2 * -(-self.n // 4), 64), 2))
        # Where sweeps gain little, f of l1 is so smooth that descent goes on faster; that of l0 has kinks.
        self.method = (sweeps,) if self.contrast.l0 else (sweeps, "descent", sweeps)
        if self.few:
            self.method = ("widened sweeps",)

    def _threshold(self, levels: np.ndarray) -> Threshold:
        contrast = Threshold(levels, self.contrast.l0)
        # With few columns far below the rounding of values: near a maximum, slopes are more exact.
        contrast.noise = EPS * (EPS if self.few else 1.0) * self.scale
        return contrast

    def at_levels(self, levels: np.ndarray) -> SparseColumns:
        """The same data with other thresholds of |y|, one per component."""
        other = copy(self)
        other.contrast = self._threshold(levels)
        return other

    def look(self, state: np.ndarray, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value and slopes; with few components value and gradient."""
        if not self.few or not (slopes or self.trace_slopes):
            return super().look(state, Q, slopes)
        from givens.kernels import threshold

        m, contrast = self.active, self.contrast
        Y = np.asarray(state[:m] if Q is None else Q[:, :m].T @ state, dtype=np.float64)
        S = np.empty(Y.shape)
        value, nonzeros = threshold.shrink(Y, contrast.levels, contrast.l0, S)
        E = scores(S, self.rows.A.T, few=4 * nonzeros < Y.size)
        flop_counts.count(3.0 * S.size)
        return Look(-float(value), gradient=-2.0 * E.T)

    def apply(
        self, state: np.ndarray, blocks: Blocks, rotations: Rotations, solutions: PairSolutions | None = None
    ) -> None:
        """Rotate the columns of Y; those of solved blocks without repeating the work of `solve`."""
        if isinstance(solutions, TurnedBlocks):
            parallel.each(lambda one: _apply(state, *one), zip(blocks, rotations, solutions.turned))
        else:
            super().apply(state, blocks, rotations)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """The principal axes, in the order of their variances."""
        At = self.rows.A.T
        return leading_axes(
            At.astype(np.float64, copy=False) if isinstance(At, np.ndarray) else At, self.active
        )[0]

    def coarse(self) -> None:
        """None: a sample of the features has other non-zeros."""
        return None

    def _size(self, stride: int) -> float:
        """‖A‖², an upper bound of |f|."""
        A = self.rows.sample(stride)
        return float(np.einsum("ij,ij->", A, A, dtype=np.float64))


def _apply(Y: np.ndarray, block: np.ndarray, Q: np.ndarray, found: TurnedBlock) -> None:
    from givens.kernels import sparse_blocks

    if found.steps is not None:
        flop_counts.count(6.0 * len(found.steps) * Y.shape[1])
        sparse_blocks.replay(Y, block, found.steps)
        return
    C, rows, others = found.compact
    flop_counts.count(2.0 * len(block) ** 2 * len(others))
    sparse_blocks.install(Y, block, np.ascontiguousarray(Q.T, dtype=Y.dtype), C, rows, others)
