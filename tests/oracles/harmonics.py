"""The global minimum of a sum of harmonics, in plain NumPy: the oracle of `givens.kernels.harmonics`.

The sum is evaluated on a grid that is fine enough for the curvature it can have; every cell that may hold the minimum is polished
by Newton's method.
"""

from __future__ import annotations

import numpy as np

from givens.objectives.harmonics import Harmonics

EPS = float(np.finfo(np.float64).eps)


def minimum(g: Harmonics, noise: float = 0.0) -> tuple[float, float]:
    """Where the global minimum lies, −π < θ ≤ π, and its gain; values that differ by no more than `noise` are equal."""
    order = g.order
    k = np.arange(1, order + 1)
    amplitude = np.hypot(g.a[1:], g.b[1:])
    size = float(amplitude.sum())
    if order == 0 or size == 0:
        return 0.0, 0.0
    points = max(32, 16 * order)
    half = np.zeros(points // 2 + 1, dtype=complex)
    half[1 : order + 1] = (g.a[1:] - 1j * g.b[1:]) / 2
    values = np.fft.irfft(half * points, points)
    # Between the lowest of the grid and the true minimum of a cell g falls by at most max|g''| h²/8.
    step = 2 * np.pi / points
    slack = float(k**2 @ amplitude) * step**2 / 8 + max(4 * EPS * size, noise)
    low = (values <= np.roll(values, 1)) & (values <= np.roll(values, -1)) & (values <= values.min() + slack)
    theta = _polish(g, step * np.flatnonzero(low), step)
    theta = np.concatenate(([0.0], np.angle(np.exp(1j * theta))))
    found = g(theta)
    best = found <= found.min() + max(4 * EPS * size, noise)
    chosen = theta[best][np.argmin(np.abs(theta[best]))]
    if chosen == 0.0 and not low[0]:
        return 0.0, 0.0
    if chosen == 0.0:
        # θ = 0 is within rounding of the minimum. Its own cell may still hold a turn far smaller than the
        # values can tell, but which the coefficients know: that turn is what makes the gradient vanish.
        local = _polish(g, np.array([0.0]), step)[0]
        chosen = local if abs(local) < step else 0.0
    return float(chosen), max(_gain(g, chosen), 0.0)


def _polish(g: Harmonics, theta: np.ndarray, step: float) -> np.ndarray:
    """Newton's method on g' from each θ, never further than a step away; kept only where g is no higher."""
    start = theta.copy()
    for _ in range(50):
        slope, curve = _derivatives(g, theta)
        move = np.where(curve > 0, -slope / np.where(curve > 0, curve, 1.0), -np.sign(slope) * step / 4)
        moved = np.clip(theta + move, start - step, start + step)
        if np.all(np.abs(moved - theta) <= 2 * EPS * np.maximum(1e-8, np.abs(moved))):
            theta = moved
            break
        theta = moved
    return np.where(g(theta) <= g(start), theta, start)


def _gain(g: Harmonics, theta: float) -> float:
    """g(0) − g(θ), without the cancellation that a difference of values would suffer for small θ."""
    k = np.arange(len(g.a))
    return float(2 * np.sin(k * theta / 2) ** 2 @ g.a - np.sin(k * theta) @ g.b)


def _derivatives(g: Harmonics, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(len(g.a))
    phase = np.multiply.outer(theta, k)
    cos, sin = np.cos(phase), np.sin(phase)
    return cos @ (k * g.b) - sin @ (k * g.a), -(cos @ (k * k * g.a) + sin @ (k * k * g.b))
