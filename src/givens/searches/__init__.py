"""Exact one-dimensional searches in plain NumPy: closed forms, sums of harmonics, and thresholds with breakpoints.

They document the pair problems and are the oracle of the compiled searches in `givens.kernels`.
"""

from givens.searches.breakpoints import breakpoint_search, pair_value
from givens.searches.closed_forms import Search, cubic, periodic, polynomial, quartic
from givens.searches.harmonics import Harmonics

__all__ = [
    "Harmonics",
    "Search",
    "breakpoint_search",
    "cubic",
    "pair_value",
    "periodic",
    "polynomial",
    "quartic",
]
