"""Contrasts Σ φ(y): the sums over the data for a look, and the search for the best angle of a pair.

A contrast is defined by one function, its `row`: for entries y of a column, it writes φ'(y) and φ''(y) and returns Σ φ(y).
`look_of` and `search_of` make the other functions from it. Those of built-in contrasts are cached on disk; those of a user's
contrast, which are closures, are compiled once per process. `counts` are weights of the rows of the data, by which φ, φ' and φ''
are multiplied; an empty array stands for weights of 1.

The best angle of a pair has no closed form. g, g' and g'' are computed on a grid over the period. Between two angles g is
interpolated by polynomials of degree 3 and 5, and their difference is an estimate of the error. Intervals that may hold a point
below the lowest value so far are divided, until there are none. Then Newton's method, within its bracket, finds the minimum. The
search is not exact, since the error is estimated: a kink between two angles can be missed.

Rows of Y are columns of the mathematics. The `weight` of a column is 1 if Σ φ is minimised over it, −1 if it is maximised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from givens.kernels.compile import bound, inline, kernel
from givens.kernels.elementary import elementary, split_exp, vectorised
from givens.kernels.rotate import rotate_pair, write_rotation

EPS = 2.220446049250313e-16
LN2 = 0.6931471805599453
CHUNK = 512  # number of factors 1 + e^(-2|y|), at most 2 each, whose product is formed before its logarithm
LOWEST = -80.0  # below it, e^x is negligible in both precisions
STEP = 1.4901161193847656e-08  # √ε, the relative step for φ'' as a finite difference

LARGEST_SQUARE = np.float32(1e30)

PIECE = 256  # number of entries of two columns that are rotated at a time, in the fastest cache
PER_QUARTER = 8  # number of angles of the first grid in a quarter turn
MOST_ANGLES = 128  # maximum number of angles in the grid
CLOSE = 1e-4  # share of the range of g: intervals that may be lower than the lowest value by more are divided
DOUBT = 4.0  # the error of the interpolation is estimated by this multiple of the difference of the two polynomials


_numbers = count()


def _named(name: str) -> Callable[[Callable], Any]:
    """Compile a closure under a unique name.

    Code is linked by name, cached code as well, and the closures of one function have the same name: without this, a contrast
    could get the machine code of another.
    """

    def compile_as(function: Callable) -> Any:
        function.__name__ = function.__qualname__ = f"{name}_{function.__name__}"
        return bound(function)

    return compile_as


@inline
def _log_cosh_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """With e = exp(−2|y|), tanh |y| = (1 − e)/(1 + e) and log cosh y = |y| + log(1 + e) − log 2; one logarithm for many y."""
    one, lowest = y.dtype.type(1.0), y.dtype.type(LOWEST)  # constants of the precision of y
    total = 0.0
    if counts.shape[0]:
        for k in range(y.shape[0]):
            a = abs(y[k])
            factor, t = _factor_and_tanh(a, one, lowest)
            total += counts[k] * (np.float64(a) + math.log(np.float64(factor)) - LN2)
            slopes[k] = counts[k] * (t if y[k] >= 0 else -t)
            curves[k] = counts[k] * (one - t * t)
        return total
    for start in range(0, y.shape[0], CHUNK):
        # Slices with indices from 0: loops with indices that might be negative are not vectorised.
        stop = min(start + CHUNK, y.shape[0])
        part, first, second = y[start:stop], slopes[start:stop], curves[start:stop]
        product, size = 1.0, y.dtype.type(0.0)
        for k in range(part.shape[0]):
            a = abs(part[k])
            factor, t = _factor_and_tanh(a, one, lowest)
            first[k] = t if part[k] >= 0 else -t
            second[k] = one - t * t
            product *= np.float64(factor)
            size += a
        total += size + math.log(product)
    return total - LN2 * y.shape[0]


@elementary
def _factor_and_tanh(a: float, one: float, lowest: float) -> tuple[float, float]:
    """1 + exp(−2a) and tanh a, for a ≥ 0; NaN for NaN."""
    x = -(a + a)
    scale, p = split_exp(lowest if x < lowest else x)
    factor = one + scale * (one + p)
    return factor, ((one - scale) - scale * p) / factor


@inline
def _exp_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """φ = −exp(−y²/2)."""
    lowest, zero = y.dtype.type(LOWEST), y.dtype.type(0.0)
    total = 0.0
    if counts.shape[0]:
        for k in range(y.shape[0]):
            square = y[k] * y[k]
            x = y.dtype.type(-0.5) * square
            scale, p = split_exp(lowest if x < lowest else x)
            e = zero if x < lowest else scale + scale * p
            slopes[k] = counts[k] * y[k] * e
            curves[k] = counts[k] * (e - square * e)
            total -= counts[k] * np.float64(e)
        return total
    for start in range(0, y.shape[0], CHUNK):
        stop = min(start + CHUNK, y.shape[0])
        part, first, second = y[start:stop], slopes[start:stop], curves[start:stop]
        size = y.dtype.type(0.0)
        for k in range(part.shape[0]):
            square = part[k] * part[k]
            x = y.dtype.type(-0.5) * square
            scale, p = split_exp(lowest if x < lowest else x)
            e = zero if x < lowest else scale + scale * p
            first[k] = part[k] * e
            second[k] = e - square * e
            size += e
        total -= size
    return total


def look_of(name: str, row: Any) -> Any:
    """Compile the sums of a look over some rows of the data, tile by tile, without the weights of columns.

    The function returns Σ φ(y_i); with `products` of 1 or 2 also Σ φ'(y_i) y_j and Σ φ''(y_i) y_j²; with 2 also Σ y_i y_j. The
    sums with φ'' are computed in single precision, which is enough for the choice of steps.
    """

    @_named(name)
    def look(Y, counts, Qt, active, step, products):  # type: ignore[no-untyped-def]
        n, rows = Y.shape
        values = np.zeros(active)
        shape = (active, n) if products >= 1 else (0, 0)
        first, second = np.zeros(shape), np.zeros(shape)
        part, rough = np.empty(shape, Qt.dtype), np.empty(shape, np.float32)
        gram = np.zeros((n, n)) if products >= 2 else np.zeros((0, 0))
        for start in range(0, rows, step):
            number = min(step, rows - start)
            if start == 0 or number < step:
                tile, turned = np.empty((n, number), Qt.dtype), np.empty((n, number), Qt.dtype)
                slopes, curves = np.empty((active, number), Qt.dtype), np.empty((active, number), np.float32)
                squares = np.empty((n, number), np.float32)
            for i in range(n):
                tile[i] = Y[i, start : start + number]
            if Qt.shape[0]:
                np.dot(Qt, tile, turned)
            else:
                tile, turned = turned, tile
            for i in range(active):
                values[i] += row(turned[i], counts[start : start + number], slopes[i], curves[i])
            if products >= 2:
                gram += np.dot(turned, turned.T)
            if products >= 1:
                np.dot(slopes, turned.T, part)
                first += part
                _square(turned, squares)
                np.dot(curves, squares.T, rough)
                second += rough
        return values, first, second, gram

    return look


def second_of(name: str, row: Any) -> Any:
    """Compile the sums for second derivatives over some rows of the data, tile by tile and in single precision.

    The function returns Σ φ'(y_i) y_j for active columns i and every j; Σ φ''(y_i) y_j y_k, with a row of the pairs j ≤ k for
    every i; and Σ y_j y_k, with the pairs in the same order.
    """

    @_named(name)
    def second(Y, Qt, active, step):  # type: ignore[no-untyped-def]
        n, rows = Y.shape
        count = n * (n + 1) // 2
        counts = np.empty(0)
        first, bends, gram = np.zeros((active, n)), np.zeros((active, count)), np.zeros(count)
        part = np.empty((active, count), np.float32)
        for start in range(0, rows, step):
            number = min(step, rows - start)
            if start == 0 or number < step:
                tile, turned = np.empty((n, number), np.float32), np.empty((n, number), np.float32)
                slopes, curves = (
                    np.empty((active, number), np.float32),
                    np.empty((active, number), np.float32),
                )
                products = np.empty((count, number), np.float32)
            for i in range(n):
                tile[i] = Y[i, start : start + number]
            np.dot(Qt, tile, turned)
            for i in range(active):
                row(turned[i], counts, slopes[i], curves[i])
            place = 0
            for j in range(n):
                for k in range(j, n):
                    gram[place] += _product(turned[j], turned[k], products[place])
                    place += 1
            first += np.dot(slopes, turned.T)
            np.dot(curves, products.T, part)
            bends += part
        return first, bends, gram

    return second


@inline
def _product(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> float:
    """Write the products of two rows into `out`; return their sum."""
    total = x.dtype.type(0.0)
    for r in range(x.shape[0]):
        out[r] = x[r] * y[r]
        total += out[r]
    return total


@inline
def _square(turned: np.ndarray, squares: np.ndarray) -> None:
    y, out = turned.reshape(turned.size), squares.reshape(squares.size)
    for k in range(y.shape[0]):
        # Where y² overflows in single precision, φ'' is 0 or has no meaning.
        square = y[k] * y[k]
        out[k] = square if square < LARGEST_SQUARE else LARGEST_SQUARE


def pairs_of(name: str, search: Any) -> tuple[Any, Any]:
    """Compile two functions: the best rotation of each pair by itself, and rotations of all pairs of a block in turn."""

    @_named(name)
    def solve_pairs(Y, counts, pairs, active, weights):  # type: ignore[no-untyped-def]
        count = pairs.shape[0]
        rotations = np.empty((count, 2, 2))
        gains = np.empty(count)
        rotated = angles = 0
        for p in range(count):
            i, j = pairs[p]
            other = weights[j] if j < active else 0.0
            theta, gain, seen = search(Y[i], Y[j], counts, weights[i], other)
            write_rotation(rotations[p], math.cos(theta), math.sin(theta))
            gains[p] = gain
            rotated += gain > 0.0
            angles += seen
        return rotations, gains, rotated, angles

    @_named(name)
    def solve_block(Y, counts, active, weights):  # type: ignore[no-untyped-def]
        size = Y.shape[0]
        Qt = np.eye(size)
        total = 0.0
        rotated = angles = 0
        for i in range(min(active, size)):
            for j in range(i + 1, size):
                other = weights[j] if j < active else 0.0
                theta, gain, seen = search(Y[i], Y[j], counts, weights[i], other)
                angles += seen
                if gain <= 0.0:
                    continue
                c, s = math.cos(theta), math.sin(theta)
                rotate_pair(Y[i], Y[j], Y.shape[1], c, s)
                rotate_pair(Qt[i], Qt[j], size, c, s)
                total += gain
                rotated += 1
        return Qt.T.copy(), total, rotated, angles

    return solve_pairs, solve_block


def search_of(name: str, row: Any, even: bool) -> Any:
    """Compile the search for the best angle of two columns: angle, gain, and the number of angles that were evaluated."""

    @_named(name)
    def at(x, y, counts, theta, one, other, room):  # type: ignore[no-untyped-def]
        """g, g', g'' and the sum of the absolute terms of g', by which its rounding error is estimated."""
        c, s = math.cos(theta), math.sin(theta)
        value = slope = curve = size = 0.0
        for start in range(0, x.shape[0], PIECE):
            number = min(PIECE, x.shape[0] - start)
            a, b, often = x[start : start + number], y[start : start + number], counts[start : start + number]
            p, dp, ddp = room[0, :number], room[1, :number], room[2, :number]
            q, dq, ddq = room[3, :number], room[4, :number], room[5, :number]
            for k in range(number):
                p[k] = c * a[k] + s * b[k]
                q[k] = c * b[k] - s * a[k]
            value += one * row(p, often, dp, ddp)
            if other != 0.0:
                value += other * row(q, often, dq, ddq)
            else:
                dq[:] = 0.0
                ddq[:] = 0.0
            for k in range(number):
                left, right = one * dp[k], other * dq[k]
                slope += left * q[k] - right * p[k]
                size += abs(left * q[k]) + abs(right * p[k])
                curve += (
                    one * ddp[k] * q[k] * q[k] - left * p[k] + other * ddq[k] * p[k] * p[k] - right * q[k]
                )
        return value, slope, curve, size

    @_named(name)
    def search(x, y, counts, one, other):  # type: ignore[no-untyped-def]
        quarters = 4
        if even:
            quarters = 1 if one == other else 2
        points = PER_QUARTER * quarters
        step = 0.5 * math.pi / PER_QUARTER
        room = np.empty((6, PIECE))
        # Angle, g, g' and g'' of the grid, in the order of the angles: one period, centred at 0.
        seen = np.empty((MOST_ANGLES + 1, 4))
        start, start_slope, start_curve, start_size = at(x, y, counts, 0.0, one, other, room)
        for k in range(points):
            theta = (k - points // 2) * step
            seen[k, 0] = theta
            if theta == 0.0:
                seen[k, 1], seen[k, 2], seen[k, 3] = start, start_slope, start_curve
            else:
                seen[k, 1], seen[k, 2], seen[k, 3], _ = at(x, y, counts, theta, one, other, room)
        seen[points] = seen[0]
        seen[points, 0] = -seen[0, 0]
        number = points + 1
        looked = points
        while number <= MOST_ANGLES:
            k, theta = _doubtful(seen[:number])
            if k < 0:
                break
            for m in range(number, k + 1, -1):
                seen[m] = seen[m - 1]
            seen[k + 1, 0] = theta
            seen[k + 1, 1], seen[k + 1, 2], seen[k + 1, 3], _ = at(x, y, counts, theta, one, other, room)
            number += 1
            looked += 1
        best = _lowest(seen[:number], 64.0 * EPS * abs(start))
        low, theta, high = _bracket(seen[:number], best)
        value, slope, curve = seen[best, 1], seen[best, 2], seen[best, 3]
        for _ in range(60):
            # Newton's step, or bisection if that leaves the bracket.
            trial = theta - slope / curve if curve > 0.0 else low
            if not low < trial < high:
                trial = 0.5 * (theta + (high if slope < 0.0 else low))
            if abs(trial - theta) <= 2.0 * EPS * abs(theta) or trial == theta:
                break
            there, there_slope, there_curve, size = at(x, y, counts, trial, one, other, room)
            looked += 1
            # If the values differ by rounding only, the slopes decide.
            near = 16.0 * EPS * (abs(value) + abs(there))
            if there < value - near or (there <= value + near and abs(there_slope) <= abs(slope)):
                if trial > theta:
                    low = theta
                else:
                    high = theta
                theta, value, slope, curve = trial, there, there_slope, there_curve
                if abs(slope) <= 8.0 * EPS * size:
                    break
            elif trial > theta:
                high = trial
            else:
                low = trial
        if abs(theta) < 1e-4:
            # For small angles a difference of values would cancel: take the parabola at 0.
            if abs(start_slope) <= 16.0 * EPS * start_size:
                return 0.0, 0.0, looked
            return theta, max(-0.5 * start_slope * theta, 0.0), looked
        gain = start - value
        if gain <= 64.0 * EPS * abs(start):
            return 0.0, 0.0, looked
        return theta, gain, looked

    return search


@inline
def _lowest(seen: np.ndarray, little: float) -> int:
    """The index of the lowest value of the grid; among values that differ by at most `little`, of the smallest |angle|."""
    best = 0
    for k in range(1, seen.shape[0]):
        fall = seen[best, 1] - seen[k, 1]
        if fall > little or (fall >= -little and abs(seen[k, 0]) < abs(seen[best, 0])):
            best = k
    return best


@inline
def _bracket(seen: np.ndarray, best: int) -> tuple[float, float, float]:
    """An angle of the grid between its two neighbours; the grid is periodic."""
    last = seen.shape[0] - 1
    theta = seen[best, 0]
    low = seen[best - 1, 0] if best > 0 else theta - (seen[last, 0] - seen[last - 1, 0])
    high = seen[best + 1, 0] if best < last else theta + (seen[1, 0] - seen[0, 0])
    return low, theta, high


@inline
def _doubtful(seen: np.ndarray) -> tuple[int, float]:
    """The interval with the lowest estimated minimum, and the angle of this minimum; −1 if the grid is low enough."""
    lowest = seen[:, 1].min()
    little = CLOSE * (seen[:, 1].max() - lowest) + 64.0 * EPS * abs(lowest)
    which, least, where = -1, lowest - little, 0.0
    for k in range(seen.shape[0] - 1):
        bound_, theta = _floor(seen[k], seen[k + 1])
        if bound_ < least:
            which, least, where = k, bound_, theta
    return which, where


@inline
def _floor(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """An estimated lower bound of g between two angles, and the angle at which the interpolation is lowest."""
    h = right[0] - left[0]
    a, b, c = left[1], left[2] * h, 0.5 * left[3] * h * h
    # The polynomial a + bt + ct² + t³(d + et + ft²) with the same value, slope and curvature at t = 1.
    rise = right[1] - a - b - c
    turn = right[2] * h - b - 2.0 * c
    bend = 0.5 * (right[3] * h * h - 2.0 * c)
    d = 10.0 * rise - 4.0 * turn + bend
    e = -15.0 * rise + 7.0 * turn - 2.0 * bend
    f = 6.0 * rise - 3.0 * turn + bend
    # And a + bt + t²(u + vt), which does not use the curvatures.
    up, along = right[1] - a - b, right[2] * h - b
    u, v = 3.0 * up - along, along - 2.0 * up
    low, where = a, 0.5
    doubt = 0.0
    for k in range(1, 8):
        t = 0.125 * k
        five = a + t * (b + t * (c + t * (d + t * (e + t * f))))
        three = a + t * (b + t * (u + t * v))
        doubt = max(doubt, abs(five - three))
        if five < low:
            low, where = five, t
    return low - DOUBT * doubt, left[0] + where * h


class ScalarKernels(NamedTuple):
    """The compiled functions of one contrast."""

    look: Any
    solve_pairs: Any
    solve_block: Any


def compile_scalar(
    phi: Callable, dphi: Callable, d2phi: Callable | None, pair: Callable | None, even: bool
) -> ScalarKernels:
    """The functions of a user's contrast, which are compiled when they are first called."""
    name = f"scalar_{next(_numbers)}"
    row = row_of(name, phi, dphi, d2phi)
    search = search_of(name, row, even)
    if pair is not None:
        search = exact_of(name, pair, search)
    return ScalarKernels(look_of(name, row), *pairs_of(name, search))


def exact_of(name: str, pair: Any, search: Any) -> Any:
    """A user's exact solution of the pair problem; the search, if weights of columns differ or rows are weighted."""
    solve = pair if hasattr(pair, "py_func") else bound(pair)

    @_named(name)
    def exact(x, y, counts, one, other):  # type: ignore[no-untyped-def]
        if one == other and not counts.shape[0]:
            theta, gain = solve(x, y)
            return float(theta), float(gain), 1
        return search(x, y, counts, one, other)

    return exact


def row_of(name: str, phi: Callable, dphi: Callable, d2phi: Callable | None) -> Any:
    """Compile the `row` of a user's φ, φ' and, if it is given, φ''."""
    value, slope = vectorised(phi), vectorised(dphi)

    if d2phi is None:

        @elementary
        def curve(y):  # type: ignore[no-untyped-def]
            h = STEP * (1.0 + abs(y))
            return (slope(y + h) - slope(y)) / h

    else:
        curve = vectorised(d2phi)

    @_named(name)
    def row(y, counts, slopes, curves):  # type: ignore[no-untyped-def]
        total = 0.0
        if counts.shape[0]:
            for k in range(y.shape[0]):
                entry = np.float64(y[k])
                total += counts[k] * value(entry)
                slopes[k] = counts[k] * slope(entry)
                curves[k] = counts[k] * curve(entry)
            return total
        for k in range(y.shape[0]):
            entry = np.float64(y[k])
            total += value(entry)
            slopes[k] = slope(entry)
            curves[k] = curve(entry)
        return total

    return row


@inline
def _fourth_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """φ = y⁴; `counts` is not used, since weighted rows are multiplied by the fourth roots of their weights."""
    four, twelve = y.dtype.type(4.0), y.dtype.type(12.0)
    total = 0.0
    for start in range(0, y.shape[0], CHUNK):
        stop = min(start + CHUNK, y.shape[0])
        part, first, second = y[start:stop], slopes[start:stop], curves[start:stop]
        size = y.dtype.type(0.0)
        for k in range(part.shape[0]):
            square = part[k] * part[k]
            first[k] = four * square * part[k]
            second[k] = twelve * square
            size += square * square
        total += size
    return total


@kernel
def bend(T: np.ndarray, K: np.ndarray, out: np.ndarray) -> None:
    """Write T_i times row i of K into row i of `out`, in the precision of T."""
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            total = T.dtype.type(0.0)
            for k in range(T.shape[2]):
                total += T[i, j, k] * K[i, k]
            out[i, j] = total


# Closures are not cached on disk; these functions, which call them, are.
_fourth_look, _fourth_second = look_of("fourth", _fourth_row), second_of("fourth", _fourth_row)
_log_cosh_look, _exp_look = look_of("log_cosh", _log_cosh_row), look_of("exp", _exp_row)
_log_cosh_pairs, _log_cosh_block = pairs_of("log_cosh", search_of("log_cosh", _log_cosh_row, even=True))
_exp_pairs, _exp_block = pairs_of("exp", search_of("exp", _exp_row, even=True))


@kernel
def fourth_look(*args: Any) -> Any:
    """See `look_of`; for fourth powers."""
    return _fourth_look(*args)


@kernel
def fourth_second(*args: Any) -> Any:
    """See `second_of`; for fourth powers."""
    return _fourth_second(*args)


@kernel
def log_cosh_look(*args: Any) -> Any:
    """See `look_of`."""
    return _log_cosh_look(*args)


@kernel
def log_cosh_pairs(*args: Any) -> Any:
    """See `pairs_of`."""
    return _log_cosh_pairs(*args)


@kernel
def log_cosh_block(*args: Any) -> Any:
    """See `pairs_of`."""
    return _log_cosh_block(*args)


@kernel
def exp_look(*args: Any) -> Any:
    """See `look_of`."""
    return _exp_look(*args)


@kernel
def exp_pairs(*args: Any) -> Any:
    """See `pairs_of`."""
    return _exp_pairs(*args)


@kernel
def exp_block(*args: Any) -> Any:
    """See `pairs_of`."""
    return _exp_block(*args)


LOG_COSH = ScalarKernels(log_cosh_look, log_cosh_pairs, log_cosh_block)
EXP = ScalarKernels(exp_look, exp_pairs, exp_block)
