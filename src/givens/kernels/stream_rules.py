"""How a stream processes its samples one by one, by rotations of pairs: see `givens.streaming.algorithm_5`."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.rotate import rotate_pair
from givens.kernels.sparse_blocks import gather
from givens.kernels.sparse_pair import search


@inline
def _scatter(number: np.uint64) -> np.uint64:
    """Mix the bits of a number (the finaliser of SplitMix64): a random number that depends on no earlier one."""
    z = number * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inline
def _turn_pair(
    C: np.ndarray,
    G: np.ndarray,
    Qt: np.ndarray,
    p: int,
    q: int,
    level: float,
    l0: bool,
    accuracy: float,
    room: tuple[np.ndarray, np.ndarray],
) -> float:
    """Rotate rows p and q of C by an angle found by `search`, and G and Qt with them. Returns the flops."""
    a, b = room
    number, looked = gather(C[p], C[q], level, a, b)
    theta, _gain, cost = search((a, b, number, level, level, l0), 0.0, accuracy, True, 1.0)
    if theta == 0.0:
        return cost + looked
    c, s = np.cos(theta), np.sin(theta)
    rotate_pair(C[p], C[q], C.shape[1], c, s)
    rotate_pair(Qt[p], Qt[q], len(Qt), c, s)
    rotate_pair(G[p], G[q], len(G), c, s)
    rotate_pair(G[:, p], G[:, q], len(G), c, s)
    return cost + looked + 6.0 * (C.shape[1] + len(Qt) + 2 * len(G))


@inline
def _turn_at_random(
    C: np.ndarray,
    G: np.ndarray,
    Qt: np.ndarray,
    live: np.ndarray,
    level: float,
    l0: bool,
    accuracy: float,
    rotations: int,
    state: np.uint64,
    room: tuple[np.ndarray, np.ndarray],
) -> float:
    """Rotate `rotations` random pairs of live rows; `state` is the seed. Returns the flops."""
    kept = len(live)
    flops = 0.0
    for _ in range(rotations if kept > 1 else 0):
        state = _scatter(state + np.uint64(1))
        one = np.int64((state >> np.uint64(32)) % np.uint64(kept))
        other = np.int64((state & np.uint64(0xFFFFFFFF)) % np.uint64(kept - 1))
        other += np.int64(other >= one)
        p = live[one] if one < other else live[other]
        q = live[other] if one < other else live[one]
        flops += _turn_pair(C, G, Qt, p, q, level, l0, accuracy, room)
    return flops


@kernel
def take_in(
    C: np.ndarray,
    G: np.ndarray,
    Qt: np.ndarray,
    live: np.ndarray,
    samples: int,
    level: float,
    l0: bool,
    accuracy: float,
    rotations: int,
    seed: int,
    first: int,
) -> float:
    """Add the last `samples` rows of C, one after the other, and rotate random pairs of live rows after each.

    A sample replaces the weakest live row.

    C has the features that can exceed the level; G has the inner products of rows over all features. C, G and Qt are rotated in
    place, and `live` has the indices of the rows that are kept. Returns the flops.
    """
    kept, features = len(live), C.shape[1]
    room = (np.empty(features), np.empty(features))
    flops = 0.0
    for s in range(samples):
        weakest = 0
        for i in range(1, kept):
            if G[live[i], live[i]] < G[live[weakest], live[weakest]]:
                weakest = i
        live[weakest] = len(C) - samples + s
        state = _scatter(np.uint64(seed) ^ _scatter(np.uint64(first + s + 1)))
        flops += _turn_at_random(C, G, Qt, live, level, l0, accuracy, rotations, state, room)
    return flops
