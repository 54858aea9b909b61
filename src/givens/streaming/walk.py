"""Walks through the features of a block: turn what is kept, centre what has come, multiply all rows with all.

Each of the three is a pass over (K + b)·d numbers; together they are nearly all the work of a stream. The features are cut into
pieces, by the block's shape alone, and a thread does everything to a piece before it takes the next. What is summed over
pieces is summed in their order.

A walk takes less than a millisecond, and there is one for every few samples. To wake a thread takes a tenth of that, and it
begins slowly; so the other threads stay awake from one walk to the next, in compiled code, and look for pieces to take.
Where something else wants the cores (a BLAS's own threads stay awake too, a tenth of a second after each of its products), those
who stay awake are in the way: `Company` notices, and walks go on alone for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import Self

import numpy as np

from givens.numerics import parallel

PIECE = 1 << 16  # numbers of a block that a thread takes at once
FEW = 64  # rows up to which compiled loops are faster than matrix products
LONG = 400_000  # looks, half a millisecond: more than a piece takes
ENOUGH = 0.003  # seconds after which the share of them that this thread has had is looked at
SHARE = 0.8  # if it is less, the cores are crowded
PAUSES = 8, 4096  # walks alone, least and most


@dataclass
class Company:
    """Whether the other threads are of use at present.

    They are not where a walk has waited long for one of them, which the system has put aside with a piece in its hands, or where
    this thread itself was put aside. Then so many walks are made alone, twice as many each time.

    Attributes
    ----------
    alone : int
        Walks to be made before the others are asked again.
    pause : int
        How many, the next time.
    """

    alone: int = 0
    pause: int = PAUSES[0]
    since: tuple[float, float] | None = None

    def wanted(self) -> bool:
        """Whether to ask the others for the next walk."""
        self.alone = max(self.alone - 1, 0)
        if self.since is None or self.alone:
            self.since = perf_counter(), thread_time()
        return not self.alone

    def crowded(self, waited: int) -> bool:
        """After a walk in company that waited so long at its end: whether to go on alone."""
        assert self.since is not None
        now = perf_counter(), thread_time()
        elapsed, used = now[0] - self.since[0], now[1] - self.since[1]
        crowded = waited > LONG
        if elapsed > ENOUGH:
            crowded |= used < SHARE * elapsed
            self.since = now
        if crowded:
            self.alone, self.pause, self.since = self.pause, min(2 * self.pause, PAUSES[1]), None
        else:
            self.pause = max(self.pause - 1, PAUSES[0])
        return crowded

    def rest(self) -> None:
        """What comes now, between two calls, does not count."""
        self.since = None


@dataclass
class Samples:
    """Samples to be centred, one after the other, into rows of W.

    Attributes
    ----------
    X : array, shape (samples, features)
    weights : array, shape (samples,)
        The sum of all weights when each has come.
    mean, squares : array
        The running mean, and the sums of squares of each feature, if they are wanted; both move along.
    forgetting, unit : float
        λ; what samples are divided by, a power of two.
    """

    X: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    forgetting: float = 1.0
    unit: float = 1.0


class Walks:
    """One walk after the other over the same rows W; a context, in which other threads of the pool help.

    Parameters
    ----------
    W : array, shape (n, features)
        n is a multiple of 3, and at least K rounded up to a multiple of 4.
    columns : int
        K, how many rows a turn makes. Up to three rows behind them may be overwritten by it: when a block is turned, they hold
        samples that have been taken in.
    new : Samples, optional
    scaled : bool
        Whether products are those of scaled features.
    company : Company, optional
        What is known from walks before these.
    """

    def __init__(
        self,
        W: np.ndarray,
        columns: int,
        new: Samples | None = None,
        scaled: bool = False,
        company: Company | None = None,
    ) -> None:
        from givens.kernels import stream

        n, d = W.shape
        if new is None:
            new = Samples(np.empty((0, d), W.dtype), np.empty(0), np.empty(d), np.empty(0))
        self.W, self.new = W, new
        self.few = n <= FEW
        self.Q = np.zeros((_padded(columns) if self.few else columns, n), W.dtype)
        self.inverse = np.ones(d if scaled else 0, W.dtype)
        self.parts = parallel.parts(d, -(-W.size // PIECE))
        self.energies = np.zeros((len(self.parts), n))
        self.G = np.zeros((len(self.parts), n, n))
        self.sheet, self.unit, self.counters = np.zeros(5, np.int64), np.ones(1), np.zeros(4, np.int64)
        edges = np.array([part.start for part in self.parts] + [d])
        plan = (self.counters, edges, self.sheet, W, self.Q, new.X, self.unit, new.forgetting)
        self.arguments = (*plan, new.weights, new.mean, new.squares, self.inverse, self.energies, self.G)
        self.crew = parallel.crew() if self.few and len(self.parts) > 1 and not stream.PLAIN else None
        self.gone: SimpleQueue[BaseException | None] | None = None
        self.company = Company() if company is None else company
        self.company.rest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._send_home()

    def _send_home(self) -> None:
        from givens.kernels import stream

        if self.crew is not None and self.gone is not None:
            self.counters[stream.OVER] = 1
            for _ in range(self.crew.size):
                self.gone.get()
            self.counters[stream.OVER] = 0
            self.gone = None

    def __call__(
        self,
        Q: np.ndarray | None = None,
        first: int = 0,
        last: int = 0,
        begin: int = 0,
        products: bool = False,
        inverse: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """First rows of W ← QW; rows from `begin` on ← samples from `first` to `last`, centred; then WWᵀ, scaled by `inverse`.

        Returns the products, in float64, and the sums of squares of the centred samples; each is empty if it is not wanted.
        """
        if Q is not None:
            self.Q[: len(Q)] = Q
        if inverse is not None:
            self.inverse[:] = inverse
        self.sheet[:] = Q is not None, first, last, begin, products
        self.unit[0] = self.new.unit
        if self.few:
            self._compiled()
        else:
            parallel.each(self._piece, range(len(self.parts)))
        energies = self.energies[:, : last - first].sum(axis=0)
        if not products:
            return np.empty((0, 0)), energies
        lower = np.tril(self.G.sum(axis=0))
        return lower + np.tril(lower, -1).T, energies

    def _compiled(self) -> None:
        from givens.kernels import stream

        crew = self.crew if self.crew is not None and self.company.wanted() else None
        # Who waited too long has gone, and is asked again.
        if crew is not None and (self.gone is None or self.gone.qsize() == crew.size):
            self.gone = crew.ask(lambda: stream.walk(False, *self.arguments), crew.size)
        waited = stream.walk(True, *self.arguments)
        if crew is not None and self.company.crowded(waited):
            self._send_home()

    def _piece(self, number: int) -> None:
        """What compiled code does to a piece, by matrix products."""
        from givens.kernels import stream

        turned, first, last, begin, multiplied = self.sheet.tolist()
        W, new, part = self.W, self.new, self.parts[number]
        if turned:
            W[: len(self.Q), part] = self.Q @ W[:, part]
        stream.centre(
            new.X[first:last],
            new.unit,
            new.forgetting,
            new.weights[first:last],
            new.mean,
            new.squares,
            W,
            begin,
            self.energies[number],
            part.start,
            part.stop,
        )
        if multiplied:
            P = W[:, part] * self.inverse[part] if len(self.inverse) else W[:, part]
            self.G[number] = P @ P.T


def flops(W: np.ndarray, columns: int, scaled: bool) -> float:
    """Of a turn of so many columns and of products, which are symmetric; in tiles, some of which are not needed."""
    n = len(W)
    each = n + 3.0 + 2.0 * _padded(columns) if n <= FEW else n + 1.0 + 2.0 * columns
    return (each + scaled) * W.size


def _padded(columns: int) -> int:
    """As many rows as compiled code turns."""
    from givens.kernels import stream

    return columns + -columns % stream.TALL
