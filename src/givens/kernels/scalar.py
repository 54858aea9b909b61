"""Any contrast Σ φ(y) per column, with φ and φ' given as compiled functions.

There is no closed form, so the angle is searched: values on a grid over the period choose a basin, and a bracketed
Newton-like search (secants on the slope, bisection where they fail) finds its bottom. The functions are bound by closures,
so this is compiled once per process and not cached on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from givens.kernels.compile import bound

EPS = 2.220446049250313e-16
PER_QUARTER = 8


class Compiled(NamedTuple):
    """The entries bound to one contrast."""

    value: Any
    slopes: Any
    solve_pairs: Any
    solve_block: Any


def compile_scalar(phi: Any, dphi: Any, pair: Any, even: bool, sense: float) -> Compiled:
    """Bind φ, φ' and, if there is one, the exact pair problem."""
    search = _own_search(pair) if pair is not None else None
    crossing = _search(phi, dphi, even, sense)

    if search is None:

        @bound
        def solve(x, y, both):
            return crossing(x, y, both)

    else:

        @bound
        def solve(x, y, both):
            if both:
                return search(x, y)
            return crossing(x, y, both)

    @bound
    def value(Y, active):
        total = 0.0
        for i in range(active):
            part = 0.0
            for r in range(Y.shape[1]):
                part += phi(np.float64(Y[i, r]))
            total += part
        return total

    @bound
    def slopes(Y, out):
        for i in range(out.shape[0]):
            for r in range(Y.shape[1]):
                out[i, r] = dphi(np.float64(Y[i, r]))

    @bound
    def solve_pairs(Y, pairs, active):
        count = pairs.shape[0]
        rotations = np.empty((count, 2, 2))
        gains = np.empty(count)
        rotated = 0
        for p in range(count):
            theta, gain = solve(Y[pairs[p, 0]], Y[pairs[p, 1]], pairs[p, 1] < active)
            c, s = math.cos(theta), math.sin(theta)
            rotations[p, 0, 0] = c
            rotations[p, 1, 1] = c
            rotations[p, 1, 0] = s
            rotations[p, 0, 1] = -s
            gains[p] = gain
            rotated += gain > 0.0
        return rotations, gains, rotated

    @bound
    def solve_block(Y, active):
        size = Y.shape[0]
        Qt = np.eye(size)
        total = 0.0
        rotated = 0
        for i in range(min(active, size)):
            for j in range(i + 1, size):
                theta, gain = solve(Y[i], Y[j], j < active)
                if gain <= 0.0:
                    continue
                c, s = math.cos(theta), math.sin(theta)
                for r in range(Y.shape[1]):
                    x, y = Y[i, r], Y[j, r]
                    Y[i, r] = c * x + s * y
                    Y[j, r] = c * y - s * x
                for r in range(size):
                    x, y = Qt[i, r], Qt[j, r]
                    Qt[i, r] = c * x + s * y
                    Qt[j, r] = c * y - s * x
                total += gain
                rotated += 1
        return Qt.T.copy(), total, rotated

    return Compiled(value, slopes, solve_pairs, solve_block)


def _own_search(pair: Any) -> Any:
    @bound
    def search(x, y):
        theta, gain = pair(x, y)
        return float(theta), float(gain)

    return search


def _search(phi: Any, dphi: Any, even: bool, sense: float) -> Callable:
    @bound
    def level(x, y, theta, both):
        c, s = math.cos(theta), math.sin(theta)
        first = 0.0
        second = 0.0
        for r in range(x.shape[0]):
            a, b = np.float64(x[r]), np.float64(y[r])
            first += phi(c * a + s * b)
            if both:
                second += phi(c * b - s * a)
        return sense * (first + second)

    @bound
    def slope(x, y, theta, both):
        """The slope, and the size of what it is the sum of."""
        c, s = math.cos(theta), math.sin(theta)
        total = 0.0
        size = 0.0
        for r in range(x.shape[0]):
            a, b = np.float64(x[r]), np.float64(y[r])
            p, q = c * a + s * b, c * b - s * a
            term = dphi(p) * q
            if both:
                term -= dphi(q) * p
            total += term
            size += abs(term)
        return sense * total, size

    @bound
    def search(x, y, both):
        quarters = 4
        if even:
            quarters = 1 if both else 2
        points = PER_QUARTER * quarters
        step = 0.5 * math.pi / PER_QUARTER
        start = level(x, y, 0.0, both)
        best, lowest = 0, start
        for k in range(1, points):
            here = level(x, y, k * step, both)
            if here < lowest - 64.0 * EPS * abs(start):
                best, lowest = k, here
        if 2 * best > points:
            best -= points
        low, high = (best - 1) * step, (best + 1) * step
        slope_low, _ = slope(x, y, low, both)
        slope_high, _ = slope(x, y, high, both)
        theta = best * step
        here, size = slope(x, y, theta, both)
        for _ in range(60):
            if abs(here) <= 8.0 * EPS * size:
                break
            if here > 0.0:
                high, slope_high = theta, here
            else:
                low, slope_low = theta, here
            old = theta
            # A secant through the bracket; bisection if it would leave it or hug an end.
            theta = (
                low - slope_low * (high - low) / (slope_high - slope_low) if slope_high > slope_low else old
            )
            margin = 0.01 * (high - low)
            if not (low + margin < theta < high - margin):
                theta = 0.5 * (low + high)
            here, size = slope(x, y, theta, both)
            if high - low <= 4.0 * EPS:
                break
        gain = start - level(x, y, theta, both)
        if abs(theta) < 1e-4:
            # Too small a turn for a difference of values: what the parabola through the slopes says.
            at_zero, size = slope(x, y, 0.0, both)
            if abs(at_zero) <= 16.0 * EPS * size:
                return 0.0, 0.0
            return theta, max(-0.5 * at_zero * theta, 0.0)
        if gain <= 64.0 * EPS * abs(start):
            return 0.0, 0.0
        return theta, gain

    return search
