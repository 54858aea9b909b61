"""The best angle of two columns by sums of harmonics, for any function of U.

A pair problem g(θ) = f(U·G(i, j, θ)) is periodic. If f is a polynomial of degree p in U, then g has no harmonic above p,

    g(θ) = a₀ + Σ_{k=1..p} a_k cos kθ + b_k sin kθ,

and 2p+1 evaluations determine it (`polynomial`); any smooth g has few harmonics that matter, and `periodic` takes more of them
until nothing changes. `kernels.harmonics` finds the global minimum of such a sum.

Among equal optima the smallest |θ| wins; a gain is how much lower the minimum lies than g(0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.angle_derivatives import FOURTH_ORDER_STEP

MAX_HARMONICS = 64
# Radians, off every grid: a harmonic that the grid takes for another one is seen here.
PROBE_ANGLES = np.array([0.7548776662466927, 2.4674011002723395, -1.3247179572447460])


@dataclass(frozen=True)
class Harmonics:
    """A sum of harmonics, g(θ) = a₀ + Σ a_k cos kθ + b_k sin kθ, as arrays a and b of the same length (b₀ = 0).

    Examples
    --------
    >>> import numpy as np
    >>> from givens.objectives.harmonics import Harmonics
    >>> g = Harmonics.fit(np.cos(2 * np.pi * np.arange(5) / 5 - 1.0))
    >>> g.order, bool(np.isclose(g(1.0), 1.0))
    (2, True)
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

    def __call__(self, theta: float | np.ndarray) -> np.ndarray:
        """The value at θ."""
        phase = np.multiply.outer(np.asarray(theta, dtype=float), np.arange(len(self.a)))
        return np.cos(phase) @ self.a + np.sin(phase) @ self.b

    @property
    def slope(self) -> float:
        """The slope at θ = 0."""
        return float(np.arange(len(self.b)) @ self.b)


@dataclass(frozen=True)
class Search:
    """What a search over θ found.

    Attributes
    ----------
    theta, gain : float
    harmonics : Harmonics
        The sum that was minimised.
    resolved : bool
        False if g had more harmonics than were allowed: then the minimum is of the truncated sum, or the best point seen.
    error : float
        The largest difference between g and the sum, where both are known.
    """

    theta: float
    gain: float
    harmonics: Harmonics
    resolved: bool
    error: float = 0.0


def periodic(g: Callable[[float], float], at_zero: float, *, noise: float = 0.0) -> Search:
    """The global minimum of any smooth function of period 2π; `at_zero` is g(0).

    The number of points is doubled until the sum through them predicts g at angles off the grid. Values of g that differ by no
    more than `noise` count as equal.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.objectives.harmonics import periodic
    >>> found = periodic(lambda t: np.exp(np.cos(3 * t)) + 0.1 * np.sin(t), np.e)
    >>> grid = np.linspace(-np.pi, np.pi, 100_001)
    >>> lowest = (np.exp(np.cos(3 * grid)) + 0.1 * np.sin(grid)).min()
    >>> bool(np.e - found.gain <= lowest), found.resolved
    (True, True)
    """
    values = {0: at_zero}
    most, points = 4 * MAX_HARMONICS, 8
    probes = np.array([g(float(t)) for t in PROBE_ANGLES])
    while True:
        grid = np.arange(points) * (most // points)
        for index in grid.tolist():
            if index not in values:
                values[index] = g(2 * np.pi * index / most)
        samples = np.array([values[index] for index in grid.tolist()])
        full = Harmonics.fit(samples)
        # Half of the harmonics are the prediction, the other half the proof that there are no more.
        keep = min(points // 4, MAX_HARMONICS) + 1
        harmonics = Harmonics(full.a[:keep], full.b[:keep])
        size = max(float(np.ptp(np.append(samples, probes))), 64 * EPS * float(np.abs(samples).max()))
        error = float(np.abs(harmonics(PROBE_ANGLES) - probes).max())
        error = max(error, float(np.abs(harmonics(2 * np.pi * grid / most) - samples).max()))
        # Rounding in g itself is not a harmonic: do not chase it.
        resolved = error <= max(1e-12 * size, 4 * noise, 32 * EPS * float(np.abs(samples).max()))
        if resolved or points == most:
            break
        points *= 2
    theta, gain = _minimum(harmonics, noise)
    if not resolved:
        theta, gain = _checked(g, values, most, theta, noise)
    return Search(theta, gain, harmonics, resolved, error)


def _checked(
    g: Callable[[float], float], values: dict[int, float], most: int, theta: float, noise: float
) -> tuple[float, float]:
    """Without a sum that can be trusted, only a point at which g was really seen to be lower will do, and its surroundings."""
    candidates = [(values[0] - v, 2 * np.pi * k / most) for k, v in values.items()]
    candidates.append((values[0] - g(theta), theta))
    gain, theta = max(candidates)
    if gain <= noise:
        gain, theta = 0.0, 0.0
    move, more = _newton_step(g, theta, values[0] - gain, noise)
    return float(np.angle(np.exp(1j * (theta + move)))), float(gain + more)


def _newton_step(g: Callable[[float], float], theta: float, here: float, noise: float) -> tuple[float, float]:
    """A step to where the slope vanishes, by differences around θ, and its gain; none where rounding is all there is."""
    a, b, c, d = (g(theta + k * FOURTH_ORDER_STEP) for k in (-2, -1, 1, 2))
    slope = (a - 8 * b + 8 * c - d) / (12 * FOURTH_ORDER_STEP)
    curve = (16 * (b + c) - a - d - 30 * here) / (12 * FOURTH_ORDER_STEP**2)
    # Beyond the differences' own reach a parabola through them says nothing.
    if abs(slope) * FOURTH_ORDER_STEP <= noise or abs(slope) > 2 * FOURTH_ORDER_STEP * curve:
        return 0.0, 0.0
    move, promised = -slope / curve, 0.5 * slope * (slope / curve)
    gain = here - g(theta + move)
    if promised <= noise:
        # Too small for a difference of values to show; but a step or a kink of g would.
        gain = promised if gain >= -noise else 0.0
    return (move, gain) if gain >= 0.5 * promised else (0.0, 0.0)


def polynomial(g: Callable[[float], float], at_zero: float, degree: int, *, noise: float = 0.0) -> Search:
    """The global minimum of g(θ), `at_zero` at θ = 0, for a polynomial of that degree in U: exact from 2·degree more values."""
    points = 2 * degree + 1
    harmonics = Harmonics.fit(np.array([at_zero] + [g(2 * np.pi * k / points) for k in range(1, points)]))
    return Search(*_minimum(harmonics, noise), harmonics, True)


def _minimum(harmonics: Harmonics, noise: float) -> tuple[float, float]:
    from givens.kernels.harmonics import minimum

    a, b = harmonics.a, harmonics.b
    cosines, sines = _waves(harmonics.order)
    return minimum(a, b, cosines @ a + sines @ b, noise)


@lru_cache(maxsize=16)
def _waves(order: int) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines of the harmonics 0, without its constant, to `order` on a grid over the period."""
    points = max(32, 16 * order)
    phases = 2.0 * np.pi / points * (np.outer(np.arange(points), np.arange(order + 1)) % points)
    cosines = np.cos(phases)
    cosines[:, 0] = 0.0
    return cosines, np.sin(phases)
