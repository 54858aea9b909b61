"""Fourth-order contrasts: factor rotation and kurtosis.

    F(U) = Σ_j [ Σ y⁴ − (κ/p)(Σ y²)² ]        over the columns y of AU, of length p

κ = 0 is quartimax, κ = 1 varimax. The best angle of a pair is ¼·atan2(P, Q), with the sums P and Q of `kernels.quartic`; if
only one of its columns is active, the angle is the root of a monotone function. The pairs of a block are rotated one after the
other, each to its best angle. If the rows of A are in chunks, `fourth_moments` solves blocks from sums over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.scaling import EPS
from givens.numerics.tiles import tile_width
from givens.objectives.base import Blocks, Look, PairSolutions, Product, solved_blocks
from givens.objectives.contrasts import (
    Contrast,
    count_look,
    pair_derivatives,
    quarter_gains,
    second_of_columns,
    turned_sums,
)
from givens.objectives.fourth_moments import TILE_PRODUCTS, products
from givens.rotations import turn
from givens.schedules import Shape, all_pairs


class Orthomax(Contrast):
    """Σ y⁴ − (κ/p)(Σ y²)² over columns of length p, maximised.

    Parameters
    ----------
    kappa : float, default=1.0
        0: quartimax; 1: varimax; half the number of columns: equamax.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, Orthomax
    >>> A = np.array([[0.8, 0.3], [0.7, 0.2], [0.2, 0.9], [0.1, 0.6]])
    >>> result = minimize(Columns(A, Orthomax(0.0)))  # quartimax
    >>> bool(np.isclose(result.value, np.sum((A @ result.U) ** 4)))
    True
    """

    sense = -1
    degree = 4
    exact = True

    def __init__(self, kappa: float = 1.0) -> None:
        if not np.isfinite(kappa):
            raise ValueError(f"kappa must be finite, got {kappa!r}")
        self.kappa = float(kappa)

    def __repr__(self) -> str:
        return f"Orthomax(kappa={self.kappa:g})"

    def sums(
        self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, slopes: bool = True
    ) -> Sequence[np.ndarray]:
        """The sums 4 Σ y_i³ y_j, 12 Σ y_i² y_j² and, if κ ≠ 0, Σ y_i y_j; without slopes Σ y_i⁴ and Σ y_i²."""

        def work(y: np.ndarray, rows: slice) -> Sequence[np.ndarray]:
            squares = y * y
            if not slopes:
                return np.einsum("ir,ir->i", squares, squares)[:active], squares[:active].sum(axis=1)
            first = 4.0 * ((squares[:active] * y[:active]) @ y.T)
            second = 12.0 * (squares[:active] @ squares.T)
            return first, second, *([y @ y.T] if self.kappa else [])

        count_look(Y, active, Q, 6.0, slopes)
        flop_counts.count(2.0 * Y.size * len(Y) if self.kappa and slopes else 0.0)
        return turned_sums(work, Y, Q, tile_width(len(Y)))

    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """The look, from the sums, less the terms with κ."""
        if sums[0].ndim == 1:
            return Look(self.sense * float(np.sum(sums[0] - self.kappa / rows * sums[1] ** 2)))
        M, S = sums[:2]
        active = len(M)
        fourths = np.diagonal(S) / 12.0
        if self.kappa:
            share, gram = self.kappa / rows, sums[2]
            every, gram = np.diagonal(gram), gram[:active]
            power = every[:active]
            fourths = fourths - share * power**2
            M = M - 4.0 * share * power[:, None] * gram
            S = S - share * (4.0 * power[:, None] * every + 8.0 * gram**2)
        look = Look(self.sense * float(fourths.sum()), *pair_derivatives(self.sense * M, self.sense * S))
        # In a pair with an inactive column the powers of that one count, too, and the sums do not have them.
        return look._replace(gains=partial(self._gains, sums, rows)) if active == M.shape[1] else look

    def second(self, Y: np.ndarray, active: int, Q: np.ndarray) -> Product:
        """Second derivatives, from Σ y_i³ y_j, Σ y_i² y_j y_k and Σ y_j y_k, by one pass over Y in single precision."""
        n = len(Y)
        j, k = np.triu_indices(n)

        def work(y: np.ndarray, rows: slice) -> Sequence[np.ndarray]:
            squares = y[:active] * y[:active]
            sums = (squares * y[:active]) @ y.T, squares @ products(y)[1:].T, y @ y.T
            return [array.astype(np.float64) for array in sums]

        # The products of all pairs of columns of a tile must fit into the cache.
        M, bends, gram = turned_sums(work, Y, Q, max(64, TILE_PRODUCTS // (n * (n + 1))), np.float32)
        T = np.empty((active, n, n))
        T[:, j, k] = T[:, k, j] = 12.0 * bends
        M *= 4.0
        if self.kappa:
            share = self.kappa / Y.shape[1]
            own = gram[:active]
            power = np.diagonal(gram)[:active]
            M -= 4.0 * share * power[:, None] * own
            T -= 4.0 * share * (power[:, None, None] * gram + 2.0 * own[:, :, None] * own[:, None, :])
        flop_counts.count(Y.shape[1] * (2.0 * n * (n + active) + n * (n + 1) * (1.0 + active)))
        return second_of_columns(self.sense * M, (self.sense * T).astype(np.float32))

    def solve(self, Y: np.ndarray, blocks: Blocks, active: int, min_gain: float = 0.0) -> PairSolutions:
        """Solve pairs exactly: by the closed form, or, if a column is inactive, as the root of a monotone function.

        Of larger blocks, every pair is rotated to its best angle, on a copy.
        """
        from givens.kernels import quartic

        kappa, sign = self.kappa / Y.shape[1], -self.sense

        def pairs(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = np.empty((len(share), 2))
            flop_counts.count(quartic.PAIR_FLOPS * len(share) * Y.shape[1])
            quartic.solve_pairs(Y, share, active, kappa, float(sign), found)
            return turn(found[:, 0]), found[:, 1].copy()

        return solved_blocks(
            blocks,
            pairs,
            lambda block: turned_block(Y[block], int(np.sum(block < active)), kappa, sign),
        )

    def _gains(self, sums: Sequence[np.ndarray], rows: int) -> np.ndarray:
        """The gain of each pair, rotated alone to its best angle, from the sums of a look; for active = n."""
        M, S = sums[:2]
        kappa, gram = (self.kappa / rows, sums[2]) if self.kappa else (0.0, np.zeros_like(M))
        fourths, powers = np.diagonal(S) / 12.0, np.diagonal(gram)
        # With u = x² − y² and v = 2xy as in `kernels.quartic`: the sums of u² and v², of u and of v.
        products = (S + S.T) / 24.0
        uu, vv = fourths[:, None] + fourths - 2.0 * products, 4.0 * products
        su, sv = powers[:, None] - powers, 2.0 * gram
        P = M - M.T - 2.0 * kappa * su * sv
        Q = -self.sense * (uu - vv - kappa * (su * su - sv * sv))
        gains = quarter_gains(P, Q, 16.0 * EPS * (uu + vv))
        np.fill_diagonal(gains, 0.0)
        return gains


class Kurtosis(Orthomax):
    """Σ y⁴ over columns of whitened data: a monotone function of the sum of kurtoses.

    Parameters
    ----------
    sign : {1, -1}, default=1
        1 maximises the sum (heavy-tailed sources), −1 minimises it (light-tailed ones).

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, Kurtosis
    >>> sources = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> mixed = sources @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> result = minimize(Columns(mixed, Kurtosis(sign=-1)))
    >>> np.abs(np.corrcoef(sources.T, (mixed @ result.U).T)[:2, 2:]).max(axis=1).round(2)
    array([1., 1.])
    """

    # The problem is well conditioned for independent sources: quasi-Newton steps are enough.
    second = None  # type: ignore[assignment]

    def __init__(self, sign: int = 1) -> None:
        if sign not in (1, -1):
            raise ValueError(f"sign must be 1 or -1, got {sign!r}")
        super().__init__(kappa=0.0)
        self.sense = -sign

    def weighted(self, weights: np.ndarray) -> tuple[np.ndarray, Kurtosis]:
        """The factors w^¼, since Σ w y⁴ is the sum of the fourth powers of w^¼ y."""
        return np.sqrt(np.sqrt(weights)), self

    def __repr__(self) -> str:
        return f"Kurtosis(sign={-self.sense})"


def turned_block(Y: np.ndarray, active: int, kappa: float, sign: int) -> tuple[np.ndarray, float]:
    """Rotate every pair of rows of Y once to its best angle, in place: Q and the gain."""
    from givens.kernels import quartic

    Qt, pairs = np.eye(len(Y)), _pairs_by_groups(len(Y), active)
    gains = np.empty(len(pairs))
    _, total = quartic.turn_pairs(Y, Qt, pairs, active, kappa, float(sign), gains, 1, 0.0)
    rotated = 6.0 * np.count_nonzero(gains)
    flop_counts.count((quartic.PAIR_FLOPS * len(pairs) + rotated) * Y.shape[1] + rotated * len(Y))
    return Qt.T.copy(), total


@cache
def _pairs_by_groups(size: int, active: int) -> np.ndarray:
    """All pairs, those of two groups of eight columns together, since so many columns stay in the cache; neighbours first."""
    pairs = all_pairs(Shape(size, active))
    i, j = pairs.T
    return pairs[np.lexsort((j - i, j // 8, i // 8))]
