"""Contrasts Σ φ(y): the search for the best angle of a pair.

The best angle of a pair has no closed form. g, g' and g'' are computed on a grid over the period. Between two angles g is
interpolated by polynomials of degree 3 and 5, and their difference is an estimate of the error. Intervals that may hold a point
below the lowest value so far are divided, until there are none. Then Newton's method, within its bracket, finds the minimum. The
search is not exact, since the error is estimated: a kink between two angles can be missed.

Rows of Y are columns of the mathematics. `row` is the contrast, as in `scalar`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from givens.kernels.compile import inline, named
from givens.support.arguments import EPS

SEGMENT_ENTRIES = 256  # of two columns that are rotated at a time, in the fastest cache
MAX_ANGLES = 128  # in the grid


def search_of(name: str, row: Any, even: bool) -> Any:
    """Compile the search for the best angle of two columns: angle, gain, and the number of angles that were evaluated."""

    @named(name)
    def at(
        x: np.ndarray,
        y: np.ndarray,
        counts: np.ndarray,
        theta: float,
        one: float,
        other: float,
        room: np.ndarray,
    ) -> tuple[float, float, float, float]:
        """g, g', g'' and the sum of the absolute terms of g', by which its rounding error is estimated."""
        c, s = math.cos(theta), math.sin(theta)
        value = slope = curve = size = 0.0
        for start in range(0, x.shape[0], SEGMENT_ENTRIES):
            number = min(SEGMENT_ENTRIES, x.shape[0] - start)
            a, b, often = x[start : start + number], y[start : start + number], counts[start : start + number]
            p, dp, ddp = room[0, :number], room[1, :number], room[2, :number]
            q, dq, ddq = room[3, :number], room[4, :number], room[5, :number]
            for k in range(number):
                p[k] = c * a[k] + s * b[k]
                q[k] = c * b[k] - s * a[k]
            value += one * row(p, often, dp, ddp)
            if other != 0.0:
                value += other * row(q, often, dq, ddq)
            else:
                for k in range(number):
                    dq[k] = 0.0
                    ddq[k] = 0.0
            for k in range(number):
                left, right = one * dp[k], other * dq[k]
                slope += left * q[k] - right * p[k]
                size += abs(left * q[k]) + abs(right * p[k])
                curve += (
                    one * ddp[k] * q[k] * q[k] - left * p[k] + other * ddq[k] * p[k] * p[k] - right * q[k]
                )
        return value, slope, curve, size

    @named(name)
    def explored(
        x: np.ndarray,
        y: np.ndarray,
        counts: np.ndarray,
        one: float,
        other: float,
        room: np.ndarray,
        seen: np.ndarray,
    ) -> tuple[int, float, float, float]:
        """Write the angles of the grid, with g, g', g'' and size, in their order; return their number, and g, g', size at 0."""
        quarters = 4
        if even:
            quarters = 1 if one == other else 2
        points = 8 * quarters
        step = 0.5 * math.pi / 8
        for k in range(points):
            seen[k, 0] = (k - points // 2) * step
            seen[k, 1], seen[k, 2], seen[k, 3], seen[k, 4] = at(x, y, counts, seen[k, 0], one, other, room)
        start, slope, size = seen[points // 2, 1], seen[points // 2, 2], seen[points // 2, 4]
        # One period, centred at 0.
        for c in range(1, 5):
            seen[points, c] = seen[0, c]
        seen[points, 0] = -seen[0, 0]
        number = points + 1
        while number <= MAX_ANGLES:
            k, theta = _doubtful(seen[:number])
            if k < 0:
                break
            for m in range(number, k + 1, -1):
                for c in range(5):
                    seen[m, c] = seen[m - 1, c]
            seen[k + 1, 0] = theta
            seen[k + 1, 1], seen[k + 1, 2], seen[k + 1, 3], seen[k + 1, 4] = at(
                x, y, counts, theta, one, other, room
            )
            number += 1
        return number, start, slope, size

    @named(name)
    def refined(
        x: np.ndarray,
        y: np.ndarray,
        counts: np.ndarray,
        one: float,
        other: float,
        room: np.ndarray,
        seen: np.ndarray,
        best: int,
    ) -> tuple[float, float, int]:
        """The minimum beside an angle of the grid, by Newton's method; its value, and how many angles were evaluated."""
        low, theta, high = _bracket(seen, best)
        value, slope, curve = seen[best, 1], seen[best, 2], seen[best, 3]
        for looked in range(60):
            # Newton's step, or bisection if that leaves the bracket.
            trial = theta - slope / curve if curve > 0.0 else low
            if not low < trial < high:
                trial = 0.5 * (theta + (high if slope < 0.0 else low))
            if abs(trial - theta) <= 2.0 * EPS * abs(theta) or trial == theta:
                return theta, value, looked
            there, there_slope, there_curve, size = at(x, y, counts, trial, one, other, room)
            # If the values differ by rounding only, the slopes decide.
            near = 16.0 * EPS * (abs(value) + abs(there))
            lower = there < value - near or (there <= value + near and abs(there_slope) <= abs(slope))
            if lower == (trial > theta):
                low = theta if lower else trial
            else:
                high = theta if lower else trial
            if lower:
                theta, value, slope, curve = trial, there, there_slope, there_curve
                if abs(slope) <= 8.0 * EPS * size:
                    return theta, value, looked + 1
        return theta, value, 60

    @named(name)
    def search(
        x: np.ndarray, y: np.ndarray, counts: np.ndarray, one: float, other: float
    ) -> tuple[float, float, int]:
        room, seen = np.empty((6, SEGMENT_ENTRIES)), np.empty((MAX_ANGLES + 1, 5))
        number, start, start_slope, start_size = explored(x, y, counts, one, other, room, seen)
        best = _lowest(seen[:number], 64.0 * EPS * abs(start))
        theta, value, looked = refined(x, y, counts, one, other, room, seen[:number], best)
        looked += number - 1
        if abs(theta) < 1e-4:
            # For small angles a difference of values would cancel: take the parabola at 0.
            if abs(start_slope) <= 16.0 * EPS * start_size:
                return 0.0, 0.0, looked
            return theta, max(-0.5 * start_slope * theta, 0.0), looked
        gain = start - value
        return (theta, gain, looked) if gain > 64.0 * EPS * abs(start) else (0.0, 0.0, looked)

    return search


@inline
def _lowest(seen: np.ndarray, little: float) -> int:
    """The index of the lowest value of the grid; among values that differ by at most `little`, of the smallest |angle|."""
    best = 0
    for k in range(1, seen.shape[0]):
        fall = seen[best, 1] - seen[k, 1]
        if fall > little or (fall >= -little and abs(seen[k, 0]) < abs(seen[best, 0])):
            best = k
    return best


@inline
def _bracket(seen: np.ndarray, best: int) -> tuple[float, float, float]:
    """An angle of the grid between its two neighbours; the grid is periodic."""
    last = seen.shape[0] - 1
    theta = seen[best, 0]
    low = seen[best - 1, 0] if best > 0 else theta - (seen[last, 0] - seen[last - 1, 0])
    high = seen[best + 1, 0] if best < last else theta + (seen[1, 0] - seen[0, 0])
    return low, theta, high


@inline
def _doubtful(seen: np.ndarray) -> tuple[int, float]:
    """The interval with the lowest estimated minimum, and the angle of this minimum; −1 if the grid is low enough."""
    lowest = seen[:, 1].min()
    # Intervals that may be lower than the lowest value by more than a small share of the range of g are divided.
    little = 1e-4 * (seen[:, 1].max() - lowest) + 64.0 * EPS * abs(lowest)
    which, least, where = -1, lowest - little, 0.0
    for k in range(seen.shape[0] - 1):
        bound_, theta = _floor(seen[k], seen[k + 1])
        if bound_ < least:
            which, least, where = k, bound_, theta
    return which, where


@inline
def _floor(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """An estimated lower bound of g between two angles, and the angle at which the interpolation is lowest."""
    h = right[0] - left[0]
    a, b, c = left[1], left[2] * h, 0.5 * left[3] * h * h
    # The polynomial a + bt + ct² + t³(d + et + ft²) with the same value, slope and curvature at t = 1.
    rise = right[1] - a - b - c
    turn = right[2] * h - b - 2.0 * c
    bend = 0.5 * (right[3] * h * h - 2.0 * c)
    d = 10.0 * rise - 4.0 * turn + bend
    e = -15.0 * rise + 7.0 * turn - 2.0 * bend
    f = 6.0 * rise - 3.0 * turn + bend
    # And a + bt + t²(u + vt), which does not use the curvatures.
    up, along = right[1] - a - b, right[2] * h - b
    u, v = 3.0 * up - along, along - 2.0 * up
    low, where = a, 0.5
    doubt = 0.0
    for k in range(1, 8):
        t = 0.125 * k
        five = a + t * (b + t * (c + t * (d + t * (e + t * f))))
        three = a + t * (b + t * (u + t * v))
        doubt = max(doubt, abs(five - three))
        if five < low:
            low, where = five, t
    # The error is estimated by a multiple of the difference of the two polynomials.
    return low - 4.0 * doubt, left[0] + where * h
