"""Finite data, and powers of two that bring data of any size near 1 without rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from givens.support.arguments import EPS as EPS
from givens.support.arguments import are, as_array, refuse_mask


def check_data(A: Any, name: str, dimensions: int | None = None) -> np.ndarray:
    """A real, finite array of float64 or float32, or an error that says what is wrong and where.

    >>> check_data([[1, 2]], "A", dimensions=2)
    array([[1., 2.]])
    """
    refuse_mask(A, name)
    A = as_array(A, name)
    if dimensions is not None and A.ndim != dimensions:
        form = {1: "a vector", 2: "a matrix"}.get(dimensions, f"an array of {dimensions} dimensions")
        raise ValueError(f"{name} must be {form}, got an array of shape {A.shape}")
    if np.iscomplexobj(A):
        raise TypeError(f"{name} must be real, got complex numbers")
    if A.dtype == object:
        A = _numbers(A, name)
    if A.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got values of type {A.dtype}")
    if A.dtype not in (np.float32, np.float64):
        A = A.astype(np.float64)
    if not np.isfinite(A).all():
        bad = ~np.isfinite(A)
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, but {are(int(bad.sum()), 'entry', 'entries')} not, the first at {where}: {A[where]}"
        )
    return A


def refuse_too_large(values: Any, name: str, what: str, advice: str) -> None:
    """Raise an error unless the values, sums or products that were computed from `name`, are finite.

    >>> refuse_too_large(np.array([np.inf]), "X", "their sums", "divide it by the largest")
    Traceback (most recent call last):
    ValueError: X has numbers so large that their sums exceed what float64 holds: divide it by the largest
    """
    if not np.isfinite(values).all():
        dtype = np.asarray(values).dtype
        raise ValueError(f"{name} has numbers so large that {what} exceed what {dtype} holds: {advice}")


def _numbers(A: np.ndarray, name: str) -> np.ndarray:
    """Objects as numbers, such as those of a table with whole numbers and missing values."""
    try:
        return A.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be numbers, got objects that are none") from None


def binary_exponent(size: float) -> int:
    """The e of 2^(e − 1) ≤ size < 2^e, and 0 for a size of 0."""
    return math.frexp(size)[1]


def power_of_two(A: np.ndarray | float) -> float:
    """The power of two above the largest |entry|: dividing by it is exact, and then no square overflows or vanishes.

    Of the largest and smallest numbers it is 2^±1000, which has a reciprocal.
    """
    return float(np.ldexp(1.0, min(max(binary_exponent(largest_size(A)), -1000), 1000)))


def unit_of(rows: Any) -> float:
    """A power of two that brings rows of extreme size near 1, so that their cubes stay finite; 1 for all others."""
    size = largest_size(rows)
    return 1.0 if size == 0.0 or 1e-60 < size < 1e60 else 1.0 / power_of_two(size)


def largest_size(rows: Any) -> float:
    """The largest |entry| of rows, dense or sparse; 0 if there is none."""
    values = rows.data if hasattr(rows, "toarray") else rows
    return max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))


def power(base: float, exponent: int) -> float:
    """base**exponent, infinite or zero where that is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.power(np.float64(base), exponent))


def unit_rows(A: np.ndarray) -> np.ndarray:
    """Rows divided by their norms, of numbers of any size; rows of zeros stay zero.

    >>> unit_rows(np.array([[3e200, 4e200], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    largest = np.abs(A).max(axis=1, keepdims=True, initial=0.0)
    scaled = A / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(norms > 0, norms, 1.0)
