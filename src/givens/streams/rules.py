"""Which columns to keep: rules that make K columns of K + b, without looking back at the stream.

The kept columns Y stand for the data A through YYᵀ ≈ AAᵀ. Rotations among columns leave YYᵀ as it is; only what is
dropped matters. So the rule that loses least turns kept and new columns to their principal axes, which makes the
weakest as weak as it can be, and drops those: `Frequent`. As Frequent Directions does (Liberty 2013), the energy δ of the
strongest column dropped is also taken from the weakest quarter of the reserve (the columns kept beyond the components
asked for), or those would fill up with the past and no new direction could ever enter. What is lost is bounded by what was
dropped: 0 ≼ AAᵀ − YYᵀ ≼ Σδ·I. Rotations for sparsity are made when components are asked for, and the
threshold is no part of the stream.

Where features are to be scaled, to variance one, their present deviations say what is weak: products are those of the
scaled columns. What is turned and kept are the columns as they came. Rotations act on the other side, so that nothing has to
be scaled anew when the deviations change.

`Weakest` is the paper's Algorithm 5: each sample takes the place of the weakest column, and a few rotations of random
pairs follow, for the threshold of the moment. `Leftover` turns each sample against every kept column, to the angle that is
best for that column alone, and drops what is left of it in the end: the value of the objective never falls, and no column
is lost. By the screening theorem a feature whose norm over kept and new columns is at most the threshold has no
part in any of these rotations: they run on the other features alone, and reach all the rest in one product at the end of the
block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from givens import lapack, parallel

ACCURACY = (
    1e-3  # share of a rotation's gain that may be left: the next samples move the maximum further than that
)
PIECE = 131_072  # entries
WAKING = 6e7  # flops: what threads cost to wake

Outcome = TypeVar("Outcome")


def products(W: np.ndarray, inverse: np.ndarray | None = None) -> np.ndarray:
    """The products of all rows of W, each feature times `inverse`, by pieces in a fixed order, in float64."""

    def piece(part: slice) -> np.ndarray:
        P = W[:, part] if inverse is None else W[:, part] * inverse[part]
        return (P @ P.T).astype(np.float64)

    parts = _each(piece, W, len(W))
    return sum(parts[1:], start=parts[0])


def turn(Qt: np.ndarray, W: np.ndarray) -> None:
    """Put Qt @ W in the place of the first rows of W, piece by piece."""
    Qt = Qt.astype(W.dtype)

    def piece(part: slice) -> None:
        W[: len(Qt), part] = Qt @ W[:, part]

    _each(piece, W, len(Qt))


def _each(work: Callable[[slice], Outcome], W: np.ndarray, rows: int) -> list[Outcome]:
    """The work on pieces of W, by threads; all at once where a product with so many rows does not pay for waking them."""
    if 2.0 * rows * W.size < WAKING:
        return [work(slice(0, W.shape[1]))]
    return parallel.each(work, parallel.parts(W.shape[1], -(-W.size // PIECE)))


@dataclass
class Block:
    """Some samples behind the kept columns.

    Attributes
    ----------
    W : array, shape (K + b, features)
        Kept columns of the data matrix, then centred samples, each a contiguous row.
    kept : int
        K.
    fade : array, shape (K + b,)
        What forgetting leaves of each at the end of the block.
    first : int
        How many samples came before these.
    weight : float
        Sum of all samples' weights at the end of the block.
    inverse : array, shape (features,), or None
        What features are multiplied by where they are scaled, in the type of W.
    held : float
        What the rule says: the energy of the columns it kept, scaled.
    """

    W: np.ndarray
    kept: int
    fade: np.ndarray
    first: int
    weight: float
    inverse: np.ndarray | None = None
    held: float = 0.0


class Frequent:
    """Principal axes, the weakest dropped, and the weakest quarter of the reserve shrunk.

    Parameters
    ----------
    reserve : int
        How many of the columns kept are beyond those asked for.
    """

    def __init__(self, reserve: int) -> None:
        self.reserve = reserve

    def absorb(self, block: Block) -> float:
        """Make the first K rows of W those to keep; returns the flops."""
        W, K = block.W, block.kept
        G = products(W, block.inverse) * np.outer(block.fade, block.fade)
        energies, axes = np.linalg.eigh(G)
        energies, axes = np.maximum(energies[::-1], 0.0), axes[:, ::-1]
        shrunk = np.ones(K)
        dropped = energies[K] if len(W) > K else 0.0
        low = K - (self.reserve + 3) // 4
        tail = energies[low:K]
        shrunk[low:] = np.sqrt(np.divide(tail - dropped, tail, out=np.zeros_like(tail), where=tail > 0))
        turn(shrunk[:, None] * axes[:, :K].T * block.fade, W)
        block.held = float(np.sum(shrunk * shrunk * energies[:K]))
        return _flops(block) + lapack.eigh(len(W)) + 2.0 * len(W) * (len(W) + K)


def _flops(block: Block) -> float:
    """Of the products, which are symmetric, and of turning."""
    n = len(block.W)
    scaling = 0.0 if block.inverse is None else block.W.size
    return (n + 1.0 + 2.0 * block.kept) * block.W.size + scaling


class _Rotated:
    """A rule that rotates for sparsity, sample by sample, for the threshold of the moment.

    Parameters
    ----------
    level : callable
        Takes the features' squared norms over the block, the weight and the kept columns, scaled; returns the threshold of |y|.
    rotations : int
        Of random pairs of kept columns, so many after each sample.
    l0 : bool
    seed : int
        The pairs depend on it and on the sample's number alone.
    """

    turns: str  # the name of the compiled loop over the samples

    def __init__(
        self, level: Callable[[np.ndarray, float, np.ndarray], float], rotations: int, l0: bool, seed: int
    ) -> None:
        self.level, self.rotations, self.l0, self.seed = level, rotations, l0, seed

    def absorb(self, block: Block) -> float:
        """Make the first K rows of W those to keep; returns the flops."""
        from givens.kernels import threshold

        W, K, inverse = block.W, block.kept, block.inverse
        samples = len(W) - K
        G = products(W, inverse) * np.outer(block.fade, block.fade)
        norms = np.einsum("ij,ij->j", W, W, dtype=np.float64)
        if inverse is not None:
            norms *= np.square(inverse, dtype=np.float64)
        level = self.level(norms, block.weight, W[:K] if inverse is None else W[:K] * inverse)
        counting = norms > level * level
        C = W[:, counting].astype(np.float64) * block.fade[:, None]
        if inverse is not None:
            C *= inverse[counting]
        Qt = np.eye(len(W))
        live = np.arange(K)
        flops = getattr(threshold, self.turns)(
            C, G, Qt, live, samples, level, self.l0, ACCURACY, self.rotations, self.seed, block.first
        )
        turn(Qt[live] * block.fade, W)
        block.held = float(np.sum(G[live, live]))
        return flops + _flops(block) + 2.0 * W.size + C.size + 2.0 * len(W) ** 2


class Weakest(_Rotated):
    """The paper's rule: the sample replaces the weakest column, rotations of random pairs follow."""

    turns = "replace_weakest"


class Leftover(_Rotated):
    """The sample is turned against each column, of which only the column counts, and what is left over is dropped."""

    turns = "keep_better"


def quantile(Y: np.ndarray, share: float) -> float:
    """The level that this share of the entries exceeds."""
    sizes = np.abs(Y).ravel()
    rank = max(len(sizes) - 1 - round(share * len(sizes)), 0)
    return float(np.partition(sizes, rank)[rank])
