"""Contrasts Σ φ(y): the sums over the data for a look, and the functions of every contrast.

A contrast is defined by one function, its `row`: for entries y of a column, it writes φ'(y) and φ''(y) and returns Σ φ(y).
`look_of`, and `search_of` of `scalar_search`, make the other functions from it. Those of built-in contrasts are cached on disk;
those of a user's contrast, which are closures, are compiled once per process. `counts` are weights of the rows of the data, by
which φ, φ' and φ'' are multiplied; an empty array stands for weights of 1.

Rows of Y are columns of the mathematics. The `weight` of a column is 1 if Σ φ is minimised over it, −1 if it is maximised.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numba import types

from givens.kernels.compile import bound, inline, kernel, named, returned_type
from givens.kernels.elementary import elementary, log, split_exp, vectorised
from givens.kernels.scalar_search import pairs_of, search_of

LN2 = 0.6931471805599453
CHUNK = 512  # number of factors 1 + e^(-2|y|), at most 2 each, whose product is formed before its logarithm
SMALL_MEAN = 1.0 / 256.0  # a smaller mean of log cosh would lose more than 8 bits by cancellation
SERIES = 0.125  # below it, log cosh is its power series, to the last bit
LOWEST = -80.0  # below it, e^x is negligible
STEP = 1.4901161193847656e-08  # √ε, the relative step for φ'' as a finite difference
LARGEST_SQUARE = np.float32(1e30)  # larger squares of entries are replaced by it: they only scale the steps

_numbers = count()


@inline
def _log_cosh_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """With e = exp(−2|y|), tanh |y| = (1 − e)/(1 + e) and log cosh y = |y| + log(1 + e) − log 2; one logarithm for many y.

    The terms of this sum cancel if y is small: chunks with a small mean are added up again, entry by entry.
    """
    total = 0.0
    if counts.shape[0]:
        for k in range(y.shape[0]):
            a = abs(y[k])
            _, t = _factor_and_tanh(a)
            total += counts[k] * (_log_cosh_series(a) if a < SERIES else a - log(1.0 + t))
            slopes[k] = counts[k] * (t if y[k] >= 0 else -t)
            curves[k] = counts[k] * (1.0 - t * t)
        return total
    for start in range(0, y.shape[0], CHUNK):
        # Slices with indices from 0: loops with indices that might be negative are not vectorised.
        stop = min(start + CHUNK, y.shape[0])
        part, first, second = y[start:stop], slopes[start:stop], curves[start:stop]
        product, size = 1.0, 0.0
        for k in range(part.shape[0]):
            a = abs(part[k])
            factor, t = _factor_and_tanh(a)
            first[k] = t if part[k] >= 0 else -t
            second[k] = 1.0 - t * t
            product *= factor
            size += a
        chunk = size + math.log(product) - LN2 * part.shape[0]
        if chunk < SMALL_MEAN * part.shape[0]:
            product, chunk = 1.0, 0.0
            for k in range(part.shape[0]):
                a = abs(part[k])
                small = a < SERIES
                chunk += _log_cosh_series(a) if small else a
                product *= 1.0 if small else 1.0 + abs(first[k])
            chunk -= math.log(product)
        total += chunk
    return total


@elementary
def _factor_and_tanh(a: float) -> tuple[float, float]:
    """1 + exp(−2a) and tanh a, for a ≥ 0; NaN for NaN."""
    x = -(a + a)
    scale, p = split_exp(LOWEST if x < LOWEST else x)
    factor = 1.0 + scale * (1.0 + p)
    return factor, ((1.0 - scale) - scale * p) / factor


@elementary
def _log_cosh_series(a: float) -> float:
    """log cosh a for small a, with an error relative to a²."""
    z = a * a
    p = 10922.0 / 42567525.0
    p = p * z - 691.0 / 935550.0
    p = p * z + 31.0 / 14175.0
    p = p * z - 17.0 / 2520.0
    p = p * z + 1.0 / 45.0
    p = p * z - 1.0 / 12.0
    p = p * z + 0.5
    return z * p


@elementary
def _exp_of_minus_half(square: float) -> float:
    """exp(−square/2)."""
    x = -0.5 * square
    scale, p = split_exp(LOWEST if x < LOWEST else x)
    return 0.0 if x < LOWEST else scale + scale * p


@inline
def _exp_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """φ = −exp(−y²/2)."""
    total = 0.0
    if counts.shape[0]:
        for k in range(y.shape[0]):
            square = y[k] * y[k]
            e = _exp_of_minus_half(square)
            slopes[k] = counts[k] * y[k] * e
            curves[k] = counts[k] * (e - square * e)
            total -= counts[k] * e
        return total
    for start in range(0, y.shape[0], CHUNK):
        stop = min(start + CHUNK, y.shape[0])
        part, first, second = y[start:stop], slopes[start:stop], curves[start:stop]
        size = 0.0
        for k in range(part.shape[0]):
            square = part[k] * part[k]
            e = _exp_of_minus_half(square)
            first[k] = part[k] * e
            second[k] = e - square * e
            size += e
        total -= size
    return total


def look_of(name: str, row: Any) -> Any:
    """Compile the sums of a look over the rows `begin` to `end` of the data, tile by tile, without the weights of columns.

    The function returns Σ φ(y_i); with `products` of 1 or 2 also Σ φ'(y_i) y_j and Σ φ''(y_i) y_j²; with 2 also Σ y_i y_j. The
    sums with φ'' are computed in single precision, which is enough for the choice of steps.
    """

    @named(name)
    def look(Y, begin, end, counts, Qt, active, step, products):  # type: ignore[no-untyped-def]
        n = Y.shape[0]
        values = np.zeros(active)
        shape = (active, n) if products >= 1 else (0, 0)
        first, second = np.zeros(shape), np.zeros(shape)
        part, rough = np.empty(shape), np.empty(shape, np.float32)
        gram = np.zeros((n, n)) if products >= 2 else np.zeros((0, 0))
        for start in range(begin, end, step):
            number = min(step, end - start)
            if start == begin or number < step:
                tile, turned = np.empty((n, number)), np.empty((n, number))
                slopes, curves = np.empty((active, number)), np.empty((active, number), np.float32)
                squares = np.empty((n, number), np.float32)
            _copy(Y, start, tile)
            if Qt.shape[0]:
                np.dot(Qt, tile, turned)
            else:
                tile, turned = turned, tile
            for i in range(active):
                values[i] += row(turned[i], counts[start : start + number], slopes[i], curves[i])
            if products >= 2:
                _add(np.dot(turned, turned.T), gram)
            if products >= 1:
                np.dot(slopes, turned.T, part)
                _add(part, first)
                _square(turned, squares)
                np.dot(curves, squares.T, rough)
                _add(rough, second)
        return values, first, second, gram

    return look


def second_of(name: str, row: Any) -> Any:
    """Compile the sums for second derivatives over the rows `begin` to `end`, tile by tile and in single precision.

    The function returns Σ φ'(y_i) y_j for active columns i and every j; Σ φ''(y_i) y_j y_k, with a row of the pairs j ≤ k for
    every i; and Σ y_j y_k, with the pairs in the same order.
    """

    @named(name)
    def second(Y, begin, end, Qt, active, step):  # type: ignore[no-untyped-def]
        n = Y.shape[0]
        count = n * (n + 1) // 2
        counts = np.empty(0)
        first, bends, gram = np.zeros((active, n)), np.zeros((active, count)), np.zeros(count)
        part = np.empty((active, count), np.float32)
        for start in range(begin, end, step):
            number = min(step, end - start)
            if start == begin or number < step:
                tile, turned = np.empty((n, number), np.float32), np.empty((n, number), np.float32)
                slopes, curves = (
                    np.empty((active, number), np.float32),
                    np.empty((active, number), np.float32),
                )
                products = np.empty((count, number), np.float32)
            _copy(Y, start, tile)
            np.dot(Qt, tile, turned)
            for i in range(active):
                row(turned[i], counts, slopes[i], curves[i])
            place = 0
            for j in range(n):
                for k in range(j, n):
                    gram[place] += _product(turned[j], turned[k], products[place])
                    place += 1
            _add(np.dot(slopes, turned.T), first)
            np.dot(curves, products.T, part)
            _add(part, bends)
        return first, bends, gram

    return second


@inline
def _copy(Y: np.ndarray, start: int, tile: np.ndarray) -> None:
    """Copy columns of Y, from `start` on. Loops: an assignment of slices would compile numba's messages of errors."""
    for i in range(tile.shape[0]):
        for r in range(tile.shape[1]):
            tile[i, r] = Y[i, start + r]


@inline
def _add(part: np.ndarray, total: np.ndarray) -> None:
    """Add a matrix to a total."""
    for i in range(part.shape[0]):
        for j in range(part.shape[1]):
            total[i, j] += part[i, j]


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


class ScalarKernels(NamedTuple):
    """The compiled functions of one contrast."""

    look: Any
    solve_pairs: Any
    solve_block: Any


def compile_scalar(
    phi: Callable, dphi: Callable, d2phi: Callable | None, pair: Callable | None, even: bool
) -> ScalarKernels:
    """The functions of a user's contrast, which are compiled when they are first called.

    A function that cannot be compiled is refused at once, with a TypeError.
    """
    name = f"scalar_{next(_numbers)}"
    row = row_of(name, phi, dphi, d2phi)
    search = search_of(name, row, even)
    if pair is not None:
        search = exact_of(name, pair, search)
    return ScalarKernels(look_of(name, row), *pairs_of(name, search))


def exact_of(name: str, pair: Any, search: Any) -> Any:
    """A user's exact solution of the pair problem; the search, if weights of columns differ or rows are weighted."""
    solve = pair if hasattr(pair, "py_func") else bound(pair)
    column = types.Array(types.float64, 1, "C")
    found = _returned("pair", solve, (column, column), "two arrays of floats")
    if found is not None and not (isinstance(found, types.BaseTuple) and len(found) == 2):
        raise TypeError(f"pair must return an angle and a gain, numba finds that it returns {found}")

    @named(name)
    def exact(x, y, counts, one, other):  # type: ignore[no-untyped-def]
        if one == other and not counts.shape[0]:
            theta, gain = solve(x, y)
            return float(theta), float(gain), 1
        return search(x, y, counts, one, other)

    return exact


def row_of(name: str, phi: Callable, dphi: Callable, d2phi: Callable | None) -> Any:
    """Compile the `row` of a user's φ, φ' and, if it is given, φ''."""
    value, slope = _of_a_number("phi", phi), _of_a_number("dphi", dphi)

    if d2phi is None:

        @elementary
        def curve(y):  # type: ignore[no-untyped-def]
            h = STEP * (1.0 + abs(y))
            return (slope(y + h) - slope(y)) / h

    else:
        curve = _of_a_number("d2phi", d2phi)

    @named(name)
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


def _of_a_number(role: str, function: Callable) -> Any:
    """Compile phi, dphi or d2phi; raise a TypeError of one sentence if numba cannot, or if it does not return a number."""
    compiled = vectorised(function)
    found = _returned(role, compiled, (types.float64,), "one float")
    if isinstance(found, types.Array) and found.ndim == 0:  # as np.where returns
        return elementary(lambda y: compiled(y)[()])
    if found is not None and not isinstance(
        types.unliteral(found), (types.Float, types.Integer, types.Boolean, types.Optional)
    ):
        raise TypeError(f"{role} must return one number for one float, numba finds that it returns {found}")
    return compiled


def _returned(role: str, compiled: Any, arguments: tuple, what: str) -> Any:
    """The type that a user's function returns, or None if compiling is switched off."""
    try:
        return returned_type(compiled, arguments)
    except Exception as error:  # numba's errors have no common class
        raise TypeError(
            f"numba cannot compile {role}: {_reason(error)}; use functions of math and plain arithmetic on {what}"
        ) from error


def _reason(error: Exception) -> str:
    """The first line of numba's message that gives a reason, without colours and paths."""
    text = re.sub(r"\x1b\[[0-9;]*m| from '[^']*'|\.* Raised from .*", "", str(error))
    lines = [line.lstrip(" >").rstrip(" .") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("Failed in nopython mode")]
    if not lines:
        return type(error).__name__
    return f"{lines[0]} {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]


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
