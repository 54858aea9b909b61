"""The paper's Algorithm 5: each sample takes the place of the weakest column, and a few rotations of random pairs follow.

By the screening theorem a feature whose norm over kept and new columns is at most the threshold has no part in any of these
rotations: they run on the other features alone, and reach all features in one product at the end of the block.
"""

from __future__ import annotations

import numpy as np

from givens.data.sketch import StackedRows
from givens.numerics import flop_counts

MAX_GAIN_LEFT = 1e-3  # share of a rotation's best gain; the next samples move the best angle by more


class Algorithm5:
    """The rule of the paper, with as many rotations after each sample as there are columns.

    Parameters
    ----------
    columns : int
        m.
    gamma : float
        The threshold.
    seed : int
        The pairs depend on it and on the sample's number alone.
    """

    def __init__(self, columns: int, gamma: float, seed: int) -> None:
        self.columns, self.gamma, self.seed = columns, gamma, seed

    def turn(self, block: StackedRows) -> tuple[np.ndarray, float]:
        """The turn that the rotations after each sample make together."""
        from givens.kernels.stream_rules import take_in

        G, rows = np.ascontiguousarray(block.G), block.rows()
        norms = np.sqrt(np.einsum("ij,ij->j", rows, rows))
        # A larger threshold than the largest norm leaves nothing either, and its square might overflow.
        level = min(self.gamma / block.unit, 2.0 * float(norms.max()))
        C = np.ascontiguousarray(rows[:, norms > level])
        Qt, live, samples = np.eye(len(G)), np.arange(block.kept), len(G) - block.kept
        flops = take_in(
            C, G, Qt, live, samples, level, False, MAX_GAIN_LEFT, self.columns, self.seed, block.first
        )
        flop_counts.count(flops + 2.0 * rows.size)
        return Qt[live], float(np.sum(G[live, live]))
