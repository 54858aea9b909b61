"""Blocks of columns of a fourth-order contrast, solved from moments: the rows may be distributed over many places.

A pair is solved from its five fourth and three second moments. A block of b columns has (b+3 over 4) fourth moments, which
determine those of all rotated columns: let y_a be the columns of the block and T = Σ m mᵀ, summed over the rows, with the
products m = (y_a y_c, a ≤ c). Then every fourth moment of x = Σ v_a y_a and z = Σ w_a y_a is a bilinear form in T. So after one
pass over the rows, all pairs of a block can be rotated any number of times.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from givens.numerics import flop_counts
from givens.objectives.base import Blocks, PairSolutions
from givens.schedules import tournament

MOST_COLUMNS = 64
"""The largest block: it has 766,480 fourth moments."""

SWEEPS = 60  # maximum number of sweeps over the pairs of a block
STEP = 1 << 18  # number of products of two columns that are formed at a time


class Quadruples(NamedTuple):
    """Indices of the fourth moments of b columns.

    Attributes
    ----------
    a, c : array of int
        The two columns of each product y_a y_c, a ≤ c.
    first, second : array of int
        For every fourth moment, two products whose product it is.
    place : array of int, shape (products, products)
        The index of the moment that is the product of two products.
    """

    a: np.ndarray
    c: np.ndarray
    first: np.ndarray
    second: np.ndarray
    place: np.ndarray


@cache
def quadruples(b: int) -> Quadruples:
    """The indices for b columns."""
    a, c = np.triu_indices(b)
    four = np.sort(
        np.stack(np.broadcast_arrays(a[:, None], c[:, None], a[None, :], c[None, :]), axis=-1), axis=-1
    )
    keys = ((four[..., 0] * b + four[..., 1]) * b + four[..., 2]) * b + four[..., 3]
    _, where, place = np.unique(keys, return_index=True, return_inverse=True)
    first, second = np.divmod(where, len(a))
    return Quadruples(a, c, first, second, place.reshape(keys.shape))


def moments_of(Y: np.ndarray, blocks: Blocks) -> list[np.ndarray]:
    """The fourth and second moments of the columns of each block."""
    most = max(map(len, blocks))
    if most > MOST_COLUMNS:
        raise ValueError(
            f"a block of {most} columns has too many fourth moments: use blocks of at most {MOST_COLUMNS} columns"
        )
    return [_moments(Y, block) for block in blocks]


def _moments(Y: np.ndarray, block: np.ndarray) -> np.ndarray:
    index = quadruples(len(block))
    products = len(index.a)
    T, seconds = np.zeros((products, products)), np.zeros(products)
    step = max(64, STEP // products)
    for start in range(0, Y.shape[1], step):
        y = Y[block, start : start + step]
        m = np.empty((products, y.shape[1]))
        place = 0
        for a in range(len(block)):
            np.multiply(y[a], y[a:], out=m[place : place + len(block) - a])
            place += len(block) - a
        T += m @ m.T
        seconds += m.sum(axis=1)
    return np.concatenate((T[index.first, index.second], seconds))


def solved(
    found: list[np.ndarray], blocks: Blocks, active: int, kappa: float, sign: float, min_gain: float
) -> PairSolutions:
    """The best rotation of each pair; for a larger block, sweeps over its pairs, until one gains no more than `min_gain`."""
    solutions = [
        _solved_block(part, len(block), int(np.sum(block < active)), kappa, sign, min_gain)
        for block, part in zip(blocks, found)
    ]
    rotations, gains = zip(*solutions)
    return PairSolutions(
        np.array(rotations) if isinstance(blocks, np.ndarray) else rotations, np.array(gains)
    )


def _solved_block(
    found: np.ndarray, b: int, active: int, kappa: float, sign: float, min_gain: float
) -> tuple[np.ndarray, float]:
    """Q and its gain."""
    from givens.kernels import quartic

    index = quadruples(b)
    products = len(index.a)
    T = found[:-products][index.place]
    G = np.empty((b, b))
    G[index.a, index.c] = G[index.c, index.a] = found[-products:]
    V, total = np.eye(b), 0.0
    rounds = [pairs[pairs[:, 0] < active] for pairs in tournament(b)]
    for _ in range(SWEEPS if b > 2 else 1):
        gained = 0.0
        for pairs in rounds:
            if not len(pairs):
                continue
            x, z = V[:, pairs[:, 0]], V[:, pairs[:, 1]]
            solutions = np.empty((len(pairs), 2))
            quartic.solve_moments(
                _pair_moments(T, G, x, z, index), pairs[:, 1] < active, kappa, sign, solutions
            )
            angles, gains = solutions.T
            cosine, sine = np.cos(angles), np.sin(angles)
            V[:, pairs[:, 0]], V[:, pairs[:, 1]] = cosine * x + sine * z, cosine * z - sine * x
            gained += float(gains.sum())
            flop_counts.count(4.0 * T.size * len(pairs))
        total += gained
        if gained <= min_gain:
            break
    return V, total


def _pair_moments(
    T: np.ndarray, G: np.ndarray, x: np.ndarray, z: np.ndarray, index: Quadruples
) -> np.ndarray:
    """The moments of pairs of rotated columns, of which x and z have the coefficients."""
    a, c = index.a, index.c
    times = np.where(a == c, 1.0, 2.0)[:, None]
    xx, zz = times * x[a] * x[c], times * z[a] * z[c]
    xz = 0.5 * times * (x[a] * z[c] + x[c] * z[a])
    k = x.shape[1]
    both = T @ np.hstack((xx, zz))
    Txx, Tzz = both[:, :k], both[:, k:]
    Gx, Gz = G @ x, G @ z
    return np.column_stack(
        [
            np.einsum("pk,pk->k", left, right)
            for left, right in (
                (xx, Txx),
                (xz, Txx),
                (xx, Tzz),
                (xz, Tzz),
                (zz, Tzz),
                (x, Gx),
                (x, Gz),
                (z, Gz),
            )
        ]
    )
