"""Contrasts Σ φ(y): the functions of every contrast.

A contrast is defined by one function, its `row`: for entries y of a column, it writes φ'(y) and φ''(y) and returns Σ φ(y).
`terms_of`, and `search_of` of `scalar_search`, make the other functions from it. Those of built-in contrasts are cached on disk;
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
from givens.kernels.scalar_search import search_of
from givens.support.arguments import EPS

LOWEST = -80.0  # below it, e^x is negligible

_numbers = count()


@inline
def _log_cosh_row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
    """With e = exp(−2|y|), tanh |y| = (1 − e)/(1 + e) and log cosh y = |y| + log(1 + e) − log 2; one logarithm for many y.

    The terms of this sum cancel if y is small: weighted chunks, and those with a small mean, are added up entry by entry.
    """
    total = 0.0
    weighted = counts.shape[0] > 0
    # The product of so many factors, each at most 2, cannot overflow.
    for start in range(0, y.shape[0], 512):
        # Slices with indices from 0: loops with indices that might be negative are not vectorised.
        stop = min(start + 512, y.shape[0])
        part, first, second, weights = (
            y[start:stop],
            slopes[start:stop],
            curves[start:stop],
            counts[start:stop],
        )
        product, size = 1.0, 0.0
        for k in range(part.shape[0]):
            a = abs(part[k])
            factor, t = _factor_and_tanh(a)
            first[k] = t if part[k] >= 0 else -t
            second[k] = 1.0 - t * t
            product *= factor
            size += a
        chunk = size + math.log(product) - math.log(2.0) * part.shape[0]
        # A smaller mean would lose more than 8 bits by cancellation.
        if weighted or chunk < part.shape[0] / 256.0:
            chunk = 0.0
            for k in range(part.shape[0]):
                a, weight = abs(part[k]), weights[k] if weighted else 1.0
                chunk += weight * (_log_cosh_series(a) if a < 0.125 else a - log(1.0 + abs(first[k])))
                first[k] *= weight
                second[k] *= weight
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
    """log cosh a for a < 1/8 by its power series, to the last bit."""
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


@elementary
def _exp_entry(y: float) -> tuple[float, float, float]:
    """φ = −exp(−y²/2), φ' and φ''."""
    square = y * y
    e = _exp_of_minus_half(square)
    return -e, y * e, e - square * e


@inline
def _write_squares(y: np.ndarray, squares: np.ndarray) -> None:
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            # Squares only scale the steps. Where they overflow in single precision, φ'' is 0 or has no meaning.
            square = y[i, k] * y[i, k]
            squares[i, k] = square if square < np.float32(1e30) else np.float32(1e30)


def terms_of(name: str, row: Any) -> Any:
    """Compile Σ φ(y_i), φ'(y_i) and φ''(y_i) of the first rows of a tile, and the squares of all its entries."""

    @named(name)
    def terms(
        Y: np.ndarray,
        counts: np.ndarray,
        values: np.ndarray,
        slopes: np.ndarray,
        curves: np.ndarray,
        squares: np.ndarray,
    ) -> None:
        for i in range(values.shape[0]):
            values[i] = row(Y[i], counts, slopes[i], curves[i])
        _write_squares(Y, squares)

    return terms


class ScalarKernels(NamedTuple):
    """The compiled functions of one contrast."""

    terms: Any
    search: Any


def compile_scalar(
    phi: Callable, dphi: Callable, d2phi: Callable | None, pair: Callable | None, even: bool
) -> ScalarKernels:
    """The functions of a user's contrast, which are compiled when they are first called.

    A function that cannot be compiled is refused at once, with a TypeError.
    """
    name = f"scalar_{next(_numbers)}"
    row = row_of(name, entry_of(phi, dphi, d2phi))
    search = search_of(name, row, even)
    if pair is not None:
        search = exact_of(name, pair, search)
    return ScalarKernels(terms_of(name, row), search)


def exact_of(name: str, pair: Any, search: Any) -> Any:
    """A user's exact solution of the pair problem; the search, if weights of columns differ or rows are weighted."""
    solve = pair if hasattr(pair, "py_func") else bound(pair)
    column = types.Array(types.float64, 1, "C")
    found = _returned("pair", solve, (column, column), "two arrays of floats")
    if found is not None and not (isinstance(found, types.BaseTuple) and len(found) == 2):
        raise TypeError(f"pair must return an angle and a gain, numba finds that it returns {found}")

    @named(name)
    def exact(
        x: np.ndarray, y: np.ndarray, counts: np.ndarray, one: float, other: float
    ) -> tuple[float, float, int]:
        if one == other and not counts.shape[0]:
            theta, gain = solve(x, y)
            return float(theta), float(gain), 1
        return search(x, y, counts, one, other)

    return exact


def entry_of(phi: Callable, dphi: Callable, d2phi: Callable | None) -> Any:
    """Compile φ, φ' and φ'' of an entry, from a user's functions."""
    value, slope = _of_a_number("phi", phi), _of_a_number("dphi", dphi)

    if d2phi is None:

        @elementary
        def curve(y: float) -> float:
            h = math.sqrt(EPS) * (1.0 + abs(y))
            return (slope(y + h) - slope(y)) / h

    else:
        curve = _of_a_number("d2phi", d2phi)

    return elementary(lambda y: (value(y), slope(y), curve(y)))


def row_of(name: str, entry: Any) -> Any:
    """Compile the `row` of a contrast from the function that returns φ, φ' and φ'' of an entry."""

    @named(name)
    def row(y: np.ndarray, counts: np.ndarray, slopes: np.ndarray, curves: np.ndarray) -> float:
        total = 0.0
        if counts.shape[0]:
            for k in range(y.shape[0]):
                value, slope, curve = entry(np.float64(y[k]))
                total += counts[k] * value
                slopes[k] = counts[k] * slope
                curves[k] = counts[k] * curve
            return total
        for k in range(y.shape[0]):
            value, slopes[k], curves[k] = entry(np.float64(y[k]))
            total += value
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


# Closures are not cached on disk; these functions, which call them, are.
_exp_row = row_of("exp", _exp_entry)
_log_cosh_terms, _exp_terms = terms_of("log_cosh", _log_cosh_row), terms_of("exp", _exp_row)
_log_cosh_search = search_of("log_cosh", _log_cosh_row, even=True)
_exp_search = search_of("exp", _exp_row, even=True)


@kernel
def log_cosh_terms(*args: Any) -> None:
    """See `terms_of`."""
    _log_cosh_terms(*args)


@kernel
def exp_terms(*args: Any) -> None:
    """See `terms_of`."""
    _exp_terms(*args)


@kernel
def log_cosh_search(*args: Any) -> Any:
    """See `search_of`."""
    return _log_cosh_search(*args)


@kernel
def exp_search(*args: Any) -> Any:
    """See `search_of`."""
    return _exp_search(*args)


LOG_COSH = ScalarKernels(log_cosh_terms, log_cosh_search)
EXP = ScalarKernels(exp_terms, exp_search)
