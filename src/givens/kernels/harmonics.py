"""The global minimum of a sum of harmonics; and of two harmonics in closed form, or nearly so.

g(θ) = Σ a_k cos kθ + b_k sin kθ is evaluated on a fine grid. Every local minimum of the grid that is low enough to be near the
global minimum is refined by Newton's method within its neighbouring cells. Among equal minima the smallest |θ| is returned.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel

EPS = 2.220446049250313e-16


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
def _polish(a: np.ndarray, b: np.ndarray, start: float, step: float) -> float:
    theta = start
    first, slope, curve = _level(a, b, theta)
    for _ in range(50):
        move = -slope / curve if curve > 0.0 else -math.copysign(0.25 * step, slope)
        moved = min(max(theta + move, start - step), start + step)
        moving = abs(moved - theta)
        theta = moved
        value, slope, curve = _level(a, b, theta)
        if moving <= 2.0 * EPS * max(1e-8, abs(theta)):
            break
    value, slope, curve = _level(a, b, theta)
    return theta if value <= first else start


@kernel
def minimum(a: np.ndarray, b: np.ndarray, noise: float) -> tuple[float, float]:
    """The angle of the global minimum, −π < θ ≤ π, and its gain; values that differ by at most `noise` are equal."""
    order = a.shape[0] - 1
    size = 0.0
    bend = 0.0
    for k in range(1, order + 1):
        amplitude = math.hypot(a[k], b[k])
        size += amplitude
        bend += k * k * amplitude
    if size == 0.0:
        return 0.0, 0.0
    points = max(32, 16 * order)
    step = 2.0 * math.pi / points
    values = np.zeros(points)
    for k in range(1, order + 1):
        # cos and sin of k·θ along the grid, by rotations of one step, and by calls every 32 points against rounding errors.
        turn_c = math.cos(k * step)
        turn_s = math.sin(k * step)
        c = 1.0
        s = 0.0
        for p in range(points):
            if p % 32 == 0:
                c = math.cos(k * p * step)
                s = math.sin(k * p * step)
            values[p] += a[k] * c + b[k] * s
            c, s = c * turn_c - s * turn_s, s * turn_c + c * turn_s
    tie = max(4.0 * EPS * size, noise)
    # At the grid point nearest to a minimum, g is above the minimum by at most max|g''| h²/8.
    lowest = values[0]
    for p in range(points):
        lowest = min(lowest, values[p])
    bar = lowest + bend * step * step / 8.0 + tie
    start = _level(a, b, 0.0)[0]
    best = 0.0
    lowest = start
    for p in range(points):
        here = values[p]
        if here > bar or here > values[(p + points - 1) % points] or here > values[(p + 1) % points]:
            continue
        theta = _polish(a, b, p * step, step)
        if theta > math.pi:
            theta -= 2.0 * math.pi
        value = _level(a, b, theta)[0]
        if value < lowest - tie or (value <= lowest + tie and abs(theta) < abs(best)):
            best = theta
        lowest = min(lowest, value)
    if lowest >= start - tie:
        best = 0.0
        if values[0] <= values[1] and values[0] <= values[points - 1]:
            # The gain is below the rounding error of values, but the coefficients still determine the angle.
            near = _polish(a, b, 0.0, step)
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
