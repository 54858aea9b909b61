"""A walk through the features of a block: turn what is kept, centre what has come, multiply all rows with all.

Each of the three is a pass over (K + b)·d numbers; together they are all the work of a stream. The features are cut into pieces,
by the block's shape alone, and a thread does everything to a piece before it takes the next: threads are woken once for
a block. What is summed over pieces is summed in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens import parallel

PIECE = 1 << 16  # numbers of a block that a thread takes at once
FEW = 64  # rows up to which compiled loops are faster than matrix products


@dataclass(frozen=True)
class Arrivals:
    """Samples to be centred, one after the other, into rows of W.

    Attributes
    ----------
    X : array, shape (samples, features)
    begin : int
        The row of W for the first of them.
    unit, forgetting : float
        What they are divided by, a power of two; λ.
    weights : array, shape (samples,)
        The sum of all weights when each has come.
    mean, squares : array
        The running mean, and the sums of squares of each feature, if they are wanted; both move along.
    """

    X: np.ndarray
    begin: int
    unit: float
    forgetting: float
    weights: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def walk(
    W: np.ndarray,
    Q: np.ndarray | None = None,
    new: Arrivals | None = None,
    products: bool = False,
    inverse: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """First rows of W ← QW; then centre what is new; then WWᵀ, each feature times `inverse`, in float64.

    Up to three rows behind those of QW may be overwritten: when a block is turned, they hold samples that have been taken in.
    Returns the products, and the sums of squares of the centred samples; each is empty if it is not wanted.
    """
    from givens.kernels import stream

    n, d = W.shape
    few = n <= FEW
    turn = np.zeros((0, n), W.dtype) if Q is None else _padded(Q.astype(W.dtype), stream.TALL if few else 1)
    if new is None:
        new = Arrivals(np.empty((0, d), W.dtype), 0, 1.0, 1.0, np.empty(0), np.empty(d), np.empty(0))
    parts = parallel.parts(d, -(-W.size // PIECE))
    G = np.zeros((len(parts), n if products else 0, n))
    energies = np.zeros((len(parts), len(new.X)))
    # Compiled code makes the products too, unless they are of scaled features.
    compiled = G if few and inverse is None else G[:, :0]

    def piece(number: int) -> None:
        part = parts[number]
        if not few and len(turn):
            W[: len(turn), part] = turn @ W[:, part]
        stream.advance(
            W,
            turn if few else turn[:0],
            new.X,
            new.begin,
            new.unit,
            new.forgetting,
            new.weights,
            new.mean,
            new.squares,
            energies[number],
            compiled[number],
            part.start,
            part.stop,
        )
        if products and compiled.size == 0:
            P = W[:, part] if inverse is None else W[:, part] * inverse[part]
            G[number] = P @ P.T

    parallel.each(piece, range(len(parts)))
    lower = np.tril(G.sum(axis=0))
    return lower + np.tril(lower, -1).T if products else lower, energies.sum(axis=0)


def flops(W: np.ndarray, columns: int, scaled: bool) -> float:
    """Of a turn of so many columns and of products, which are symmetric; in tiles, some of which are not needed."""
    from givens.kernels import stream

    n = len(W)
    each = n + 1.0 + 2.0 * columns
    if n <= FEW:
        each = n + (1.0 if scaled else stream.WIDE) + 2.0 * (columns + -columns % stream.TALL)
    return (each + scaled) * W.size


def _padded(Q: np.ndarray, multiple: int) -> np.ndarray:
    """With rows of zeros up to a multiple."""
    return np.concatenate((Q, np.zeros((-len(Q) % multiple, Q.shape[1]), Q.dtype)))
