"""Checks of data that every objective makes."""

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


def power_of_two(A: np.ndarray) -> float:
    """The power of two next to the largest |entry|: dividing by it is exact, and then no square overflows or vanishes."""
    largest = max(float(np.max(A, initial=0.0)), -float(np.min(A, initial=0.0)))
    return 1.0 if largest == 0 else float(2.0 ** np.frexp(largest)[1])


def power(base: float, exponent: int) -> float:
    """base**exponent, infinite or zero where that is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.power(np.float64(base), exponent))
