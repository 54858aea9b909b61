"""Contrasts: the functions that `Columns` sums over the columns of AU; here those of the form Σ φ(y).

The fourth-order ones, whose pair problems have a closed form, are in `quartic`. A contrast works on arrays Y = (AU)ᵀ, in which a
column y_i of AU is a contiguous row. The sum is over the first `active` columns.

The slopes and curvatures of all pairs follow from two matrices (see `pair_derivatives`):

    M_ij = ∂f/∂y_i · y_j        S_ij = y_jᵀ (∂²f/∂y_i²) y_j
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import EPS
from givens.numerics.tiles import tile_width, tiled_sums
from givens.objectives.base import Blocks, Look, PairSolutions, Product, solved_blocks
from givens.rotations import turn
from givens.schedules import Shape, all_pairs

if TYPE_CHECKING:
    from givens.kernels.scalar import ScalarKernels


class Contrast(ABC):
    """A sum over columns, and its pair problem.

    Attributes
    ----------
    sense : int
        1 if the sum is minimised, −1 if it is maximised. Looks have sense times the sum, which is minimised.
    degree : int or None
        Multiplying the data by a multiplies the value by a**degree. None if this does not hold; data are then not rescaled.
    exact : bool
        Whether the best angle of a pair has a closed form, so that sweeps over few rows are cheap.
    second : callable or None
        second(Y, active, Q) returns the second derivatives at QᵀY. None if there are none, or runs should not use them.
    """

    sense: int = 1
    degree: int | None = None
    exact: bool = False
    second: Callable[[np.ndarray, int, np.ndarray], Product] | None = None

    @abstractmethod
    def sums(
        self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, slopes: bool = True
    ) -> Sequence[np.ndarray]:
        """Sums over some rows of the data, at Y or at QᵀY, from whose totals `look_from` computes a look; only reads Y.

        Without slopes only what the value needs; the first array then has a sum for each active column.
        """

    @abstractmethod
    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """The look, from sums over all rows."""

    @abstractmethod
    def solve(self, Y: np.ndarray, blocks: Blocks, active: int, min_gain: float = 0.0) -> PairSolutions:
        """Find the best rotation of each pair; of each larger block, rotate all pairs on a copy."""

    def weighted(self, weights: np.ndarray) -> tuple[np.ndarray | None, Contrast]:
        """The factors by which rows must be multiplied, or None, and the contrast for these rows and weights."""
        raise ValueError(f"{self!r} is not a sum over rows that could have weights")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Pointwise(Contrast):
    """A sum Σ φ(y) over all entries, with compiled φ, φ' and φ''.

    The angle of a pair is found by a search that is not exact. Compared with a grid of 720 angles, it missed no minimum in
    50,000 pairs of columns of variance 1, with `LogCosh` and with `Exp`. For columns multiplied by up to 30, whose minima are
    narrower, it missed the best one in 6 of 50,000 pairs with `LogCosh` (by at most 4 % of the range), and in 414 with `Exp`:
    whiten data first.

    Parameters
    ----------
    signs : array of 1 and −1, optional
        One for each active column: Σ φ is minimised over columns of sign 1, and maximised over the others. By default all signs
        are 1.
    """

    compiled: ClassVar[str]
    """The name of the compiled functions in `kernels.scalar`."""

    def __init__(self, signs: Sequence[int] | np.ndarray | None = None) -> None:
        self.signs = None if signs is None else _checked_signs(signs)
        self.counts = np.empty(0)  # weights of the rows; none if all are 1

    @property
    def kernels(self) -> ScalarKernels:
        """The compiled functions."""
        from givens.kernels import scalar

        return getattr(scalar, self.compiled)

    def _weights(self, active: int) -> np.ndarray:
        """The factor of each active column, 1 or −1."""
        if self.signs is None:
            return np.full(active, float(self.sense))
        if len(self.signs) != active:
            raise ValueError(f"{self!r} has {len(self.signs)} signs, but there are {active} active columns")
        return self.sense * self.signs

    def sums(
        self, Y: np.ndarray, active: int, Q: np.ndarray | None = None, slopes: bool = True
    ) -> Sequence[np.ndarray]:
        """The sums Σ φ(y_i), Σ φ'(y_i) y_j and Σ φ''(y_i) y_j², the last in single precision: it only scales the steps."""

        def work(y: np.ndarray, rows: slice) -> Sequence[np.ndarray]:
            values, first = np.empty(active), np.empty((active, y.shape[1]))
            curves, squares = np.empty(first.shape, np.float32), np.empty(y.shape, np.float32)
            self.kernels.terms(y, self.counts[rows], values, first, curves, squares)
            return (values, first @ y.T, (curves @ squares.T).astype(np.float64)) if slopes else (values,)

        # About 30 flops for φ and its derivatives at an entry, as in the built-in contrasts.
        count_look(Y, active, Q, 30.0, slopes)
        return turned_sums(work, Y, Q, tile_width(len(Y)))

    def look_from(self, sums: Sequence[np.ndarray], rows: int) -> Look:
        """The look, from the sums times the signs of the columns."""
        values, *products = sums
        weights = self._weights(len(values))
        value = self._finite(float(weights @ values))
        if not products:
            return Look(value)
        M, S = (weights[:, None] * product for product in products)
        if not np.isfinite(float(M.sum() + S.sum())):
            raise ValueError(f"the derivatives of {self!r} are not finite on this data; whiten or rescale it")
        return Look(value, *pair_derivatives(M, S))

    def _finite(self, value: float) -> float:
        if not np.isfinite(value):
            raise ValueError(f"the contrast {self!r} is not finite on this data: its sum is {value}")
        return value

    def weighted(self, weights: np.ndarray) -> tuple[None, Pointwise]:
        """The contrast Σ w φ(y)."""
        other = copy(self)
        other.counts = np.ascontiguousarray(weights, dtype=np.float64)
        return None, other

    def solve(self, Y: np.ndarray, blocks: Blocks, active: int, min_gain: float = 0.0) -> PairSolutions:
        """Search for the best angle of each pair; of a larger block, rotate each pair once, to the best angle of the search."""
        weights = np.append(self._weights(active), np.zeros(len(Y) - active))
        error = 0.0 if self.exact else math.nan

        def pairs(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = [self._search(Y[i], Y[j], weights[i], weights[j]) for i, j in share.tolist()]
            angles, gains = np.array(found).reshape(-1, 2).T
            return turn(angles), gains

        return solved_blocks(blocks, pairs, lambda block: self._turned(Y[block], weights[block]), error)

    def _turned(self, Y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Rotate each pair of rows once, in place, to the best angle of the search: Q and its gain."""
        Q, total, rotated = np.eye(len(Y)), 0.0, 0
        for i, j in all_pairs(Shape(len(Y), int(np.count_nonzero(weights)))):
            angle, gain = self._search(Y[i], Y[j], weights[i], weights[j])
            if gain > 0.0:
                G, pair = turn(angle), [i, j]
                Y[pair], Q[:, pair] = G.T @ Y[pair], Q[:, pair] @ G
                total += gain
                rotated += 1
        flop_counts.count(6.0 * rotated * Y.shape[1])
        return Q, total

    def _search(self, x: np.ndarray, y: np.ndarray, first: float, second: float) -> tuple[float, float]:
        """The best angle of a pair with these weights, and its gain."""
        angle, gain, angles = self.kernels.search(x, y, self.counts, first, second)
        # Rotating two columns, three sums, and φ and its derivatives at two entries.
        flop_counts.count(86.0 * angles * len(x))
        return angle, gain

    def __repr__(self) -> str:
        signs = "" if self.signs is None else f"signs={self.signs.astype(int).tolist()}"
        return f"{type(self).__name__}({signs})"


class LogCosh(Pointwise):
    """Σ log cosh y, minimised: a smooth form of |y|, for independent components with heavy tails.

    Values are accurate at any scale, but columns should have variance about 1. As log cosh y = y²/2 − y⁴/12 + ..., and rotations
    of all columns do not change Σ y², the part of the value that they do change is about y² of it. For data of size 1e-6 or less
    that is lost in rounding, and runs end near their start.

    Parameters
    ----------
    signs : array of 1 and −1, optional
        One for each active column: 1 for a heavy-tailed source, −1 for a light-tailed one, over which the sum is maximised.
        The sign of a source's excess kurtosis says which.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, LogCosh
    >>> sources = np.random.default_rng(0).laplace(size=(2000, 2))
    >>> mixed = sources @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> result = minimize(Columns(mixed, LogCosh()))
    >>> np.abs(np.corrcoef(sources.T, (mixed @ result.U).T)[:2, 2:]).max(axis=1).round(2)
    array([1., 1.])
    """

    compiled = "LOG_COSH"


class Exp(Pointwise):
    """Σ −exp(−y²/2), minimised: for independent components, robust against outliers.

    Columns should have variance about 1. As −exp(−y²/2) = −1 + y²/2 − y⁴/8 + ..., and rotations of all columns do not change
    Σ y², the part of the value that they do change is about y⁴ of it. For data of size 1e-4 or less that is lost in rounding,
    and runs end near their start.

    Parameters
    ----------
    signs : array of 1 and −1, optional
        As in `LogCosh`.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, Exp
    >>> sources = np.random.default_rng(0).laplace(size=(2000, 2))
    >>> mixed = sources @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> minimize(Columns(mixed, Exp())).converged
    True
    """

    compiled = "EXP"


class Scalar(Pointwise):
    """Σ φ(y), for a function φ of your own.

    The functions are compiled by numba. In them, `exp`, `log`, `log1p`, `tanh` and `cosh` of `math` or `numpy`
    are replaced by vectorised versions, accurate to 4 units in the last place; functions that are already compiled by numba are
    not changed.

    Parameters
    ----------
    phi : callable
        φ, a function of a float that numba can compile.
    dphi : callable
        The derivative of φ, likewise.
    d2phi : callable, optional
        The second derivative, by default a finite difference of `dphi`.
    pair : callable, optional
        The exact solution of the pair problem, as a function that numba can compile: of two columns x and y, the best angle and
        its gain. Without it the angle is searched, and the result's message says that this is not exact.
    signs : array of 1 and −1, optional
        One for each active column, −1 for those over which the sum is maximised.
    even : bool, default=True
        Whether φ(−y) = φ(y). The search then covers a quarter of the angles.
    maximise : bool, default=False
        Maximise the sum instead of minimising it.

    Examples
    --------
    Independent components by a robust contrast:

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Columns, Scalar
    >>> def phi(y): return np.sqrt(1.0 + y * y)
    >>> def dphi(y): return y / np.sqrt(1.0 + y * y)
    >>> rng = np.random.default_rng(0)
    >>> turned = rng.laplace(size=(1000, 2)) @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> result = minimize(Columns(turned, Scalar(phi, dphi)))
    >>> result.converged
    True
    """

    def __init__(
        self,
        phi: Callable[[float], float],
        dphi: Callable[[float], float],
        d2phi: Callable[[float], float] | None = None,
        *,
        pair: Callable[[np.ndarray, np.ndarray], tuple[float, float]] | None = None,
        signs: Sequence[int] | np.ndarray | None = None,
        even: bool = True,
        maximise: bool = False,
    ) -> None:
        super().__init__(signs)
        self.sense = -1 if maximise else 1
        self.phi, self.dphi, self.d2phi, self.pair = phi, dphi, d2phi, pair
        self.even, self.exact = even, pair is not None

    @cached_property
    def kernels(self) -> ScalarKernels:
        """The functions, compiled once for this contrast."""
        from givens.kernels.scalar import compile_scalar

        return compile_scalar(self.phi, self.dphi, self.d2phi, self.pair, self.even)

    def __repr__(self) -> str:
        name = getattr(self.phi, "__name__", "phi")
        signs = "" if self.signs is None else f", signs={self.signs.astype(int).tolist()}"
        return f"Scalar({name}{signs})"


def turned_sums(
    work: Callable[[np.ndarray, slice], Sequence[np.ndarray]],
    Y: np.ndarray,
    Q: np.ndarray | None,
    width: int,
    kind: Any = np.float64,
) -> list[np.ndarray]:
    """The sums of the arrays of work(tile, rows) over tiles of Y, or of QᵀY, in this precision; `width` rows of the data each.

    Tiles depend on the shape only and are added up in order, so the bits do not depend on the number of threads.
    """
    Qt = None if Q is None else np.ascontiguousarray(Q.T, dtype=kind)

    def tile(rows: slice) -> Sequence[np.ndarray]:
        part = Y[:, rows]
        with np.errstate(over="ignore", invalid="ignore"):  # who needs the sums refuses what is not finite
            if Qt is None:
                return work(part.astype(kind, order="C"), rows)
            return work(Qt @ part.astype(kind, copy=False), rows)

    return tiled_sums(parallel.slices(Y.shape[1], width), tile)


def second_of_columns(M: np.ndarray, T: np.ndarray) -> Product:
    """The second derivatives of a sum over columns, in the precision of T.

    A rotation by exp(K) moves column i by AU(k_i + ½ (K²)_i), to second order, where k_i is column i of K. With
    M_ij = Σ φ'(y_i) y_j and T_i = Σ_r φ''(y_ri) y_r y_rᵀ, f changes by Σ_ij M_ij (K + ½ K²)_ji + ½ Σ_i k_iᵀ T_i k_i.
    """
    active, n = M.shape
    inward = np.zeros((n, n))
    inward[:, :active] = 0.25 * M.T
    inward = inward + inward.T  # an antisymmetric part would cancel

    def product(K: np.ndarray) -> np.ndarray:
        bent = np.matmul(T, K.T[:active, :, None].astype(T.dtype))[:, :, 0]
        H = -inward @ K - K @ inward
        H[:, :active] += bent.T
        return H - H.T

    return product


def count_look(Y: np.ndarray, active: int, Q: np.ndarray | None, point: float, slopes: bool) -> None:
    """Count the rotation, two products and the squares, and `point` for φ and its derivatives at every entry."""
    n, rows = Y.shape
    products = n + 4.0 * n * active if slopes else 0.0
    flop_counts.count(rows * ((0.0 if Q is None else 2.0 * n * n) + products + active * point))


def pair_derivatives(M: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and curvatures of all pairs, from M_ij and S_ij for every active column i and every j.

    Rotating a pair by θ moves column i by θ y_j − ½ θ² y_i, so g' = M_ij − M_ji and g'' = S_ij + S_ji − M_ii − M_jj.
    """
    active, n = M.shape
    first, second, inward = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    first[:active], second[:active] = M, S
    inward[:active] = np.diagonal(M)
    return first - first.T, second + second.T - inward[:, None] - inward


def quarter_gains(P: np.ndarray, Q: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """The maxima of ¼(P sin 4θ + Q cos 4θ) less the values at 0; 0 where P and Q are rounding errors, of this size."""
    radius = np.hypot(P, Q)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = 0.25 * np.where(Q > 0.0, P * (P / (radius + Q)), radius - Q)
    gains[np.where(Q > 0.0, (np.abs(P) <= EPS * Q) | (radius <= rounding), radius - Q <= rounding)] = 0.0
    return gains


def _checked_signs(signs: Sequence[int] | np.ndarray) -> np.ndarray:
    checked = np.asarray(signs, dtype=np.float64)
    if checked.ndim != 1 or not np.isin(checked, (1.0, -1.0)).all():
        raise ValueError(f"signs must be a list of 1 and -1, one per column, got {signs!r}")
    return checked
