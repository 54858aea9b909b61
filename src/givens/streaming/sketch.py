"""A stream of samples, held as its running mean and a few columns.

Samples wait in a buffer until a block of them is full; blocks begin at fixed numbers of samples, and everything
random or summed depends on a sample's number only. So it does not matter how the stream is cut into batches: the bits
are the same. Memory is (K + b)·d numbers, K columns and blocks of b samples, however long the stream; b is about 2K, which makes
products and turns together cost least, and more where K is small.

A block's turn is made when the next samples come, or the call ends: then turning, centring and multiplying are one pass
through the features, which are cut into pieces for the threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from givens.data.missing import Completion
from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import power_of_two
from givens.streaming.products import BlockPasses, Samples
from givens.streaming.rules import SampleBlock, Turn
from givens.support.arguments import dense

TRACE_ENTRIES = 512
LEAST_ROWS = (
    36  # rows of a block: with fewer, what a block costs beside its arithmetic takes longer than that
)
ROWS = 12  # K + b is a multiple of it: matrix products are made in tiles of 4, 8 or 12 rows, and a tile half full costs as much
CHUNK_BLOCKS = 2  # blocks of sparse samples that are made dense together
SMALL_BLOCK = 1 << 17  # numbers in a block below which handing parts to threads costs more than it saves


class TooLarge(ValueError):
    """Sums of squares overflow."""


class Rule(Protocol):
    """How K columns are made of K + b."""

    def turn(self, block: SampleBlock) -> Turn:
        """The turn for a block."""


@dataclass
class StreamTrace:
    """The course of a stream.

    Attributes
    ----------
    samples : list of int
    flops : list of float
        Additions and multiplications so far.
    kept : list of float
        The share of the variance, about the mean so far, that the kept columns hold.
    """

    samples: list[int] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)


class Sketch:
    """The mean and the kept columns of a stream.

    Parameters
    ----------
    features, columns : int
        d and K.
    dtype : numpy dtype
        Of the columns; float32 or float64.
    forgetting : float, default=1.0
        λ: a sample weighs λ times less after each later one.
    scaled : bool, default=False
        Whether features count by their deviations, not by their size.

    Attributes
    ----------
    count, missing : int
        Samples so far; values that were missing in them.
    weight, energy : float
        Sum of the weights; total sum of squares about the mean.
    square_weight : float
        The sum Σ v λ²ᵏ over samples of weight v, k samples ago: of the squared weights, if v samples of weight 1 had come.
    squares : array, shape (features,)
        The sum of squares of each feature; empty if not scaled.
    unit : float
        A power of two: everything held is in this unit, so that data of any size can be squared.
    """

    def __init__(
        self, features: int, columns: int, dtype: Any, forgetting: float = 1.0, scaled: bool = False
    ) -> None:
        self.columns, self.forgetting, self.scaled = columns, forgetting, scaled
        rows = max(-(-3 * columns // ROWS) * ROWS, LEAST_ROWS)
        self.block = rows - columns
        self.W = np.zeros((rows, features), dtype)
        self.mean = np.zeros(features)
        self.squares = np.zeros(features if scaled else 0)
        self.waiting = 0
        self.count = 0
        self.missing = 0
        self.weight = 0.0
        self.square_weight = 0.0
        self.energy = 0.0
        self.unit = 0.0
        self.flops = 0.0
        self.trace = StreamTrace()
        self.stride = 1  # blocks between two entries of the trace

    def add(self, X: Any, rule: Rule, threads: int | None = None, own: np.ndarray | None = None) -> None:
        """Take in samples, rows of a dense or CSR matrix, with weights of their `own` above 0, by default 1.

        Values that are not finite raise `TooLarge`, after some samples may have been taken in.
        """
        own = np.ones(X.shape[0]) if own is None else own
        full = self.waiting + X.shape[0] >= self.block
        with flop_counts.job(self), parallel.pool(threads if full and self.W.size >= SMALL_BLOCK else 1):
            for rows, chunk in self._chunks(X):
                self._add(chunk, own[rows], rule)

    def successor(self, samples: int | None = None) -> Sketch:
        """A copy that may take in so many samples (None: any number) and leaves this sketch as it is.

        Samples that do not fill a block are written behind those that wait, where this sketch holds nothing: then the columns
        are shared, and the copy costs no more than taking in one sample.
        """
        other = copy(self)
        other.mean, other.squares = self.mean.copy(), self.squares.copy()
        other.trace = StreamTrace(*(list(values) for values in vars(self.trace).values()))
        if samples is None or self.waiting + samples >= self.block:
            other.W = self.W.copy()
        return other

    def closed(self, rule: Rule) -> Sketch:
        """The same samples in K rows: those that wait are taken in, and further ones need `opened` first."""
        other = self.successor()
        with flop_counts.job(other):
            other.W = self.columns_now(rule, 1)
        other.waiting = 0
        return other

    def opened(self) -> Sketch:
        """A sketch that was closed, with room for a block of samples behind its columns."""
        other = self.successor()
        other.W = np.zeros((self.columns + self.block, self.W.shape[1]), self.W.dtype)
        other.W[: self.columns] = self.W[: self.columns]
        return other

    def merged(self, other: Sketch, rule: Rule) -> Sketch:
        """A sketch of the samples of both, which stay as they are: nothing may be forgotten in either.

        The scatter of all samples is that of these, that of the others, and w₁w₂/(w₁ + w₂) times the square of the distance of
        the two means: so the columns of both and one more for the distance are turned, and the weakest dropped, as in a block.
        """
        found = self.successor()
        found.unit = self.unit or other.unit
        ratio = other.unit / found.unit if other.unit else 1.0
        gap = other.mean * ratio - self.mean
        found.weight = self.weight + other.weight
        found.square_weight = self.square_weight + other.square_weight
        share = self.weight * other.weight / found.weight
        found.count = self.count + other.count
        found.missing = self.missing + other.missing
        found.flops = self.flops + other.flops
        found.mean = self.mean + gap * (other.weight / found.weight)
        found.energy = self.energy + other.energy * ratio**2 + share * float(gap @ gap)
        found._check(found.energy)
        if self.scaled:
            found.squares = self.squares + other.squares * ratio**2 + share * gap**2
        parts = [
            self.W[: self.columns + self.waiting].astype(np.float64),
            other.W[: other.columns + other.waiting] * ratio,
            np.sqrt(share) * gap[None],
        ]
        with flop_counts.job(found), parallel.pool(1):
            rows = np.vstack(parts)
            inverse = found.inverses() if self.scaled else None
            seen = rows if inverse is None else rows * inverse
            block = SampleBlock(
                rows,
                seen @ seen.T,
                self.columns,
                len(rows) - self.columns,
                np.ones(len(rows)),
                self.count,
                found.weight,
                inverse,
            )
            turn = rule.turn(block)
            found.W = np.zeros_like(self.W)
            found.W[: self.columns] = turn.Q @ rows
            flop_counts.count(2.0 * rows.size * (len(rows) + self.columns))
        found.waiting = 0
        found.trace = StreamTrace(
            [*found.trace.samples, found.count],
            [*found.trace.flops, found.flops],
            [*found.trace.kept, turn.held / found.total() if found.total() else 1.0],
        )
        return found

    def columns_now(self, rule: Rule, threads: int | None = None) -> np.ndarray:
        """The kept columns as they are if the stream ends here, a copy, K x d."""
        if not self.waiting:
            return self.W[: self.columns].copy()
        W = self.W.copy()
        W[self.columns + self.waiting :] = 0.0
        with parallel.pool(threads if W.size >= SMALL_BLOCK else 1):
            passes = BlockPasses(W)
            turn = self._turn(passes, None, rule)
            passes(turn.Q)
        return W[: self.columns]

    def divisor(self) -> float:
        """What sums of squares are divided by for variances: the weights' sum, n, less 1, where nothing is forgotten."""
        return self.weight - self.square_weight / self.weight if self.weight else 0.0

    def deviations(self) -> np.ndarray:
        """The features' standard deviations in the sketch's unit, where it is scaled."""
        divisor = self.divisor()
        found = np.sqrt(self.squares / divisor) if divisor > 0 else np.zeros(len(self.squares))
        # So that their inverses are finite in the columns' type.
        return np.where(found > np.finfo(self.W.dtype).tiny, found, 0.0)

    def inverses(self) -> np.ndarray:
        """What a feature is multiplied by to have the variance 1; 0 if it is constant."""
        found = self.deviations()
        return np.divide(1.0, found, out=np.zeros_like(found), where=found > 0)

    def completion(self, rule: Rule, rank: int, threads: int | None = None) -> Completion:
        """The model of probabilistic PCA that the mean and the kept columns make up, to estimate missing values by."""
        columns = self.columns_now(rule, threads).astype(np.float64)
        squares, turns = np.linalg.eigh(columns @ columns.T)
        squares, turns = np.maximum(squares[::-1][:rank], 0.0), turns[:, ::-1][:, :rank]
        some = squares > np.finfo(self.W.dtype).eps * squares[0]
        squares = squares[some]
        axes = (turns[:, some].T @ columns) / np.sqrt(squares)[:, None]
        divisor, free = self.divisor(), max(len(self.mean) - len(axes), 1)
        noise = (
            max(self.energy - float(squares.sum()), 0.0) / (free * divisor)
            if len(axes) < len(self.mean)
            else 0.0
        )
        mean = self.mean * (self.unit or 1.0)
        return Completion(mean, axes, np.maximum(squares / divisor - noise, 0.0), noise)

    def total(self) -> float:
        """The sum of squares about the mean, of the scaled features if they are."""
        return float(np.sum(self.squares * self.inverses() ** 2)) if self.scaled else self.energy

    def _check(self, energy: float) -> None:
        # A quarter: sums of any features and samples are finite in the columns' type.
        if not energy <= float(np.finfo(self.W.dtype).max) / 4:
            raise TooLarge(
                f"samples are too large beside the first, which was of the size of {self.unit or 1.0:.2g}: their squares exceed "
                f"what {self.W.dtype} holds; leave them out, or begin the stream with samples of their size"
            )

    def _unit_of(self, rows: Any) -> float:
        """A power of two of the size of the first sample that is not zero, whatever else is in this batch; 1 if there is none."""
        for row in rows:
            peak = abs(row).max()
            if peak > 0:
                return power_of_two(peak)
        return 1.0

    def _chunks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Dense parts of X, and which rows they are: all of it, or if it is sparse, some blocks at a time."""
        step = CHUNK_BLOCKS * self.block if sparse.issparse(X) else max(X.shape[0], 1)
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            yield slice(start, start + step), np.ascontiguousarray(dense(rows))

    def _add(self, X: np.ndarray, own: np.ndarray, rule: Rule) -> None:
        weights, weight = np.empty(len(X)), self.weight
        for s in range(len(X)):
            weights[s] = weight = self.forgetting * weight + own[s]
        new = Samples(X, weights, own, self.mean, self.squares, self.forgetting, self.unit or 1.0)
        passes = BlockPasses(self.W, new)
        Q, first = None, 0
        while first < len(X):
            last = min(first + self.block - self.waiting, len(X))
            Q = self._take(passes, first, last, Q, rule)
            first = last
        if Q is not None:
            passes(Q)

    def _take(
        self, passes: BlockPasses, first: int, last: int, Q: np.ndarray | None, rule: Rule
    ) -> np.ndarray | None:
        """Make the turn Q of the block before, put samples behind it, centred; returns the turn of this block if it is full."""
        rows = passes.new.X[first:last]
        if not self.unit and rows.any():
            self.unit = passes.new.unit = self._unit_of(rows)
        full = self.waiting + len(rows) == self.block
        G, energies = passes(Q, first, last, self.columns + self.waiting, full and not self.scaled)
        self.waiting += len(rows)
        self.count += len(rows)
        self.weight = float(passes.new.weights[last - 1])
        for weight in passes.new.own[first:last].tolist():
            self.square_weight = self.forgetting**2 * self.square_weight + weight
        for energy in energies.tolist():
            self.energy = self.forgetting * self.energy + energy
        self._check(self.energy)
        if not full:
            return None
        turn = self._turn(passes, None if self.scaled else G, rule)
        self.waiting = 0
        self._note(turn.held)
        return turn.Q

    def _turn(self, passes: BlockPasses, G: np.ndarray | None, rule: Rule) -> Turn:
        """What the rule makes of the columns kept and the samples waiting behind them."""
        W = passes.W
        inverse = self.inverses().astype(W.dtype) if self.scaled else None
        if G is None:
            G, _ = passes(products=True, inverse=inverse)
        fade = np.ones(len(W))
        if self.forgetting < 1:
            rows = self.columns + self.waiting
            fade[:rows] = self.forgetting ** (np.minimum(np.arange(rows)[::-1], self.waiting) / 2.0)
            G *= np.outer(fade, fade)
            flop_counts.count(2.0 * G.size)
        block = SampleBlock(
            W, G, self.columns, self.waiting, fade, self.count - self.waiting, self.weight, inverse
        )
        return rule.turn(block)

    def _note(self, held: float) -> None:
        blocks = self.count // self.block
        if blocks % self.stride:
            return
        total = self.total()
        self.trace.samples.append(self.count)
        self.trace.flops.append(self.flops)
        self.trace.kept.append(held / total if total else 1.0)
        if len(self.trace.samples) >= TRACE_ENTRIES:
            self.stride *= 2
            for name in ("samples", "flops", "kept"):
                setattr(self.trace, name, getattr(self.trace, name)[1::2])
