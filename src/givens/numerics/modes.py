"""A symmetric d x d x d tensor as an array: multiply its three modes, rotate blocks of its indices, contract it.

Work is cut into slabs of slices that fit into the cache; threads share them. Products of whole tensors are computed for half of
the entries, which symmetry copies to the others. A rotation of a block of indices changes the slices of the block: they are
computed once, and by symmetry the same numbers are copied to the second and the third mode.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from givens.numerics import flop_counts, parallel

if TYPE_CHECKING:
    from givens.objectives.base import Blocks, Rotations


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
    return _squares(partial(_half, T), U)


def quadratic(T: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function U ↦ T(·, u, u), for many U: it keeps the half of T's entries that it needs, one after the other."""
    halves = {slab.start: _half(T, slab) for slab in _halving(len(T))}
    return partial(_squares, lambda slab: halves[slab.start])


def _half(T: np.ndarray, slab: slice) -> np.ndarray:
    """The entries T(·, j, k) for the j of a slab and the k from its start on; those beyond its end count twice."""
    half = T[:, slab, slab.start :].copy()
    half[:, :, slab.stop - slab.start :] *= 2.0
    return half


def _squares(half: Callable[[slice], np.ndarray], U: np.ndarray) -> np.ndarray:
    d, columns = U.shape
    slabs = _halving(d)
    flop_counts.count(d * d * (d + d / len(slabs)) * columns)

    def share(slab: slice) -> np.ndarray:
        products = U[slab, None] * U[slab.start :]
        return half(slab).reshape(d, -1) @ products.reshape(-1, columns)

    return reduce(np.add, parallel.each(share, slabs))


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
    slabs = len(_halving(d))
    flop_counts.count(d**4 * (8.0 / 3.0 + 3.0 / slabs + 1.0 / (3.0 * slabs**2)))
    Q, Qt = np.ascontiguousarray(Q), np.ascontiguousarray(Q.T)

    def first_mode(slab: slice) -> None:
        part = T[:, slab, slab.start :]
        part = (Qt @ part.reshape(d, -1)).reshape(part.shape)
        T[:, slab, slab.start :] = part
        T[:, slab.stop :, slab] = part[:, :, slab.stop - slab.start :].transpose(0, 2, 1)

    def other_modes(slab: slice) -> None:
        part = T[slab].reshape(-1, d) @ Q[:, slab.start :]
        T[slab, slab.start :, slab.start :] = Qt[slab.start :] @ part.reshape(-1, d, d - slab.start)

    def copy(slab: slice) -> None:
        part = T[slab, slab.start :, slab.stop :]
        T[slab.stop :, slab, slab.start :] = part.transpose(2, 0, 1)
        T[slab.stop :, slab.stop :, slab] = part[:, slab.stop - slab.start :].transpose(2, 1, 0)

    for step in (first_mode, other_modes, copy):
        parallel.each(step, _halving(d))


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
    """Cut so many slices, each of so many numbers, into slabs, which fit with their products into 2 MB of cache."""
    return parallel.slices(number, max(1, (1 << 16) // size))


@lru_cache(maxsize=16)
def _halving(d: int) -> list[slice]:
    """Slabs of at least 8 indices, for products of half of the entries: within a slab, all of them are used."""
    return parallel.slices(d, -(-d // max(1, d // 8)))
