"""Fourth moments of columns, and what follows from them: fourth-order contrasts of blocks of columns, cumulants.

The products m = (1, y_a y_c for a ≤ c) of the columns y of a block have the Gram matrix T = Σ m mᵀ over the rows of the data. For
rotated columns x = Σ v_a y_a and z = Σ w_a y_a, the product xz is a linear form in m (`coordinates`), and every sum of up to four
factors x, z a bilinear form in T. So after one pass over the rows, which may be distributed over many places, all pairs of a
block can be rotated any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from givens.numerics import flop_counts, gram, parallel
from givens.numerics.tiles import add_in_order
from givens.objectives.base import Blocks, PairSolutions, gathered
from givens.rotations import rotate_blocks, turn
from givens.schedules import tournament

TILE_PRODUCTS = 1 << 19
"""Products of two entries that are formed at a time: 4 MB; of half as many, the sums take as long as the products."""


def products(Y: np.ndarray) -> np.ndarray:
    """The products m of each row of the data, for Y with a row for each column."""
    n = len(Y)
    m = np.empty((1 + n * (n + 1) // 2, Y.shape[1]), Y.dtype)
    m[0], place = 1.0, 1
    for a, row in enumerate(Y):
        np.multiply(row, Y[a:], out=m[place : place + n - a])
        place += n - a
    return m


def gram_of_products(Y: np.ndarray) -> np.ndarray:
    """T, summed over tiles in their order."""

    def of_tile(part: slice) -> list[np.ndarray]:
        m = products(Y[:, part])
        return [m @ m.T]

    order = 1 + len(Y) * (len(Y) + 1) // 2
    T = np.zeros((order, order))
    add_in_order([T], of_tile, parallel.slices(Y.shape[1], max(64, TILE_PRODUCTS // order)))
    return T


def packed_grams(Y: np.ndarray, blocks: Blocks) -> list[np.ndarray]:
    """The upper triangle of T of each block, which is what a pass sends."""
    most = max(map(len, blocks))
    if most > 64:  # of which T has 2 million numbers, 17 MB
        raise ValueError(
            f"a block of {most} columns has too many fourth moments: use blocks of at most 64 columns"
        )
    return [gram.packed(gram_of_products(Y[block])) for block in blocks]


def coordinates(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The coefficients of m, but for its 1, in the products of columns with the coefficients x and z."""
    a, c = np.triu_indices(len(x))
    once = x[a] * z[c]
    return np.where((a == c)[:, None], once, once + x[c] * z[a])


def solved(
    grams: Sequence[np.ndarray], blocks: Blocks, active: int, kappa: float, sign: float, min_gain: float
) -> PairSolutions:
    """The best rotation of each pair; for a larger block, sweeps over its pairs, until one gains no more than `min_gain`."""
    return gathered(
        blocks,
        [
            _solved_block(packed, len(block), int(np.sum(block < active)), kappa, sign, min_gain)
            for packed, block in zip(grams, blocks)
        ],
    )


def _solved_block(
    packed: np.ndarray, size: int, active: int, kappa: float, sign: float, min_gain: float
) -> tuple[np.ndarray, float]:
    """Q and its gain."""
    from givens.kernels import quartic

    upper = gram.unpacked(packed, 1 + size * (size + 1) // 2)
    seconds, fourths = upper[0, 1:], upper[1:, 1:] + np.triu(upper[1:, 1:], 1).T
    Vt, total = np.eye(size), 0.0
    rounds = [pairs[pairs[:, 0] < active] for pairs in tournament(size)]
    for _ in range(60 if size > 2 else 1):  # they end where they gain nothing, mostly after ten
        gained = 0.0
        for pairs in filter(len, rounds):
            x, z = Vt[pairs.T].swapaxes(1, 2)
            xx, xz, zz = forms = coordinates(x, x), coordinates(x, z), coordinates(z, z)
            of_xx, of_zz = fourths @ xx, fourths @ zz
            sums = [np.sum(form * of_xx, axis=0) for form in forms]
            sums += [np.sum(form * of_zz, axis=0) for form in (xz, zz)]
            moments = np.column_stack([*sums, *(seconds @ form for form in forms)])
            found = np.empty((len(pairs), 2))
            quartic.solve_moments(moments, pairs[:, 1] < active, kappa, sign, found)
            rotate_blocks(Vt, pairs, turn(found[:, 0]))
            gained += float(found[:, 1].sum())
            flop_counts.count(4.0 * fourths.size * len(pairs))
        total += gained
        if gained <= min_gain:
            break
    return np.ascontiguousarray(Vt.T), total
