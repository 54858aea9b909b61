"""Data of every size: what is finite, and the powers of two that bring it near 1, which costs no rounding."""

from __future__ import annotations

import numpy as np


def check_data(A: np.ndarray, name: str) -> np.ndarray:
    """A real, finite array of float64 or float32, or an error that says what is wrong and where."""
    A = np.asarray(A)
    if np.iscomplexobj(A):
        raise TypeError(f"{name} must be real, got complex numbers")
    if A.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got values of type {A.dtype}")
    if A.dtype not in (np.float32, np.float64):
        A = A.astype(np.float64)
    if not np.isfinite(A).all():
        bad = ~np.isfinite(A)
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, but {int(bad.sum())} entries are not, the first at {where}: {A[where]}"
        )
    return A


def binary_exponent(size: float) -> int:
    """The e of 2^(e − 1) ≤ size < 2^e, and 0 for a size of 0."""
    return int(np.frexp(size)[1])


def power_of_two(A: np.ndarray | float) -> float:
    """The power of two above the largest |entry|: dividing by it is exact, and then no square overflows or vanishes.

    Of the largest and smallest numbers it is 2^±1000, which has a reciprocal.
    """
    largest = max(float(np.max(A, initial=0.0)), -float(np.min(A, initial=0.0)))
    return float(np.ldexp(1.0, min(max(binary_exponent(largest), -1000), 1000)))


def power(base: float, exponent: int) -> float:
    """base**exponent, infinite or zero where that is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.power(np.float64(base), exponent))
