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
pairs follow, for the threshold of the moment. By the screening theorem a feature whose norm over kept and new columns is at
most the threshold has no part in any of these rotations: they run on the other features alone, and reach all the rest in one
product at the end of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from givens.numerics import flop_counts

LEAST_RESERVE = 20  # columns beyond the components, at least
ACCURACY = 1e-3  # share of a rotation's gain that may be left; the next samples move the maximum by more


@dataclass(frozen=True)
class SampleBlock:
    """Some samples behind the kept columns.

    Attributes
    ----------
    W : array, shape (n, features)
        Kept columns of the data matrix, K of them, then centred samples, each a contiguous row; rows of zeros, if there are
        fewer samples than room.
    G : array, shape (n, n)
        The products of all rows at the end of the block, scaled.
    kept, samples : int
        K, and how many samples there are.
    fade : array, shape (n,)
        What forgetting leaves of each row at the end of the block.
    first : int
        How many samples came before these.
    weight : float
        Sum of all samples' weights at the end of the block.
    inverse : array, shape (features,), or None
        What features are multiplied by where they are scaled, in the type of W.
    """

    W: np.ndarray
    G: np.ndarray
    kept: int
    samples: int
    fade: np.ndarray
    first: int
    weight: float
    inverse: np.ndarray | None = None


@dataclass(frozen=True)
class Turn:
    """How K columns are made of n: as QW, Q of shape (K, n); and the energy they hold, scaled."""

    Q: np.ndarray
    held: float


class Frequent:
    """Principal axes, the weakest dropped, and the weakest quarter of the reserve shrunk.

    Parameters
    ----------
    reserve : int
        How many of the columns kept are beyond those asked for.
    """

    def __init__(self, reserve: int) -> None:
        self.shrunk = (reserve + 3) // 4  # columns

    def turn(self, block: SampleBlock) -> Turn:
        """The turn to the axes that are kept."""
        K, n = block.kept, len(block.G)
        energies, axes = np.linalg.eigh(block.G)
        energies, axes = np.maximum(energies[::-1], 0.0), axes.T[::-1]
        Q = axes[:K] * block.fade
        low = K - self.shrunk
        tail = energies[low:K]
        left = tail - energies[K] if n > K else tail
        Q[low:] *= np.sqrt(np.divide(left, tail, out=np.zeros_like(tail), where=tail > 0))[:, None]
        flop_counts.count(flop_counts.eigh(n) + 2.0 * n * K)
        return Turn(Q, float(energies[:low].sum() + left.sum()))

    def largest_loss(self, lost: float) -> float:
        """What the kept columns lack of zᵀAAᵀz, at most, for any unit vector z, if they lack `lost` of the trace of AAᵀ.

        A turn takes at most δ from the energy in any direction, but at least δ from each column that it shrinks, and from one
        that it drops: Σδ is at most the trace that is lost over the number of these.
        """
        return lost / (self.shrunk + 1)


def default_reserve(components: int) -> int:
    """How many columns a sketch keeps beyond the components, by default.

    A sparse module may have less variance than dense directions that are no components; the reserve has to hold those too.
    """
    return max(3 * components, LEAST_RESERVE)


class Weakest:
    """The paper's rule: the sample replaces the weakest column, rotations of random pairs follow, for the present threshold.

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

    def __init__(
        self, level: Callable[[np.ndarray, float, np.ndarray], float], rotations: int, l0: bool, seed: int
    ) -> None:
        self.level, self.rotations, self.l0, self.seed = level, rotations, l0, seed

    def turn(self, block: SampleBlock) -> Turn:
        """The turn that the samples' rotations make together."""
        from givens.kernels.stream_rules import take_in

        rows = block.kept + block.samples
        W, G, inverse = block.W[:rows], np.ascontiguousarray(block.G[:rows, :rows]), block.inverse
        norms = np.einsum("ij,ij->j", W, W, dtype=np.float64)
        if inverse is not None:
            norms *= np.square(inverse, dtype=np.float64)
        Y = W[: block.kept] if inverse is None else W[: block.kept] * inverse
        level = self.level(norms, block.weight, Y)
        counting = norms > level * level
        C = W[:, counting].astype(np.float64) * block.fade[:rows, None]
        if inverse is not None:
            C *= inverse[counting]
        Qt = np.eye(rows)
        live = np.arange(block.kept)
        flops = take_in(
            C, G, Qt, live, block.samples, level, self.l0, ACCURACY, self.rotations, self.seed, block.first,
        )  # fmt: skip
        held = float(np.sum(G[live, live]))
        Q = np.zeros((block.kept, len(block.G)))
        Q[:, :rows] = Qt[live] * block.fade[:rows]
        flop_counts.count(flops + 2.0 * W.size + C.size)
        return Turn(Q, held)


DROPS = ("frequent", "weakest")
