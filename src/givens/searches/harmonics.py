"""Sums of harmonics, which is what pair problems are, and their global minimum.

    g(θ) = a₀ + Σ_{k=1..p} a_k cos kθ + b_k sin kθ

is evaluated on a grid that is fine enough for the curvature it can have; every cell that may hold the minimum is polished by
Newton's method. Plain NumPy: `kernels.harmonics` is the compiled twin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.numerics.scaling import EPS


@dataclass(frozen=True)
class Harmonics:
    """A sum of harmonics, g(θ) = a₀ + Σ a_k cos kθ + b_k sin kθ, as arrays a and b of the same length (b₀ = 0).

    Examples
    --------
    >>> import numpy as np
    >>> from givens.searches.harmonics import Harmonics
    >>> g = Harmonics.fit(np.cos(2 * np.pi * np.arange(5) / 5 - 1.0))
    >>> theta, gain = g.minimum()
    >>> bool(np.isclose(theta, 1 - np.pi)), bool(np.isclose(gain, 1 + np.cos(1)))
    (True, True)
    """

    a: np.ndarray
    b: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray) -> Harmonics:
        """The harmonics through values at the angles 2πk/N, k = 0..N−1: all below N/2."""
        values = np.asarray(values, dtype=np.float64)
        spectrum = np.fft.rfft(values) / len(values)
        spectrum = spectrum[: (len(values) + 1) // 2]
        a, b = 2 * spectrum.real, -2 * spectrum.imag
        a[0], b[0] = spectrum[0].real, 0.0
        return cls(a, b)

    @property
    def order(self) -> int:
        """The highest harmonic."""
        return len(self.a) - 1

    def __call__(self, theta: float | np.ndarray, derivative: int = 0) -> np.ndarray:
        """The value, or the first or second derivative, at θ."""
        k = np.arange(len(self.a))
        phase = np.multiply.outer(np.asarray(theta, dtype=float), k)
        cos, sin = np.cos(phase), np.sin(phase)
        if derivative == 0:
            return cos @ self.a + sin @ self.b
        if derivative == 1:
            return cos @ (k * self.b) - sin @ (k * self.a)
        return -(cos @ (k * k * self.a) + sin @ (k * k * self.b))

    def gain(self, theta: float) -> float:
        """g(0) − g(θ), without the cancellation that a difference of values would suffer for small θ."""
        k = np.arange(len(self.a))
        return float(2 * np.sin(k * theta / 2) ** 2 @ self.a - np.sin(k * theta) @ self.b)

    def minimum(self, noise: float = 0.0) -> tuple[float, float]:
        """Where the global minimum lies, −π < θ ≤ π, and its gain; values that differ by no more than `noise` are equal."""
        return _minimum(self, noise)


def _minimum(g: Harmonics, noise: float) -> tuple[float, float]:
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
    return float(chosen), max(g.gain(chosen), 0.0)


def _polish(g: Harmonics, theta: np.ndarray, step: float) -> np.ndarray:
    """Newton's method on g' from each θ, never further than a step away; kept only where g is no higher."""
    start = theta.copy()
    for _ in range(50):
        slope, curve = g(theta, 1), g(theta, 2)
        move = np.where(curve > 0, -slope / np.where(curve > 0, curve, 1.0), -np.sign(slope) * step / 4)
        moved = np.clip(theta + move, start - step, start + step)
        if np.all(np.abs(moved - theta) <= 2 * EPS * np.maximum(1e-8, np.abs(moved))):
            theta = moved
            break
        theta = moved
    return np.where(g(theta) <= g(start), theta, start)
