"""The best angle of a pair of sparse PCA, exactly, by its sorted breakpoints.

Entry k of a rotated column is a = u·cos θ + v·sin θ, with (u, v) = (x, y) in the first column and (y, −x) in the second. It
exceeds its threshold on an arc around the angle at which |a| is largest, modulo π. There it contributes, with r² = u² + v²,

    ℓ1: (|a| − γ)² = r²/2 + γ² + (u²−v²)/2·cos 2θ + uv·sin 2θ ∓ 2γ(u·cos θ + v·sin θ),

and for ℓ0 the same with −γ instead of γ² and without the last term. Between two ends of arcs the sum of all contributions has
this form. Its curvature is bounded, so that most intervals are excluded by the values at their ends.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

DEPTH = 64  # size of the stack of parts of an interval, each half as long as the one before
TIE = 1e-14  # relative to Σr² over both columns: maxima that differ by less are equal, and the smallest |angle| is taken
SHORT = 1e-9  # radians: shorter parts are not halved


@inline
def _add(
    sums: np.ndarray, x: float, y: float, column: int, level: float, l0: bool, sign: float, weight: float
) -> None:
    """Add the five coefficients of an entry (weight 1), or subtract them (weight −1)."""
    u, v = (x, y) if column == 0 else (y, -x)
    square = level * level
    sums[0] += weight * (0.5 * (u * u + v * v) + (-square if l0 else square))
    sums[1] += weight * 0.5 * (u * u - v * v)
    sums[2] += weight * u * v
    if not l0:
        sums[3] -= weight * sign * 2.0 * level * u
        sums[4] -= weight * sign * 2.0 * level * v


@inline
def _at(sums: np.ndarray, theta: float) -> tuple[float, float, float]:
    """Value, slope and curvature of the sum at θ."""
    c, s = np.cos(theta), np.sin(theta)
    double_c, double_s = c * c - s * s, 2.0 * c * s
    second = sums[1] * double_c + sums[2] * double_s
    first = sums[3] * c + sums[4] * s
    slope = 2.0 * (sums[2] * double_c - sums[1] * double_s) + sums[4] * c - sums[3] * s
    return sums[0] + second + first, slope, -4.0 * second - first


@inline
def _top(
    sums: np.ndarray, left: float, right: float, best: float, tie: float, stack: np.ndarray
) -> tuple[float, float]:
    """The maximum of an interval and its value; some lower point if the maximum is not above `best`, up to a tie.

    Parts that may rise above `best` are halved until they are concave, and then solved by Newton's method.
    """
    theta, highest = left, _at(sums, left)[0]
    slant = 8.0 * np.hypot(sums[1], sums[2]) + np.hypot(sums[3], sums[4])  # bounds the third derivative
    stack[0, 0], stack[0, 1] = left, right
    size = 1
    while size > 0:
        size -= 1
        low, high = stack[size, 0], stack[size, 1]
        at, half = 0.5 * (low + high), 0.5 * (high - low)
        height, slope, bend = _at(sums, at)
        if height > highest:
            highest, theta = height, at
        most = bend + slant * half
        concave = most < 0.0
        if concave and abs(slope) <= -most * half:
            bound = height - 0.5 * slope * slope / most
        else:
            bound = height + abs(slope) * half + 0.5 * most * half * half
        # A part that is nearly constant must not be halved because of rounding errors.
        if bound <= max(best, highest) + (-tie if concave else tie):
            continue
        if not concave and half > SHORT and size + 2 <= DEPTH:
            stack[size, 0], stack[size, 1] = low, at
            stack[size + 1, 0], stack[size + 1, 1] = at, high
            size += 2
            continue
        for _ in range(60):
            if slope > 0.0:
                low = at
            else:
                high = at
            step = at - slope / bend if bend < 0.0 else np.inf
            step = step if low < step < high else 0.5 * (low + high)
            if abs(step - at) < 1e-12 or not low < step < high:
                break
            at = step
            height, slope, bend = _at(sums, at)
            if height > highest:
                highest, theta = height, at
    return theta, highest


@kernel
def sorted_search(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float, l0: bool
) -> tuple[float, float]:
    """The best angle of a pair, from the first `number` features, and the flops; among equal maxima the smallest |angle|."""
    ends = np.empty(4 * number)
    codes = np.empty(4 * number, np.int64)  # row, column, whether the arc begins, the sign of the entry
    sums = np.zeros(5)
    count, scale = 0, 0.0
    for k in range(number):
        r = np.hypot(x[k], y[k])
        for column in range(2):
            level = first if column == 0 else second
            if not r > level:
                continue
            middle = np.arctan2(y[k], x[k]) - 0.5 * np.pi * column
            sign = 1
            while middle < 0.0:  # every half turn changes the sign
                middle += np.pi
                sign = -sign
            width = np.arccos(level / r)
            scale += r * r
            low, high = middle - width, middle + width
            code = 8 * k + 4 * column
            before, after = sign, sign  # signs of the entry where the arc begins and where it ends, modulo π
            if low < 0.0:
                _add(sums, x[k], y[k], column, level, l0, sign, 1.0)
                low, before = low + np.pi, -sign
            elif high >= np.pi:
                _add(sums, x[k], y[k], column, level, l0, -sign, 1.0)
                high, after = high - np.pi, -sign
            ends[count], codes[count] = low, code + 2 + (before > 0)
            ends[count + 1], codes[count + 1] = high, code + (after > 0)
            count += 2
    order = np.argsort(ends[:count])
    period = 0.5 * np.pi if first == second else np.pi
    stack = np.empty((DEPTH, 2))
    here, _, _ = _at(sums, 0.0)
    best, theta, left = here, 0.0, 0.0
    tie = TIE * scale
    for t in range(count + 1):
        right = min(ends[order[t]], period) if t < count else period
        there, _, _ = _at(sums, right)
        # Between its ends, the sum exceeds the larger value by at most the largest curvature times the squared length / 8.
        curve = 4.0 * np.hypot(sums[1], sums[2]) + np.hypot(sums[3], sums[4])
        if max(here, there) + 0.125 * curve * (right - left) ** 2 > best - tie:
            found, height = _top(sums, left, right, best, tie, stack)
            angle = found - period * np.rint(found / period)
            if height > best + tie or (height > best - tie and abs(angle) < abs(theta)):
                theta = angle
            best = max(best, height)
        if t == count or right >= period:
            break
        code = codes[order[t]]
        k, column = code // 8, (code // 4) % 2
        _add(
            sums,
            x[k],
            y[k],
            column,
            first if column == 0 else second,
            l0,
            1.0 if code % 2 else -1.0,
            1.0 if (code // 2) % 2 else -1.0,
        )
        left = right
        here, _, _ = _at(sums, left)
    return theta, 60.0 * number + 60.0 * count
