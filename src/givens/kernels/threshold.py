"""Compiled rotations for sparse PCA: φ(y) = Σ_k [|y_k| − γ]₊² (ℓ1) or Σ_k [y_k² − γ]₊ (ℓ0), one γ per column.

Everything here maximises Σ_j φ_j(y_j). A column that does not count (the inactive ones of the Stiefel form) has γ = ∞,
so that inside and crossing pairs are the same code; the period is π/2 where the two γ agree, else π.

A block is solved on a compact copy of few features. A feature whose norm over the block's columns is at most γ can
never count in it; of a pair, only features with |x_k| or |y_k| above γ/√2 can, since otherwise hypot(x_k, y_k) ≤ γ.
Sparse columns therefore carry a list of those features, and most pairs cost a few dozen numbers. The lists are exact
when a block starts and after each rotation keep every feature that counts; a feature may be missed that would begin to
count only after two rotations of the same block. What is left out contributes nothing now and nothing negative later,
so the gain reported is a lower bound of the true one in that case, and the value never falls.

For ℓ0, `level` is √γ throughout: |y| > level is what y² > γ means.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

EPS = 2.0**-52
FLAT = 1e-9  # share of the value below which a curvature is rounding
GRID_L1 = 8  # values per quarter turn that a search everywhere starts from
GRID_L0 = 24  # g has kinks there, and more maxima
ROOM = 48
CLIMBS = 3  # how many of the grid's maxima are polished, if they promise enough
PROMISE = 0.25
NEAR = 0.15  # radians: a Newton step shorter than this, at a local maximum, is trusted without a search everywhere
TILE = 192  # features in one matrix product
FEW = 16  # features: so few that a search everywhere costs less than deciding about it
WIDE = 0.125  # share of the features above which a column carries no list


@inline
def _value(
    x: np.ndarray, y: np.ndarray, number: int, c: float, s: float, first: float, second: float, l0: bool
) -> float:
    """g(θ), the two columns' sum of φ."""
    total = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ta = a * a - p
            tb = b * b - q
            ta = ta if ta > 0.0 else 0.0
            tb = tb if tb > 0.0 else 0.0
            total += ta + tb
    else:
        for k in range(number):
            ta = abs(c * x[k] + s * y[k]) - first
            tb = abs(c * y[k] - s * x[k]) - second
            ta = ta if ta > 0.0 else 0.0
            tb = tb if tb > 0.0 else 0.0
            total += ta * ta + tb * tb
    return total


@inline
def _slope(
    x: np.ndarray, y: np.ndarray, number: int, c: float, s: float, first: float, second: float, l0: bool
) -> tuple[float, float]:
    """g(θ) and g'(θ)."""
    total = 0.0
    slope = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ta = a * a - p
            tb = b * b - q
            ab = a * b
            total += (ta if ta > 0.0 else 0.0) + (tb if tb > 0.0 else 0.0)
            slope += (ab if ta > 0.0 else 0.0) - (ab if tb > 0.0 else 0.0)
    else:
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ca = a if a < first else first
            ca = ca if ca > -first else -first
            cb = b if b < second else second
            cb = cb if cb > -second else -second
            sa = a - ca
            sb = b - cb
            total += sa * sa + sb * sb
            slope += sa * b - sb * a
    return total, 2.0 * slope


@inline
def _curvature(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float, l0: bool
) -> tuple[float, float, float]:
    """g(0), g'(0) and, where it exists, g''(0)."""
    total = 0.0
    slope = 0.0
    bend = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = x[k]
            b = y[k]
            ta = a * a - p
            tb = b * b - q
            ab = a * b
            difference = b * b - a * a
            total += (ta if ta > 0.0 else 0.0) + (tb if tb > 0.0 else 0.0)
            slope += (ab if ta > 0.0 else 0.0) - (ab if tb > 0.0 else 0.0)
            bend += (difference if ta > 0.0 else 0.0) - (difference if tb > 0.0 else 0.0)
    else:
        for k in range(number):
            a = x[k]
            b = y[k]
            ca = a if a < first else first
            ca = ca if ca > -first else -first
            cb = b if b < second else second
            cb = cb if cb > -second else -second
            sa = a - ca
            sb = b - cb
            total += sa * sa + sb * sb
            slope += sa * b - sb * a
            bend += (b * b - sa * a if sa != 0.0 else 0.0) + (a * a - sb * b if sb != 0.0 else 0.0)
    return total, 2.0 * slope, 2.0 * bend


@inline
def _climb(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    start: float,
    begin: float,
    slope: float,
    trial: float,
    step: float,
    height: float,
    floor: float,
    accuracy: float,
) -> tuple[float, float, int]:
    """Polish a maximum of g near `begin`, where g is `height` and g' is `slope`, by secants between two brackets.

    Returns the best angle seen, its value and how often g' was computed.
    """
    theta, best = begin, height
    last, last_slope = begin, slope
    low, high = begin - step, begin + step
    looks = 0
    for _ in range(60):
        if last_slope > 0.0:
            low = last
        else:
            high = last
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if trial == last or high - low < 1e-15:
            break
        value, slope = _slope(x, y, number, np.cos(trial), np.sin(trial), first, second, l0)
        looks += 1
        if value > best:
            best, theta = value, trial
        bend = (slope - last_slope) / (trial - last)
        last, last_slope = trial, slope
        if bend < 0.0:
            left = -0.5 * slope * slope / bend
            if left <= floor or left <= accuracy * (best - start):
                break
            trial = last - slope / bend
        else:
            trial = np.inf  # outside: the middle of the bracket
    return theta, best, looks


@kernel
def walk(x: np.ndarray, y: np.ndarray, number: int, first: float, second: float) -> float:
    """The best angle for ℓ0, exactly, by its sorted breakpoints.

    Row k of a column adds r²/2 − level² + p·cos 2θ + q·sin 2θ on an arc around the angle at which it is largest, p = ±(x²−y²)/2
    and q = ±xy. Between the ends of arcs the sum is one such wave, whose top lies at atan2(q, p)/2.
    """
    ends = np.empty(4 * number)
    constants = np.empty(4 * number)
    waves = np.empty((4 * number, 2))
    count = 0
    constant, cosine, sine = 0.0, 0.0, 0.0
    for k in range(number):
        r = np.hypot(x[k], y[k])
        for column in range(2):
            level = first if column == 0 else second
            if not r > level:
                continue
            sign = 1.0 if column == 0 else -1.0
            height = 0.5 * r * r - level * level
            p, q = sign * 0.5 * (x[k] * x[k] - y[k] * y[k]), sign * x[k] * y[k]
            middle = np.arctan2(y[k], x[k]) - 0.5 * np.pi * column
            width = np.arccos(level / r)
            low, high = (middle - width) % np.pi, (middle + width) % np.pi
            if high < low or 2.0 * width >= np.pi:  # the arc holds θ = 0
                constant += height
                cosine += p
                sine += q
            for way in range(2):
                ends[count] = low if way == 0 else high
                gain = 1.0 if way == 0 else -1.0
                constants[count] = gain * height
                waves[count, 0] = gain * p
                waves[count, 1] = gain * q
                count += 1
    order = np.argsort(ends[:count])
    period = 0.5 * np.pi if first == second else np.pi
    best, theta = -np.inf, 0.0
    left = 0.0
    for t in range(count + 1):
        right = ends[order[t]] if t < count else np.pi
        top = 0.5 * np.arctan2(sine, cosine) % np.pi
        if left <= top <= right:
            angle = top - period * np.rint(top / period)
            height = constant + np.hypot(cosine, sine)
            tie = 1e-14 * abs(height)
            if height > best + tie or (height > best - tie and abs(angle) < abs(theta)):
                best, theta = height, angle
        if t < count:
            k = order[t]
            constant += constants[k]
            cosine += waves[k, 0]
            sine += waves[k, 1]
            left = right
    return theta


@kernel
def search(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    floor: float,
    accuracy: float,
    everywhere: bool,
    relaxation: float,
    values: np.ndarray,
) -> tuple[float, float, float]:
    """Find the best angle of one pair: `number` features, levels `first` and `second`.

    Returns the angle, its gain and the flops. Unless `everywhere`, a pair at a local maximum whose Newton step is short is
    only polished; with a `relaxation` above 1 it is turned that much further than the maximum if that gains too.
    `accuracy` is the share of the gain that may be left; `values` is room for ROOM numbers.
    """
    start, slope, bend = _curvature(x, y, number, first, second, l0)
    flops = 18.0 * number
    noise = max(floor, 4.0 * EPS * start)
    # A curvature that is rounding (no threshold: every angle is as good) must not be divided by.
    if bend < -FLAT * start and abs(slope) <= NEAR * -bend and not everywhere:
        if slope * slope <= -2.0 * bend * floor:
            return 0.0, 0.0, flops
        if -0.5 * slope * slope / bend < noise:
            # Values cannot tell such a gain from rounding, but the slope knows it.
            return -slope / bend, -0.5 * slope * slope / bend, flops
        if relaxation > 1.0:
            trial = -relaxation * slope / bend
            best = _value(x, y, number, np.cos(trial), np.sin(trial), first, second, l0)
            flops += 12.0 * number
            if best - start > floor and best - start > -0.25 * slope * slope / bend:
                return trial, best - start, flops
        step = 2.0 * NEAR
        theta, best, looks = _climb(
            x, y, number, first, second, l0, start, 0.0, slope, -slope / bend, step, start, floor, accuracy
        )
        flops += 16.0 * number * looks
    elif l0 and everywhere:
        theta = walk(x, y, number, first, second)
        best = _value(x, y, number, np.cos(theta), np.sin(theta), first, second, l0)
        flops += 60.0 * number
    else:
        grid = GRID_L0 if l0 else GRID_L1
        count = grid if first == second else 2 * grid
        step = 0.5 * np.pi / grid
        turn_c, turn_s = np.cos(step), np.sin(step)
        c, s = 1.0, 0.0
        values[0] = start
        for q in range(1, count):
            c, s = c * turn_c - s * turn_s, s * turn_c + c * turn_s
            values[q] = _value(x, y, number, c, s, first, second, l0)
        flops += 12.0 * number * (count - 1)
        theta, best = 0.0, start
        for _ in range(CLIMBS):
            # Outwards from θ = 0, so that the smallest angle wins ties.
            top, highest = -1, -np.inf
            for q in range(count // 2 + 1):
                for k in (q, (count - q) % count):
                    peak = (
                        values[k] >= values[k - 1 if k > 0 else count - 1]
                        and values[k] >= values[(k + 1) % count]
                    )
                    if abs(values[k]) > highest and peak:
                        top, highest = k, values[k]
            if top < 0 or highest <= 0.0:
                break
            before, after = abs(values[top - 1 if top > 0 else count - 1]), abs(values[(top + 1) % count])
            # A maximum between grid points rises above the grid by no more than the points beside it let expect.
            if highest + PROMISE * (2.0 * highest - before - after) <= best:
                values[top] = -highest
                continue
            begin = step * (top if top <= count // 2 else top - count)
            if top > 0:
                _, slope = _slope(x, y, number, np.cos(begin), np.sin(begin), first, second, l0)
                flops += 16.0 * number
            hollow = 2.0 * highest - before - after
            trial = begin + 0.5 * step * (after - before) / hollow if hollow > 0.0 else begin
            if (trial - begin) * slope <= 0.0:
                trial = begin + (0.25 * step if slope > 0.0 else -0.25 * step)
            angle, height, looks = _climb(
                x, y, number, first, second, l0, start, begin, slope, trial, step, highest, floor, accuracy
            )
            flops += 16.0 * number * looks
            if height > best:
                best, theta = height, angle
            values[top] = -highest
    if not best - start > noise:
        return 0.0, 0.0, flops
    return theta, best - start, flops


@inline
def _rotate(x: np.ndarray, y: np.ndarray, number: int, c: float, s: float) -> None:
    for k in range(number):
        a = x[k]
        b = y[k]
        x[k] = c * a + s * b
        y[k] = c * b - s * a


@inline
def _list(y: np.ndarray, number: int, level: float, members: np.ndarray, limit: int) -> int:
    """List the entries above the level; -1 if there are more than `limit`."""
    size = 0
    for start in range(0, number, 16):
        stop = min(start + 16, number)
        above = 0
        for k in range(start, stop):
            above += abs(y[k]) > level
        if above > 0:
            if size + above > limit:
                return -1
            for k in range(start, stop):
                if abs(y[k]) > level:
                    members[size] = k
                    size += 1
    return size


@inline
def _union(
    x: np.ndarray,
    y: np.ndarray,
    ones: np.ndarray,
    size_one: int,
    others: np.ndarray,
    size_other: int,
    seen: np.ndarray,
    stamp: int,
    rows: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> int:
    """Gather the entries of either list, each once: `seen` holds the last stamp that an entry was given."""
    number = 0
    for t in range(size_one):
        k = ones[t]
        seen[k] = stamp
        rows[number] = k
        a[number] = x[k]
        b[number] = y[k]
        number += 1
    for t in range(size_other):
        k = others[t]
        # Not by the size of x[k]: it may have grown above the edge while it was on no list of its column.
        if seen[k] != stamp:
            rows[number] = k
            a[number] = x[k]
            b[number] = y[k]
            number += 1
    return number


@inline
def _active(x: np.ndarray, y: np.ndarray, least: float, a: np.ndarray, b: np.ndarray) -> tuple[int, float]:
    """Gather the rows with hypot(x, y) > least: no other can count at any angle. Returns how many, and the flops."""
    number = 0
    flops = 3.0 * len(x)
    total = len(x)
    square = least * least
    for start in range(0, total, 16):
        stop = min(start + 16, total)
        above = 0
        for k in range(start, stop):
            above += x[k] * x[k] + y[k] * y[k] > square
        if above > 0:
            flops += 3.0 * (stop - start)
            for k in range(start, stop):
                if x[k] * x[k] + y[k] * y[k] > square:
                    a[number] = x[k]
                    b[number] = y[k]
                    number += 1
    return number, flops


@kernel
def solve_pairs(
    Y: np.ndarray, pairs: np.ndarray, levels: np.ndarray, l0: bool, floor: float, accuracy: float
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Find the best rotation of each pair of rows of Y by itself.

    Returns the rotations (k, 2, 2), gains, the number of pairs that turn and the flops.
    """
    rotations = np.zeros((len(pairs), 2, 2))
    gains = np.zeros(len(pairs))
    a = np.empty(Y.shape[1])
    b = np.empty(Y.shape[1])
    values = np.empty(ROOM)
    rotated, flops = 0, 0.0
    for p in range(len(pairs)):
        i, j = pairs[p]
        number, looked = _active(Y[i], Y[j], min(levels[i], levels[j]), a, b)
        theta, gain, cost = search(a, b, number, levels[i], levels[j], l0, floor, accuracy, True, 1.0, values)
        c, s = np.cos(theta), np.sin(theta)
        rotations[p, 0, 0] = rotations[p, 1, 1] = c
        rotations[p, 1, 0] = s
        rotations[p, 0, 1] = -s
        gains[p] = gain
        rotated += theta != 0.0
        flops += cost + looked
    return rotations, gains, rotated, flops


@kernel
def turn_pairs(
    Y: np.ndarray, pairs: np.ndarray, levels: np.ndarray, l0: bool, floor: float, accuracy: float
) -> tuple[np.ndarray, float, float]:
    """Turn pairs of rows of Y one after the other, in place, each by its best angle.

    Returns the angles, the gain and the flops.
    """
    angles = np.zeros(len(pairs))
    a = np.empty(Y.shape[1])
    b = np.empty(Y.shape[1])
    values = np.empty(ROOM)
    total, flops = 0.0, 0.0
    for p in range(len(pairs)):
        i, j = pairs[p]
        number, looked = _active(Y[i], Y[j], min(levels[i], levels[j]), a, b)
        theta, gain, cost = search(a, b, number, levels[i], levels[j], l0, floor, accuracy, True, 1.0, values)
        flops += cost + looked
        if theta != 0.0:
            _rotate(Y[i], Y[j], Y.shape[1], np.cos(theta), np.sin(theta))
            flops += 6.0 * Y.shape[1]
            angles[p] = theta
            total += gain
    return angles, total, flops


@kernel
def compact(Y: np.ndarray, block: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copy the features of which some column of the block exceeds `edge`, as float64.

    Returns the copy, which features these are, and the others.
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
    """Turn whole columns by the steps of a block: less work than a matrix product where they are few."""
    for t in range(len(steps)):
        i, j = block[int(steps[t, 0])], block[int(steps[t, 1])]
        _rotate(Y[i], Y[j], Y.shape[1], steps[t, 2], steps[t, 3])


@kernel
def install(
    Y: np.ndarray, block: np.ndarray, Qt: np.ndarray, C: np.ndarray, rows: np.ndarray, others: np.ndarray
) -> None:
    """Put the turned compact columns back, and turn the other features by matrix products of tiles."""
    width = len(block)
    for j in range(width):
        y = Y[block[j]]
        for t in range(len(rows)):
            y[rows[t]] = C[j, t]
    for start in range(0, len(others), TILE):
        number = min(TILE, len(others) - start)
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
    """Turn every pair of the compact columns C once, in place; Qt becomes the transposed rotation.

    A pair is passed over if its quadratic model promises less than `share` of the mean gain so far.
    Returns the gain, the number of rotations and the flops; `steps` gets the first rotations, as i, j, cos θ, sin θ.
    """
    width, number = C.shape
    Qt[:] = np.eye(width)
    least = levels.min()
    edge = least / np.sqrt(2.0)
    limit = int(WIDE * number)
    members = np.empty((width, limit + 1), np.int32)
    sizes = np.empty(width, np.int64)
    for j in range(width):
        sizes[j] = _list(C[j], number, edge, members[j], limit)
    seen = np.zeros(number, np.int64)
    rows = np.empty(2 * limit + 2, np.int32)
    a = np.empty(2 * limit + 2)
    b = np.empty(2 * limit + 2)
    values = np.empty(ROOM)
    total, visited, rotated, flops = 0.0, 0, 0, 0.0
    for i in range(width):
        for j in range(i + 1, width):
            if levels[i] == np.inf and levels[j] == np.inf:
                continue
            visited += 1
            x = C[i]
            y = C[j]
            enough = max(floor, share * total / visited)
            if sizes[i] < 0 or sizes[j] < 0:
                theta, gain, cost = search(
                    x, y, number, levels[i], levels[j], l0, enough, accuracy, False, relaxation, values
                )
                few = -1
            else:
                few = _union(x, y, members[i], sizes[i], members[j], sizes[j], seen, visited, rows, a, b)
                if few == 0:
                    continue
                theta, gain, cost = search(
                    a, b, few, levels[i], levels[j], l0, enough, accuracy, few <= FEW, relaxation, values
                )
            flops += cost
            if theta == 0.0:
                continue
            c, s = np.cos(theta), np.sin(theta)
            _rotate(x, y, number, c, s)
            _rotate(Qt[i], Qt[j], width, c, s)
            flops += 6.0 * (number + width)
            total += gain
            if rotated < len(steps):
                steps[rotated, 0], steps[rotated, 1], steps[rotated, 2], steps[rotated, 3] = i, j, c, s
            rotated += 1
            if few < 0:
                if sizes[i] >= 0:
                    sizes[i] = _list(x, number, edge, members[i], limit)
                if sizes[j] >= 0:
                    sizes[j] = _list(y, number, edge, members[j], limit)
            else:
                size_i, size_j = 0, 0
                for t in range(few):
                    k = rows[t]
                    if abs(x[k]) > edge:
                        if size_i < limit:
                            members[i, size_i] = k
                        size_i += 1
                    if abs(y[k]) > edge:
                        if size_j < limit:
                            members[j, size_j] = k
                        size_j += 1
                sizes[i] = size_i if size_i <= limit else -1
                sizes[j] = size_j if size_j <= limit else -1
    return total, rotated, flops


@kernel
def value(Y: np.ndarray, levels: np.ndarray, l0: bool) -> float:
    """Σ φ over the rows of Y, of which there are as many as levels; summed row by row."""
    total = 0.0
    for j in range(len(levels)):
        level = levels[j]
        part = 0.0
        y = Y[j]
        if l0:
            for k in range(len(y)):
                v = np.float64(y[k])
                t = v * v - level * level
                part += t if t > 0.0 else 0.0
        else:
            for k in range(len(y)):
                t = abs(np.float64(y[k])) - level
                t = t if t > 0.0 else 0.0
                part += t * t
        total += part
    return total


@kernel
def shrink(Y: np.ndarray, levels: np.ndarray, l0: bool, S: np.ndarray) -> tuple[float, int]:
    """S(y) into S; returns Σ φ and the number of non-zeros."""
    total = 0.0
    nonzeros = 0
    for j in range(len(levels)):
        level = levels[j]
        part = 0.0
        count = 0
        y = Y[j]
        out = S[j]
        if l0:
            for k in range(len(y)):
                v = y[k]
                t = v * v - level * level
                part += t if t > 0.0 else 0.0
                out[k] = v if t > 0.0 else 0.0
                count += t > 0.0
        else:
            for k in range(len(y)):
                v = y[k]
                t = v if v < level else level
                t = v - (t if t > -level else -level)
                part += t * t
                out[k] = t
                count += t != 0.0
        total += part
        nonzeros += count
    return total, nonzeros


@kernel
def slopes(Y: np.ndarray, first: int, last: int, levels: np.ndarray, l0: bool) -> np.ndarray:
    """M_ij = Σ_k S(y_i)_k y_jk for the rows i from `first` to `last` and every j, through the non-zeros of S only."""
    M = np.zeros((last - first, Y.shape[0]))
    members = np.empty(Y.shape[1], np.int64)
    kept = np.empty(Y.shape[1])
    for i in range(first, last):
        number = _list(Y[i], Y.shape[1], levels[i], members, Y.shape[1])
        for t in range(number):
            v = np.float64(Y[i, members[t]])
            kept[t] = v if l0 else v - np.copysign(levels[i], v)
        for j in range(Y.shape[0]):
            y = Y[j]
            total = 0.0
            for t in range(number):
                total += kept[t] * y[members[t]]
            M[i - first, j] = total
    return M


@inline
def _scatter(number: np.uint64) -> np.uint64:
    """Mix the bits of a number well (the finaliser of SplitMix64): random numbers that need no history."""
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
    first: float,
    second: float,
    l0: bool,
    accuracy: float,
    everywhere: bool,
    room: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> float:
    """Turn rows p and q of C by their best angle, and G and Qt with them. Returns the flops."""
    a, b, values = room
    number, looked = _active(C[p], C[q], min(first, second), a, b)
    theta, _gain, cost = search(a, b, number, first, second, l0, 0.0, accuracy, everywhere, 1.0, values)
    if theta == 0.0:
        return cost + looked
    c, s = np.cos(theta), np.sin(theta)
    _rotate(C[p], C[q], C.shape[1], c, s)
    _rotate(Qt[p], Qt[q], len(Qt), c, s)
    _rotate(G[p], G[q], len(G), c, s)
    _rotate(G[:, p], G[:, q], len(G), c, s)
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
    room: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> float:
    """Turn so many pairs of live rows, chosen by `state`. Returns the flops."""
    kept = len(live)
    flops = 0.0
    for _ in range(rotations if kept > 1 else 0):
        state = _scatter(state + np.uint64(1))
        one = np.int64((state >> np.uint64(32)) % np.uint64(kept))
        other = np.int64((state & np.uint64(0xFFFFFFFF)) % np.uint64(kept - 1))
        other += np.int64(other >= one)
        p = live[one] if one < other else live[other]
        q = live[other] if one < other else live[one]
        flops += _turn_pair(C, G, Qt, p, q, level, level, l0, accuracy, True, room)
    return flops


@kernel
def replace_weakest(
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
    """Let the last `samples` rows of C take, one after the other, the place of the weakest live row; turn after each.

    G holds the rows' products over all features, of which C has those that can count. C, G and Qt (rows as of C) turn in
    place, `live` names the rows that are left. Returns the flops.
    """
    kept, features = len(live), C.shape[1]
    room = (np.empty(features), np.empty(features), np.empty(ROOM))
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


@kernel
def keep_better(
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
    """Turn the last `samples` rows of C, one after the other, against every live row, which alone counts; drop what is left.

    If what is left is stronger than a live row of which nothing exceeds the level, it takes its place: so weak rows may grow.
    The value of the live rows never falls. Arguments and the turns that follow are those of `replace_weakest`.
    """
    kept, features = len(live), C.shape[1]
    room = (np.empty(features), np.empty(features), np.empty(ROOM))
    flops = 0.0
    for s in range(samples):
        new = len(C) - samples + s
        for i in range(kept):
            flops += _turn_pair(C, G, Qt, live[i], new, level, np.inf, l0, accuracy, False, room)
        weakest, least = -1, G[new, new]
        for i in range(kept):
            if G[live[i], live[i]] < least and not np.any(np.abs(C[live[i]]) > level):
                weakest, least = i, G[live[i], live[i]]
        if weakest >= 0:
            live[weakest] = new
        state = _scatter(np.uint64(seed) ^ _scatter(np.uint64(first + s + 1)))
        flops += _turn_at_random(C, G, Qt, live, level, l0, accuracy, rotations, state, room)
    return flops
