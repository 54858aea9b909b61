"""Rotations of the pairs of a block of columns, for sparse PCA, on a compact copy of few features.

A feature whose norm over the block's columns is at most γ cannot exceed the threshold in any of them. In a pair x, y, only
features with |x_k| or |y_k| above γ/√2 can exceed it, since otherwise hypot(x_k, y_k) ≤ γ. Sparse columns therefore have a list
of these features, and most pairs cost a few dozen numbers. The lists are complete when a block begins, and after each rotation
they keep every feature above the threshold, but they may miss a feature that would exceed it only after two rotations of the
same block. Missing features contribute nothing now and nothing negative later. So the gain that is reported is then a lower
bound, and the value never decreases.

`solve_pairs` finds the global maximum of each pair, up to rounding errors. `turn_block` does not: pairs near a maximum are
rotated past it, since later pairs of the block move it anyway, and the others get the best maximum that a grid finds.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.rotate import rotate_pair
from givens.kernels.sparse_pair import exact_search, search
from givens.kernels.threshold import above


@inline
def _union(
    x: np.ndarray,
    y: np.ndarray,
    ones: np.ndarray,
    others: np.ndarray,
    seen: np.ndarray,
    stamp: int,
    rows: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> int:
    """Gather the entries of both lists, each once, and return their number; `seen` has the last stamp of each entry."""
    number = 0
    for k in ones:
        seen[k] = stamp
        rows[number] = k
        a[number] = x[k]
        b[number] = y[k]
        number += 1
    for k in others:
        # A comparison of |x[k]| with the edge would not do: x[k] may have grown above it without being in the list of x.
        if seen[k] != stamp:
            rows[number] = k
            a[number] = x[k]
            b[number] = y[k]
            number += 1
    return number


@inline
def _listed(y: np.ndarray, rows: np.ndarray, edge: float, members: np.ndarray, limit: int) -> int:
    """Write those of some entries that exceed the edge into `members`; return their number, or -1 if it exceeds `limit`."""
    size = 0
    for k in rows:
        if abs(y[k]) > edge:
            if size == limit:
                return -1
            members[size] = k
            size += 1
    return size


@inline
def gather(x: np.ndarray, y: np.ndarray, least: float, a: np.ndarray, b: np.ndarray) -> tuple[int, float]:
    """Gather the features with hypot(x, y) > least, which alone can exceed it at some angle: their number, and the flops."""
    number = 0
    square = least * least
    # Every feature is written, and the next one overwrites it unless it counts: a branch would often be mispredicted, and take
    # several times as long.
    for k in range(len(x)):
        a[number] = x[k]
        b[number] = y[k]
        number += x[k] * x[k] + y[k] * y[k] > square
    return number, 3.0 * len(x)


@kernel
def solve_pairs(
    Y: np.ndarray, pairs: np.ndarray, levels: np.ndarray, l0: bool, floor: float, accuracy: float
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """The best rotation of each pair of rows of Y by itself: rotations, gains, the number of pairs that rotate, the flops.

    `floor` is the smallest gain, `accuracy` the share of a gain that may be missed.
    """
    rotations = np.zeros((len(pairs), 2, 2))
    gains = np.zeros(len(pairs))
    a = np.empty(Y.shape[1])
    b = np.empty(Y.shape[1])
    rotated, flops = 0, 0.0
    for p in range(len(pairs)):
        i, j = pairs[p]
        number, looked = gather(Y[i], Y[j], min(levels[i], levels[j]), a, b)
        theta, gain, cost = exact_search((a, b, number, levels[i], levels[j], l0), floor, accuracy)
        c, s = np.cos(theta), np.sin(theta)
        rotations[p, 0, 0] = rotations[p, 1, 1] = c
        rotations[p, 1, 0] = s
        rotations[p, 0, 1] = -s
        gains[p] = gain
        rotated += theta != 0.0
        flops += cost + looked
    return rotations, gains, rotated, flops


@kernel
def compact(Y: np.ndarray, block: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copy the features that exceed `edge` in some column of the block, as float64.

    Returns the copy, the indices of these features, and those of the others.
    """
    width, total = len(block), Y.shape[1]
    largest = np.zeros(total, Y.dtype)
    for j in range(width):
        y = Y[block[j]]
        for k in range(total):
            size = abs(y[k])
            largest[k] = size if size > largest[k] else largest[k]
    rows = np.empty(total, np.int64)
    others = np.empty(total, np.int64)
    number = 0
    for k in range(total):
        rows[number] = k
        others[k - number] = k
        number += largest[k] > edge
    C = np.empty((width, number))
    for j in range(width):
        y = Y[block[j]]
        for t in range(number):
            C[j, t] = y[rows[t]]
    return C, rows[:number].copy(), others[: total - number].copy()


@kernel
def replay(Y: np.ndarray, block: np.ndarray, steps: np.ndarray) -> None:
    """Rotate whole columns by the steps of a block, which costs less than a matrix product if they are few."""
    for t in range(len(steps)):
        i, j = block[int(steps[t, 0])], block[int(steps[t, 1])]
        rotate_pair(Y[i], Y[j], Y.shape[1], steps[t, 2], steps[t, 3])


@kernel
def install(
    Y: np.ndarray, block: np.ndarray, Qt: np.ndarray, C: np.ndarray, rows: np.ndarray, others: np.ndarray
) -> None:
    """Write the rotated compact columns back, and rotate the other features by matrix products of tiles."""
    width = len(block)
    for j in range(width):
        y = Y[block[j]]
        for t in range(len(rows)):
            y[rows[t]] = C[j, t]
    most = 192  # features in a tile
    for start in range(0, len(others), most):
        number = min(most, len(others) - start)
        tile = np.empty((width, number), Y.dtype)
        for j in range(width):
            y = Y[block[j]]
            for k in range(number):
                tile[j, k] = y[others[start + k]]
        turned = np.dot(Qt, tile)
        for j in range(width):
            y = Y[block[j]]
            for k in range(number):
                y[others[start + k]] = turned[j, k]


@kernel
def turn_block(
    C: np.ndarray,
    levels: np.ndarray,
    l0: bool,
    floor: float,
    share: float,
    accuracy: float,
    relaxation: float,
    Qt: np.ndarray,
    steps: np.ndarray,
) -> tuple[float, int, float]:
    """Rotate every pair of the compact columns C once, in place, and the rows of Qt with them.

    A pair is skipped if its quadratic model predicts less than `share` of the mean gain so far, or less than `floor`. `accuracy`
    and `relaxation` are those of `sparse_pair.search`. Returns the gain, the number of rotations and the flops; the first
    rotations are written into `steps`, as i, j, cos θ, sin θ.
    """
    width, number = C.shape
    least = np.inf
    for i in range(width):
        least = min(least, levels[i])
    edge = least / np.sqrt(2.0)
    # A column with more features than these has no list: its pairs are solved with all features.
    limit = number // 8
    members = np.empty((width, limit + 1), np.int32)
    sizes = np.empty(width, np.int64)
    for j in range(width):
        sizes[j] = above(C[j], number, edge, members[j], limit)
    seen = np.zeros(number, np.int64)
    rows = np.empty(2 * limit + 2, np.int32)
    a, b = np.empty(2 * limit + 2), np.empty(2 * limit + 2)
    total, visited, rotated, flops = 0.0, 0, 0, 0.0
    for i in range(width):
        for j in range(i + 1, width):
            if levels[i] == np.inf and levels[j] == np.inf:
                continue
            visited += 1
            x, y = C[i], C[j]
            # One call of the search for both cases, since every call is compiled separately.
            p, q, count, everywhere = x, y, number, False
            listed = sizes[i] >= 0 and sizes[j] >= 0
            if listed:
                ones, others = members[i, : sizes[i]], members[j, : sizes[j]]
                count = _union(x, y, ones, others, seen, visited, rows, a, b)
                # Few features cost little, whatever the number of angles.
                p, q, everywhere = a, b, count <= 16
            if count == 0:
                continue
            pair = p, q, count, levels[i], levels[j], l0
            min_gain = max(floor, share * total / visited)
            theta, gain, cost = search(pair, min_gain, accuracy, everywhere, relaxation)
            flops += cost
            if theta == 0.0:
                continue
            c, s = np.cos(theta), np.sin(theta)
            rotate_pair(x, y, number, c, s)
            rotate_pair(Qt[i], Qt[j], width, c, s)
            flops += 6.0 * (number + width)
            total += gain
            if rotated < len(steps):
                steps[rotated, 0], steps[rotated, 1], steps[rotated, 2], steps[rotated, 3] = i, j, c, s
            rotated += 1
            for k in (i, j):
                if listed:
                    sizes[k] = _listed(C[k], rows[:count], edge, members[k], limit)
                elif sizes[k] >= 0:
                    sizes[k] = above(C[k], number, edge, members[k], limit)
    return total, rotated, flops
