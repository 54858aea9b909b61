"""One pass through the features of a block: rotate the kept columns, centre the new samples, multiply all rows.

Each of the three reads or writes (K + b)·d numbers; together they are nearly all the work of a stream. The features are cut into
pieces, by the block's shape alone, and a thread does all three to a piece, which stays in its cache, before it takes the next.
What is summed over pieces is summed in their order, so that the number of threads changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.numerics import parallel

PIECE_NUMBERS = 1 << 17  # numbers of a block that a thread takes at once
FEW_ROWS = 64  # up to so many, compiled loops are faster than matrix products


@dataclass
class Samples:
    """Samples to be centred, one after the other, into rows of W.

    Attributes
    ----------
    X : array, shape (samples, features)
    weights : array, shape (samples,)
        The sum of all weights when each has come.
    own : array, shape (samples,)
        The weight of each.
    mean, squares : array
        The running mean, and the sums of squares of each feature, if they are wanted; both are updated.
    forgetting, unit : float
        λ; what samples are divided by, a power of two.
    """

    X: np.ndarray
    weights: np.ndarray
    own: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    forgetting: float = 1.0
    unit: float = 1.0


class BlockPasses:
    """One pass after the other over the same rows W.

    Parameters
    ----------
    W : array, shape (n, features)
        n is a multiple of 3, and at least K rounded up to a multiple of 4.
    columns : int
        K, how many rows a turn makes. Up to three rows behind them may be overwritten by it: when a block is turned, they hold
        samples that have been taken in.
    new : Samples, optional
    scaled : bool, default=False
        Whether products are those of scaled features.
    """

    def __init__(self, W: np.ndarray, columns: int, new: Samples | None = None, scaled: bool = False) -> None:
        n, d = W.shape
        if new is None:
            new = Samples(np.empty((0, d), W.dtype), np.empty(0), np.empty(0), np.empty(d), np.empty(0))
        self.W, self.new = W, new
        self.few = n <= FEW_ROWS
        self.Q = np.zeros((_padded(columns) if self.few else columns, n), W.dtype)
        self.inverse = np.ones(d if scaled else 0, W.dtype)
        self.parts = parallel.parts(d, -(-W.size // PIECE_NUMBERS))
        self.energies = np.zeros((len(self.parts), n))
        self.G = np.zeros((len(self.parts), n, n))

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

        def one(number: int) -> None:
            self._piece(number, Q is not None, slice(first, last), begin, products)

        parallel.each(one, range(len(self.parts)))
        energies = self.energies[:, : last - first].sum(axis=0)
        if not products:
            return np.empty((0, 0)), energies
        lower = np.tril(self.G.sum(axis=0))
        return lower + np.tril(lower, -1).T, energies

    def _piece(self, number: int, turned: bool, rows: slice, begin: int, multiplied: bool) -> None:
        """The same for one piece of the features."""
        from givens.kernels import stream

        W, new, part = self.W, self.new, self.parts[number]
        if turned and self.few:
            stream.turn(W, self.Q, part.start, part.stop)
        elif turned:
            W[: len(self.Q), part] = self.Q @ W[:, part]
        stream.centre(
            new.X[rows],
            new.unit,
            new.forgetting,
            new.weights[rows],
            new.own[rows],
            new.mean,
            new.squares,
            W,
            begin,
            self.energies[number],
            part.start,
            part.stop,
        )
        if multiplied and self.few:
            stream.multiply(W, self.inverse, part.start, part.stop, self.G[number])
        elif multiplied:
            P = W[:, part] * self.inverse[part] if len(self.inverse) else W[:, part]
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # the sketch refuses samples whose squares overflow
                self.G[number] = P @ P.T


def flops(W: np.ndarray, columns: int, scaled: bool) -> float:
    """Of a turn of so many columns and of products, which are symmetric; in tiles, some of which are not needed."""
    n = len(W)
    each = n + 3.0 + 2.0 * _padded(columns) if n <= FEW_ROWS else n + 1.0 + 2.0 * columns
    return (each + scaled) * W.size


def _padded(columns: int) -> int:
    """As many rows as compiled code turns."""
    from givens.kernels import stream

    return columns + -columns % stream.TALL
