"""Matrix products over the rows of long data, tile by tile.

Tiles and their groups depend on the shape only, every tile is one single-threaded product, and groups are added up in
their order: so the sum has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.centred_sparse import CentredSparse

# A tile of all columns, and what is made of it, should fit into a core's own cache; half of it takes 1.1 to 1.2 times as long.
TILE_ENTRIES = 49_152


def tile_width(columns: int) -> int:
    """How many rows of the data are in a tile."""
    return max(128, TILE_ENTRIES // max(columns, 1))


def tiles(columns: int, rows: int) -> list[slice]:
    """Cut the rows of the data (the second axis of what is stored) into tiles."""
    return parallel.slices(rows, tile_width(columns))


def tiled_sum(cut: list[slice], work: Callable[[slice], np.ndarray]) -> np.ndarray:
    """The sum of work(tile), a new array each time, over tiles: groups of tiles are added up in their order."""
    return tiled_sums(cut, lambda tile: [work(tile)])[0]


def tiled_sums(cut: list[slice], work: Callable[[slice], Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of several arrays, all of which work(tile) returns."""

    def group(which: slice) -> list[np.ndarray]:
        return _added(work(tile) for tile in cut[which])

    # Two tiles or more in a group: passing a smaller piece to a thread takes longer than its work.
    return _added(parallel.each(group, parallel.parts(len(cut), min(16, -(-len(cut) // 2)))))


def _added(terms: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    totals: list[np.ndarray] = []
    for arrays in terms:
        if totals:
            for k, array in enumerate(arrays):
                totals[k] += array
        else:
            totals = list(arrays)
    return totals


def add_in_order(
    totals: Sequence[np.ndarray], work: Callable[[Any], Sequence[np.ndarray]], tiles: Sequence[Any]
) -> None:
    """Add the arrays of work(tile) to `totals`, in the order of the tiles; how many are in work at once depends on the shapes."""
    # At most 64 MB of sums wait to be added up.
    width = max(2, min(16, (1 << 23) // sum(total.size for total in totals)))
    for start in range(0, len(tiles), width):
        for parts in parallel.each(work, tiles[start : start + width]):
            for total, part in zip(totals, parts):
                total += part


def turned(Vt: np.ndarray, At: np.ndarray | CentredSparse, out: np.ndarray) -> None:
    """(AV)ᵀ into `out`: Vt is m x n, At n x features."""
    flop_counts.count(2.0 * len(Vt) * _entries(At))
    if not isinstance(At, np.ndarray):
        out[:] = Vt @ At
        return
    # To share a smaller product takes longer than to compute it.
    if len(Vt) * At.size < 1 << 21:
        np.matmul(Vt, At, out=out)
        return

    def piece(part: slice) -> None:
        np.matmul(Vt, At[:, part], out=out[:, part])

    parallel.each(piece, _pieces(At.shape[1]))


def scores(S: np.ndarray, At: np.ndarray | CentredSparse, few: bool) -> np.ndarray:
    """S·A, S m x features and At n x features; `few` if it is worth looking for rows of S with few non-zeros."""
    if not isinstance(At, np.ndarray):
        flop_counts.count(2.0 * len(S) * _entries(At))
        return S @ At.T
    light = 8 * np.count_nonzero(S, axis=1) < S.shape[1] if few else np.zeros(len(S), dtype=bool)
    if light.any():
        used = np.flatnonzero(S[light].any(axis=0))
        if 4 * len(used) < S.shape[1]:
            E = np.empty((len(S), len(At)))
            E[light] = S[np.ix_(light, used)] @ At[:, used].T
            flop_counts.count(2.0 * int(light.sum()) * len(used) * len(At))
            E[~light] = _all_scores(S[~light], At)
            return E
    return _all_scores(S, At)


def _all_scores(S: np.ndarray, At: np.ndarray) -> np.ndarray:
    if len(S) == 0:
        return np.empty((0, len(At)))
    flop_counts.count(2.0 * S.size * len(At))
    parts = parallel.each(lambda part: S[:, part] @ At[:, part].T, _pieces(S.shape[1]))
    return sum(parts[1:], start=parts[0])


def _entries(A: Any) -> int:
    """How many numbers a product multiplies with those of each vector."""
    return int(getattr(A, "size", A.shape[0] * A.shape[1]))


def _pieces(features: int) -> list[slice]:
    return parallel.parts(features, max(1, min(4, features // 256)))
