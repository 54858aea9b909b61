"""A stream of samples, held as its running mean and a few columns.

Samples wait in a buffer until a block of them is full; blocks begin at fixed numbers of samples, and everything
random or summed depends on a sample's number only. So it does not matter how the stream is cut into batches: the bits
are the same. Memory is (K + b)·d numbers, K columns and blocks of b = 2K samples, however long the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from givens import parallel
from givens.streams.rules import Block

TRACE_ENTRIES = 512
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

    Attributes
    ----------
    count : int
        Samples so far.
    weight, energy : float
        Sum of the weights; total sum of squares about the mean.
    unit : float
        A power of two: everything held is in this unit, so that data of any size can be squared.
    """

    def __init__(self, features: int, columns: int, dtype: Any, forgetting: float = 1.0) -> None:
        self.columns, self.block, self.forgetting = columns, 2 * columns, forgetting
        self.W = np.zeros((columns + self.block, features), dtype)
        self.mean = np.zeros(features)
        self.waiting = 0
        self.count = 0
        self.weight = 0.0
        self.energy = 0.0
        self.unit = 0.0
        self.flops = 0.0
        self.trace = StreamTrace()
        self.stride = 1  # blocks between two entries of the trace

    def add(self, X: Any, rule: Rule, threads: int | None = None) -> None:
        """Take in samples, rows of a dense or CSR matrix without NaN."""
        full = self.waiting + X.shape[0] >= self.block
        with parallel.pool(threads if full and self.W.size >= SMALL else 1):
            position = 0
            while position < X.shape[0]:
                rows = X[position : position + self.block - self.waiting]
                rows = rows.toarray() if sparse.issparse(rows) else rows
                self._wait(np.ascontiguousarray(rows))
                position += rows.shape[0]
                if self.waiting == self.block:
                    self._absorb(self.W, rule)
                    self.waiting = 0
                    self._note()

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
            rows, self.unit or 1.0, self.forgetting, self.weight, self.energy, self.mean, out
        )
        self.waiting += len(rows)
        self.count += len(rows)
        self.flops += 7.0 * rows.size

    def _absorb(self, W: np.ndarray, rule: Rule) -> None:
        samples = len(W) - self.columns
        ages = np.concatenate((np.full(self.columns, samples), np.arange(samples)[::-1]))
        fade = self.forgetting ** (ages / 2.0)
        block = Block(W, self.columns, fade, self.count - samples, self.weight)
        self.flops += rule.absorb(block)

    def _note(self) -> None:
        blocks = self.count // self.block
        if blocks % self.stride:
            return
        Y = self.W[: self.columns]
        held = float(np.einsum("ij,ij->", Y, Y, dtype=np.float64))
        self.trace.samples.append(self.count)
        self.trace.flops.append(self.flops)
        self.trace.kept.append(held / self.energy if self.energy else 1.0)
        if len(self.trace.samples) >= TRACE_ENTRIES:
            self.stride *= 2
            for name in ("samples", "flops", "kept"):
                setattr(self.trace, name, getattr(self.trace, name)[1::2])
