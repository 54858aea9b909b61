"""The pair problem of sparse PCA.

All functions maximise g(θ) = φ(x cos θ + y sin θ) + φ(y cos θ − x sin θ), with φ(y) = Σ_k [|y_k| − γ]₊² (ℓ1) or Σ_k [y_k² − γ]₊
(ℓ0), and one γ per column. Inactive columns (of the Stiefel form) have γ = ∞, so that no pair is a special case. The period of
g is π/2 if the two γ are equal, else π.

`first` and `second` are the levels of the two columns, γ for ℓ1 and √γ for ℓ0, where |y| > level means y² > γ.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.sorted_breakpoints import sorted_search
from givens.support.arguments import EPS

FLAT = 1e-9  # share of the value below which a curvature is rounding
GRID_L1 = 8  # number of grid points per quarter turn
GRID_L0 = 24  # the same for ℓ0, where g has kinks and more maxima
ROOM = 48  # number of grid points of the longest period
CLIMBS = 3  # maximum number of the grid's maxima that are refined
PROMISE = 0.25  # times the second difference of the grid: how much higher a maximum between its points may be
NEAR = 0.15  # radians: if the Newton step to a maximum is shorter than this, other angles are not searched
WIDE = 0.05  # radians: where g must be concave, if a pair is to be near its maximum
NARROW = 1e-4  # radians: the same for a pair that has converged
VALUES = 16  # number of values of g by which all other angles are excluded, if possible
INTERVALS = 8  # number of intervals per quarter turn with which `_certify` begins
LOOKS = 160  # number of evaluations that take as long as sorting the breakpoints
WAITING = 64


@inline
def _value(
    x: np.ndarray, y: np.ndarray, number: int, c: float, s: float, first: float, second: float, l0: bool
) -> float:
    """g(θ), from c = cos θ and s = sin θ."""
    total = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ta = a * a - p
            tb = b * b - q
            ta = ta if ta > 0.0 else 0.0
            tb = tb if tb > 0.0 else 0.0
            total += ta + tb
    else:
        for k in range(number):
            ta = abs(c * x[k] + s * y[k]) - first
            tb = abs(c * y[k] - s * x[k]) - second
            ta = ta if ta > 0.0 else 0.0
            tb = tb if tb > 0.0 else 0.0
            total += ta * ta + tb * tb
    return total


@inline
def _slope(
    x: np.ndarray, y: np.ndarray, number: int, c: float, s: float, first: float, second: float, l0: bool
) -> tuple[float, float]:
    """g(θ) and g'(θ)."""
    total = 0.0
    slope = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ta = a * a - p
            tb = b * b - q
            ab = a * b
            total += (ta if ta > 0.0 else 0.0) + (tb if tb > 0.0 else 0.0)
            slope += (ab if ta > 0.0 else 0.0) - (ab if tb > 0.0 else 0.0)
    else:
        for k in range(number):
            a = c * x[k] + s * y[k]
            b = c * y[k] - s * x[k]
            ca = a if a < first else first
            ca = ca if ca > -first else -first
            cb = b if b < second else second
            cb = cb if cb > -second else -second
            sa = a - ca
            sb = b - cb
            total += sa * sa + sb * sb
            slope += sa * b - sb * a
    return total, 2.0 * slope


@inline
def _curvature(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float, l0: bool
) -> tuple[float, float, float]:
    """g(0), g'(0) and, where it exists, g''(0)."""
    total = 0.0
    slope = 0.0
    bend = 0.0
    if l0:
        p, q = first * first, second * second
        for k in range(number):
            a = x[k]
            b = y[k]
            ta = a * a - p
            tb = b * b - q
            ab = a * b
            difference = b * b - a * a
            total += (ta if ta > 0.0 else 0.0) + (tb if tb > 0.0 else 0.0)
            slope += (ab if ta > 0.0 else 0.0) - (ab if tb > 0.0 else 0.0)
            bend += (difference if ta > 0.0 else 0.0) - (difference if tb > 0.0 else 0.0)
    else:
        for k in range(number):
            a = x[k]
            b = y[k]
            ca = a if a < first else first
            ca = ca if ca > -first else -first
            cb = b if b < second else second
            cb = cb if cb > -second else -second
            sa = a - ca
            sb = b - cb
            total += sa * sa + sb * sb
            slope += sa * b - sb * a
            bend += (b * b - sa * a if sa != 0.0 else 0.0) + (a * a - sb * b if sb != 0.0 else 0.0)
    return total, 2.0 * slope, 2.0 * bend


@inline
def _climb(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    start: float,
    begin: float,
    slope: float,
    trial: float,
    step: float,
    height: float,
    floor: float,
    accuracy: float,
) -> tuple[float, float, int]:
    """Refine a maximum of g within `step` of `begin`, where g is `height` and g' is `slope`, by the secant method.

    The method begins at `trial`. It ends when the maximum is predicted to be higher by at most `floor`, or by at most the share
    `accuracy` of the gain over `start`. Returns the best angle, its value and the number of evaluations of g'.
    """
    theta, best = begin, height
    last, last_slope = begin, slope
    low, high = begin - step, begin + step
    looks = 0
    for _ in range(60):
        if last_slope > 0.0:
            low = last
        else:
            high = last
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if trial == last or high - low < 1e-15:
            break
        value, slope = _slope(x, y, number, np.cos(trial), np.sin(trial), first, second, l0)
        looks += 1
        if value > best:
            best, theta = value, trial
        bend = (slope - last_slope) / (trial - last)
        last, last_slope = trial, slope
        if bend < 0.0:
            left = -0.5 * slope * slope / bend
            if left <= floor or left <= accuracy * (best - start):
                break
            trial = last - slope / bend
        else:
            trial = np.inf  # outside the bracket, so that it is bisected
    return theta, best, looks


@inline
def _from_grid(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    start: float,
    slope: float,
    floor: float,
    accuracy: float,
    values: np.ndarray,
) -> tuple[float, float, float]:
    """The best of the refined maxima of a grid: its angle, its value and the flops. `start` and `slope` are g(0) and g'(0)."""
    flops = 0.0
    grid = GRID_L0 if l0 else GRID_L1
    count = grid if first == second else 2 * grid
    step = 0.5 * np.pi / grid
    turn_c, turn_s = np.cos(step), np.sin(step)
    c, s = 1.0, 0.0
    values[0] = start
    for q in range(1, count):
        c, s = c * turn_c - s * turn_s, s * turn_c + c * turn_s
        values[q] = _value(x, y, number, c, s, first, second, l0)
    flops += 12.0 * number * (count - 1)
    theta, best = 0.0, start
    for _ in range(CLIMBS):
        # Outwards from θ = 0: among equal maxima the smallest |angle| is taken.
        top, highest = -1, -np.inf
        for q in range(count // 2 + 1):
            for k in (q, (count - q) % count):
                peak = (
                    values[k] >= values[k - 1 if k > 0 else count - 1]
                    and values[k] >= values[(k + 1) % count]
                )
                if abs(values[k]) > highest and peak:
                    top, highest = k, values[k]
        if top < 0 or highest <= 0.0:
            break
        before, after = abs(values[top - 1 if top > 0 else count - 1]), abs(values[(top + 1) % count])
        # Skip a maximum that is unlikely to be above the best one.
        if highest + PROMISE * (2.0 * highest - before - after) <= best:
            values[top] = -highest
            continue
        begin = step * (top if top <= count // 2 else top - count)
        if top > 0:
            _, slope = _slope(x, y, number, np.cos(begin), np.sin(begin), first, second, l0)
            flops += 16.0 * number
        hollow = 2.0 * highest - before - after
        trial = begin + 0.5 * step * (after - before) / hollow if hollow > 0.0 else begin
        if (trial - begin) * slope <= 0.0:
            trial = begin + (0.25 * step if slope > 0.0 else -0.25 * step)
        angle, height, looks = _climb(
            x, y, number, first, second, l0, start, begin, slope, trial, step, highest, floor, accuracy
        )
        flops += 16.0 * number * looks
        if height > best:
            best, theta = height, angle
        values[top] = -highest
    return theta, best, flops


@inline
def _bounds(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float, middle: float, half: float
) -> tuple[float, float, float]:
    """g and g' at the middle of an interval, and an upper bound of g'' within it, for ℓ1.

    g'' is the sum of 2(1[|a| > γ]·b² − S(a)·a) over the entries a, b of the rotated columns, and of the same with a and b
    exchanged. Within the interval |a| and |b| are bounded by their values in the middle.
    """
    c, s = np.cos(middle), np.sin(middle)
    near, far = np.cos(half), np.sin(half)
    total = 0.0
    slope = 0.0
    most = 0.0
    for k in range(number):
        a = c * x[k] + s * y[k]
        b = c * y[k] - s * x[k]
        ca = a if a < first else first
        ca = ca if ca > -first else -first
        cb = b if b < second else second
        cb = cb if cb > -second else -second
        sa = a - ca
        sb = b - cb
        total += sa * sa + sb * sb
        slope += sa * b - sb * a
        a, b = abs(a), abs(b)
        most_a, most_b = a + far * b, b + far * a
        least_a, least_b = near * a - far * b, near * b - far * a
        most += (most_b * most_b if most_a > first else 0.0) + (most_a * most_a if most_b > second else 0.0)
        most -= (least_a - first) * least_a if least_a > first else 0.0
        most -= (least_b - second) * least_b if least_b > second else 0.0
    return total, 2.0 * slope, 2.0 * most


@inline
def _certify(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    start: float,
    theta: float,
    best: float,
    noise: float,
    floor: float,
    accuracy: float,
) -> tuple[float, float, float]:
    """The global maximum for ℓ1, given the best one of a grid: angle, value and flops.

    The period is divided into intervals. An interval in which g cannot exceed the best value is excluded; if g is concave in
    it, its maximum is found by `_climb`; otherwise it is halved. If this takes too long, the sorted breakpoints are used
    instead.
    """
    stack = np.empty((2 * WAITING, 2))
    count = INTERVALS if first == second else 2 * INTERVALS
    half = 0.25 * np.pi / INTERVALS
    for q in range(count):
        stack[q, 0], stack[q, 1] = 2.0 * half * (q + 0.5 - 0.5 * count), half
    size, looks = count, 0
    flops = 0.0
    while size > 0:
        if looks >= LOOKS or size + 2 > len(stack):
            angle, cost = sorted_search(x, y, number, first, second, False)
            height = _value(x, y, number, np.cos(angle), np.sin(angle), first, second, False)
            flops += cost + 12.0 * number
            return (angle, height, flops) if height > best else (theta, best, flops)
        size -= 1
        middle, half = stack[size, 0], stack[size, 1]
        height, slope, most = _bounds(x, y, number, first, second, middle, half)
        looks += 1
        flops += 40.0 * number
        concave = most < 0.0
        if concave and abs(slope) <= -most * half:
            bound = height - 0.5 * slope * slope / most
        else:
            bound = height + abs(slope) * half + 0.5 * most * half * half
        if bound <= best + noise:
            continue
        if not concave:
            stack[size, 0], stack[size, 1] = middle - 0.5 * half, 0.5 * half
            stack[size + 1, 0], stack[size + 1, 1] = middle + 0.5 * half, 0.5 * half
            size += 2
            continue
        if abs(theta - middle) <= half:
            # The best angle so far may be this maximum: its slope bounds the difference.
            _, slope_there = _slope(x, y, number, np.cos(theta), np.sin(theta), first, second, False)
            flops += 16.0 * number
            looks += 1
            if -0.5 * slope_there * slope_there / most <= noise:
                continue
        trial = min(max(middle - slope / most, middle - half), middle + half)
        angle, top, climbed = _climb(
            x, y, number, first, second, False, start, middle, slope, trial, half, height, floor, accuracy
        )
        flops += 16.0 * number * climbed
        looks += climbed
        if top > best:
            best, theta = top, angle
    return theta, best, flops


@inline
def _around(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float
) -> tuple[float, float, float, float, float]:
    """g(0) and g'(0), upper bounds of g'' for |θ| ≤ WIDE and for |θ| ≤ NARROW, and one of −g'' at all angles, for ℓ1.

    The bounds of g'' are those of `_bounds`. −g'' is at most the sum of 2(S(a)·a + S(b)·b), in which S(a)·a is |a|(|a| − γ) where
    that is positive, and else 0; for a given r² = a² + b² this is largest where a = r and b = 0.
    """
    near, far = np.cos(WIDE), np.sin(WIDE)
    close, off = np.cos(NARROW), np.sin(NARROW)
    least = min(first, second)
    total = 0.0
    slope = 0.0
    wide = 0.0
    narrow = 0.0
    hollow = 0.0
    for k in range(number):
        sa = x[k] - min(max(x[k], -first), first)
        sb = y[k] - min(max(y[k], -second), second)
        total += sa * sa + sb * sb
        slope += sa * y[k] - sb * x[k]
        a, b = abs(x[k]), abs(y[k])
        most_a, most_b = a + far * b, b + far * a
        least_a, least_b = near * a - far * b, near * b - far * a
        wide += (most_b * most_b if most_a > first else 0.0) + (most_a * most_a if most_b > second else 0.0)
        wide -= (least_a - first) * least_a if least_a > first else 0.0
        wide -= (least_b - second) * least_b if least_b > second else 0.0
        most_a, most_b = a + off * b, b + off * a
        least_a, least_b = close * a - off * b, close * b - off * a
        narrow += (most_b * most_b if most_a > first else 0.0) + (most_a * most_a if most_b > second else 0.0)
        narrow -= (least_a - first) * least_a if least_a > first else 0.0
        narrow -= (least_b - second) * least_b if least_b > second else 0.0
        square = a * a + b * b
        hollow += max(square - least * np.sqrt(square), 0.0)
    return total, 2.0 * slope, 2.0 * wide, 2.0 * narrow, 2.0 * hollow


@inline
def _none_above(
    x: np.ndarray, y: np.ndarray, number: int, first: float, second: float, hollow: float, limit: float
) -> tuple[bool, float]:
    """Whether g is proved to be at most `limit` at all angles with |θ| ≥ WIDE, for ℓ1, and the flops.

    Since g'' ≥ −K, with K = `hollow`, g is below the parabola of this curvature through its values at two angles. At a distance h
    of the angles, and with values that differ by d < ½Kh², the top of the parabola is ⅛Kh² + ½d²/(Kh²) above their mean. An
    interval in which it exceeds the limit is divided, the more unevenly the nearer to θ = 0, where g is close to the limit.
    """
    stack = np.empty((VALUES, 2))
    end = 0.25 * np.pi if first == second else 0.5 * np.pi
    last = _value(x, y, number, np.cos(end), np.sin(end), first, second, False)
    looks = 1
    for side in (1.0, -1.0):
        low = WIDE
        here = _value(x, y, number, np.cos(low), side * np.sin(low), first, second, False)
        looks += 1
        stack[0, 0], stack[0, 1] = end, last
        size = 1
        while size > 0:
            high, there = stack[size - 1, 0], stack[size - 1, 1]
            bend, fall = 0.5 * hollow * (high - low) ** 2, abs(here - there)
            top = max(here, there)
            if fall < bend:
                top = 0.5 * (here + there) + 0.25 * bend + 0.25 * fall * fall / bend
            if top <= limit:
                low, here = high, there
                size -= 1
                continue
            if max(here, there) > limit or looks >= VALUES:
                return False, 12.0 * number * looks
            middle = np.sqrt(low * high)
            stack[size, 0] = middle
            stack[size, 1] = _value(x, y, number, np.cos(middle), side * np.sin(middle), first, second, False)
            size += 1
            looks += 1
    return True, 12.0 * number * looks


@inline
def _rounding(value: float, number: int) -> float:
    """The rounding error of a difference of two values of g, sums over `number` features."""
    return (4.0 + np.sqrt(number)) * EPS * value


@kernel
def search(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    floor: float,
    accuracy: float,
    everywhere: bool,
    relaxation: float,
    values: np.ndarray,
) -> tuple[float, float, float]:
    """Find a good angle of a pair, from its first `number` features: the angle, its gain and the flops.

    Unless `everywhere`, a pair with a short Newton step to a local maximum goes to that maximum; with a `relaxation` above 1 it
    is rotated by this multiple of the Newton step, if that gains, too. Any other pair gets the best of a grid's refined maxima:
    a narrow maximum between grid points can be missed. `floor` is the smallest gain, `accuracy` the share of a gain that may be
    missed, and `values` is workspace for ROOM numbers.
    """
    start, slope, bend = _curvature(x, y, number, first, second, l0)
    flops = 18.0 * number
    noise = max(floor, _rounding(start, number))
    # The curvature may be rounding: with γ = 0, g is constant.
    if bend < -FLAT * start and abs(slope) <= NEAR * -bend and not everywhere:
        if slope * slope <= -2.0 * bend * floor:
            return 0.0, 0.0, flops
        if -0.5 * slope * slope / bend < noise:
            # The gain is below the rounding error of values, but the slope determines it.
            return -slope / bend, -0.5 * slope * slope / bend, flops
        if relaxation > 1.0:
            trial = -relaxation * slope / bend
            best = _value(x, y, number, np.cos(trial), np.sin(trial), first, second, l0)
            flops += 12.0 * number
            if best - start > floor and best - start > -0.25 * slope * slope / bend:
                return trial, best - start, flops
        step = 2.0 * NEAR
        theta, best, looks = _climb(
            x, y, number, first, second, l0, start, 0.0, slope, -slope / bend, step, start, floor, accuracy
        )
        flops += 16.0 * number * looks
    else:
        theta, best, cost = _from_grid(x, y, number, first, second, l0, start, slope, floor, accuracy, values)
        flops += cost
    if not best - start > noise:
        return 0.0, 0.0, flops
    return theta, best - start, flops


@kernel
def exact_search(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    floor: float,
    accuracy: float,
    values: np.ndarray,
) -> tuple[float, float, float]:
    """Find the global maximum of a pair, up to rounding errors. Arguments and results are those of `search`."""
    if l0:
        start, _, _ = _curvature(x, y, number, first, second, l0)
        theta, flops = sorted_search(x, y, number, first, second, l0)
        best = _value(x, y, number, np.cos(theta), np.sin(theta), first, second, l0)
        flops += 30.0 * number
    else:
        start, slope, wide, narrow, hollow = _around(x, y, number, first, second)
        flops = 60.0 * number
        noise = max(floor, _rounding(start, number))
        theta, best, proved = 0.0, start, False
        if wide < 0.0 and abs(slope) <= -wide * WIDE:
            # g is concave around θ = 0 and has its maximum there; from now on the pair has converged, or nearly so.
            if abs(slope) > -narrow * NARROW or -0.5 * slope * slope / narrow > noise:
                theta, best, looks = _climb(
                    x,
                    y,
                    number,
                    first,
                    second,
                    l0,
                    start,
                    0.0,
                    slope,
                    -slope / narrow,
                    WIDE,
                    start,
                    floor,
                    accuracy,
                )
                flops += 16.0 * number * looks
            proved, cost = _none_above(x, y, number, first, second, hollow, best + noise)
            flops += cost
        if not proved:
            theta, best, cost = _from_grid(
                x, y, number, first, second, l0, start, slope, floor, accuracy, values
            )
            flops += cost
            theta, best, cost = _certify(
                x, y, number, first, second, start, theta, best, noise, floor, accuracy
            )
            flops += cost
    if not best - start > max(floor, _rounding(start, number)):
        return 0.0, 0.0, flops
    return theta, best - start, flops
