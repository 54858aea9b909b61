"""The pair problem of sparse PCA.

All functions maximise g(θ) = φ(x cos θ + y sin θ) + φ(y cos θ − x sin θ), with φ(y) = Σ_k [|y_k| − γ]₊² (ℓ1) or Σ_k [y_k² − γ]₊
(ℓ0), and one γ per column. Inactive columns (of the Stiefel form) have γ = ∞, so that no pair is a special case. The period of
g is π/2 if the two γ are equal, else π.

A `pair` is the two columns x and y, the number of features, the levels of the two columns, and whether φ is that of ℓ0. A level
is γ for ℓ1 and √γ for ℓ0, where |y| > level means y² > γ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.maxima import STACK_INTERVALS, global_maximum_of, local_maximum_of
from givens.kernels.sorted_breakpoints import sorted_search
from givens.support.arguments import EPS

NEAR = 0.15  # radians: if the Newton step to a maximum is shorter than this, other angles are not searched
# Of each feature, to evaluate g, also g', also g''. Branch and bound takes about as many as the last in the mean.
VALUE_FLOPS, SLOPE_FLOPS, CURVATURE_FLOPS = 14.0, 20.0, 26.0


def _evaluation(derivatives: int, bounded: bool = False) -> Any:
    """Compile g and so many derivatives, since unused sums would make loops slower.

    If `bounded`, an upper bound of g'' within `half` of the angle takes the place of g'', for ℓ1.
    """

    @inline
    def at(pair: tuple, c: float, s: float, half: float) -> tuple[float, float, float]:
        """See `maxima`.

        With t = [|a| − level]₊, φ(a) is t² for ℓ1 and t(t + 2·level) for ℓ0. With S(a) = sign(a)·t for ℓ1 and a·1[t > 0] for
        ℓ0, g' is the sum of 2(S(a)·b − S(b)·a) over the entries a, b of the rotated columns, and g'' that of
        2(1[t > 0]·b² − S(a)·a) and of the same with a and b exchanged. Within an interval |a| and |b| are bounded by their values
        in the middle.
        """
        x, y, number, first, second, l0 = pair
        near, far = np.cos(half), np.sin(half)
        lift_a = first if not bounded and l0 and first < np.inf else 0.0
        lift_b = second if not bounded and l0 and second < np.inf else 0.0
        twice_a, twice_b = 2.0 * lift_a, 2.0 * lift_b
        value = 0.0
        slope = 0.0
        curvature = 0.0
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ta = abs(a) - first
            tb = abs(b) - second
            ta = ta if ta > 0.0 else 0.0
            tb = tb if tb > 0.0 else 0.0
            value += ta * (ta + twice_a) + tb * (tb + twice_b)
            if derivatives:
                sa = math.copysign(ta + lift_a if ta > 0.0 else 0.0, a)
                sb = math.copysign(tb + lift_b if tb > 0.0 else 0.0, b)
                slope += sa * b - sb * a
                if derivatives == 2 and not bounded:
                    curvature += (b * b if ta > 0.0 else 0.0) - sa * a
                    curvature += (a * a if tb > 0.0 else 0.0) - sb * b
            if bounded:
                a, b = abs(a), abs(b)
                most_a, most_b = a + far * b, b + far * a
                least_a, least_b = near * a - far * b, near * b - far * a
                curvature += most_b * most_b if most_a > first else 0.0
                curvature += most_a * most_a if most_b > second else 0.0
                curvature -= (least_a - first) * least_a if least_a > first else 0.0
                curvature -= (least_b - second) * least_b if least_b > second else 0.0
        return value, 2.0 * slope, 2.0 * curvature

    return at


_value, _slope, _curvature, _bound = (
    _evaluation(0),
    _evaluation(1),
    _evaluation(2),
    _evaluation(2, bounded=True),
)
_local_maximum = local_maximum_of(_slope)
_global_maximum = global_maximum_of(_bound, _local_maximum)


@inline
def _best_of_grid(pair: tuple, start: float, floor: float, accuracy: float) -> tuple[float, float, float]:
    """The best of the maxima that a grid over the period shows, if above g(0) = `start`: its angle, its value, the flops."""
    _, _, number, first, second, l0 = pair
    points = 24 if l0 else 8  # in a quarter turn; with ℓ0, g has kinks and more maxima
    step = 0.5 * np.pi / points
    count = points if first == second else 2 * points
    values = np.empty(count)
    turn_c, turn_s = np.cos(step), np.sin(step)
    c, s = 1.0, 0.0
    highest = start
    for q in range(count):
        values[q] = _value(pair, c, s, 0.0)[0]
        highest = max(highest, values[q])
        c, s = c * turn_c - s * turn_s, s * turn_c + c * turn_s
    theta, best, evaluations = 0.0, start, 0
    # Outwards from θ = 0, 1, −1, 2, ... steps: among equal maxima the smallest |angle| is taken.
    for q in range(1, count + 1):
        k = -(q // 2) if q % 2 else q // 2
        here = values[k]
        before, after = values[(k + count - 1) % count], values[(k + 1) % count]
        hollow = 2.0 * here - before - after
        # The maximum between grid points is hardly ever higher by more than a quarter of the second difference.
        if here + 0.25 * hollow < highest:
            continue
        angle, height = k * step, here
        # Elsewhere g is constant, up to rounding.
        if hollow > 1e-9 * here:
            _, slope, _ = _slope(pair, np.cos(angle), np.sin(angle), 0.0)
            # The search begins at the top of the parabola through the three values, if that is uphill.
            trial = angle + 0.5 * step * (after - before) / hollow
            if (trial - angle) * slope <= 0.0:
                trial = angle + (0.25 * step if slope > 0.0 else -0.25 * step)
            angle, height, more = _local_maximum(
                pair, angle, here, slope, trial, step, start, floor, accuracy
            )
            evaluations += more + 1
        if height > best:
            theta, best = angle, height
    return theta, best, (VALUE_FLOPS * count + SLOPE_FLOPS * evaluations) * number


@inline
def _rounding(value: float, number: int) -> float:
    """The rounding error of a difference of two values of g, sums over `number` features."""
    return (4.0 + np.sqrt(number)) * EPS * value


@inline
def _search(
    pair: tuple, floor: float, accuracy: float, everywhere: bool, relaxation: float
) -> tuple[float, float, float, float]:
    """As `search`, and g(0): the angle, its gain, g(0) and the flops."""
    number = pair[2]
    start, slope, curvature = _curvature(pair, 1.0, 0.0, 0.0)
    flops = CURVATURE_FLOPS * number
    noise = max(floor, _rounding(start, number))
    # The curvature may be rounding: with γ = 0, g is constant.
    if everywhere or not curvature < -1e-9 * start or abs(slope) > -NEAR * curvature:
        theta, best, more = _best_of_grid(pair, start, floor, accuracy)
        flops += more
    else:
        step = -slope / curvature
        gain = 0.5 * slope * step
        if gain < noise:
            # Where it is below the rounding error of values, the slope determines it.
            return (step, gain, start, flops) if gain > floor else (0.0, 0.0, start, flops)
        if relaxation > 1.0:
            theta = relaxation * step
            best = _value(pair, np.cos(theta), np.sin(theta), 0.0)[0]
            flops += VALUE_FLOPS * number
            if best - start > max(floor, 0.5 * gain):
                return theta, best - start, start, flops
        theta, best, evaluations = _local_maximum(
            pair, 0.0, start, slope, step, 2.0 * NEAR, start, floor, accuracy
        )
        flops += SLOPE_FLOPS * number * evaluations
    return (theta, best - start, start, flops) if best - start > noise else (0.0, 0.0, start, flops)


@kernel
def search(
    pair: tuple, floor: float, accuracy: float, everywhere: bool, relaxation: float
) -> tuple[float, float, float]:
    """Find a good angle of a pair: the angle, its gain and the flops.

    Unless `everywhere`, a pair with a short Newton step to a local maximum goes to that maximum; with a `relaxation` above 1 it
    is rotated by this multiple of the Newton step, if that gains, too. Any other pair gets the best of a grid's refined maxima:
    a narrow maximum between grid points can be missed. `floor` is the smallest gain, `accuracy` the share of a gain that may be
    missed.
    """
    theta, gain, _, flops = _search(pair, floor, accuracy, everywhere, relaxation)
    return theta, gain, flops


@kernel
def exact_search(pair: tuple, floor: float, accuracy: float) -> tuple[float, float, float]:
    """Find the global maximum of a pair, up to rounding errors. Arguments and results are those of `search`."""
    x, y, number, first, second, l0 = pair
    period = (0.5 if first == second else 1.0) * np.pi
    theta, gain, start, flops = _search(pair, floor, accuracy, False, 1.0)
    theta -= period * np.rint(theta / period)
    noise = max(floor, _rounding(start, number))
    best = start + gain
    bounded = False
    if not l0:
        # Intervals over the period, which is centred at 0, and one of them around θ = 0.
        stack = np.empty((STACK_INTERVALS, 2))
        count = 9 if first == second else 17
        half = 0.5 * period / count
        for q in range(count):
            stack[q, 0], stack[q, 1] = 2.0 * half * (q - count // 2), half
        limit = 160  # evaluations, which take as long as sorting the breakpoints
        theta, best, evaluations = _global_maximum(pair, stack, count, theta, best, noise, limit)
        flops += CURVATURE_FLOPS * number * evaluations
        bounded = evaluations <= limit
    if not bounded:
        theta, more = sorted_search(x, y, number, first, second, l0, theta, best)
        best = _value(pair, np.cos(theta), np.sin(theta), 0.0)[0]
        flops += more + VALUE_FLOPS * number
    return (theta, best - start, flops) if best - start > noise else (0.0, 0.0, flops)
