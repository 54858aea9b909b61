"""Exact one-dimensional searches, in plain NumPy: the documentation and the oracle of the compiled ones.

A pair problem g(θ) = f(U·G(i, j, θ)) is periodic. If f is a polynomial of degree p in U, then g has no harmonic above p,

    g(θ) = a₀ + Σ_{k=1..p} a_k cos kθ + b_k sin kθ,

and 2p+1 evaluations determine it; any smooth g has few harmonics that matter. `Harmonics.minimum` finds the global
minimum of such a sum, `periodic` that of any g, by taking more harmonics until nothing changes. `quartic` is the closed form for
whatever has the harmonics 0 and 4 only: quartimax, varimax, kurtosis, joint diagonalisation.

Among equal optima the smallest |θ| wins; a gain is how much lower the minimum lies than g(0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from givens.numerics.scaling import EPS, binary_exponent
from givens.searches.harmonics import Harmonics

MAX_HARMONICS = 64


@dataclass(frozen=True)
class Search:
    """What a search over θ found.

    Attributes
    ----------
    theta, gain : float
    harmonics : Harmonics
        The sum that was minimised.
    evaluations : int
        How often g was called.
    resolved : bool
        False if g had more harmonics than were allowed: then the minimum is of the truncated sum, or the best point seen.
    error : float
        The largest difference between g and the sum, where both are known.
    """

    theta: float
    gain: float
    harmonics: Harmonics
    evaluations: int
    resolved: bool
    error: float = 0.0


Minimum = Callable[[Harmonics, float], tuple[float, float]]
"""Finds the global minimum of a sum of harmonics, given the noise: `Harmonics.minimum`, or its compiled twin."""

# Angles off every grid: a harmonic that the grid takes for another one is seen here.
_PROBES = np.array([0.7548776662466927, 2.4674011002723395, -1.3247179572447460])


def periodic(
    g: Callable[[float], float],
    *,
    points: int = 8,
    max_harmonics: int = MAX_HARMONICS,
    tolerance: float = 1e-12,
    at_zero: float | None = None,
    noise: float = 0.0,
    minimum: Minimum = Harmonics.minimum,
) -> Search:
    """The global minimum of any smooth function of period 2π.

    The number of points is doubled until the sum through them predicts g at angles off the grid. `points` (a power of two)
    is where to begin; a caller who has solved a similar problem knows better than 8. Values of g that differ by no more than
    `noise` count as equal. `minimum` minimises the sum of harmonics.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.searches import periodic
    >>> found = periodic(lambda t: np.exp(np.cos(3 * t)) + 0.1 * np.sin(t))
    >>> grid = np.linspace(-np.pi, np.pi, 100_001)
    >>> lowest = (np.exp(np.cos(3 * grid)) + 0.1 * np.sin(grid)).min()
    >>> bool(np.e - found.gain <= lowest), found.resolved
    (True, True)
    """
    values = {0: g(0.0) if at_zero is None else at_zero}
    most = 4 * max_harmonics
    probes = np.array([g(float(t)) for t in _PROBES])
    points = min(points, most)
    calls = len(probes)
    while True:
        grid = np.arange(points) * (most // points)
        for index in grid.tolist():
            if index not in values:
                values[index] = g(2 * np.pi * index / most)
                calls += 1
        samples = np.array([values[index] for index in grid.tolist()])
        full = Harmonics.fit(samples)
        # Half of the harmonics are the prediction, the other half the proof that there are no more.
        keep = min(points // 4, max_harmonics) + 1
        harmonics = Harmonics(full.a[:keep], full.b[:keep])
        size = max(float(np.ptp(np.append(samples, probes))), 64 * EPS * float(np.abs(samples).max()))
        error = float(np.abs(harmonics(_PROBES) - probes).max())
        error = max(error, float(np.abs(harmonics(2 * np.pi * grid / most) - samples).max()))
        # Rounding in g itself is not a harmonic: do not chase it.
        resolved = error <= max(tolerance * size, 4 * noise, 32 * EPS * float(np.abs(samples).max()))
        if resolved or points == most:
            break
        points *= 2
    theta, gain = minimum(harmonics, noise)
    if not resolved:
        theta, gain, calls = _checked(g, values, most, theta, noise, calls)
    return Search(theta, gain, harmonics, calls, resolved, error)


def _checked(
    g: Callable[[float], float], values: dict[int, float], most: int, theta: float, noise: float, calls: int
) -> tuple[float, float, int]:
    """Without a sum that can be trusted, only a point at which g was really seen to be lower will do, and its surroundings."""
    candidates = [(values[0] - v, 2 * np.pi * k / most) for k, v in values.items()]
    candidates.append((values[0] - g(theta), theta))
    gain, theta = max(candidates)
    if gain <= noise:
        gain, theta = 0.0, 0.0
    move, more = _newton_step(g, theta, values[0] - gain, noise)
    return float(np.angle(np.exp(1j * (theta + move)))), float(gain + more), calls + 6


# The fourth-order differences err by h⁴ and by eps/h: this is where the two meet.
_STEP = EPS**0.2


def _newton_step(g: Callable[[float], float], theta: float, here: float, noise: float) -> tuple[float, float]:
    """A step to where the slope vanishes, by differences around θ, and its gain; none where rounding is all there is."""
    a, b, c, d = (g(theta + k * _STEP) for k in (-2, -1, 1, 2))
    slope = (a - 8 * b + 8 * c - d) / (12 * _STEP)
    curve = (16 * (b + c) - a - d - 30 * here) / (12 * _STEP**2)
    # Beyond the differences' own reach a parabola through them says nothing.
    if abs(slope) * _STEP <= noise or abs(slope) > 2 * _STEP * curve:
        return 0.0, 0.0
    move, promised = -slope / curve, 0.5 * slope * (slope / curve)
    gain = here - g(theta + move)
    if promised <= noise:
        # Too small for a difference of values to show; but a step or a kink of g would.
        gain = promised if gain >= -noise else 0.0
    return (move, gain) if gain >= 0.5 * promised else (0.0, 0.0)


def polynomial(
    g: Callable[[float], float],
    degree: int,
    *,
    at_zero: float | None = None,
    noise: float = 0.0,
    minimum: Minimum = Harmonics.minimum,
) -> Search:
    """The global minimum of g(θ) where f is a polynomial of that degree in U: exact from 2·degree+1 evaluations."""
    points = 2 * degree + 1
    values = np.empty(points)
    values[0] = g(0.0) if at_zero is None else at_zero
    for k in range(1, points):
        values[k] = g(2 * np.pi * k / points)
    harmonics = Harmonics.fit(values)
    theta, gain = minimum(harmonics, noise)
    return Search(theta, gain, harmonics, points - (at_zero is not None), True)


def quartic(P: float, Q: float) -> tuple[float, float]:
    """The maximum of ¼(P sin 4θ + Q cos 4θ): θ = ¼·atan2(P, Q), and its gain over θ = 0.

    With u = x² − y², v = 2xy, P = Σ 2uv and Q = Σ u² − v², this is the pair problem of Σ x⁴ + y⁴. For the minimum, give −P
    and −Q.

    Examples
    --------
    >>> from givens.searches import quartic
    >>> quartic(0.0, -1.0)
    (0.7853981633974483, 0.5)
    """
    size = max(abs(P), abs(Q))
    if size == 0:
        return 0.0, 0.0
    # In units of a power of two: squares of the largest numbers overflow, and the smallest have few digits.
    exponent = binary_exponent(size)
    P, Q = np.ldexp(P, -exponent), np.ldexp(Q, -exponent)
    radius = np.hypot(P, Q)
    # For Q > 0 the difference radius − Q would cancel.
    gain = (P * (P / (radius + Q)) if Q > 0 else radius - Q) / 4
    return float(np.arctan2(P, Q)) / 4, float(np.ldexp(gain, exponent))


def cubic(A: float, B: float, D: float, E: float) -> tuple[float, float]:
    """The maximum of g(θ) = A c³ + 3B c²s + 3D cs² + E s³, c = cos θ, s = sin θ, and its gain over θ = 0.

    With a = T_iii, b = T_iij, q = T_ijj, e = T_jjj of a symmetric tensor, and A = a+e, B = b−q, D = b+q, E = e−a, this is the
    pair problem of Σ T_iii; with A, B, D, E = a, b, q, e that of T_iii alone. In t = tan θ the critical points are the roots of
    −D t³ + (E−2B) t² + (2D−A) t + B, and ±π/2 where that loses a degree.

    Examples
    --------
    >>> from givens.searches import cubic
    >>> cubic(1.0, 0.0, 0.0, -2.0)
    (-1.5707963267948966, 1.0)
    """
    size = max(abs(A), abs(B), abs(D), abs(E))
    if size == 0:
        return 0.0, 0.0
    form = np.array([B, 2 * D - A, E - 2 * B, -D]) / size
    # Each way round the small roots are good, |tan θ| ≤ 1 or |cot θ| ≤ 1: together all of them.
    theta = np.concatenate(
        ([0.0, np.pi / 2], np.arctan(_roots(form)), np.pi / 2 - np.arctan(_roots(form[::-1])))
    )
    theta = np.concatenate((theta, theta - np.pi * np.where(theta > 0, 1, -1)))
    c, s = np.cos(theta), np.sin(theta)
    g = A * c**3 + 3 * B * c**2 * s + 3 * D * c * s**2 + E * s**3
    best = g >= g.max() - 8 * EPS * size
    chosen = theta[best][np.argmin(np.abs(theta[best]))]
    return float(chosen), float(max(g[theta == chosen].max() - A, 0.0))


def _roots(ascending: np.ndarray) -> np.ndarray:
    """The real roots of a polynomial, and those that rounding has made complex; a negligible leading coefficient is none."""
    significant = np.flatnonzero(np.abs(ascending) > EPS * np.abs(ascending).max())
    t = np.roots(ascending[: significant[-1] + 1][::-1])
    return t.real[np.abs(t.imag) <= 1e-4 * (1 + np.abs(t))]
