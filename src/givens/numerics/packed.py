"""Symmetric tensors by their entries i ≤ j ≤ k: a sixth of the memory, and a sixth of the work of rotating them.

Rotating disjoint blocks of indices, each by its own small Q, sends the entries of a triple of blocks (I, J, K) to
themselves. So only triples I ≤ J ≤ K are touched: gathered into a cube that fits into cache, multiplied by Q_I, Q_J and
Q_K in their modes, written back. The triples of a round are independent of each other: threads share them.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np

from givens.kernels import packed as kernels
from givens.numerics import parallel

if TYPE_CHECKING:
    from givens.objectives.base import Blocks, Rotations

SLAB = 8
"""How many slices one piece of work takes."""

SINGLE_PIECE = 32
"""Largest d for which all slices are one piece."""

SERIAL_SQUARES = 64
"""Largest d for which one product is faster than several in threads."""

JOINT = 24
"""Smaller blocks of a round are joined until they have so many indices: products of tiny matrices are slow."""


class Packed:
    """A symmetric d x d x d tensor: entry (i, j, k), i ≤ j ≤ k, is `entries[row[i, j] + k]`.

    Parameters
    ----------
    d : int
    entries : array of float64, length d(d+1)(d+2)/6, optional
        Owned by the object; uninitialised if not given.
    """

    def __init__(self, d: int, entries: np.ndarray | None = None) -> None:
        self.d = d
        self.entries = np.empty(d * (d + 1) * (d + 2) // 6) if entries is None else entries
        self.row = _rows(d)

    @classmethod
    def from_full(cls, T: np.ndarray) -> tuple[Packed, float, float]:
        """Pack a C-contiguous array: the means over the six places of each entry.

        Returns also the largest absolute entry and the largest difference between the places of an entry; they are
        infinite if an entry is not finite.
        """
        packed = cls(T.shape[0])
        tiles = range(0, packed.d, kernels.TILE)
        found = parallel.each(
            lambda first: kernels.inspect_and_pack(
                T, packed.row, first, min(packed.d, first + kernels.TILE), packed.entries
            ),
            tiles,
        )
        largest, spread = map(max, zip(*found))
        return packed, largest, spread

    @property
    def diagonal(self) -> np.ndarray:
        """The entries (i, i, i)."""
        return self.entries[_diagonal(self.d)]

    def doubles(self) -> np.ndarray:
        """The matrix of the entries (i, i, j)."""
        out = np.empty((self.d, self.d))
        kernels.doubles(self.entries, self.row, out)
        return out

    def normalize(self) -> int:
        """Divide by the power of two above the largest |entry|, at most 2^1023; return its exponent."""
        return int(kernels.normalize(self.entries, 1023))

    def squared_norm(self) -> float:
        """Sum of squares over all d³ entries."""
        return float(kernels.squared_norm(self.entries, self.row))

    def contract(self, r: np.ndarray) -> np.ndarray:
        """The matrix T(·, ·, r)."""
        out = np.empty((self.d, self.d))
        kernels.contract(self.entries, self.row, np.asarray(r, dtype=np.float64), out)
        return out

    def full(self) -> np.ndarray:
        """The d x d x d array."""
        index = np.sort(np.stack(np.meshgrid(*[np.arange(self.d)] * 3, indexing="ij")), axis=0)
        return self.entries[self.row[index[0], index[1]] + index[2]]

    def cube(self, block: np.ndarray, out: np.ndarray) -> None:
        """Copy the subtensor of a block into the flat array out."""
        kernels.gather(self.entries, self.row, block, out)

    def unfolded(self) -> np.ndarray:
        """The entries (x, j, k), j ≤ k, as a matrix (d, d(d+1)/2)."""
        out = np.empty((self.d, self.d * (self.d + 1) // 2))

        def share(piece: tuple[slice, slice]) -> None:
            slab, columns = piece
            kernels.unfold(self.entries, self.row, slab.start, slab.stop, out[:, columns])

        parallel.each(share, _slabs(self.d))
        return out

    def squares(self, U: np.ndarray, unfolded: np.ndarray | None = None) -> np.ndarray:
        """The vectors T(·, u, u) of the columns u of U; pass `unfolded()` if it is there already."""
        U = np.ascontiguousarray(U, dtype=np.float64)

        def share(piece: tuple[slice, slice]) -> np.ndarray:
            slab, columns = piece
            if unfolded is None:
                out = np.empty(U.shape)
                kernels.squares(self.entries, self.row, slab.start, slab.stop, U, out)
                return out
            products = np.empty((columns.stop - columns.start, U.shape[1]))
            kernels.products(U, slab.start, slab.stop, products)
            return unfolded[:, columns] @ products

        if unfolded is not None and self.d <= SERIAL_SQUARES:
            return share((slice(0, self.d), slice(0, unfolded.shape[1])))
        return reduce(np.add, parallel.each(share, _slabs(self.d)))

    def rotated(self, U: np.ndarray) -> Packed:
        """T(U, U, U), as a new tensor.

        The first mode is multiplied for all (j ≤ k) at once, then each slice from both sides: half the
        tensor's size is needed meanwhile.
        """
        d = self.d
        out = Packed(d)
        if U[0, 0] == 1.0 and np.array_equal(U, np.eye(d)):
            out.entries[:] = self.entries
            return out
        half = np.empty((d, d * (d + 1) // 2))
        Ut = np.ascontiguousarray(U.T)

        def first_mode(piece: tuple[slice, slice]) -> None:
            slab, columns = piece
            kernels.rotate_first_mode(self.entries, self.row, Ut, slab.start, slab.stop, columns.start, half)

        def other_modes(piece: tuple[slice, slice]) -> None:
            slab, _ = piece
            kernels.rotate_other_modes(half, Ut, slab.start, slab.stop, out.entries, out.row)

        parallel.each(first_mode, _slabs(d))
        parallel.each(other_modes, _slabs(d))
        return out

    def rotated_flops(self) -> float:
        """The flops of `rotated`."""
        d = float(self.d)
        return d**3 * (d + 1.0) + d * d * d * (d + 1.0) + d * d * (d + 1.0) * (2.0 * d + 1.0) / 3.0

    def rotate(self, blocks: Blocks, rotations: Rotations) -> float:
        """Rotate disjoint blocks of indices in place; return the flops."""
        if len(blocks) == 1 and len(blocks[0]) == self.d:
            self.entries = self.rotated(rotations[0]).entries
            return self.rotated_flops()
        touched = sum(len(block) for block in blocks)
        if touched <= self.d // 8 and all(len(block) == 2 for block in blocks):
            for (i, j), Q in zip(blocks, rotations):
                kernels.rotate_pair(self.entries, self.row, i, j, Q[0, 0], Q[1, 0])
            d = self.d
            return float(len(blocks) * (3 * (d - 1) * (d - 2) + 26 * (d - 2) + 80))
        pieces, matrices, moved = _pieces(self.d, blocks, rotations)
        triples = [
            (a, b, c)
            for a in range(len(pieces))
            for b in range(a, len(pieces))
            for c in range(b, len(pieces))
            if moved[a] or moved[b] or moved[c]
        ]
        size = max(len(piece) for piece in pieces) ** 3

        def turn(share: slice) -> None:
            here, there = np.empty(size), np.empty(size)
            for triple in triples[share]:
                blocks, rotations = [pieces[k] for k in triple], [matrices[k] for k in triple]
                kernels.turn(self.entries, self.row, *blocks, *rotations, here, there)

        parallel.each(turn, parallel.parts(len(triples), 4 * parallel.width()))
        lengths = np.array([len(piece) for piece in pieces], dtype=np.float64)
        a, b, c = lengths[np.array(triples).T]
        return float(np.sum(2 * a * b * c * (a + b + c)))


@lru_cache(maxsize=8)
def _slabs(d: int) -> list[tuple[slice, slice]]:
    """Ranges of j, and where the (j, k), j ≤ k, of each stand when they are counted in order."""
    edges = np.concatenate(([0], np.cumsum(d - np.arange(d)))).tolist()
    size = d if d <= SINGLE_PIECE else SLAB
    stops = [min(d, j + size) for j in range(0, d, size)]
    starts = [0, *stops[:-1]]
    return [(slice(j, stop), slice(edges[j], edges[stop])) for j, stop in zip(starts, stops)]


@lru_cache(maxsize=8)
def _diagonal(d: int) -> np.ndarray:
    """Where the entries (i, i, i) stand."""
    index = np.arange(d)
    return _rows(d)[index, index] + index


@lru_cache(maxsize=8)
def _rows(d: int) -> np.ndarray:
    lengths = np.triu(np.broadcast_to(d - np.arange(d), (d, d)))
    before = np.cumsum(lengths.ravel()).reshape(d, d) - lengths
    return np.ascontiguousarray(before - np.arange(d))


def _pieces(
    d: int, blocks: Blocks, rotations: Rotations
) -> tuple[list[np.ndarray], list[np.ndarray], list[bool]]:
    """Cut 0..d−1 into ascending pieces, each with its rotation: small blocks joined, and the indices that do not rotate."""
    pieces: list[np.ndarray] = []
    matrices: list[np.ndarray] = []
    waiting: list[int] = []
    gathered = 0
    for n, block in enumerate(blocks):
        waiting.append(n)
        gathered += len(block)
        if gathered >= JOINT or n == len(blocks) - 1:
            joined, Q = _join([blocks[m] for m in waiting], [rotations[m] for m in waiting])
            pieces.append(joined)
            matrices.append(Q)
            waiting, gathered = [], 0
    moved = [True] * len(pieces)
    rest = np.setdiff1d(np.arange(d), np.concatenate(pieces), assume_unique=True)
    for part in parallel.parts(len(rest), -(-len(rest) // (2 * JOINT))) if len(rest) else ():
        pieces.append(rest[part])
        matrices.append(np.eye(len(rest[part])))
        moved.append(False)
    return pieces, matrices, moved


def _join(blocks: list[np.ndarray], rotations: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Several blocks as one ascending block with a block-diagonal rotation."""
    if len(blocks) == 1:
        return np.asarray(blocks[0]), np.ascontiguousarray(rotations[0])
    joined = np.concatenate(blocks)
    Q = np.zeros((len(joined), len(joined)))
    start = 0
    for block, rotation in zip(blocks, rotations):
        stop = start + len(block)
        Q[start:stop, start:stop] = rotation
        start = stop
    order = np.argsort(joined)
    return joined[order], np.ascontiguousarray(Q[np.ix_(order, order)])
