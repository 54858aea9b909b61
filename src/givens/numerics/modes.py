"""A symmetric d x d x d tensor as an array: multiply its three modes, rotate blocks of its indices, contract it.

Work is cut into slabs of slices that fit into the cache; threads share them. The products of the second and the third mode need
one slice T(i, ·, ·) at a time. A rotation of a block of indices changes the slices of the block: they are computed once, and by
symmetry the same numbers are copied to the second and the third mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from givens.numerics import flop_counts, parallel

if TYPE_CHECKING:
    from givens.objectives.base import Blocks, Rotations

SLAB_NUMBERS = 1 << 16
"""Numbers in a slab: with the products made of it, it fits into 2 MB of cache. Half or double takes as long."""


def diagonal(T: np.ndarray) -> np.ndarray:
    """The entries T_iii, as a view."""
    d = len(T)
    return T.reshape(-1)[:: d * d + d + 1]


def doubles(T: np.ndarray) -> np.ndarray:
    """The matrix of the entries T_iij."""
    d = len(T)
    return T.reshape(d * d, d)[:: d + 1].copy()


def subtensor(T: np.ndarray, block: np.ndarray) -> np.ndarray:
    """A copy of the entries whose three indices are in the block."""
    return T.copy() if len(block) == len(T) else T[np.ix_(block, block, block)]


def squared_norm(T: np.ndarray) -> float:
    """The sum of the squares of all entries."""
    # Not a product by BLAS, whose threads are not limited outside of a run.
    return sum(float(np.square(T[slab]).sum()) for slab in _slabs(len(T), len(T) ** 2))


def contracted(T: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The matrix T(·, ·, r)."""
    d = len(T)
    flop_counts.count(2.0 * d**3)
    return (T.reshape(d * d, d) @ r).reshape(d, d)


def squares(T: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The vectors T(·, u, u) of the columns u of U."""
    d = len(T)
    flop_counts.count(2.0 * d * U.size * (d + 1))
    out = np.empty(U.shape)

    def share(slab: slice) -> None:
        np.einsum("ija,ja->ia", T[slab] @ U, U, out=out[slab])

    parallel.each(share, _slabs(d, d * d))
    return out


def rotate(T: np.ndarray, blocks: Blocks, rotations: Rotations) -> None:
    """Rotate disjoint blocks of indices in all three modes, in place."""
    for block, Q in zip(blocks, rotations):
        if len(block) == len(T):
            _rotate_all(T, Q)
        else:
            _rotate_block(T, block, Q)


def _rotate_all(T: np.ndarray, Q: np.ndarray) -> None:
    """Multiply all three modes by a matrix, in place."""
    d = len(T)
    if Q[0, 0] == 1.0 and np.array_equal(Q, np.eye(d)):
        return
    flop_counts.count(6.0 * d**4)
    Q, Qt = np.ascontiguousarray(Q), np.ascontiguousarray(Q.T)
    rows = T.reshape(d, d * d)

    def other_modes(slab: slice) -> None:
        T[slab] = Qt @ (T[slab].reshape(-1, d) @ Q).reshape(-1, d, d)

    def first_mode(columns: slice) -> None:
        rows[:, columns] = Qt @ rows[:, columns]

    parallel.each(other_modes, _slabs(d, d * d))
    parallel.each(first_mode, _slabs(d * d, d))


def _rotate_block(T: np.ndarray, block: np.ndarray, Q: np.ndarray) -> None:
    """Rotate the slices of a block in all three modes, and copy them to the other places of their entries."""
    d, b = len(T), len(block)
    flop_counts.count(2.0 * b * b * d * (d + 2.0 * b))
    Qt = np.ascontiguousarray(Q.T)
    slices = np.empty((b, d, d))
    slabs = _slabs(d, b * d)

    def turn(slab: slice) -> None:
        part = (Qt @ T[block, slab].reshape(b, -1)).reshape(b, -1, d)
        part[:, :, block] = part.take(block, axis=2) @ Q
        slices[:, slab] = part

    def put(slab: slice) -> None:
        part = slices[:, slab]
        T[slab, block] = part.transpose(1, 0, 2)
        T[slab, :, block] = part.transpose(1, 2, 0)

    parallel.each(turn, slabs)
    slices[:, block] = Qt @ slices[:, block]
    parallel.each(put, slabs)
    T[block] = slices


def _slabs(number: int, size: int) -> list[slice]:
    """Cut so many slices, each of so many numbers, into slabs."""
    return parallel.slices(number, max(1, SLAB_NUMBERS // size))
