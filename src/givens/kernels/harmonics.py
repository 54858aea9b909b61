"""The global minimum of a sum of harmonics; and of two harmonics in closed form, or nearly so.

g(θ) = Σ a_k cos kθ + b_k sin kθ is evaluated on a fine grid. Every local minimum of the grid that is low enough to be near the
global minimum is refined by Newton's method within its neighbouring cells. Among equal minima the smallest |θ| is returned.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.support.arguments import EPS


@inline
def _level(a: np.ndarray, b: np.ndarray, theta: float) -> tuple[float, float, float]:
    """g, g' and g'' at θ, without the constant term."""
    value = 0.0
    slope = 0.0
    curve = 0.0
    for k in range(1, a.shape[0]):
        c = math.cos(k * theta)
        s = math.sin(k * theta)
        here = a[k] * c + b[k] * s
        value += here
        slope += k * (b[k] * c - a[k] * s)
        curve -= k * k * here
    return value, slope, curve


@inline
def _gain(a: np.ndarray, b: np.ndarray, theta: float) -> float:
    """g(0) − g(θ), without cancellation."""
    total = 0.0
    for k in range(1, a.shape[0]):
        half = math.sin(0.5 * k * theta)
        total += 2.0 * half * half * a[k] - math.sin(k * theta) * b[k]
    return total


@inline
def _polish(a: np.ndarray, b: np.ndarray, start: float, step: float) -> tuple[float, float]:
    """The local minimum within a step of a point of the grid, and its value; the point itself if it is lower."""
    theta, moving, first = start, np.inf, 0.0
    for number in range(51):
        value, slope, curve = _level(a, b, theta)
        if number == 0:
            first = value
        if number == 50 or moving <= 2.0 * EPS * max(1e-8, abs(theta)):
            break
        move = -slope / curve if curve > 0.0 else -math.copysign(0.25 * step, slope)
        moved = min(max(theta + move, start - step), start + step)
        moving = abs(moved - theta)
        theta = moved
    return (theta, value) if value <= first else (start, first)


@kernel
def minimum(a: np.ndarray, b: np.ndarray, values: np.ndarray, noise: float) -> tuple[float, float]:
    """The angle of the global minimum, −π < θ ≤ π, and its gain.

    `values` are those of g, without its constant term, on a grid over the period that begins at 0. Values that differ by at most
    `noise` are equal.
    """
    points = len(values)
    step = 2.0 * math.pi / points
    size, bend = 0.0, 0.0
    for k in range(1, a.shape[0]):
        amplitude = math.hypot(a[k], b[k])
        size += amplitude
        bend += k * k * amplitude
    if size == 0.0:
        return 0.0, 0.0
    tie = max(4.0 * EPS * size, noise)
    start = lowest = values[0]
    for p in range(points):
        lowest = min(lowest, values[p])
    # At the grid point nearest to a minimum, g is above the minimum by at most max|g''| h²/8.
    bar = lowest + bend * step * step / 8.0 + tie
    best, near, lowest = 0.0, step, start
    for p in range(points):
        here = values[p]
        if here > min(bar, min(values[(p + points - 1) % points], values[(p + 1) % points])):
            continue
        theta, value = _polish(a, b, p * step, step)
        if p == 0:
            near = theta
        if theta > math.pi:
            theta -= 2.0 * math.pi
        if value < lowest - tie or (value <= lowest + tie and abs(theta) < abs(best)):
            best = theta
        lowest = min(lowest, value)
    if lowest >= start - tie:
        # The gain is below the rounding error of values, but the coefficients still determine the angle of a minimum near 0.
        best = near if abs(near) < step else 0.0
    return best, max(_gain(a, b, best), 0.0)


@inline
def peak(A: float, B: float, rho: float, k: int) -> float:
    """Where A cos ψ + B sin ψ + ρ cos kψ is largest, for ρ ≥ 0 and k of 2 or 3.

    The last term takes the same values in each of k sectors of 2π/k, with a maximum in the middle; the others are largest in the
    sector that has their own maximum χ. Between the middle of that sector and χ, the one falls and the others rise, and the slope
    has a single zero, which Newton's method finds within these bounds.
    """
    sector = 2.0 * math.pi / k
    chi = math.atan2(B, A)
    middle = sector * np.floor(chi / sector + 0.5)
    high = abs(chi - middle)
    radius = math.hypot(A, B)
    A, B = radius * math.cos(high), radius * math.sin(high)
    low, psi = 0.0, math.atan2(B, A + k * k * rho)
    for _ in range(60):
        c, s = math.cos(psi), math.sin(psi)
        ck, sk = c, s
        for _ in range(k - 1):
            ck, sk = ck * c - sk * s, sk * c + ck * s
        slope = B * c - A * s - k * rho * sk
        if slope > 0.0:
            low = psi
        elif slope < 0.0:
            high = psi
        else:
            break
        curve = -A * c - B * s - k * k * rho * ck
        other = psi - slope / curve if curve < 0.0 else high
        if not low < other < high:
            other = 0.5 * (low + high)
        moved = abs(other - psi)
        psi = other
        if moved <= 4.0 * EPS:
            break
    return middle + (psi if chi >= middle else -psi)


@inline
def quarter(P: float, Q: float, rounding: float) -> tuple[float, float]:
    """Where ¼(P sin 4θ + Q cos 4θ) is largest, and its gain; 0 and 0 where P and Q are rounding errors, of this size."""
    radius = math.hypot(P, Q)
    if Q > 0.0:
        # An angle below rounding has no effect, and would be found again in every sweep.
        gain = 0.0 if abs(P) <= EPS * Q or radius <= rounding else 0.25 * P * (P / (radius + Q))
    else:
        gain = 0.25 * (radius - Q) if radius - Q > rounding else 0.0
    return 0.25 * math.atan2(P, Q) if gain > 0.0 else 0.0, gain
