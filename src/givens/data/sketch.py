"""A sketch of samples: their mean, and a few columns that stand for all of them.

The samples, centred, are the rows of A; the sketch is Y, of K rows and as many features, with YᵀY ≈ AᵀA. Rotations among the rows
of Y leave YᵀY as it is, so only what is dropped matters. When a block of samples is full, K new rows are made of Y and the block,
[Y; block] → Q[Y; block], by a rule. `Frequent` loses least: it turns all rows to their principal axes and drops the
weakest. As Frequent Directions does (Liberty 2013), it also takes the energy δ of the strongest row dropped from the weakest
quarter of its reserve (the rows beyond the components asked for), or those would fill up with the past, and no new direction
could ever enter. What is lost is bounded by what was dropped: 0 ≼ AᵀA − YᵀY ≼ Σδ·I.

A rule reads the products of the rows alone, so centring and weights are one matrix T, which turns samples less the mean before
the block into rows whose outer products add up to the scatter about the present mean: the rule gets T G Tᵀ, and QT is applied
to the samples. Two sketches merge in the same way: the rows of both, and one for the distance of their means, are
turned. Features that are to be scaled are scaled in the products alone, by their deviations so far, and the rows stay as they
came.

Blocks begin at fixed numbers of samples, so the result does not depend on how samples are cut into batches. The features are cut
into pieces by the shape alone, and what is summed over pieces is summed in their order: the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from givens.data.missing import Completion, completed, holes_of
from givens.data.moments import MOST_PRODUCT_FEATURES, too_large
from givens.data.passes import Summary
from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import largest_size, power_of_two
from givens.support.arguments import Samples, counted, dense


@dataclass(frozen=True)
class StackedRows:
    """The rows of a sketch and of a block of samples behind them, for a rule.

    Attributes
    ----------
    G : array, shape (n, n)
        The products of all rows, with features scaled if they are to be.
    kept : int
        K: how many of them are rows of the sketch.
    rows : callable
        Returns the rows, n x features, as they are in the products.
    first : int
        How many samples came before these.
    unit : float
        Of the rows.
    """

    G: np.ndarray
    kept: int
    rows: Callable[[], np.ndarray]
    first: int
    unit: float


class Rule(Protocol):
    """How K rows are made of K and a block of samples."""

    columns: int

    def turn(self, block: StackedRows) -> tuple[np.ndarray, float]:
        """Q, of shape (K, n), and the energy that the new rows have."""


class Frequent:
    """Principal axes, the weakest dropped, and the weakest quarter of the reserve shrunk.

    Parameters
    ----------
    components : int
        How many components are asked for.
    columns : int
        K; those beyond the components are the reserve.
    """

    def __init__(self, components: int, columns: int) -> None:
        self.columns = columns
        self.shrunk = (columns - components + 3) // 4  # rows

    def turn(self, block: StackedRows) -> tuple[np.ndarray, float]:
        """The turn to the axes that are kept."""
        K, n = block.kept, len(block.G)
        energies, axes = np.linalg.eigh(block.G)
        energies, Q = np.maximum(energies[::-1], 0.0), axes.T[::-1][:K].copy()
        low = K - self.shrunk
        tail = energies[low:K]
        left = tail - energies[K] if n > K else tail
        Q[low:] *= np.sqrt(np.divide(left, tail, out=np.zeros_like(tail), where=tail > 0))[:, None]
        flop_counts.count(flop_counts.eigh(n))
        return Q, float(energies[:low].sum() + left.sum())

    def largest_loss(self, lost: float) -> float:
        """What the sketch lacks of zᵀAᵀAz, at most, for any unit vector z, if it lacks `lost` of the trace of AᵀA.

        A turn takes at most δ from the energy in any direction, but at least δ from each row that it shrinks, and from one
        that it drops: Σδ is at most the trace that is lost over the number of these.
        """
        return lost / (self.shrunk + 1)


def default_columns(components: int) -> int:
    """How many columns a sketch keeps for so many components, by default.

    A sparse module may have less variance than dense directions that are no components; the reserve has to hold those too. With
    three for each component 80 of 80 planted modules are found, without a reserve 73.
    """
    return components + max(3 * components, 20)


def sendable_rule(components: int, features: int) -> Frequent:
    """The rule of a sketch that is sent between workers, whose size is limited."""
    columns = min(default_columns(components), features)
    if columns * features > MOST_PRODUCT_FEATURES**2:
        raise ValueError(
            f"{components} components of {features} features need a sketch of {columns} x {features} numbers, more than is sent "
            f"around ({MOST_PRODUCT_FEATURES} x {MOST_PRODUCT_FEATURES}): ask for fewer components"
        )
    return Frequent(components, columns)


class Sketch(Summary):
    """The mean of samples, and K rows that stand for all of them.

    Every array is replaced and none is changed in place, so a shallow copy of a sketch keeps what it holds.

    Parameters
    ----------
    features : int
    rule : Rule
    dtype : numpy dtype
        Of the rows: float32 or float64.
    forgetting : float, default=1.0
        λ: a sample weighs λ times less after each later one.
    scaled : bool, default=False
        Whether features count by their deviations, not by their size.
    missing : str, optional
        The parameter of an estimator: how missing values are estimated.
    rank : int, default=0
        Of the model by which they are.

    Attributes
    ----------
    count, n_missing : int
        Samples so far; values that were missing in them.
    Y : array, shape (K, features)
        In `unit`, as `mean` and `squares` are. These do not count the samples that wait until a block is full: `finished` does.
    mean : array, shape (features,)
    squares : array, shape (features,)
        The sum of squares of each feature about the mean; empty if not scaled.
    weight, energy : float
        Sum of the weights; total sum of squares about the mean.
    square_weight : float
        The sum Σ v λ²ᵏ over samples of weight v, k samples ago: of the squared weights, if v samples of weight 1 had come.
    held : float
        The energy that Y has, of scaled features if they are, by the deviations at the time.
    unit : float
        A power of two near the largest number in the first block, so that data of any size can be squared; 0 before that.
    """

    Y: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    def __init__(
        self,
        features: int,
        rule: Rule,
        dtype: Any,
        forgetting: float = 1.0,
        scaled: bool = False,
        missing: str | None = None,
        rank: int = 0,
    ) -> None:
        self.features, self.rule, self.dtype = features, rule, np.dtype(dtype)
        self.forgetting, self.scaled = forgetting, scaled
        self.missing, self.rank = missing, rank
        # With about twice as many samples as rows, products and turns together cost least, and matrix products are made in tiles
        # of up to 12 rows. In blocks of fewer than 36 rows Python costs more than arithmetic.
        self.block = max(-(-3 * rule.columns // 12) * 12, 36) - rule.columns
        self.count = self.n_missing = 0
        self.weight = self.square_weight = self.energy = self.held = self.unit = self.flops = 0.0
        self.waiting: list[np.ndarray] = []
        self.waiting_weights = np.empty(0)

    def begin(self, first: int) -> Self:
        """A copy with room for what it will hold."""
        other = copy(self)
        other.Y = np.zeros((self.rule.columns, self.features), self.dtype)
        other.mean = np.zeros(self.features)
        other.squares = np.zeros(self.features if self.scaled else 0)
        return other

    def add(self, rows: Any, weights: np.ndarray | None = None) -> None:
        """Add samples, dense or csr, with weights above 0, by default 1."""
        if self.missing is not None:
            rows = self._estimated(rows, weights)
        weights = np.ones(rows.shape[0]) if weights is None else weights
        start = 0
        with flop_counts.job(self):
            while start < rows.shape[0]:
                part = slice(start, start + self.block - len(self.waiting_weights))
                self.waiting = [*self.waiting, dense(rows[part])]
                self.waiting_weights = np.append(self.waiting_weights, weights[part])
                self.count += self.waiting[-1].shape[0]
                start = part.stop
                if len(self.waiting_weights) == self.block:
                    self._take_waiting()
        if self.waiting:
            self._refuse_too_large(self.waiting[-1])
            # A copy, since the caller may fill the same array with new rows.
            self.waiting = [*self.waiting[:-1], self.waiting[-1].copy()]

    def end(self) -> None:
        """Take in the samples that wait."""
        with flop_counts.job(self):
            self._take_waiting()

    def finished(self) -> Self:
        """A copy in which no samples wait."""
        other = copy(self)
        other.end()
        return other

    def merge(self, other: Self) -> None:
        """Take in the samples of another sketch, which came after these, as far as its rows tell.

        The scatter of all samples is that of these, that of the others, and w₁w₂/(w₁ + w₂) times the square of the distance of
        the two means: the rows of both and one more for the distance are turned, and the weakest dropped, as in a block.
        """
        self.end()
        other = other.finished()
        fade = self.forgetting**other.count
        if other.unit and not self.unit:
            self.unit = other.unit
        ratio = other.unit / self.unit if other.unit else 1.0
        gap = other.mean * ratio - self.mean
        weight = fade * self.weight
        total = weight + other.weight
        share = weight * other.weight / total if total else 0.0
        first, self.count = self.count, self.count + other.count
        self.n_missing += other.n_missing
        self.flops += other.flops
        self.square_weight = fade**2 * self.square_weight + other.square_weight
        self.weight = total
        self.energy = fade * self.energy + other.energy * ratio * ratio + share * float(gap @ gap)
        self._refuse_overflow()
        if total:
            self.mean = self.mean + gap * (other.weight / total)
        if self.scaled:
            self.squares = fade * self.squares + other.squares * ratio**2 + share * gap**2
        rows = np.concatenate((np.sqrt(fade) * self.Y, other.Y * ratio, np.sqrt(share) * gap[None]))
        inverse = self.inverses() if self.scaled else None
        with flop_counts.job(self):
            G = _products(rows if inverse is None else rows * inverse).astype(np.float64)
            Q = self._turn(G, lambda: rows if inverse is None else rows * inverse, first)
            self.Y = (Q @ rows).astype(self.dtype)
            flop_counts.count(2.0 * rows.size * len(Q))

    def _take_waiting(self) -> None:
        """Make K rows of those of the sketch and the samples that wait."""
        if not self.waiting:
            return
        X = self.waiting[0] if len(self.waiting) == 1 else np.concatenate(self.waiting)
        ages = self.forgetting ** np.arange(len(X), -1.0, -1.0)
        fade, weights = ages[0], self.waiting_weights * ages[1:]
        self.square_weight = fade**2 * self.square_weight + float(self.waiting_weights @ ages[1:] ** 2)
        self.waiting, self.waiting_weights = [], np.empty(0)
        if not self.unit and X.any():
            self.unit = power_of_two(largest_size(X))
        per_unit = 1.0 / (self.unit or 1.0)
        origin = self.mean if self.weight else X[0] * per_unit
        past, self.weight = fade * self.weight, fade * self.weight + float(weights.sum())
        K, mean, squares = len(self.Y), np.empty(self.features), np.empty_like(self.squares)
        T, W = centring(past, weights), np.empty((K + len(X), self.features), self.dtype)

        @np.errstate(over="ignore", invalid="ignore")  # sums that are not finite are refused
        def products(part: slice) -> np.ndarray:
            rows = W[:, part]
            np.multiply(self.Y[:, part], np.sqrt(fade), out=rows[:K], casting="same_kind")
            np.multiply(X[:, part], per_unit, out=rows[K:], casting="same_kind")
            rows[K:] -= origin[part]
            moment = weights @ rows[K:]
            mean[part] = origin[part] + moment / self.weight
            if self.scaled:
                second = weights @ np.square(rows[K:], dtype=np.float64)
                squares[part] = fade * self.squares[part] + np.maximum(second - moment**2 / self.weight, 0.0)
                rows = rows * self._inverses(squares[part])
            return _products(rows)

        def scaled_rows() -> np.ndarray:
            rows = W.astype(np.float64)
            rows[K:] = T @ rows[K:]
            flop_counts.count(2.0 * len(T) ** 2 * self.features)
            return rows * self.inverses() if self.scaled else rows

        cut = parallel.parts(self.features, -(-W.size // (1 << 17)))  # a megabyte stays in a core's cache
        with np.errstate(over="ignore", invalid="ignore"):
            G = np.array(parallel.each(products, cut), dtype=np.float64).sum(axis=0)
            G[K:] = T @ G[K:]
            G[:, K:] = G[:, K:] @ T.T
            trace = float(np.trace(G[K:, K:]))
            self.energy = float(squares.sum()) if self.scaled else fade * self.energy + trace
        self._refuse_overflow()
        self.mean, self.squares = mean, squares
        Q = self._turn(G, scaled_rows, self.count - len(X))
        Q[:, K:] = Q[:, K:] @ T
        turn, Y = Q.astype(self.dtype), np.empty_like(self.Y)

        def turned(part: slice) -> None:
            np.matmul(turn, W[:, part], out=Y[:, part])

        parallel.each(turned, cut)
        self.Y = Y
        samples = (
            X.size * (8.0 if self.scaled else 4.0) + 4.0 * W.shape[0] * len(T) ** 2 + 2.0 * K * len(T) ** 2
        )
        flop_counts.count(2.0 * K * W.size + self.Y.size + samples)

    def _turn(self, G: np.ndarray, rows: Callable[[], np.ndarray], first: int) -> np.ndarray:
        unit = 1.0 if self.scaled else self.unit or 1.0
        Q, self.held = self.rule.turn(StackedRows(G, self.rule.columns, rows, first, unit))
        return Q

    def _estimated(self, X: Samples, weights: np.ndarray | None) -> Any:
        """X with its missing values estimated under the model of the samples so far, or of X itself."""
        holes = holes_of(X, self.missing, weights)
        if not holes.any():
            return X
        self.n_missing += int(holes.sum())
        so_far = self.finished()
        if so_far.count >= 2 and so_far.energy > 0:
            return so_far.completion().fill(X.astype(np.float64), holes).astype(X.dtype)
        return completed(X.astype(np.float64), self.rank)[0].astype(X.dtype)

    def completion(self) -> Completion:
        """The model of probabilistic PCA that the rows of a finished sketch make up, to estimate missing values by."""
        Y = self.Y.astype(np.float64)
        squares, turns = np.linalg.eigh(Y @ Y.T)
        squares, turns = np.maximum(squares[::-1][: self.rank], 0.0), turns[:, ::-1][:, : self.rank]
        some = squares > np.finfo(self.dtype).eps * squares[0]
        squares = squares[some]
        axes = (turns[:, some].T @ Y) / np.sqrt(squares)[:, None]
        divisor, free = self.divisor(), len(self.mean) - len(axes)
        noise = max(self.energy - float(squares.sum()), 0.0) / (free * divisor) if free else 0.0
        mean = self.mean * (self.unit or 1.0)
        return Completion(mean, axes, np.maximum(squares / divisor - noise, 0.0), noise)

    def divisor(self) -> float:
        """What sums of squares are divided by for variances: the weights' sum, n, less 1, where nothing is forgotten."""
        return self.weight - self.square_weight / self.weight if self.weight else 0.0

    def deviations(self) -> np.ndarray:
        """The standard deviations of scaled features, in the sketch's unit; 0 where there is none."""
        return self._deviations(self.squares)

    def inverses(self) -> np.ndarray:
        """What a feature is multiplied by to have the variance 1; 0 if it is constant."""
        return self._inverses(self.squares)

    def _deviations(self, squares: np.ndarray) -> np.ndarray:
        divisor = self.divisor()
        deviations = np.sqrt(squares / divisor) if divisor > 0 else np.zeros(len(squares))
        # So that their inverses are finite in the type of the rows.
        return np.where(deviations > np.finfo(self.dtype).tiny, deviations, 0.0)

    def _inverses(self, squares: np.ndarray) -> np.ndarray:
        deviations = self._deviations(squares)
        inverses = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        return inverses.astype(self.dtype)

    def total(self) -> float:
        """The sum of squares about the mean, of the scaled features if they are."""
        return (
            float(np.sum(self.squares * np.square(self.inverses(), dtype=np.float64)))
            if self.scaled
            else self.energy
        )

    def columns(self) -> np.ndarray:
        """Y, of scaled features if they are, in double precision."""
        Y = self.Y.astype(np.float64)
        return Y * self.inverses() if self.scaled else Y

    def kept(self) -> float:
        """The share of the variance that Y has."""
        return float(np.sum(self.columns() ** 2)) / (self.total() or 1.0)

    def largest_loss(self) -> float:
        """The share of the variance that Y lacks in any direction, at most, by the rule `Frequent`.

        Where features are scaled by deviations learnt from the samples, that holds as far as these were known when rows were
        dropped.
        """
        assert isinstance(self.rule, Frequent)
        return self.rule.largest_loss(max(1.0 - self.kept(), 0.0))

    def in_words(self, chunks: int) -> str:
        """What the columns are, for the method of a result."""
        return (
            f"a sketch of {len(self.Y)} columns, merged over {counted(chunks, 'chunk', 'chunks')} of samples, that keeps "
            f"{self.kept():.2%} of the variance and lacks at most {self.largest_loss():.2%} of it in any direction"
        )

    def _refuse_too_large(self, rows: Any) -> None:
        """Refuse samples that wait, for a sum that is never too small: later nobody could tell which they were."""
        if self.unit:
            size = 2.0 * largest_size(rows) / self.unit
            with np.errstate(over="ignore"):
                self._refuse_overflow(float(np.square(size) * self.features * self.block))

    def _refuse_overflow(self, further: float = 0.0) -> None:
        # A quarter: sums of any features and samples are finite in the type of the rows.
        if not self.energy + further <= float(np.finfo(self.dtype).max) / 4:
            raise too_large(1.0 / (self.unit or 1.0), "samples")


def centring(past: float, weights: np.ndarray) -> np.ndarray:
    """The matrix T that makes of samples, less the mean of all before them, rows whose outer products add up to the scatter.

    `past` is the weight of those before. With W_t = past + w_1 + … + w_t, row t of TX is √(W_{t−1}w_t/W_t) times sample t less
    the mean of all samples before it (Welford's identity; it is the a_t of Algorithm 5).

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.sketch import centring
    >>> X = np.random.default_rng(0).standard_normal((5, 2))
    >>> A = centring(0.0, np.ones(5)) @ X
    >>> bool(np.allclose(A.T @ A / 5, np.cov(X.T, bias=True)))
    True
    """
    totals = past + np.cumsum(weights)
    before, tiny = totals - weights, np.finfo(float).tiny
    size = np.sqrt(before * (weights / np.maximum(totals, tiny)))
    T = np.tril(np.outer(-size / np.maximum(before, tiny), weights), -1)
    T.flat[:: len(T) + 1] = size
    return T


def _products(rows: np.ndarray) -> np.ndarray:
    flop_counts.count(rows.size * (len(rows) + 1.0))
    return rows @ rows.T
