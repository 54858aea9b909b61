"""A stream of samples, held as its running mean and a few columns.

Samples wait in a buffer until a block of them is full; blocks begin at fixed numbers of samples, and everything
random or summed depends on a sample's number only. So it does not matter how the stream is cut into batches: the bits
are the same. Memory is (K + b)·d numbers, K columns and blocks of b samples, however long the stream; b is about 2K, which makes
products and turns together cost least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from givens import parallel
from givens.streams.rules import Block

TRACE_ENTRIES = 512
ROWS = 12  # K + b is a multiple of it: matrix products work in tiles of 4, 8 or 12 rows, and a tile half full costs as much
SMALL = 1 << 17  # numbers in a block below which handing parts to threads costs more than it saves


class Rule(Protocol):
    """How K columns are made of K + b."""

    def absorb(self, block: Block) -> float:
        """Make the first K rows of W those to keep; returns the flops."""


@dataclass
class StreamTrace:
    """What the stream was like along the way.

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
    forgetting : float
        λ: a sample weighs λ times less after each later one.
    scaled : bool
        Whether features count by their deviations, not by their size.

    Attributes
    ----------
    count : int
        Samples so far.
    weight, energy : float
        Sum of the weights; total sum of squares about the mean.
    squares : array, shape (features,)
        The sum of squares of each feature; empty if not scaled.
    unit : float
        A power of two: everything held is in this unit, so that data of any size can be squared.
    """

    def __init__(
        self, features: int, columns: int, dtype: Any, forgetting: float = 1.0, scaled: bool = False
    ) -> None:
        self.columns, self.forgetting, self.scaled = columns, forgetting, scaled
        rows = -(-3 * columns // ROWS) * ROWS
        self.block = rows - columns
        self.W = np.zeros((rows, features), dtype)
        self.mean = np.zeros(features)
        self.squares = np.zeros(features if scaled else 0)
        self.waiting = 0
        self.count = 0
        self.weight = 0.0
        self.energy = 0.0
        self.unit = 0.0
        self.flops = 0.0
        self.trace = StreamTrace()
        self.stride = 1  # blocks between two entries of the trace

    def add(self, X: Any, rule: Rule, threads: int | None = None) -> None:
        """Take in samples, rows of a dense or CSR matrix; what is not finite ends in a FloatingPointError, in mid-way."""
        full = self.waiting + X.shape[0] >= self.block
        with parallel.pool(threads if full and self.W.size >= SMALL else 1):
            position = 0
            while position < X.shape[0]:
                rows = X[position : position + self.block - self.waiting]
                rows = rows.toarray() if sparse.issparse(rows) else rows
                self._wait(np.ascontiguousarray(rows))
                if not np.isfinite(self.energy):
                    raise FloatingPointError(
                        "the sum of squares is not finite: samples are more than 1e150 times larger than the first"
                    )
                position += rows.shape[0]
                if self.waiting == self.block:
                    held = self._absorb(self.W, rule)
                    self.waiting = 0
                    self._note(held)

    def columns_now(self, rule: Rule, threads: int | None = None) -> tuple[np.ndarray, float]:
        """The kept columns as they are if the stream ends here, a copy, K x d; and the flops it took to take in the last."""
        if not self.waiting:
            return self.W[: self.columns].copy(), 0.0
        W = self.W[: self.columns + self.waiting].copy()
        flops = self.flops
        with parallel.pool(threads if W.size >= SMALL else 1):
            self._absorb(W, rule)
        spent, self.flops = self.flops - flops, flops
        return W[: self.columns], spent

    def divisor(self) -> float:
        """What sums of squares are divided by for variances: n − 1, where nothing is forgotten."""
        squares = self.weight * (1 + self.forgetting**self.count) / (1 + self.forgetting)
        return self.weight - squares / self.weight

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

    def total(self) -> float:
        """The sum of squares about the mean, of the scaled features if they are."""
        return float(np.sum(self.squares * self.inverses() ** 2)) if self.scaled else self.energy

    def _wait(self, rows: np.ndarray) -> None:
        from givens.kernels import stream

        if not self.unit:
            some = np.flatnonzero(rows.any(axis=1))
            # The first sample that is not zero, whatever else is in this batch.
            if len(some):
                exponent = int(np.frexp(np.abs(rows[some[0]]).max())[1])
                self.unit = float(np.ldexp(1.0, min(max(exponent, -1000), 1000)))
        begin = self.columns + self.waiting
        out = self.W[begin : begin + len(rows)]
        self.weight, self.energy = stream.centre(
            rows, self.unit or 1.0, self.forgetting, self.weight, self.energy, self.mean, self.squares, out
        )
        self.waiting += len(rows)
        self.count += len(rows)
        self.flops += (9.0 if self.scaled else 7.0) * rows.size

    def _absorb(self, W: np.ndarray, rule: Rule) -> float:
        """Make the first rows of W those to keep; returns their energy."""
        samples = len(W) - self.columns
        ages = np.concatenate((np.full(self.columns, samples), np.arange(samples)[::-1]))
        fade = self.forgetting ** (ages / 2.0)
        inverse = self.inverses().astype(W.dtype) if self.scaled else None
        block = Block(W, self.columns, fade, self.count - samples, self.weight, inverse)
        self.flops += rule.absorb(block)
        return block.held

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
