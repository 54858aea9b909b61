"""One pass through the features of a block: rotate the kept columns, centre the new samples, multiply all rows.

Each of the three reads or writes (K + b)·d numbers; together they are nearly all the work of a stream. The features are cut into
pieces, by the block's shape alone, and a thread does all three to a piece, which stays in its cache, before it takes the next.
What is summed over pieces is summed in their order, so that the number of threads changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.numerics import flop_counts, parallel

PIECE_NUMBERS = 1 << 17  # numbers of a block that a thread takes at once


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
    new : Samples, optional
    """

    def __init__(self, W: np.ndarray, new: Samples | None = None) -> None:
        n, d = W.shape
        if new is None:
            new = Samples(np.empty((0, d), W.dtype), np.empty(0), np.empty(0), np.empty(d), np.empty(0))
        self.W, self.new = W, new
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
        turn = None if Q is None else Q.astype(self.W.dtype)

        def one(number: int) -> None:
            if turn is not None:
                part = self.W[:, self.parts[number]]
                part[: len(turn)] = turn @ part
            self._centre(number, slice(first, last), begin)
            if products:
                self._multiply(number, inverse)

        parallel.each(one, range(len(self.parts)))
        # The products are symmetric.
        multiplied = (len(self.W) + 1.0 + (inverse is not None)) * products
        turning = 0.0 if turn is None else 2.0 * len(turn)
        centring = (9.0 if len(self.new.squares) else 7.0) * (last - first)
        flop_counts.count((multiplied + turning) * self.W.size + centring * self.W.shape[1])
        energies = self.energies[:, : last - first].sum(axis=0)
        if not products:
            return np.empty((0, 0)), energies
        lower = np.tril(self.G.sum(axis=0))
        return lower + np.tril(lower, -1).T, energies

    def _centre(self, number: int, rows: slice, begin: int) -> None:
        from givens.kernels import stream

        new, part = self.new, self.parts[number]
        stream.centre(
            new.X[rows],
            new.unit,
            new.forgetting,
            new.weights[rows],
            new.own[rows],
            new.mean,
            new.squares,
            self.W,
            begin,
            self.energies[number],
            part.start,
            part.stop,
        )

    def _multiply(self, number: int, inverse: np.ndarray | None) -> None:
        P = self.W[:, self.parts[number]]
        if inverse is not None:
            P = P * inverse[self.parts[number]]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # the sketch refuses samples whose squares overflow
            self.G[number] = P @ P.T
