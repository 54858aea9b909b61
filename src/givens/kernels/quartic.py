"""Fourth-order contrasts: the pair problem of Σ y⁴ − κ/p (Σ y²)².

With u = x² − y², v = 2xy over two columns of length p, the criterion is ¼(P sin 4θ + Q cos 4θ) plus a constant, where

    P = Σ 2uv − (2κ/p) Σu Σv,        Q = Σ (u² − v²) − (κ/p) ((Σu)² − (Σv)²).

If only the first of the two columns is active (a crossing pair of the Stiefel form), the criterion is a quartic form in (cos θ,
sin θ). In a shifted angle ψ = 2θ − φ it is a constant plus A cos ψ + B sin ψ + ρ cos 2ψ with ρ ≥ 0, whose maximum over all angles
`harmonics.peak` finds.

In both cases the criterion follows from eight sums over the rows, the fourth and second moments of the two columns.

Rows of Y are columns of the mathematics. `kappa` is κ/p here; `sign` is 1 for the maximum, −1 for the minimum.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.harmonics import peak, quarter
from givens.kernels.rotate import rotate_pair
from givens.support.arguments import EPS

PAIR_FLOPS = 16.0  # per row of two columns: x², xy, y², their products, and eight sums


@inline
def _moments(x: np.ndarray, y: np.ndarray) -> tuple:
    """The sums of x⁴, x³y, x²y², xy³, y⁴, x², xy, y²."""
    a, b, m, d, e, xx, xy, yy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for r in range(x.shape[0]):
        p = np.float64(x[r])
        q = np.float64(y[r])
        pp = p * p
        pq = p * q
        qq = q * q
        a += pp * pp
        b += pp * pq
        m += pp * qq
        d += pq * qq
        e += qq * qq
        xx += pp
        xy += pq
        yy += qq
    return a, b, m, d, e, xx, xy, yy


@inline
def _angle(moments: tuple, both: bool, kappa: float, sign: float) -> tuple[float, float]:
    """The best angle of a pair and its gain; `both` if both of its columns are active."""
    if not both:
        return _crossing_angle(moments, kappa, sign)
    a, b, m, d, e, xx, xy, yy = moments
    # The sums of u², v² and uv, and of u and v.
    uu, vv, uv, su, sv = max(a - 2.0 * m + e, 0.0), 4.0 * m, 2.0 * (b - d), xx - yy, 2.0 * xy
    P = sign * (2.0 * uv - 2.0 * kappa * su * sv)
    Q = sign * (uu - vv - kappa * (su * su - sv * sv))
    return quarter(P, Q, 16.0 * EPS * (uu + vv))


@inline
def _form(a: float, b: float, m: float, d: float, e: float, theta: float) -> float:
    """The quartic form of a crossing pair: a c⁴ + 4b c³s + 6m c²s² + 4d cs³ + e s⁴."""
    c = math.cos(theta)
    s = math.sin(theta)
    return c * c * c * c * a + s * (4.0 * c * c * c * b + s * (6.0 * c * c * m + s * (4.0 * c * d + s * e)))


@inline
def _crossing_angle(moments: tuple, kappa: float, sign: float) -> tuple[float, float]:
    """The best angle of a pair whose second column is inactive, and its gain."""
    a, b, m, d, e, xx, xy, yy = moments
    size = a + e
    a = sign * (a - kappa * xx * xx)
    b = sign * (b - kappa * xx * xy)
    m = sign * (m - kappa * (xx * yy + 2.0 * xy * xy) / 3.0)
    d = sign * (d - kappa * xy * yy)
    e = sign * (e - kappa * yy * yy)
    even = 0.125 * (a + e - 6.0 * m)
    odd = 0.5 * (b - d)
    shift = 0.5 * math.atan2(odd, even)
    c = math.cos(shift)
    s = math.sin(shift)
    A = 0.5 * (a - e) * c + (b + d) * s
    B = (b + d) * c - 0.5 * (a - e) * s
    theta = 0.5 * (shift + peak(A, B, math.hypot(even, odd), 2))
    # All digits of a small angle: of the sum above, only those that π has are left.
    for _ in range(3):
        c = math.cos(theta)
        s = math.sin(theta)
        slope = 4.0 * (
            c * c * c * (c * b + s * (3.0 * m - a))
            + s * s * (3.0 * c * c * (d - b) + s * (c * (e - 3.0 * m) - s * d))
        )
        curve = (
            12.0 * (c * c * (s * s * (a + e - 4.0 * m) + c * c * m) + s * s * s * s * m)
            + 24.0 * c * s * (s * s - c * c) * (b - d)
            - 4.0 * _form(a, b, m, d, e, theta)
        )
        if not (curve < 0.0 and abs(slope) <= -1e-6 * curve):
            break
        theta -= slope / curve
    if theta > 0.5 * math.pi:
        theta -= math.pi
    if theta < -0.5 * math.pi:
        theta += math.pi
    # Near 0 the difference of values would cancel, and the parabola is accurate.
    gain = _form(a, b, m, d, e, theta) - a
    if abs(theta) < 1e-4:
        gain = 2.0 * b * theta
        if abs(4.0 * b) <= 16.0 * EPS * size:
            return 0.0, 0.0
    elif gain <= 16.0 * EPS * size:
        return 0.0, 0.0
    return theta, max(gain, 0.0)


@kernel
def solve_pairs(
    Y: np.ndarray, pairs: np.ndarray, active: int, kappa: float, sign: float, out: np.ndarray
) -> None:
    """Write the best angle of each pair by itself, and its gain, into a row of `out`."""
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        out[p, 0], out[p, 1] = _angle(_moments(Y[i], Y[j]), j < active, kappa, sign)


@kernel
def solve_moments(moments: np.ndarray, both: np.ndarray, kappa: float, sign: float, out: np.ndarray) -> None:
    """As `solve_pairs`, from the moments of each pair; `both` if both of its columns are active."""
    for p in range(moments.shape[0]):
        a, b, m, d, e, xx, xy, yy = moments[p]
        out[p, 0], out[p, 1] = _angle((a, b, m, d, e, xx, xy, yy), both[p], kappa, sign)


@kernel
def turn_pairs(
    Y: np.ndarray,
    Qt: np.ndarray,
    pairs: np.ndarray,
    active: int,
    kappa: float,
    sign: float,
    gains: np.ndarray,
    sweeps: int,
    min_gain: float,
) -> tuple[float, float]:
    """Rotate pairs of rows of Y, and of Qt, one after the other, to their best angles, and write their gains.

    Sweeps over the pairs until one gains no more than `min_gain`. Returns the gain of the last sweep, and that of all.
    """
    gained, total = np.inf, 0.0
    for _ in range(sweeps):
        gained = 0.0
        for p in range(pairs.shape[0]):
            i, j = pairs[p, 0], pairs[p, 1]
            theta, gain = _angle(_moments(Y[i], Y[j]), j < active, kappa, sign)
            gains[p] = gain
            gained += gain
            if gain > 0.0:
                c, s = math.cos(theta), math.sin(theta)
                rotate_pair(Y[i], Y[j], Y.shape[1], Y.dtype.type(c), Y.dtype.type(s))
                rotate_pair(Qt[i], Qt[j], Qt.shape[1], c, s)
        total += gained
        if gained <= min_gain:
            break
    return gained, total
